//! Data of subscribers: policy data of a UDR, policy counters of a CHF, what changes of them, and what happens without.

use std::net::SocketAddr;
use std::path::Path;

use http::{Method, StatusCode};
use pcf::config::{ChfFallback, UdrFallback, UnknownUser};
use pcf::{Config, Event};
use sbi::Response;
use sbi::problem::Problem;
use serde_json::{Value, json};
use testpeer::http2::Peer;
use testpeer::http2::frame::{self, Frame, flag, kind};
use testpeer::sbi::{Seen, Server, no_content};

use crate::authorization::{APP_SESSIONS, call};
use crate::policies::{AM, association};
use crate::support::{Pcf, SM_POLICIES, ask_sources, context, local, start, until};

/// An answer that names what was created.
fn created(root: &str, path: &str, body: &Value) -> Response {
    let mut response = sbi::json::response(StatusCode::CREATED, body);
    let headers = response.headers_mut();
    headers.set_printed(sbi::name::LOCATION, format!("{root}{path}"));
    response
}

/// A UDR that has a category for every subscriber.
fn udr(category: &'static str) -> Server {
    let server = Server::start(|_| no_content());
    let root = server.root();
    server.answers(move |seen| answer_of_udr(&root, category, seen));
    server
}

fn answer_of_udr(root: &str, category: &str, seen: &Seen) -> Response {
    match seen.method {
        Method::POST => created(root, "/nudr-dr/v2/policy-data/subs-to-notify/s1", &seen.json()),
        Method::GET => sbi::json::response(StatusCode::OK, &document(category)),
        _ => no_content(),
    }
}

fn document(category: &str) -> Value {
    json!({"smPolicySnssaiData": {"1": {"snssai": {"sst": 1}}}, "category": category})
}

/// A CHF whose counter `monthly` has this status.
fn chf(status: &'static str) -> Server {
    let server = Server::start(|_| no_content());
    let root = server.root();
    server.answers(move |seen| match seen.method {
        Method::POST => {
            let body = json!({"statusInfos": infos(status)});
            created(&root, "/nchf-spendinglimitcontrol/v1/subscriptions/c1", &body)
        }
        _ => no_content(),
    });
    server
}

fn infos(status: &str) -> Value {
    json!({"monthly": {"policyCounterId": "monthly", "currentStatus": status}})
}

/// A project whose session rule is named by the subscriber's category and the counter's status.
fn project(folder: &Path) {
    let text = concat!(
        "name: test\nservice: sm\nblocks:\n",
        "  - if: {$eq: [$subscriber.category, barred]}\n    then:\n      - reject: {cause: USER_UNKNOWN}\n",
        "  - sessionRule:\n      sessRuleId: {$concat: [{$first: [$subscriber.category, none]}, \"-\", ",
        "{$first: [$counters.monthly.currentStatus, none]}]}\n",
    );
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("project.yaml"), text).unwrap();
}

/// A PCF with that project and these sources.
fn with(folder: &Path, udr: Option<&Server>, chf: Option<&Server>, change: impl FnOnce(&mut Config)) -> Pcf {
    project(folder);
    start(|config| {
        config.policy.sm = Some(folder.to_owned());
        ask_sources(config, udr, chf);
        change(config);
    })
}

/// The name of the session rule of a decision.
fn rule(decision: &Value) -> String {
    let rules = decision["sessRules"].as_object();
    let named = rules.and_then(|rules| rules.iter().find(|(_, rule)| !rule.is_null()));
    named.map(|(name, _)| name.clone()).unwrap_or_default()
}

