//! Subscriptions at UDR and CHF that their producer limits in time, and producers that were away when a session began.

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use http::{Method, StatusCode};
use pcf::{Config, Event};
use sbi::Response;
use sbi::problem::Problem;
use serde_json::{Value, json};
use testpeer::sbi::{Seen, Server, no_content};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::support::{Pcf, SM_POLICIES, ask_sources, context, local, path_of, start};

const CHF_PATH: &str = "/nchf-spendinglimitcontrol/v1/subscriptions";
const UDR_PATH: &str = "/nudr-dr/v2/policy-data/subs-to-notify";

fn created(location: &str, body: &Value) -> Response {
    let mut response = sbi::json::response(StatusCode::CREATED, body);
    response.headers_mut().set_printed(sbi::name::LOCATION, location);
    response
}

/// A moment that this many milliseconds lie ahead of.
fn ahead(millis: i64) -> String {
    let end = OffsetDateTime::now_utc() + time::Duration::milliseconds(millis);
    end.format(&Rfc3339).unwrap()
}

fn status(status: &str, millis: i64) -> Value {
    json!({"statusInfos": {"monthly": {"policyCounterId": "monthly", "currentStatus": status}}, "expiry": ahead(millis)})
}

/// A producer that numbers subscriptions and gives each a term of a second.
fn producer(
    path: &'static str,
    body: impl Fn(&Seen) -> Value + 'static,
    renewed: impl Fn(&Seen) -> Response + 'static,
) -> Server {
    let server = Server::start(|_| no_content());
    let (root, number) = (server.root(), Cell::new(0));
    server.answers(move |seen| match seen.method {
        Method::POST => {
            number.set(number.get() + 1);
            created(&format!("{root}{path}/{}", number.get()), &body(seen))
        }
        Method::PUT => renewed(seen),
        Method::GET => sbi::json::response(StatusCode::OK, &json!({"category": "gold"})),
        _ => no_content(),
    });
    server
}

/// A PCF whose session rule is named by category and counter.
fn with(folder: &Path, udr: Option<&Server>, chf: Option<&Server>, change: impl FnOnce(&mut Config)) -> Pcf {
    let text = concat!(
        "name: test\nservice: sm\nblocks:\n  - sessionRule:\n      sessRuleId: {$concat: [",
        "{$first: [$subscriber.category, none]}, \"-\", {$first: [$counters.monthly.currentStatus, none]}]}\n",
    );
    std::fs::write(folder.join("project.yaml"), text).unwrap();
    start(|config| {
        config.policy.sm = Some(folder.to_owned());
        ask_sources(config, udr, chf);
        config.pds.retry_pause = settings::Period::from_secs(3_600);
        change(config);
    })
}

async fn until(holds: impl AsyncFn() -> bool) {
    while !holds().await {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Requests of a method that a server has got.
fn of(server: &Server, method: &Method) -> Vec<Seen> {
    server
        .seen()
        .into_iter()
        .filter(|seen| seen.method == *method)
        .collect()
}

/// The name of the session rule that a session has.
async fn rule(pcf: &Pcf, path: &str) -> String {
    let decision = pcf.get(path).await.json;
    let rules = decision["policy"]["sessRules"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    rules.keys().next().cloned().unwrap_or_default()
}

#[test]
fn subscriptions_are_renewed_before_their_producer_ends_them() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let udr = producer(
            UDR_PATH,
            |seen| {
                let mut body = seen.json();
                body["expiry"] = json!(ahead(1_000));
                body
            },
            |_| no_content(),
        );
        let chf = producer(
            CHF_PATH,
            |_| status("low", 1_000),
            |_| sbi::json::response(StatusCode::OK, &status("high", 1_000)),
        );
        let smf = Server::start(|_| no_content());
        let pcf = with(folder.path(), Some(&udr), Some(&chf), |_| {});
        let notified = format!("{}/n", smf.root());
        let path = pcf.session(&json!({"notificationUri": notified})).await;
        assert_eq!(rule(&pcf, &path).await, "gold-low");
        // Again and again: one that says nothing of the next term has the same one.
        until(async || of(&udr, &Method::PUT).len() >= 2 && of(&chf, &Method::PUT).len() >= 2).await;
        let renewed = &of(&udr, &Method::PUT)[0];
        assert_eq!(renewed.path, format!("{UDR_PATH}/1"));
        crate::judge::is(
            "TS29519_Policy_Data.yaml",
            "PolicyDataSubscription",
            &renewed.json(),
        );
        let first = of(&udr, &Method::POST)[0].json();
        assert_eq!(renewed.json(), first);
        let renewed = &of(&chf, &Method::PUT)[0];
        assert_eq!(renewed.path, format!("{CHF_PATH}/1"));
        crate::judge::is(
            "TS29594_Nchf_SpendingLimitControl.yaml",
            "SpendingLimitContext",
            &renewed.json(),
        );
        assert_eq!(renewed.json(), of(&chf, &Method::POST)[0].json());
        // The answer has the counters as they are now.
        until(async || rule(&pcf, &path).await == "gold-high").await;
        until(async || smf.count() == 1).await;
        assert_eq!(of(&chf, &Method::POST).len(), 1);
        pcf.post(&format!("{path}/delete"), &json!({})).await;
        until(async || of(&chf, &Method::DELETE).len() == 1 && of(&udr, &Method::DELETE).len() == 1).await;
    });
}

