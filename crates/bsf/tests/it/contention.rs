//! Many changes of one binding at the same moment.

use http::{Method, StatusCode};
use serde_json::json;

use crate::support::{binding, client, local, request, send, start};

#[test]
fn all_simultaneous_patches_of_one_binding_are_carried_out() {
    local(async {
        let bsf = start(|config| {
            config.workers = 2;
            config.overload.enabled = false;
        });
        let path = bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        for count in [10, 40, 100] {
            let patches = (0..count).map(|number| {
                let (path, origin) = (path.clone(), bsf.origin.clone());
                tokio::task::spawn_local(async move {
                    let patch = json!({"pcfFqdn": format!("pcf{number}.example.org")}).to_string();
                    // A client of its own: a connection of its own, at whatever worker.
                    let wanted = request(Method::PATCH, &path, "application/merge-patch+json", patch);
                    send(&client(), &origin, wanted).await.unwrap().status
                })
            });
            let patches: Vec<_> = patches.collect();
            let mut good = 0;
            for patch in patches {
                good += usize::from(matches!(
                    patch.await.unwrap(),
                    StatusCode::OK | StatusCode::NO_CONTENT
                ));
            }
            assert_eq!(good, count);
        }
    });
}

#[test]
fn a_query_parameter_occurs_once() {
    local(async {
        let bsf = start(|_| {});
        bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        for query in [
            "pcfBindings?ipv4Addr=10.0.0.9&ipv4Addr=10.0.0.1",
            "pcfBindings?ipv4Addr=10.0.0.1&ipv4Addr=10.0.0.1",
            "pcfBindings?supi=imsi-1&supi=imsi-2",
            "pcfBindings?ipv4Addr=10.0.0.1&dnn=a&dn%6E=b",
            "pcfBindings?ipv4Addr=10.0.0.1&supp-feat=1&supp-feat=2",
            "pcf-ue-bindings?gpsi=msisdn-1&gpsi=msisdn-2",
            "pcf-mbs-bindings?mbs-session-id=%7B%7D&mbs-session-id=%7B%7D",
        ] {
            let got = bsf.get(&format!("/nbsf-management/v1/{query}")).await;
            assert_eq!(got.status, StatusCode::BAD_REQUEST, "{query}: {}", got.json);
            assert_eq!(got.json["cause"], "INVALID_QUERY_PARAM", "{query}");
        }
        let later = bsf
            .find("ipv4Addr=10.0.0.1&of-a-later-release=1&of-a-later-release=2")
            .await;
        assert_eq!(later.status, StatusCode::OK);
    });
}

#[test]
fn a_request_that_its_consumer_has_given_up_is_not_carried_out() {
    local(async {
        let bsf = start(|config| config.overload.enabled = false);
        let sent = time::OffsetDateTime::now_utc() - time::Duration::seconds(10);
        let sent = sbi::headers::SenderTimestamp(sent);
        let wanted = http::Request::post("/nbsf-management/v1/pcfBindings")
            .header("content-type", "application/json")
            .header(
                "3gpp-sbi-sender-timestamp",
                sbi::headers::SbiHeader::to_value(&sent).unwrap(),
            )
            .header("3gpp-sbi-max-rsp-time", "1000")
            .body(binding(&json!({})).to_string().into())
            .unwrap();
        let got = bsf.send(wanted).await;
        assert_eq!(got.status, StatusCode::GATEWAY_TIMEOUT, "{}", got.json);
        assert_eq!(got.json["cause"], "TIMED_OUT_REQUEST");
        assert_eq!(bsf.find("ipv4Addr=10.0.0.1").await.status, StatusCode::NO_CONTENT);
    });
}

#[test]
fn a_subscriber_of_many_sessions_costs_a_bounded_look_up() {
    local(async {
        let bsf = start(|config| config.max_candidates = 2);
        for number in 0..40 {
            let session =
                binding(&json!({"ipv4Addr": format!("10.0.1.{number}"), "dnn": format!("dnn{number}")}));
            bsf.path(&bsf.post("pcfBindings", &session).await);
        }
        let query = bsf::binding::Query {
            gpsi: Some("msisdn-15551234567".to_owned()),
            ..bsf::binding::Query::default()
        };
        let repository = bsf.running.as_ref().unwrap().repository().clone();
        let found = repository.matching(&query).await.unwrap();
        assert!(found.len() <= 16, "{} bindings were read", found.len());
        assert_eq!(bsf.find("gpsi=msisdn-15551234567").await.status, StatusCode::OK);
    });
}

/// Registrations with `paraCom` of one subscriber compete for its guard (TS 29.521 §4.2.2.2).
#[test]
fn all_simultaneous_registrations_of_one_subscriber_by_its_pcf_are_carried_out() {
    local(async {
        let bsf = start(|config| {
            config.workers = 2;
            config.overload.enabled = false;
        });
        let registrations = (0..60).map(|number| {
            let origin = bsf.origin.clone();
            tokio::task::spawn_local(async move {
                let supi = "imsi-001010000000077";
                let body = binding(&json!({"supi": supi, "paraCom": {"supi": supi}, "suppFeat": "7",
                    "ipv4Addr": format!("10.77.0.{number}")}));
                let wanted = request(
                    Method::POST,
                    "/nbsf-management/v1/pcfBindings",
                    "application/json",
                    body.to_string(),
                );
                send(&client(), &origin, wanted).await.unwrap().status
            })
        });
        let registrations: Vec<_> = registrations.collect();
        for registration in registrations {
            assert_eq!(registration.await.unwrap(), StatusCode::CREATED);
        }
    });
}
