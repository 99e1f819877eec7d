//! Policies of background data transfers, as an NEF and a UDR meet them.

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use pcf::{Config, Event};
use sbi::client::Origin;
use sbi::problem::Problem;
use serde_json::{Value, json};
use testpeer::sbi::{Got, Seen, Server, no_content};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::databases::Servers;
use crate::judge;
use crate::pages::admin;
use crate::process::Process;
use crate::support::{Pcf, ask_sources, client, config, judged, local, path_of, request, start, until, with};

pub const POLICIES: &str = "/npcf-bdtpolicycontrol/v1/bdtpolicies";
const UDR: &str = "TS29519_Policy_Data.yaml";

/// A moment that lies this many hours ahead.
fn ahead(hours: i64) -> String {
    let moment = OffsetDateTime::now_utc() + time::Duration::hours(hours);
    moment.format(&Rfc3339).unwrap()
}

/// `BdtReqData` with these further members; a null takes one away.
pub fn wish(more: &Value) -> Value {
    let value = json!({"aspId": "asp-1", "numOfUes": 1_000, "volPerUe": {"totalVolume": 1_000_000},
        "desTimeInt": {"startTime": ahead(1), "stopTime": ahead(49)}, "suppFeat": "7",
        "notifUri": "http://127.0.0.1:9/nef?asp=1", "trafficDes": "AQ==", "snssai": {"sst": 1}, "dnn": "iot"});
    with(value, more)
}

/// Windows that make up the whole day.
pub fn windows(more: &Value) -> Value {
    let half = |name: &str, from: &str, to: &str| {
        let value =
            json!({"name": name, "from": from, "to": to, "ratingGroup": 10, "maxBitRateDl": "1 Gbps"});
        with(value, more)
    };
    json!([
        half("morning", "00:00", "12:00"),
        half("evening", "12:00", "00:00")
    ])
}

pub fn offer(config: &mut Config, model: &Value) {
    config.bdt = serde_json::from_value(model.clone()).unwrap();
}

async fn patch(origin: &Origin, path: &str, body: &Value) -> Got {
    let kind = "application/merge-patch+json";
    judged(
        &client(),
        origin,
        request(Method::PATCH, path, kind, body.to_string()),
    )
    .await
}

fn select(id: &Value) -> Value {
    json!({"bdtPolData": {"selTransPolicyId": id}})
}

/// The identities of the transfer policies that were offered.
fn offered(policy: &Value) -> Vec<Value> {
    let policies = policy["bdtPolData"]["transfPolicies"].as_array().unwrap();
    policies
        .iter()
        .map(|policy| policy["transPolicyId"].clone())
        .collect()
}

/// The requests about the data of transfers that a UDR has got, judged by the standard's file.
fn data(udr: &Server) -> Vec<Seen> {
    let mut seen = udr.seen();
    seen.retain(|seen| seen.path.contains("/policy-data/bdt-data/"));
    for one in &seen {
        match one.method {
            Method::PUT => judge::is(UDR, "BdtData", &one.json()),
            Method::PATCH => judge::is(UDR, "BdtDataPatch", &one.json()),
            _ => assert!(one.body.is_empty()),
        }
    }
    seen
}

fn methods(udr: &Server) -> Vec<String> {
    data(udr).iter().map(|seen| seen.method.to_string()).collect()
}

async fn refused(pcf: &Pcf, body: &Value, status: StatusCode, cause: Option<&str>) {
    let got = pcf.post(POLICIES, body).await;
    assert_eq!(
        (got.status, got.json["cause"].as_str()),
        (status, cause),
        "{body}"
    );
}