#[test]
fn policies_read_policy_data_and_counters_and_the_subscriptions_end_with_the_session() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let (udr, chf) = (udr("gold"), chf("low"));
        let pcf = with(folder.path(), Some(&udr), Some(&chf), |config| {
            config.pds.chf.counters = vec!["monthly".to_owned()];
        });
        let made = pcf.post(SM_POLICIES, &context(&json!({}))).await;
        assert_eq!(rule(&made.json), "gold-low");
        let path = crate::support::path_of(&made);

        // The subscription comes first: no change falls between it and the query.
        let asked = udr.take();
        assert_eq!(
            (asked[0].method.as_str(), asked[1].method.as_str()),
            ("POST", "GET")
        );
        assert_eq!(asked[0].path, "/nudr-dr/v2/policy-data/subs-to-notify");
        crate::judge::is(
            "TS29519_Policy_Data.yaml",
            "PolicyDataSubscription",
            &asked[0].json(),
        );
        let resource = "/nudr-dr/v2/policy-data/ues/imsi-001010000000001/sm-data";
        assert_eq!(asked[1].path, resource);
        assert_eq!(
            asked[0].json()["monitoredResourceUris"],
            json!([format!("{}{resource}", udr.root())])
        );
        let callback = asked[0].json()["notificationUri"].as_str().unwrap().to_owned();
        let root = format!("{}/signalbox-pcf/v1/policy-data-change/", pcf.origin);
        let segment = callback.strip_prefix(&root).unwrap();
        assert_eq!(segment.len(), 32, "random: {segment}");
        let limits = &chf.take()[0];
        assert_eq!(limits.path, "/nchf-spendinglimitcontrol/v1/subscriptions");
        let file = "TS29594_Nchf_SpendingLimitControl.yaml";
        crate::judge::is(file, "SpendingLimitContext", &limits.json());
        assert_eq!(limits.json()["policyCounterIds"], json!(["monthly"]));

        // An update reads what is cached.
        let updated = pcf.post(&format!("{path}/update"), &json!({})).await;
        assert_eq!(updated.status, StatusCode::OK);
        assert_eq!((udr.count(), chf.count()), (0, 0));
        assert_eq!(pcf.running().count(Event::UdrCached), 1);

        assert_eq!(
            pcf.post(&format!("{path}/delete"), &json!({})).await.status,
            StatusCode::NO_CONTENT
        );
        until(|| pcf.running().count(Event::SubscriptionEnded) == 2).await;
        assert_eq!(udr.take()[0].path, "/nudr-dr/v2/policy-data/subs-to-notify/s1");
        assert_eq!(
            chf.take()[0].path,
            "/nchf-spendinglimitcontrol/v1/subscriptions/c1"
        );
    });
}

#[test]
fn a_change_during_a_creation_that_cannot_be_decided_leaves_the_session_to_its_smf() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let text = concat!(
            "name: test\nservice: sm\nblocks:\n  - block: endless\n    while: {$eq: [$event, subscriberData]}\n",
            "    do:\n      - set: {x: 1}\n  - sessionRule: {sessRuleId: own}\n",
        );
        std::fs::write(folder.path().join("project.yaml"), text).unwrap();
        let udr = udr("gold");
        let pcf = start(|config| {
            config.policy.sm = Some(folder.path().to_owned());
            config.policy.fallback = pcf::config::Fallback::Refuse;
            ask_sources(config, Some(&udr), None);
        });
        udr.holds();
        let before = udr.count();
        let changed = async {
            until(|| udr.count() > before).await;
            let subscription = udr.seen()[before].json();
            let callback: http::Uri = subscription["notificationUri"].as_str().unwrap().parse().unwrap();
            let notified = pcf.post(callback.path(), &json!([])).await;
            assert_eq!(notified.status, StatusCode::NO_CONTENT);
            udr.releases();
        };
        let body = context(&json!({}));
        let (made, ()) = tokio::join!(pcf.post(SM_POLICIES, &body), changed);
        let path = crate::support::path_of(&made);
        assert_eq!(rule(&made.json), "own");
        assert!(pcf.running().count(Event::PolicyFault) >= 1);
        assert_eq!(pcf.get(&path).await.status, StatusCode::OK);
    });
}

