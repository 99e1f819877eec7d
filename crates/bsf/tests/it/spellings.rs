//! One PCF, one session, one subscriber, however requests write them.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::sessions::combination;
use crate::support::{Bsf, Got, binding, local, start};

#[test]
fn a_pcf_is_the_same_in_capitals_and_with_its_end_points_in_another_order() {
    local(async {
        let bsf = start(|_| {});
        let id = |id: &str| json!({"pcfId": id});
        let points = |first: &str, second: &str| {
            json!({"pcfId": null, "pcfSmFqdn": null, "pcfFqdn": null, "pcfDiamHost": null,
                "pcfSmIpEndPoints": [{"ipv6Address": first, "port": 80}, {"ipv6Address": second, "port": 80}]})
        };
        let name = |name: &str| json!({"pcfId": null, "pcfSmFqdn": name});
        for (round, (own, again, other)) in [
            (
                id("6f1c7a52-0000-4000-8000-00000000000a"),
                id("6F1C7A52-0000-4000-8000-00000000000A"),
                id("6f1c7a52-0000-4000-8000-00000000000b"),
            ),
            (
                points("2001:db8::1", "2001:db8::2"),
                points("2001:db8:0::2", "2001:db8:0:0::1"),
                points("2001:db8::1", "2001:db8::3"),
            ),
            (
                name("sm.pcf1.example.org"),
                name("SM.pcf1.example.ORG"),
                name("sm.pcf2.example.org"),
            ),
        ]
        .into_iter()
        .enumerate()
        {
            let supi = json!(format!("imsi-00101000000010{round}"));
            let post = async |more: &Value| {
                let mut body = combination(1, &json!({"supi": supi, "paraCom": {"supi": supi}}));
                json_patch::merge(&mut body, more);
                bsf.post("pcfBindings", &body).await.status
            };
            assert_eq!(post(&own).await, StatusCode::CREATED, "{own}");
            assert_eq!(post(&again).await, StatusCode::CREATED, "{again}");
            assert_eq!(post(&other).await, StatusCode::FORBIDDEN, "{other}");
        }
    });
}

pub(crate) async fn mbs(bsf: &Bsf, session: &Value) -> Got {
    let text: String = session
        .to_string()
        .bytes()
        .map(|byte| format!("%{byte:02X}"))
        .collect();
    bsf.get(&format!(
        "/nbsf-management/v1/pcf-mbs-bindings?mbs-session-id={text}"
    ))
    .await
}

#[test]
fn an_mbs_session_is_found_by_each_of_its_identities_in_any_spelling() {
    local(async {
        let bsf = start(|_| {});
        let tmgi = |service: &str| json!({"mbsServiceId": service, "plmnId": {"mcc": "001", "mnc": "01"}});
        let ssm = |source: &str, group: &str| json!({"sourceIpAddr": {"ipv6Addr": source}, "destIpAddr": {"ipv6Addr": group}});
        let both = json!({"tmgi": tmgi("00000a"), "ssm": ssm("2001:db8:0:0:0:0:0:1", "ff3e:0:0:0:0:0:0:1")});
        let body = json!({"mbsSessionId": both, "pcfFqdn": "pcf1.example.org"});
        let path = bsf.path(&bsf.post("pcf-mbs-bindings", &body).await);
        let same = [
            both.clone(),
            json!({"tmgi": tmgi("00000A")}),
            json!({"ssm": ssm("2001:db8::1", "ff3e::1")}),
            json!({"ssm": ssm("2001:DB8::1", "FF3E::0001")}),
        ];
        let others = [
            json!({"tmgi": tmgi("00000b")}),
            json!({"ssm": ssm("2001:db8::2", "ff3e::1")}),
            json!({"tmgi": tmgi("00000a"), "ssm": ssm("2001:db8::2", "ff3e::1")}),
            json!({"tmgi": tmgi("00000a"), "nid": "0000000000a"}),
        ];
        for session in &same {
            let found = mbs(&bsf, session).await;
            assert_eq!(found.json.as_array().map(Vec::len), Some(1), "{session}");
            let body = json!({"mbsSessionId": session, "pcfFqdn": "pcf2.example.org"});
            let refused = bsf.post("pcf-mbs-bindings", &body).await;
            assert_eq!(
                (refused.status, refused.json["pcfFqdn"].as_str()),
                (StatusCode::FORBIDDEN, Some("pcf1.example.org")),
                "{session}"
            );
        }
        for session in &others {
            assert_eq!(mbs(&bsf, session).await.json, json!([]), "{session}");
        }
        let gone = bsf.ask(Method::DELETE, &path, "", "").await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT);
        for session in &same {
            assert_eq!(mbs(&bsf, session).await.json, json!([]), "{session}");
        }
    });
}

#[test]
fn an_empty_identity_is_not_an_identity_in_any_resource() {
    local(async {
        let bsf = start(|_| {});
        for query in [
            "pcfBindings?supi=",
            "pcfBindings?gpsi=",
            "pcf-ue-bindings?supi=",
            "pcf-ue-bindings?gpsi=",
            "pcf-mbs-bindings?mbs-session-id=",
        ] {
            let got = bsf.get(&format!("/nbsf-management/v1/{query}")).await;
            assert_eq!(
                (got.status, got.cause()),
                (StatusCode::BAD_REQUEST, "INVALID_QUERY_PARAM"),
                "{query}"
            );
        }
    });
}

/// Libraries that encode a query as a form send `+` for the blanks of JSON.
#[test]
fn a_slice_is_found_with_a_plus_sign_for_a_blank() {
    local(async {
        let bsf = start(|_| {});
        let binding = binding(&json!({"snssai": {"sst": 1, "sd": "0000aa"}}));
        bsf.path(&bsf.post("pcfBindings", &binding).await);
        let query = "dnn=internet&snssai=%7B%22sst%22%3A+1%2C+%22sd%22%3A+%220000aa%22%7D";
        let address = binding["ipv4Addr"].as_str().unwrap();
        let got = bsf.find(&format!("ipv4Addr={address}&{query}")).await;
        assert_eq!(got.status, StatusCode::OK, "{}", got.json);
    });
}
