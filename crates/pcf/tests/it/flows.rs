//! Media whose flows come later: accepted, and without a rule until then.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::authorization::{APP_SESSIONS, call, listener, notification};
use crate::diameter::{AAR, CCR_I, ask, peer, received};
use crate::support::{local, path_of, start};

#[test]
fn over_n5_a_medium_without_flows_gets_its_rule_with_them() {
    local(async {
        let smf = listener();
        let pcf = start(|_| {});
        pcf.session(&json!({"notificationUri": format!("{}/smf", smf.root())}))
            .await;
        let mut body = call("http://127.0.0.1:9", &json!({}));
        let request = &mut body["ascReqData"];
        for member in ["afAppId", "evSubsc"] {
            request.as_object_mut().unwrap().remove(member);
        }
        let flows = request["medComponents"]["1"]["medSubComps"].take();
        request["medComponents"]["1"]
            .as_object_mut()
            .unwrap()
            .remove("medSubComps");
        let path = path_of(&pcf.post(APP_SESSIONS, &body).await);

        let update = json!({"ascReqData": {"medComponents": {"1": {"medSubComps": flows}}}});
        let got = pcf
            .ask(
                Method::PATCH,
                &path,
                "application/merge-patch+json",
                update.to_string(),
            )
            .await;
        assert_eq!(got.status, StatusCode::OK, "{}", got.json);
        // The first that the SMF hears of: each rule has filters.
        let (_, notified) = notification(&smf, 1).await;
        let rules = notified["smPolicyDecision"]["pccRules"].as_object().unwrap();
        assert_eq!(rules.len(), 2);
        let has_filters = |rule: &Value| {
            rule["flowInfos"]
                .as_array()
                .is_some_and(|infos| !infos.is_empty())
        };
        assert!(rules.values().all(has_filters), "{notified}");
    });
}

#[test]
fn over_rx_a_medium_without_flows_gets_its_rule_with_them() {
    local(async {
        let pcf = start(|_| {});
        let (pgw, cscf) = (
            peer("pgw.example.org", &pcf).await,
            peer("cscf.example.org", &pcf).await,
        );
        let rx = async |text: &str| ask(&cscf, "cscf.example.org", "cscf;1;1", text).await;
        ask(&pgw, "pgw.example.org", "pgw;1;1", CCR_I).await;
        let early = "AAR\nMedia-Component-Description = { Media-Component-Number = 1 Media-Type = AUDIO \
             Media-Sub-Component = { Flow-Number = 1 } Max-Requested-Bandwidth-UL = 64000 }\n\
             Framed-IP-Address = 0x0a000001\nRx-Request-Type = INITIAL_REQUEST";
        assert!(rx(early).await.contains("DIAMETER_SUCCESS"));
        let whole = AAR
            .replace("INITIAL_REQUEST", "UPDATE_REQUEST")
            .replace("AF-Application-Identifier = 0x494d53\n", "");
        assert!(rx(&whole).await.contains("DIAMETER_SUCCESS"));
        let first = received(&pgw, 1).await;
        let count = |what: &str| first.matches(what).count();
        assert_eq!(count("Charging-Rule-Definition = {"), 2, "{first}");
        assert!(count("Flow-Description = ") >= 2, "{first}");
    });
}