#[test]
fn a_change_at_the_udr_changes_the_rules_and_the_smf_is_notified() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let udr = udr("gold");
        let smf = Server::start(|_| no_content());
        let pcf = with(folder.path(), Some(&udr), None, |_| {});
        let path = pcf
            .session(&json!({"notificationUri": format!("{}/n/1", smf.root())}))
            .await;
        let callback = udr.take()[0].json()["notificationUri"]
            .as_str()
            .unwrap()
            .to_owned();
        let callback = callback.parse::<http::Uri>().unwrap().path().to_owned();

        // A hint, also with the whole document: what the UDR answers counts.
        let root = udr.root();
        udr.answers(move |seen| answer_of_udr(&root, "silver", seen));
        let change = json!([{"ueId": "imsi-001010000000001", "smPolicyData": document("platinum")}]);
        assert_eq!(pcf.post(&callback, &change).await.status, StatusCode::NO_CONTENT);
        until(|| smf.count() == 1).await;
        let notified = &smf.take()[0];
        assert_eq!(notified.uri().path(), "/n/1/update");
        crate::judge::is(crate::judge::SM, "SmPolicyNotification", &notified.json());
        let rules = &notified.json()["smPolicyDecision"]["sessRules"];
        assert!(
            rules["silver-none"].is_object() && rules["gold-none"].is_null(),
            "{rules}"
        );
        assert_eq!(udr.take().len(), 1);

        // With fragments of it.
        let root = udr.root();
        udr.answers(move |seen| answer_of_udr(&root, "bronze", seen));
        let change =
            json!([{"ueId": "imsi-001010000000001", "smPolicyData": document("x"), "reportedFragments": []}]);
        assert_eq!(pcf.post(&callback, &change).await.status, StatusCode::NO_CONTENT);
        until(|| smf.count() == 1).await;
        assert_eq!(rule(&smf.take()[0].json()["smPolicyDecision"]), "bronze-none");
        assert_eq!(rule(&pcf.get(&path).await.json["policy"]), "bronze-none");

        // A policy that refuses the subscriber now has the session ended.
        let root = udr.root();
        udr.answers(move |seen| answer_of_udr(&root, "barred", seen));
        let change = json!([{"ueId": "imsi-001010000000001", "smPolicyData": document("barred")}]);
        assert_eq!(pcf.post(&callback, &change).await.status, StatusCode::NO_CONTENT);
        until(|| smf.count() == 1).await;
        let ended = &smf.take()[0];
        assert_eq!(ended.uri().path(), "/n/1/terminate");
        assert_eq!(ended.json()["cause"], "UE_SUBSCRIPTION");

        for (path, body, status) in [
            (format!("{callback}x"), json!([]), 404),
            (callback.clone(), json!({}), 400),
            (callback.clone(), json!("x"), 400),
        ] {
            assert_eq!(
                pcf.post(&path, &body).await.status.as_u16(),
                status,
                "{path} {body}"
            );
        }
        assert_eq!(pcf.get(&callback).await.status, StatusCode::METHOD_NOT_ALLOWED);
    });
}

#[test]
fn a_counter_that_changes_changes_the_policy() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let chf = chf("low");
        let smf = Server::start(|_| no_content());
        let pcf = with(folder.path(), None, Some(&chf), |_| {});
        let path = pcf
            .session(&json!({"notificationUri": format!("{}/n/1", smf.root())}))
            .await;
        let callback = chf.take()[0].json()["notifUri"].as_str().unwrap().to_owned();
        let callback = callback.parse::<http::Uri>().unwrap().path().to_owned();
        let status = json!({"supi": "imsi-001010000000001", "statusInfos": infos("exhausted")});
        assert_eq!(
            pcf.post(&format!("{callback}/notify"), &status).await.status,
            StatusCode::NO_CONTENT
        );
        until(|| smf.count() == 1).await;
        assert_eq!(rule(&smf.take()[0].json()["smPolicyDecision"]), "none-exhausted");
        // The counter is kept with the session: an update reads it.
        pcf.post(&format!("{path}/update"), &json!({})).await;
        assert_eq!(rule(&pcf.get(&path).await.json["policy"]), "none-exhausted");
        let end = json!({"supi": "imsi-001010000000001", "termCause": "REMOVED_SUBSCRIBER"});
        assert_eq!(
            pcf.post(&format!("{callback}/terminate"), &end).await.status,
            StatusCode::NO_CONTENT
        );
        until(|| smf.count() == 1).await;
        assert_eq!(rule(&smf.take()[0].json()["smPolicyDecision"]), "none-none");
        // The subscription is gone: nothing is left to end.
        pcf.post(&format!("{path}/delete"), &json!({})).await;
        assert_eq!(pcf.running().count(Event::SubscriptionEnded), 0);
        // Each notification was a hint: the CHF was asked.
        let asked: Vec<Method> = chf.take().into_iter().map(|seen| seen.method).collect();
        assert_eq!(asked, [Method::PUT, Method::PUT]);
    });
}

