//! Quotas of subscribers: granted in portions over N7 and Gx, drawn down by reports, shared by sessions, kept in the UDR.

use std::path::Path;

use http::{Method, StatusCode};
use pcf::{Config, Event};
use sbi::client::Origin;
use serde_json::{Value, json};
use testpeer::page;
use testpeer::sbi::{Server, no_content};

use crate::databases::Servers;
use crate::diameter::{CCR_I, CCR_T, ask, peer, received};
use crate::process::Process;
use crate::support::{Pcf, SM_POLICIES, client, config, context, judged, local, path_of, request, start};

const SUPI: &str = "imsi-001010000000001";

/// A project that throttles a session whose monthly quota is used up.
fn project(folder: &Path) {
    let text = "name: test\nservice: sm\nblocks:\n  - if: $session.usage.month.exhausted\n    then:\n      \
                - sessionRule: {sessRuleId: slow, authSessAmbr: {uplink: 1 Mbps, downlink: 1 Mbps}}\n    else:\n      \
                - sessionRule: {sessRuleId: full, authSessAmbr: {uplink: 50 Mbps, downlink: 50 Mbps}}\n";
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("project.yaml"), text).unwrap();
}

/// A PCF with that project, and quotas granted in portions of 4,000 octets.
fn with(folder: &Path, change: impl FnOnce(&mut Config)) -> Pcf {
    project(folder);
    start(|config| {
        config.policy.sm = Some(folder.to_owned());
        config.usage.portion = settings::ByteSize(4_000);
        change(config);
    })
}

/// A monthly limit of 10,000 octets in the settings.
fn month(config: &mut Config) {
    let limit = json!({"totalVolume": "10000", "reset": "monthly"});
    let limit = serde_json::from_value(limit).unwrap();
    config.usage.limits.insert("month".to_owned(), limit);
}

/// A UDR with a monthly limit of 10,000 octets, of which 9,000 are left.
fn udr() -> Server {
    let server = Server::start(|_| no_content());
    let document = json!({
        "smPolicySnssaiData": {"1-00000a": {"snssai": {"sst": 1, "sd": "00000a"}, "smPolicyDnnData": {"internet": {
            "dnn": "internet", "refUmDataLimitIds": {"month": {"limitId": "month", "monkey": ["um-1"]}}}}}},
        "umDataLimits": {"month": {"limitId": "month", "umLevel": "SESSION_LEVEL", "usageLimit": {"totalVolume": 10_000},
            "startDate": "2024-01-01T00:00:00Z", "resetPeriod": {"period": "MONTHLY"}}},
        "umData": {"month": {"limitId": "month", "allowedUsage": {"totalVolume": 9_000}}},
    });
    server.answers(move |seen| match seen.method {
        Method::GET => sbi::json::response(StatusCode::OK, &document),
        _ => no_content(),
    });
    server
}

fn report(key: &str, volume: u64) -> Value {
    json!({"repPolicyCtrlReqTriggers": ["US_RE"], "accuUsageReports": [{"refUmIds": key, "volUsage": volume}]})
}

/// What is left and used of the monthly quota.
async fn account(pcf: &Pcf) -> (Value, Value) {
    let (status, text) = page(pcf.running().handle().routes(), &format!("/pcf/usage/{SUPI}")).await;
    assert_eq!(status, 200, "{text}");
    let quotas: Value = serde_json::from_str(&text).unwrap();
    let total = |member: &str| quotas["month"][member]["totalVolume"].clone();
    (total("allowedUsage"), total("used"))
}

