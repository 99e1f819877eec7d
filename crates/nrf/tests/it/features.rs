//! What an operator sets, at the wire: validity of empty answers, suspended NFs, discards under overload, reports of load.

use http::{Method, StatusCode};
use nrf::config::OverloadLevel;
use sbi::headers::{Lci, SbiHeader};
use serde_json::json;
use settings::Period;
use testpeer::sbi::Got;

use crate::support::{Nrf, UDM, id, local, profile, start, until};

const BASE: &str = "target-nf-type=UDM&requester-nf-type=AMF";

#[test]
fn empty_answers_have_a_validity_of_their_own() {
    local(async {
        let nrf = start(|config| {
            let discovery = &mut config.discovery;
            discovery.empty_validity_by_type = [("UDM".to_owned(), Period::from_secs(7))].into();
            discovery.validity_by_type = [("SMF".to_owned(), Period::from_secs(9))].into();
        });
        let validity = async |query: &str| {
            let got = nrf.discover(query).await;
            let seconds = got.json["validityPeriod"].as_u64().unwrap();
            assert_eq!(got.headers["cache-control"], format!("max-age={seconds}"));
            seconds
        };
        assert_eq!(validity(BASE).await, 7);
        nrf.put(&profile(UDM, "UDM", "nudm-sdm", &json!({}))).await;
        assert_eq!(validity(BASE).await, 60, "no longer empty");
        let smfs = "target-nf-type=SMF&requester-nf-type=AMF";
        assert_eq!(
            validity(smfs).await,
            60,
            "validityByType is for answers with profiles"
        );
        nrf.put(&profile(&id(2), "SMF", "nsmf-pdusession", &json!({})))
            .await;
        assert_eq!(validity(smfs).await, 9);
    });
}

#[test]
fn suspended_nfs_are_answered_where_no_other_fits() {
    local(async {
        let nrf = start(|config| config.discovery.suspended_for = vec!["UDM".into()]);
        let suspended = json!({"nfStatus": "SUSPENDED"});
        nrf.put(&profile(&id(1), "UDM", "nudm-sdm", &suspended)).await;
        nrf.put(&profile(&id(2), "SMF", "nsmf-pdusession", &suspended))
            .await;
        assert_eq!(nrf.found(BASE).await, [id(1)]);
        assert!(
            nrf.found("target-nf-type=SMF&requester-nf-type=AMF")
                .await
                .is_empty()
        );
        nrf.put(&profile(&id(3), "UDM", "nudm-sdm", &json!({}))).await;
        assert_eq!(nrf.found(BASE).await, [id(3)]);
    });
}

async fn subscribe(nrf: &Nrf) -> Got {
    let body = json!({"nfStatusNotificationUri": "http://127.0.0.1:9/x", "subscrCond": {"nfType": "UDM"}});
    let path = "/nnrf-nfm/v1/subscriptions";
    nrf.ask(Method::POST, path, "application/json", body.to_string())
        .await
}

/// Discoveries and new subscriptions give way under overload; registrations, heart-beats and the ends of subscriptions
/// do not.
#[test]
fn overload_discards_what_can_be_asked_again() {
    local(async {
        let nrf = start(|config| {
            config.overload.levels = vec![OverloadLevel {
                onset: 1,
                abatement: 0,
                discard_discovery: 100,
                discard_subscriptions: 100,
                ..OverloadLevel::default()
            }];
        });
        let made = subscribe(&nrf).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.json);
        let path = format!(
            "/nnrf-nfm/v1/subscriptions/{}",
            made.json["subscriptionId"].as_str().unwrap()
        );
        let mut refused = nrf.discover(BASE).await;
        for _ in 0..100_000 {
            if refused.status != StatusCode::OK {
                break;
            }
            refused = nrf.discover(BASE).await;
        }
        assert_eq!(
            refused.status,
            StatusCode::SERVICE_UNAVAILABLE,
            "{}",
            refused.json
        );
        assert!(refused.headers.contains_key("retry-after"));
        // The load stays as long as there are requests.
        let busy = async || nrf.discover(BASE).await.status == StatusCode::SERVICE_UNAVAILABLE;
        until(async || busy().await && subscribe(&nrf).await.status == StatusCode::SERVICE_UNAVAILABLE).await;
        for _ in 0..20 {
            let put = nrf.put(&profile(UDM, "UDM", "nudm-sdm", &json!({}))).await;
            assert!(put.status.is_success(), "{}", put.json);
            let beat = json!([{"op": "replace", "path": "/nfStatus", "value": "REGISTERED"}]);
            assert!(nrf.patch(UDM, beat).await.status.is_success());
            busy().await;
        }
        let extended = nrf.extend(&path).await;
        assert_eq!(extended.status, StatusCode::OK);
        let ended = nrf.ask(Method::DELETE, &path, "", "").await;
        assert_eq!(ended.status, StatusCode::NO_CONTENT);
        assert!(nrf.running.as_ref().unwrap().count(nrf::Event::Discarded) > 1);
    });
}

/// Answers report the load of the NRF with its instance as the scope (TS 29.500 §6.3), where the operator wants it.
#[test]
fn answers_report_the_load() {
    local(async {
        let nrf = start(|config| {
            config.nf_instance_id = id(0xa0);
            config.overload.convey.lci = true;
        });
        until(async || nrf.discover(BASE).await.headers.contains_key("3gpp-sbi-lci")).await;
        let got = nrf.discover(BASE).await;
        let lci = Lci::parse(got.headers["3gpp-sbi-lci"].to_str().unwrap()).unwrap();
        assert_eq!(lci.0[0].scope, sbi::headers::Scope::NfInstance(id(0xa0), None));
        let silent = start(|_| {});
        assert!(!silent.discover(BASE).await.headers.contains_key("3gpp-sbi-lci"));
    });
}

/// An error names the NRF that it comes from (TS 29.500 §5.2.2.2, `Server`); other answers need not.
#[test]
fn errors_name_the_nrf() {
    local(async {
        let nrf = start(|config| config.nf_instance_id = id(0xa0));
        for path in [
            "/nnrf-disc/v1/nf-instances",
            "/nowhere",
            "/nnrf-nfm/v1/nf-instances/x",
        ] {
            let got = nrf.get(path).await;
            assert!(got.status.is_client_error(), "{path}");
            assert_eq!(got.headers["server"], format!("NRF-{}", id(0xa0)), "{path}");
        }
        assert!(!nrf.discover(BASE).await.headers.contains_key("server"));
    });
}