#[test]
fn an_unknown_user_is_refused_or_gets_the_default_as_the_settings_say() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let udr = Server::start(|seen| match seen.method {
            Method::POST => created(
                "http://127.0.0.1:9",
                "/nudr-dr/v2/policy-data/subs-to-notify/1",
                &seen.json(),
            ),
            _ => Problem::with_cause(StatusCode::NOT_FOUND, "USER_NOT_FOUND").into_response(),
        });
        let mut settings = None;
        let pcf = with(folder.path(), Some(&udr), None, |config| {
            settings = Some(config.clone());
        });
        let refused = pcf.post(SM_POLICIES, &context(&json!({}))).await;
        assert_eq!(
            (refused.status, refused.cause()),
            (StatusCode::BAD_REQUEST, "USER_UNKNOWN")
        );
        assert_eq!(pcf.running().count(Event::UdrUnknown), 1);
        let mut settings = settings.unwrap();
        settings.pds.udr.unknown_user = UnknownUser::Default;
        settings
            .pds
            .udr
            .default
            .insert("category".to_owned(), json!("guest"));
        pcf.running().reload(&settings).unwrap();
        let made = pcf.post(SM_POLICIES, &context(&json!({}))).await;
        assert_eq!(rule(&made.json), "guest-none");
    });
}

#[test]
fn a_udr_that_fails_is_slow_or_gone_leaves_the_fallback_to_decide() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let udr = udr("gold");
        let mut settings = None;
        let pcf = with(folder.path(), Some(&udr), None, |config| {
            config.pds.udr.fallback = UdrFallback::Cached;
            config
                .pds
                .udr
                .default
                .insert("category".to_owned(), json!("fallback"));
            // Nothing is fresh: each request queries.
            config.pds.cache.age = settings::Period::from_millis(0);
            settings = Some(config.clone());
        });
        let mut settings = settings.unwrap();
        let create = async |supi: &str| pcf.post(SM_POLICIES, &context(&json!({"supi": supi}))).await;
        let (known, other) = ("imsi-001010000000001", "imsi-001010000000002");
        assert_eq!(rule(&create(known).await.json), "gold-none");
        let count = |event| pcf.running().count(event);

        // 503: what was cached, whatever its age; the default for a subscriber of whom nothing is.
        udr.fails_with(503);
        assert_eq!(rule(&create(known).await.json), "gold-none");
        assert_eq!(rule(&create(other).await.json), "fallback-none");
        assert_eq!(
            (
                count(Event::UdrStale),
                count(Event::UdrDefaulted),
                count(Event::UdrFailed)
            ),
            (1, 1, 2)
        );
        assert_eq!(count(Event::UdrSubscriptionFailed), 2);

        settings.pds.udr.fallback = UdrFallback::Reject;
        pcf.running().reload(&settings).unwrap();
        assert_eq!(create(known).await.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(count(Event::UdrRejected), 1);

        // Slow: the deadline of all sources ends the wait.
        udr.holds();
        settings.pds.deadline = settings::Period::from_millis(50);
        settings.pds.udr.fallback = UdrFallback::Default;
        pcf.running().reload(&settings).unwrap();
        assert_eq!(rule(&create(known).await.json), "fallback-none");
        assert_eq!((count(Event::UdrDefaulted), count(Event::UdrFailed)), (2, 4));

        // Gone.
        udr.stop();
        assert_eq!(rule(&create(known).await.json), "fallback-none");
        assert_eq!(count(Event::UdrDefaulted), 3);
    });
}