#[test]
fn a_provider_selects_one_of_several_transfer_policies_and_another_one_later() {
    local(async {
        let udr = Server::start(|_| no_content());
        let pcf = start(|config| {
            offer(config, &json!({"windows": windows(&json!({})), "maxPolicies": 3}));
            ask_sources(config, Some(&udr), None);
        });
        let created = pcf.post(POLICIES, &wish(&json!({}))).await;
        let path = path_of(&created);
        assert_eq!(offered(&created.json), [1, 2, 3]);
        let data_of = &created.json["bdtPolData"];
        assert_eq!(
            (&data_of["suppFeat"], data_of.get("selTransPolicyId")),
            (&json!("7"), None)
        );

        let wrong = patch(&pcf.origin, &path, &select(&json!(4))).await;
        assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
        assert_eq!(
            wrong.json["invalidParams"][0]["param"],
            "/bdtPolData/selTransPolicyId"
        );
        let selected = patch(&pcf.origin, &path, &select(&json!(2))).await;
        assert_eq!(selected.json["bdtPolData"]["selTransPolicyId"], 2);
        until(|| methods(&udr) == ["PUT"]).await;
        let put = data(&udr)[0].json();
        assert_eq!(
            (
                &put["transPolicy"]["transPolicyId"],
                &put["bdtRefId"],
                &put["bdtpStatus"],
                &put["volPerUe"]
            ),
            (
                &json!(2),
                &data_of["bdtRefId"],
                &json!("VALID"),
                &json!({"totalVolume": 1_000_000})
            )
        );
        let reference = data_of["bdtRefId"].as_str().unwrap();
        assert!(data(&udr)[0].path.ends_with(reference));

        // As a consumer of release 16 has it.
        let old = json!({"selTransPolicyId": 1, "warnNotifReq": true});
        assert_eq!(patch(&pcf.origin, &path, &old).await.status, StatusCode::OK);
        until(|| methods(&udr) == ["PUT", "PATCH"]).await;
        assert_eq!(data(&udr)[1].json()["transPolicy"]["transPolicyId"], 1);
        let read = pcf.get(&path).await.json;
        assert_eq!(
            (
                &read["bdtReqData"]["warnNotifReq"],
                &read["bdtPolData"]["selTransPolicyId"]
            ),
            (&json!(true), &json!(1))
        );
        // None of them, with the feature BdtNotification_5G.
        let none = patch(&pcf.origin, &path, &select(&json!(0))).await;
        assert_eq!(none.json["bdtPolData"].get("selTransPolicyId"), None);
        until(|| methods(&udr) == ["PUT", "PATCH", "DELETE"]).await;
        let unknown = pcf
            .get(&format!("{POLICIES}/0b0c5f5e-7a0f-4e86-9f0a-1c2d3e4f5a6b"))
            .await;
        assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    });
}

#[test]
fn the_only_transfer_policy_is_selected_and_an_equal_request_is_shown_where_it_is() {
    local(async {
        let udr = Server::start(|_| no_content());
        let pcf = start(|config| {
            offer(config, &json!({"windows": windows(&json!({})), "maxPolicies": 1}));
            ask_sources(config, Some(&udr), None);
        });
        let body = wish(&json!({"suppFeat": "0"}));
        let created = pcf.post(POLICIES, &body).await;
        assert_eq!(created.json["bdtPolData"]["selTransPolicyId"], 1);
        until(|| methods(&udr) == ["PUT"]).await;
        let again = pcf.post(POLICIES, &body).await;
        assert_eq!(again.status, StatusCode::SEE_OTHER);
        assert_eq!(again.header("location"), created.header("location"));
        // Copies that are in flight at once make one.
        let copies = wish(&json!({"aspId": "asp-3"}));
        let answers = tokio::join!(
            pcf.post(POLICIES, &copies),
            pcf.post(POLICIES, &copies),
            pcf.post(POLICIES, &copies)
        );
        let places: std::collections::BTreeSet<&str> = [&answers.0, &answers.1, &answers.2]
            .into_iter()
            .map(|got| got.header("location"))
            .collect();
        assert_eq!(places.len(), 1, "{places:?}");
        // Without BdtNotification_5G the reserved identity means nothing, and nothing is said of warnings.
        let path = path_of(&created);
        let none = patch(&pcf.origin, &path, &select(&json!(0))).await;
        assert_eq!(none.status, StatusCode::BAD_REQUEST);
        let read = patch(&pcf.origin, &path, &json!({"bdtReqData": {"warnNotifReq": true}})).await;
        assert_eq!(read.json["bdtReqData"].get("warnNotifReq"), None);
        let other = pcf
            .post(POLICIES, &wish(&json!({"suppFeat": "0", "aspId": "asp-2"})))
            .await;
        assert_ne!(path_of(&other), path);
        assert_eq!(admin(&pcf, "GET", "/pcf/transfers", "").await, 200);
    });
}