async fn until(holds: impl AsyncFn() -> bool) {
    while !holds().await {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[test]
fn an_smf_gets_portions_of_the_quota_of_the_udr_until_it_is_used_up() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let udr = udr();
        let pcf = with(folder.path(), |config| {
            config.pds.udr.enabled = true;
            config.pds.udr.api_roots = vec![udr.root()];
            config.pds.deadline = settings::Period::from_secs(20);
        });
        let made = pcf.post(SM_POLICIES, &context(&json!({}))).await;
        let path = path_of(&made);
        assert_eq!(made.json["umDecs"]["um-1"]["volumeThreshold"], 4_000);
        assert_eq!(made.json["umDecs"]["um-1"]["nextVolThreshold"], 4_000);
        assert_eq!(made.json["sessRules"]["full"]["refUmData"], "um-1");
        assert_eq!(made.json["policyCtrlReqTriggers"], json!(["US_RE"]));
        let update = async |volume: u64| {
            let got = pcf.post(&format!("{path}/update"), &report("um-1", volume)).await;
            assert_eq!(got.status, StatusCode::OK, "{}", got.json);
            got.json
        };
        // The same portion again, then what is left.
        let changed = update(4_000).await;
        assert_eq!(changed["umDecs"]["um-1"]["volumeThreshold"], 4_000);
        let changed = update(4_000).await;
        assert_eq!(changed["umDecs"]["um-1"]["volumeThreshold"], 1_000);
        assert_eq!(account(&pcf).await, (json!(1_000), json!(8_000)));
        let changed = update(1_200).await;
        assert_eq!(changed["umDecs"], json!({"um-1": null}), "{changed}");
        assert_eq!(changed["sessRules"]["full"], Value::Null);
        assert_eq!(changed["sessRules"]["slow"]["authSessAmbr"]["uplink"], "1 Mbps");
        // It is decided again when the quota is whole.
        assert_eq!(changed["policyCtrlReqTriggers"], json!(["RE_TIMEOUT"]));
        assert!(
            changed["revalidationTime"]
                .as_str()
                .unwrap()
                .ends_with("-01T00:00:00Z")
        );
        assert_eq!(account(&pcf).await, (json!(0), json!(9_200)));
        let (_, lines) = page(pcf.running().handle().routes(), &format!("/pcf/explain/{SUPI}")).await;
        assert!(lines.contains("$session.usage.month.exhausted = true"), "{lines}");

        // The UDR has what is left, in the form of the standard.
        let last = async || {
            let patches = udr.seen().into_iter().filter(|seen| seen.method == Method::PATCH);
            patches.last()
        };
        until(async || {
            last()
                .await
                .is_some_and(|seen| seen.json()["umData"]["month"]["allowedUsage"]["totalVolume"] == 0)
        })
        .await;
        let patch = last().await.unwrap();
        assert_eq!(patch.path, format!("/nudr-dr/v2/policy-data/ues/{SUPI}/sm-data"));
        assert_eq!(patch.header("content-type"), "application/merge-patch+json");
        crate::judge::is("TS29519_Policy_Data.yaml", "SmPolicyDataPatch", &patch.json());

        // The quota outlives the session.
        let ended = pcf.post(&format!("{path}/delete"), &json!({})).await;
        assert_eq!(ended.status, StatusCode::NO_CONTENT);
        let made = pcf.post(SM_POLICIES, &context(&json!({}))).await;
        assert!(
            made.json["sessRules"].get("slow").is_some() && made.json.get("umDecs").is_none(),
            "{}",
            made.json
        );
        let count = |event| pcf.running().count(event);
        assert_eq!(
            (count(Event::UsageReported), count(Event::UsageExhausted)),
            (3, 1)
        );
    });
}

#[test]
fn an_smf_that_cannot_measure_gets_no_thresholds() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let pcf = with(folder.path(), month);
        let made = pcf.post(SM_POLICIES, &context(&json!({"suppFeat": "0"}))).await;
        assert!(made.json.get("umDecs").is_none(), "{}", made.json);
        assert!(made.json["sessRules"].get("full").is_some());
    });
}

#[test]
fn the_last_report_of_a_session_counts() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let pcf = with(folder.path(), month);
        let path = pcf.session(&json!({})).await;
        let last = json!({"accuUsageReports": [{"refUmIds": "month", "volUsageUplink": 700, "volUsageDownlink": 300}]});
        let ended = pcf.post(&format!("{path}/delete"), &last).await;
        assert_eq!(ended.status, StatusCode::NO_CONTENT);
        assert_eq!(account(&pcf).await.0, json!(9_000));
    });
}