#[test]
fn a_chf_that_is_gone_leaves_the_fallback_to_decide() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let chf = chf("low");
        let mut settings = None;
        let pcf = with(folder.path(), None, Some(&chf), |config| {
            config
                .pds
                .chf
                .default
                .insert("monthly".to_owned(), "assumed".to_owned());
            settings = Some(config.clone());
        });
        chf.stop();
        let made = pcf.post(SM_POLICIES, &context(&json!({}))).await;
        assert_eq!(rule(&made.json), "none-assumed");
        let mut settings = settings.unwrap();
        settings.pds.chf.fallback = ChfFallback::Reject;
        pcf.running().reload(&settings).unwrap();
        let refused = pcf.post(SM_POLICIES, &context(&json!({}))).await;
        assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
        let count = |event| pcf.running().count(event);
        assert_eq!(
            (
                count(Event::ChfFailed),
                count(Event::ChfDefaulted),
                count(Event::ChfRejected)
            ),
            (2, 1, 1)
        );
    });
}

#[test]
fn sources_are_discovered_at_the_nrf_and_the_next_instance_is_tried() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let (failing, working, elsewhere) = (udr("first"), udr("second"), udr("third"));
        failing.fails_with(503);
        let profile = |server: &Server, priority: u64, start: &str, end: &str| {
            json!({"nfInstanceId": "4947a69a-f61b-4bc1-b9da-47c9c5d14b64", "nfType": "UDR", "nfStatus": "REGISTERED",
                "priority": priority, "udrInfo": {"supiRanges": [{"start": start, "end": end}]},
                "nfServices": [{"serviceInstanceId": "1", "serviceName": "nudr-dr", "scheme": "http",
                    "versions": [], "nfServiceStatus": "REGISTERED",
                    "ipEndPoints": [{"ipv4Address": "127.0.0.1", "port": server.address.port()}]}]})
        };
        let (low, high) = ("001010000000000", "001019999999999");
        let found = json!({"validityPeriod": 100, "nfInstances": [
            profile(&elsewhere, 0, "999990000000000", "999999999999999"),
            profile(&failing, 1, low, high), profile(&working, 2, low, high)]});
        let nrf = Server::start(move |seen| match seen.method {
            Method::GET => sbi::json::response(StatusCode::OK, &found),
            _ => sbi::json::response(StatusCode::CREATED, &seen.json()),
        });
        project(folder.path());
        let pcf = start(|config| {
            config.policy.sm = Some(folder.path().to_owned());
            config.nrf.api_roots = vec![nrf.root()];
            config.pds.udr.enabled = true;
            config.pds.deadline = settings::Period::from_secs(20);
        });
        for supi in ["imsi-001010000000001", "imsi-001010000000002"] {
            let made = pcf.post(SM_POLICIES, &context(&json!({"supi": supi}))).await;
            assert_eq!(rule(&made.json), "second-none");
        }
        let asked = nrf
            .seen()
            .into_iter()
            .filter(|seen| seen.path.starts_with("/nnrf-disc/"));
        let asked: Vec<String> = asked.map(|seen| seen.path).collect();
        assert_eq!(
            asked,
            [
                "/nnrf-disc/v1/nf-instances?target-nf-type=UDR&requester-nf-type=PCF&service-names=nudr-dr&data-set=POLICY"
            ]
        );
        assert_eq!((failing.count(), working.count(), elsewhere.count()), (4, 4, 0));
    });
}