#[test]
fn what_cannot_be_offered_is_refused() {
    local(async {
        let pcf = start(|config| offer(config, &json!({"windows": windows(&json!({}))})));
        let forbidden = StatusCode::FORBIDDEN;
        let many = json!({"numOfUes": 1_000_000_000, "volPerUe": {"downlinkVolume": 1_000_000}});
        refused(&pcf, &wish(&many), forbidden, None).await;
        let bad = StatusCode::BAD_REQUEST;
        let past = json!({"startTime": ahead(-9), "stopTime": ahead(-1)});
        let reversed = json!({"startTime": ahead(9), "stopTime": ahead(1)});
        for (member, value, cause) in [
            ("desTimeInt", past, "MANDATORY_IE_INCORRECT"),
            ("desTimeInt", reversed, "MANDATORY_IE_INCORRECT"),
            (
                "desTimeInt",
                json!({"startTime": ahead(1)}),
                "MANDATORY_IE_MISSING",
            ),
            ("aspId", Value::Null, "MANDATORY_IE_MISSING"),
            ("numOfUes", json!(-1), "MANDATORY_IE_INCORRECT"),
            ("volPerUe", json!({"totalVolume": "1"}), "OPTIONAL_IE_INCORRECT"),
            ("nwAreaInfo", json!({"tais": [7]}), "OPTIONAL_IE_INCORRECT"),
            ("notifUri", json!("nef"), "OPTIONAL_IE_INCORRECT"),
        ] {
            refused(&pcf, &wish(&json!({member: value})), bad, Some(cause)).await;
        }
        let unwarned = wish(&json!({"warnNotifReq": true, "notifUri": null}));
        refused(&pcf, &unwarned, bad, Some("MANDATORY_IE_MISSING")).await;
        let without = start(|_| {});
        let got = without.post(POLICIES, &wish(&json!({}))).await;
        assert_eq!((got.status, &got.json["cause"]), (bad, &json!("INVALID_API")));
        let got = pcf.ask(Method::DELETE, POLICIES, "", "").await;
        assert_eq!(
            (got.status, got.header("allow")),
            (StatusCode::METHOD_NOT_ALLOWED, "POST")
        );
        assert_eq!(pcf.running().count(Event::BdtNotOffered), 1);
    });
}

#[test]
fn a_window_has_room_for_its_volume_and_what_is_given_back() {
    local(async {
        let pcf = start(|config| {
            let windows = windows(&json!({"volume": "1500MB"}));
            offer(config, &json!({"windows": windows, "maxPolicies": 1}));
        });
        // 1 GB each, at one time.
        let wish = wish(&json!({}));
        let of = |asp: &str| with(wish.clone(), &json!({"aspId": asp}));
        let first = pcf.post(POLICIES, &of("a")).await;
        let second = pcf.post(POLICIES, &of("b")).await;
        let time = |got: &Got| got.json["bdtPolData"]["transfPolicies"][0]["recTimeInt"]["startTime"].clone();
        assert_ne!(time(&first), time(&second));
        let path = path_of(&first);
        assert_eq!(
            patch(&pcf.origin, &path, &select(&json!(0))).await.status,
            StatusCode::OK
        );
        let third = pcf.post(POLICIES, &of("c")).await;
        assert_eq!(time(&third), time(&first));
    });
}

