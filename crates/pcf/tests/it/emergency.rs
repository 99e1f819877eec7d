//! Emergency sessions, and sessions whose SUPI is not authenticated: served by local policy, at no subscriber's expense.

use http::StatusCode;
use pcf::config::{UnknownUser, ValidateUser};
use sbi::problem::Problem;
use serde_json::{Value, json};
use testpeer::page;
use testpeer::sbi::Server;

use crate::authorization::{APP_SESSIONS, call};
use crate::diameter::{CCR_I, ask, peer};
use crate::support::{Pcf, SM_POLICIES, context, local, start};

/// A PCF that validates subscribers at this UDR, with a monthly limit of 10,000 octets.
fn with(udr: &Server) -> Pcf {
    start(|config| {
        config.pds.udr.enabled = true;
        config.pds.udr.api_roots = vec![udr.root()];
        config.pds.udr.unknown_user = UnknownUser::Reject;
        config.pds.validate_user = ValidateUser::Required;
        config.pds.deadline = settings::Period::from_secs(20);
        let limit = json!({"totalVolume": "10000", "reset": "monthly"});
        let limit = serde_json::from_value(limit).unwrap();
        config.usage.limits.insert("month".to_owned(), limit);
    })
}

#[test]
fn an_emergency_session_needs_no_subscriber_on_n7_and_gx() {
    local(async {
        let udr = Server::start(|_| Problem::of_status(StatusCode::NOT_FOUND).into_response());
        let pcf = with(&udr);
        for more in [
            json!({"dnn": "sos", "invalidSupi": true, "pei": "imei-490154203237518"}),
            json!({"dnn": "SOS", "invalidSupi": false}),
            json!({"dnn": "sos.mnc001.mcc001.gprs"}),
            json!({"dnn": "internet", "invalidSupi": true}),
        ] {
            let got = pcf.post(SM_POLICIES, &context(&more)).await;
            assert_eq!(got.status, StatusCode::CREATED, "{more}: {}", got.json);
            assert!(got.json.get("umDecs").is_none(), "{more}: {}", got.json);
            let path = crate::support::path_of(&got);
            let updated = pcf.post(&format!("{path}/update"), &json!({})).await;
            assert_eq!(updated.status, StatusCode::OK, "{more}: {}", updated.json);
        }
        // TS 29.514 table 5.7-1, at the session of DNN `sos`.
        let of = |mut more: Value| {
            more["dnn"] = json!("sos");
            call("http://127.0.0.1:9", &more)
        };
        for (more, status) in [
            (json!({}), StatusCode::FORBIDDEN),
            (
                json!({"servUrn": "urn:service:counseling"}),
                StatusCode::FORBIDDEN,
            ),
            (json!({"servUrn": "sos.police"}), StatusCode::CREATED),
            (json!({"medComponents": null}), StatusCode::CREATED),
        ] {
            let got = pcf.post(APP_SESSIONS, &of(more.clone())).await;
            assert_eq!(got.status, status, "{more}: {}", got.json);
            if status == StatusCode::FORBIDDEN {
                assert_eq!(got.cause(), "UNAUTHORIZED_NON_EMERGENCY_SESSION");
            }
        }
        let pcef = peer("pcef.example", &pcf).await;
        let sos = CCR_I.replace("\"ims\"", "\"sos\"");
        assert_ne!(sos, CCR_I);
        let answer = ask(&pcef, "pcef.example", "pcef;1", &sos).await;
        assert!(answer.contains("Result-Code = DIAMETER_SUCCESS"), "{answer}");
        // None of them was sought at the UDR.
        assert_eq!(udr.count(), 0);
        for more in [json!({}), json!({"invalidSupi": false}), json!({"dnn": "sosx"})] {
            let got = pcf.post(SM_POLICIES, &context(&more)).await;
            assert_eq!(
                (got.status, &got.json["cause"]),
                (StatusCode::BAD_REQUEST, &json!("USER_UNKNOWN")),
                "{more}"
            );
        }
    });
}

#[test]
fn an_unauthenticated_supi_draws_down_no_quota_and_replaces_no_session() {
    local(async {
        let document = json!({"smPolicySnssaiData": {"1": {"snssai": {"sst": 1}}}});
        let udr = Server::start(move |_| sbi::json::response(StatusCode::OK, &document));
        let pcf = with(&udr);
        let own = pcf.session(&json!({})).await;
        let report = |volume: u64| {
            json!({"repPolicyCtrlReqTriggers": ["US_RE"],
                "accuUsageReports": [{"refUmIds": "month", "volUsage": volume}]})
        };
        pcf.post(&format!("{own}/update"), &report(1_000)).await;
        let _ = udr.take();
        let other = json!({"invalidSupi": true, "ipv4Address": "10.0.0.9", "ipv6AddressPrefix": null});
        let path = pcf.session(&other).await;
        pcf.post(&format!("{path}/update"), &report(3_000)).await;
        let ended = pcf.post(&format!("{path}/delete"), &report(3_000)).await;
        assert_eq!(ended.status, StatusCode::NO_CONTENT);
        let routes = pcf.running().handle().routes();
        let (status, text) = page(routes, "/pcf/usage/imsi-001010000000001").await;
        assert_eq!(status, 200, "{text}");
        let quotas: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(quotas["month"]["allowedUsage"]["totalVolume"], 9_000);
        assert_eq!(udr.count(), 0);
        assert_eq!(pcf.get(&own).await.status, StatusCode::OK);
    });
}