#[test]
fn sources_without_api_roots_need_an_nrf() {
    local(async {
        let mut config = crate::support::config(Path::new("/nonexistent"));
        config.pds.udr.enabled = true;
        let mut faults = settings::Faults::default();
        settings::Validate::validate(&config, &mut faults);
        let text = format!("{faults:?}");
        assert!(text.contains("nrf.apiRoots"), "{text}");
    });
}

/// Sends a creation, and gives it up while the UDR is asked for what it needs: by a reset, or by leaving.
async fn given_up(pcf: &Pcf, udr: &Server, (path, body): (&str, &Value), leaves: bool) {
    udr.holds();
    let before = udr.count();
    let address: SocketAddr = pcf
        .origin
        .to_string()
        .trim_start_matches("http://")
        .parse()
        .unwrap();
    let connections = || {
        let page = pcf.running().handle().registry().render();
        let gauge = page
            .lines()
            .find_map(|line| line.strip_prefix("signalbox_sbi_server_connections "));
        gauge.unwrap().parse::<f64>().unwrap()
    };
    let others = connections();
    let mut consumer = Peer::client(address).await.unwrap();
    let mut fields = frame::request_fields("POST", path);
    fields.push(("content-type", "application/json"));
    let body = body.to_string();
    consumer.send(&frame::headers(1, &fields, false)).await.unwrap();
    consumer
        .send(&frame::data(1, body.as_bytes(), true))
        .await
        .unwrap();
    until(|| udr.count() > before).await;
    if leaves {
        drop(consumer);
        until(|| connections() <= others).await;
    } else {
        let given_up = [frame::reset(1, 8), frame::ping([1; 8])].concat();
        consumer.send(&given_up).await.unwrap();
        let is_answer = |found: &Frame| found.kind == kind::PING && found.flags & flag::ACK != 0;
        consumer.wait_for("PING", is_answer).await.unwrap();
    }
    udr.releases();
}

/// A consumer that has reset its request, or has left, never learns the URI of what the request makes.
#[test]
fn what_its_consumer_has_given_up_does_not_stand() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let udr = udr("gold");
        let pcf = with(folder.path(), Some(&udr), None, |config| {
            config.pds.cache.age = settings::Period::from_millis(0);
            config.media.allowed_services = true;
        });
        let count = |event| pcf.running().count(event);
        for (number, leaves) in [(1, false), (2, true)] {
            let session = context(&json!({"pduSessionId": number}));
            given_up(&pcf, &udr, (SM_POLICIES, &session), leaves).await;
            until(|| count(Event::SmLost) == number).await;
            let access = association(&json!({}));
            given_up(&pcf, &udr, (AM, &access), leaves).await;
            until(|| count(Event::AmDeleted) == number).await;
        }
        let (_, sessions) = testpeer::page(pcf.running().handle().routes(), "/pcf/sessions").await;
        assert_eq!(sessions, "[]");
        // Nor does it end what stands: the consumer may have sent it again meanwhile.
        let standing = pcf.session(&json!({"pduSessionId": 9})).await;
        for (number, leaves) in [(1, false), (2, true)] {
            let again = context(&json!({"pduSessionId": 9}));
            given_up(&pcf, &udr, (SM_POLICIES, &again), leaves).await;
            until(|| count(Event::TooLate) == number).await;
        }
        assert_eq!(pcf.get(&standing).await.status, StatusCode::OK);

        let path = pcf.session(&json!({})).await;
        for (number, leaves) in [(1, false), (2, true)] {
            let call = call("http://127.0.0.1:9", &json!({}));
            given_up(&pcf, &udr, (APP_SESSIONS, &call), leaves).await;
            until(|| count(Event::AfDeleted) == number).await;
        }
        assert_eq!(count(Event::AfCreated), 2);
        let decision = pcf.get(&path).await.json["policy"].clone();
        let rules = decision["pccRules"].as_object();
        assert!(
            rules.is_none_or(|rules| rules.values().all(|rule| rule["flowInfos"].is_null())),
            "{decision}"
        );
    });
}