/// Of one database, each on its own: what one has given away the other does not give again, and a selection at one gives back at the other.
#[test]
fn two_pcfs_of_a_database_give_a_volume_once() {
    let Some(servers) = Servers::sites(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let start = |instance: &str| {
        let mut config = config(&folder.path().join(instance));
        config.store = servers.config("site-1", &[1]);
        config.store.embedded.directory = folder.path().join(instance);
        let windows = windows(&json!({"volume": "3500MB"}));
        offer(&mut config, &json!({"windows": windows, "maxPolicies": 1}));
        Process::start(&config)
    };
    let (one, other) = (start("one"), start("other"));
    local(async {
        let wish = wish(&json!({}));
        let ask = |number: usize| {
            let origin = [&one, &other][number % 2].origin.clone();
            let body = with(wish.clone(), &json!({"aspId": format!("asp-{number}")}));
            let post = request(Method::POST, POLICIES, "application/json", body.to_string());
            tokio::task::spawn_local(async move { judged(&client(), &origin, post).await })
        };
        let asked: Vec<_> = (0..24).map(ask).collect();
        let (mut given, mut last) = (BTreeMap::<String, usize>::new(), None);
        for got in asked {
            let got = got.await.unwrap();
            match got.status {
                StatusCode::CREATED => {
                    let time = &got.json["bdtPolData"]["transfPolicies"][0]["recTimeInt"]["startTime"];
                    *given.entry(time.to_string()).or_default() += 1;
                    last = Some(path_of(&got));
                }
                status => assert!(
                    [StatusCode::FORBIDDEN, StatusCode::SERVICE_UNAVAILABLE].contains(&status),
                    "{status}: {}",
                    got.json
                ),
            }
        }
        // 1 GB each.
        assert!(
            !given.is_empty() && given.values().all(|count| *count <= 3),
            "{given:?}"
        );
        let path = last.unwrap();
        for origin in [&one.origin, &other.origin] {
            let got = judged(&client(), origin, request(Method::GET, &path, "", "")).await;
            assert_eq!(got.json["bdtPolData"]["selTransPolicyId"], 1, "{}", got.json);
        }
        // No room is left; what is given back at one PCF the other one gives.
        let mut number = 100;
        while ask(number).await.unwrap().status == StatusCode::CREATED {
            number += 1;
        }
        assert_eq!(
            patch(&one.origin, &path, &select(&json!(0))).await.status,
            StatusCode::OK
        );
        assert_eq!(ask(1_000).await.unwrap().status, StatusCode::CREATED);
    });
}

/// Settings of a PCF that is stopped and started again, with this model.
fn settings(folder: &std::path::Path, udr: &Server, model: &Value) -> Config {
    let mut settings = config(folder);
    offer(&mut settings, model);
    ask_sources(&mut settings, Some(udr), None);
    settings.notifications.attempts = 1;
    settings.notifications.retry_pause = settings::Period::from_millis(10);
    settings.notifications.max_retry_pause = settings::Period::from_millis(10);
    settings.notifications.timeout = settings::Period::from_millis(500);
    settings
}

#[test]
fn a_provider_is_warned_of_a_degraded_network_and_selects_anew() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let udr = Server::start(|_| no_content());
        let nef = Server::start(|_| Problem::of_status(StatusCode::SERVICE_UNAVAILABLE).into_response());
        let model = json!({"windows": windows(&json!({})), "maxPolicies": 2});
        let before = Process::start(&settings(folder.path(), &udr, &model));
        let target = format!("{}/nef?asp=1", nef.root());
        let post = async |more: &Value| {
            let body = wish(&with(json!({"notifUri": target}), more));
            judged(
                &client(),
                &before.origin,
                request(Method::POST, POLICIES, "application/json", body.to_string()),
            )
            .await
        };
        let created = post(&json!({"warnNotifReq": true})).await;
        let path = path_of(&created);
        let selected = patch(&before.origin, &path, &select(&json!(1))).await;
        let unwarned = path_of(&post(&json!({"aspId": "asp-2"})).await);
        patch(&before.origin, &unwarned, &select(&json!(1))).await;
        until(|| methods(&udr) == ["PUT", "PUT"]).await;
        drop(before);

        let time = &selected.json["bdtPolData"]["transfPolicies"][0]["recTimeInt"];
        let mut model = model;
        model["degraded"] =
            json!([{"from": time["startTime"], "to": time["stopTime"], "area": {"tais": ["001-01-000001"]}}]);
        let after = Process::start(&settings(folder.path(), &udr, &model));
        until(|| methods(&udr) == ["PUT", "PUT", "PATCH"]).await;
        assert_eq!(data(&udr)[2].json()["bdtpStatus"], "INVALID");
        // It is away, and gets the warning when it is back.
        until(|| !nef.seen().is_empty()).await;
        nef.answers(|_| no_content());
        let away = nef.seen().len();
        until(|| nef.seen().len() > away).await;
        let warning = nef.seen().pop().unwrap();
        judge::is(judge::BDT, "Notification", &warning.json());
        assert_eq!(warning.path, "/nef?asp=1", "nothing is appended");
        assert_eq!(
            warning.header("3gpp-sbi-callback"),
            "Npcf_BDTPolicyControl_BdtNotification"
        );
        let warning = warning.json();
        assert_eq!(
            (&warning["bdtRefId"], &warning["timeWindow"]["startTime"]),
            (&created.json["bdtPolData"]["bdtRefId"], &time["startTime"])
        );
        assert_eq!(warning["nwAreaInfo"]["tais"][0]["tac"], "000001");
        let candidate = &warning["candPolicies"][0];
        assert_ne!(candidate["recTimeInt"], *time);
        let again = patch(&after.origin, &path, &select(&candidate["transPolicyId"])).await;
        assert_eq!(
            again.json["bdtPolData"]["selTransPolicyId"],
            candidate["transPolicyId"]
        );
        until(|| methods(&udr) == ["PUT", "PUT", "PATCH", "PATCH"]).await;
        let valid = data(&udr)[3].json();
        assert_eq!(
            (&valid["bdtpStatus"], &valid["transPolicy"]),
            (&json!("VALID"), candidate)
        );
    });
}

#[test]
fn a_udr_gets_what_was_selected_before_the_process_was_killed() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let udr = Server::start(|_| Problem::of_status(StatusCode::SERVICE_UNAVAILABLE).into_response());
        let model = json!({"windows": windows(&json!({})), "maxPolicies": 1});
        let settings = settings(folder.path(), &udr, &model);
        let before = Process::start(&settings);
        let body = wish(&json!({}));
        let post = request(Method::POST, POLICIES, "application/json", body.to_string());
        let path = path_of(&judged(&client(), &before.origin, post).await);
        drop(before);
        let refused = data(&udr).len();
        udr.answers(|_| no_content());
        let after = Process::start(&settings);
        until(|| data(&udr).len() > refused).await;
        assert_eq!(data(&udr).last().unwrap().method, Method::PUT);
        let read = judged(&client(), &after.origin, request(Method::GET, &path, "", "")).await;
        assert_eq!(read.json["bdtPolData"]["selTransPolicyId"], 1);
    });
}