#[test]
fn a_subscription_that_its_producer_has_ended_is_made_again_also_after_a_restart() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let gone = |_: &Seen| Problem::of_status(StatusCode::NOT_FOUND).into_response();
        let terms = Rc::new(Cell::new(1_000));
        let term = terms.clone();
        let chf = producer(CHF_PATH, move |_| status("low", term.get()), gone);
        let mut settings = None;
        let mut pcf = with(folder.path(), None, Some(&chf), |config| {
            settings = Some(config.clone());
        });
        let path = pcf.session(&json!({})).await;
        pcf.stop();
        terms.set(3_600_000);
        let mut config = settings.unwrap();
        config.store.embedded.directory = pcf.directory.path().join("store");
        let running = pcf::start(config).unwrap();
        pcf.origin = format!("http://{}", running.addresses()[0]).parse().unwrap();
        pcf.running = Some(running);
        until(async || of(&chf, &Method::POST).len() == 2).await;
        until(async || pcf.running().count(Event::SubscriptionRenewed) == 1).await;
        // The session has the new one.
        until(async || {
            pcf.get(&path).await.status == StatusCode::OK
                && pcf.running().count(Event::SubscriptionRenewed) == 1
        })
        .await;
        pcf.post(&format!("{path}/delete"), &json!({})).await;
        until(async || of(&chf, &Method::DELETE).len() == 1).await;
        assert_eq!(of(&chf, &Method::DELETE)[0].path, format!("{CHF_PATH}/2"));
    });
}

#[test]
fn a_chf_and_a_udr_that_were_away_are_asked_again_at_the_next_event() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let udr = producer(UDR_PATH, Seen::json, |_| no_content());
        let chf = producer(CHF_PATH, |_| status("high", 3_600_000), |_| no_content());
        let smf = Server::start(|_| no_content());
        let pcf = with(folder.path(), Some(&udr), Some(&chf), |_| {});
        udr.fails_with(503);
        chf.fails_with(503);
        let path = pcf
            .session(&json!({"notificationUri": format!("{}/n", smf.root())}))
            .await;
        assert_eq!(rule(&pcf, &path).await, "none-none");
        for (server, root, path) in [(&udr, udr.root(), UDR_PATH), (&chf, chf.root(), CHF_PATH)] {
            let _ = server.take();
            server.answers(move |seen| match seen.method {
                Method::POST => created(&format!("{root}{path}/1"), &status("high", 3_600_000)),
                Method::GET => sbi::json::response(StatusCode::OK, &json!({"category": "gold"})),
                _ => no_content(),
            });
        }
        let updated = pcf.post(&format!("{path}/update"), &json!({})).await;
        assert_eq!(updated.status, StatusCode::OK, "{}", updated.json);
        until(async || rule(&pcf, &path).await == "gold-high").await;
        assert_eq!(
            (of(&udr, &Method::POST).len(), of(&chf, &Method::POST).len()),
            (1, 1)
        );
        until(async || smf.count() >= 1).await;
        // They are not asked once more.
        pcf.post(&format!("{path}/update"), &json!({})).await;
        pcf.post(&format!("{path}/update"), &json!({})).await;
        pcf.post(&format!("{path}/delete"), &json!({})).await;
        until(async || of(&chf, &Method::DELETE).len() == 1 && of(&udr, &Method::DELETE).len() == 1).await;
        assert_eq!(
            (of(&udr, &Method::POST).len(), of(&chf, &Method::POST).len()),
            (1, 1)
        );
    });
}