/// What an SMF, or an SCP in its place, sends again is recognised by its headers: by nothing in the body, which the next
/// portion repeats.
#[test]
fn an_update_of_an_smf_that_is_sent_again_counts_once() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let pcf = with(folder.path(), month);
        let path = pcf.session(&json!({})).await;
        let update = async |volume: u64, headers: &[(&str, &str)]| {
            let body = report("month", volume).to_string();
            let mut request = request(Method::POST, &format!("{path}/update"), "application/json", body);
            for (name, value) in headers {
                let name: http::HeaderName = name.parse().unwrap();
                request.headers_mut().insert(name, value.parse().unwrap());
            }
            let got = judged(&pcf.client, &pcf.origin, request).await;
            assert_eq!(got.status, StatusCode::OK, "{}", got.json);
            got.json
        };
        let (info, sent) = ("3gpp-sbi-request-info", "3gpp-sbi-sender-timestamp");
        let moment = "Wed, 04 Mar 2026 08:00:00.001 GMT";

        // The answer to the first was lost: the second has all of the decision, and the quota is drawn down once.
        update(1_000, &[(info, "idempotency-key=a1")]).await;
        let again = update(1_000, &[(info, "retrans=true; idempotency-key=a1")]).await;
        assert_eq!(again["umDecs"]["month"]["volumeThreshold"], 4_000, "{again}");
        assert!(again["sessRules"].get("full").is_some(), "{again}");
        assert_eq!(account(&pcf).await.0, json!(9_000));
        // The same report with another key, or without one, is the next portion.
        update(1_000, &[(info, "idempotency-key=a2")]).await;
        update(1_000, &[]).await;
        update(1_000, &[]).await;
        assert_eq!(account(&pcf).await.0, json!(6_000));

        // An SCP tries another PCF of the set and leaves the time of the SMF as it is.
        update(2_000, &[(sent, moment)]).await;
        update(2_000, &[(sent, moment)]).await;
        update(2_000, &[(sent, "Wed, 04 Mar 2026 08:00:00.002 GMT")]).await;
        assert_eq!(account(&pcf).await.0, json!(2_000));

        // What the lost answer removed is removed again.
        let last = update(2_000, &[(sent, "Wed, 04 Mar 2026 08:00:00.003 GMT")]).await;
        assert_eq!(last["umDecs"], json!({"month": null}), "{last}");
        let again = update(2_000, &[(info, "retrans=true")]).await;
        assert_eq!(again["umDecs"], json!({"month": null}), "{again}");
        assert_eq!(again["sessRules"]["full"], Value::Null, "{again}");
        assert!(again["sessRules"]["slow"].is_object(), "{again}");
        assert_eq!(account(&pcf).await.0, json!(0));
        assert_eq!(pcf.running().count(Event::UsageRepeated), 3);
    });
}

/// A CCR of a Gx session with a report of usage.
fn ccr(kind: &str, number: u32, octets: u64) -> String {
    let cause = match kind {
        "TERMINATION_REQUEST" => "Termination-Cause = DIAMETER_LOGOUT\n",
        _ => "Event-Trigger = USAGE_REPORT\n",
    };
    format!(
        "CCR\nCC-Request-Type = {kind}\nCC-Request-Number = {number}\n{cause}Usage-Monitoring-Information = {{\n\
         Monitoring-Key = \"month\"\nUsed-Service-Unit = {{ CC-Total-Octets = {octets} }}\n\
         Usage-Monitoring-Level = SESSION_LEVEL\n}}"
    )
}

#[test]
fn pcefs_share_a_quota_and_a_request_that_is_sent_again_counts_once() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let pcf = with(folder.path(), month);
        let (one, other) = (
            peer("pgw1.example.org", &pcf).await,
            peer("pgw2.example.org", &pcf).await,
        );
        let first = async |text: &str| ask(&one, "pgw1.example.org", "pgw;1;1", text).await;
        let second = async |text: &str| ask(&other, "pgw2.example.org", "pgw;2;2", text).await;
        let begun = first(CCR_I).await;
        for line in [
            "Event-Trigger = USAGE_REPORT",
            "Usage-Monitoring-Information = {",
            "CC-Total-Octets = 4000",
            "Usage-Monitoring-Level = SESSION_LEVEL",
            "APN-Aggregate-Max-Bitrate-UL = 50000000",
        ] {
            assert!(begun.contains(line), "no {line} in\n{begun}");
        }
        let address = CCR_I.replace("0x0a000001", "0x0a000002");
        assert!(second(&address).await.contains("CC-Total-Octets = 4000"));

        // The portion is granted again; the PCEF that has got no answer gets all of the decision, and its usage counts once.
        assert!(
            first(&ccr("UPDATE_REQUEST", 1, 4_000))
                .await
                .contains("CC-Total-Octets = 4000")
        );
        let repeated = first(&ccr("UPDATE_REQUEST", 1, 4_000)).await;
        assert!(
            repeated.contains("CC-Total-Octets = 4000")
                && repeated.contains("APN-Aggregate-Max-Bitrate-UL = 50000000"),
            "{repeated}"
        );
        assert_eq!(account(&pcf).await, (json!(6_000), json!(4_000)));
        assert_eq!(pcf.running().count(Event::UsageRepeated), 1);

        // The second uses up what is left: its monitoring ends, and so does that of the first, by a RAR.
        assert!(
            second(&ccr("UPDATE_REQUEST", 1, 4_000))
                .await
                .contains("CC-Total-Octets = 2000")
        );
        let used_up = second(&ccr("UPDATE_REQUEST", 2, 2_000)).await;
        for text in [used_up, received(&one, 1).await] {
            for line in [
                "APN-Aggregate-Max-Bitrate-UL = 1000000",
                "Usage-Monitoring-Support = USAGE_MONITORING_DISABLED",
                "Event-Trigger = REVALIDATION_TIMEOUT",
                "Revalidation-Time = ",
            ] {
                assert!(text.contains(line), "no {line} in\n{text}");
            }
        }
        // What the first has used until then comes with its end.
        assert!(
            first(&ccr("TERMINATION_REQUEST", 2, 300))
                .await
                .contains("Result-Code = DIAMETER_SUCCESS")
        );
        assert_eq!(account(&pcf).await, (json!(0), json!(10_300)));
        second(CCR_T).await;

        // The quota outlives the sessions.
        let begun = first(CCR_I).await;
        assert!(
            begun.contains("APN-Aggregate-Max-Bitrate-UL = 1000000")
                && !begun.contains("Usage-Monitoring-Information"),
            "{begun}"
        );
    });
}