#[test]
fn a_chf_that_was_away_is_asked_again_without_an_event() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let chf = producer(CHF_PATH, |_| status("high", 3_600_000), |_| no_content());
        let smf = Server::start(|_| no_content());
        let pcf = with(folder.path(), None, Some(&chf), |config| {
            config.pds.retry_pause = settings::Period::from_millis(20);
        });
        chf.fails_with(503);
        let path = pcf
            .session(&json!({"notificationUri": format!("{}/n", smf.root())}))
            .await;
        until(async || pcf.running().count(Event::SubscriptionRenewalFailed) >= 1).await;
        let root = chf.root();
        chf.answers(move |seen| match seen.method {
            Method::POST => created(&format!("{root}{CHF_PATH}/7"), &status("high", 3_600_000)),
            _ => no_content(),
        });
        until(async || rule(&pcf, &path).await == "none-high").await;
    });
}

#[test]
fn a_udr_whose_subscriptions_hang_gives_policy_data_all_the_same() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let udr = Rc::new(Server::start(|_| no_content()));
        // The first instance holds each request.
        let hangs = Server::start(|_| no_content());
        hangs.holds();
        udr.answers(|seen| match seen.method {
            Method::GET => sbi::json::response(StatusCode::OK, &json!({"category": "gold"})),
            _ => Problem::of_status(StatusCode::SERVICE_UNAVAILABLE).into_response(),
        });
        let pcf = with(folder.path(), Some(&udr), None, |config| {
            config.pds.udr.api_roots = vec![hangs.root(), udr.root()];
            config.pds.deadline = settings::Period::from_secs(4);
        });
        let made = pcf.post(SM_POLICIES, &context(&json!({}))).await;
        assert_eq!(rule(&pcf, &path_of(&made)).await, "gold-none");
        // One that leaves each request without an answer is not asked any more, and costs the next ones nothing.
        for number in 2..=9 {
            let more = json!({"supi": format!("imsi-00101000000000{number}"), "pduSessionId": number});
            let made = pcf.post(SM_POLICIES, &context(&more)).await;
            assert_eq!(rule(&pcf, &path_of(&made)).await, "gold-none", "{number}");
        }
        assert!(hangs.count() < 10, "{} requests", hangs.count());
    });
}

#[test]
fn a_chf_that_was_away_is_asked_again_at_the_next_event_of_an_am_policy() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let chf = producer(CHF_PATH, |_| status("high", 3_600_000), |_| no_content());
        let pcf = with(folder.path(), None, Some(&chf), |config| {
            config.pds.chf.services = vec![pcf::config::CounterService::Am];
        });
        let root = chf.root();
        chf.fails_with(503);
        let association = json!({"supi": "imsi-001010000000001", "notificationUri": "http://127.0.0.1:9/amf", "suppFeat": "0"});
        let path = path_of(
            &pcf.post("/npcf-am-policy-control/v1/policies", &association)
                .await,
        );
        chf.answers(move |seen| match seen.method {
            Method::POST => created(&format!("{root}{CHF_PATH}/7"), &status("high", 3_600_000)),
            _ => no_content(),
        });
        let _ = chf.take();
        let updated = pcf.post(&format!("{path}/update"), &json!({})).await;
        assert_eq!(updated.status, StatusCode::OK, "{}", updated.json);
        until(async || of(&chf, &Method::POST).len() == 1).await;
        until(async || pcf.running().count(Event::SubscriptionRenewed) == 1).await;
    });
}