/// Sessions that report at once, and reports of each.
const LANES: u64 = 6;
const REPORTS: u64 = 10;

#[test]
fn a_quota_that_sessions_at_two_pcfs_share_loses_no_octet() {
    let Some(servers) = Servers::sites(1) else { return };
    let directory = tempfile::tempdir().unwrap();
    let settings = |instance: &str| {
        let mut config = config(&directory.path().join(instance));
        config.store = servers.config("site-1", &[1]);
        config.store.embedded.directory = directory.path().join(instance);
        let limit = json!({"totalVolume": "1000000", "reset": "yearly"});
        let limit = serde_json::from_value(limit).unwrap();
        config.usage.limits.insert("year".to_owned(), limit);
        config.usage.portion = settings::ByteSize(0);
        config
    };
    let (one, other) = (
        Process::start(&settings("one")),
        Process::start(&settings("other")),
    );
    local(async {
        let lanes: Vec<_> = (0..LANES)
            .map(|number| {
                let origin = if number % 2 == 0 {
                    &one.origin
                } else {
                    &other.origin
                };
                tokio::task::spawn_local(lane(origin.clone(), number))
            })
            .collect();
        let mut acknowledged = 0;
        for lane in lanes {
            acknowledged += lane.await.unwrap();
        }
        assert!(acknowledged > LANES * REPORTS * 3 / 4, "{acknowledged} reports");
        let made = post(&one.origin, SM_POLICIES, &context(&json!({"pduSessionId": 99}))).await;
        // A report of each kind is 7 octets in an update and 1,000 at the end.
        let left = 1_000_000 - acknowledged * 7 - LANES * 1_000;
        assert_eq!(made.json["umDecs"]["year"]["volumeThreshold"], left);
    });
}

async fn post(origin: &Origin, path: &str, body: &Value) -> testpeer::sbi::Got {
    let request = request(Method::POST, path, "application/json", body.to_string());
    judged(&client(), origin, request).await
}

/// A session that reports again and again, and ends with a report: how many reports before that were acknowledged.
async fn lane(origin: Origin, number: u64) -> u64 {
    let made = post(
        &origin,
        SM_POLICIES,
        &context(&json!({"pduSessionId": number + 1})),
    )
    .await;
    let path = path_of(&made);
    let mut acknowledged = 0;
    for _ in 0..REPORTS {
        let got = post(&origin, &format!("{path}/update"), &report("year", 7)).await;
        assert!(
            matches!(got.status, StatusCode::OK | StatusCode::SERVICE_UNAVAILABLE),
            "{}",
            got.json
        );
        acknowledged += u64::from(got.status == StatusCode::OK);
    }
    loop {
        let last = json!({"accuUsageReports": [{"refUmIds": "year", "volUsage": 1_000}]});
        let ended = post(&origin, &format!("{path}/delete"), &last).await;
        if ended.status == StatusCode::NO_CONTENT {
            return acknowledged;
        }
        assert_eq!(ended.status, StatusCode::SERVICE_UNAVAILABLE, "{}", ended.json);
    }
}
