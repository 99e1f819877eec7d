//! Bindings of sessions at a BSF, and the registration at an NRF.

use std::cell::Cell;

use http::{Method, StatusCode};
use sbi::Response;
use sbi::problem::Problem;
use serde_json::{Value, json};
use testpeer::sbi::{Seen, Server, no_content};

use crate::diameter::{CCR_I, CCR_T, ask, peer};
use crate::support::{Pcf, SM_POLICIES, context, local, start, until};

const BINDINGS: &str = "/nbsf-management/v1/pcfBindings";

/// A BSF that gives each binding a number; while `fails` is more than 0 it answers 503.
fn bsf(fails: u32) -> Server {
    let (left, next) = (Cell::new(fails), Cell::new(0));
    Server::start(move |seen| {
        if left.get() > 0 {
            left.set(left.get() - 1);
            return Problem::of_status(StatusCode::SERVICE_UNAVAILABLE).into_response();
        }
        answer(seen, &next)
    })
}

fn answer(seen: &Seen, next: &Cell<u32>) -> Response {
    match seen.method.as_str() {
        "POST" => {
            crate::judge::is("TS29521_Nbsf_Management.yaml", "PcfBinding", &seen.json());
            next.set(next.get() + 1);
            let body = sbi::json::response(StatusCode::CREATED, &seen.json());
            body.with(
                sbi::name::LOCATION,
                sbi::Value::new(format!("{BINDINGS}/{}", next.get()).as_bytes()).unwrap(),
            )
        }
        "PATCH" => {
            crate::judge::is("TS29521_Nbsf_Management.yaml", "PcfBindingPatch", &seen.json());
            sbi::json::response(StatusCode::OK, &seen.json())
        }
        _ => no_content(),
    }
}

fn with_bsf(server: &Server) -> Pcf {
    let root = server.root();
    start(|config| {
        config.bsf.api_roots = vec![root];
        config.bsf.retry_pause = settings::Period::from_millis(5);
    })
}

#[test]
fn a_binding_follows_its_session() {
    local(async {
        let server = bsf(0);
        let mut pcf = with_bsf(&server);
        let path = pcf.session(&json!({"ipDomain": "a"})).await;
        until(|| pcf.running().count(pcf::Event::BindingRegistered) == 1).await;
        let seen = &server.seen()[0];
        assert_eq!((&seen.method, seen.uri().path()), (&Method::POST, BINDINGS));
        let binding = seen.json();
        let port = pcf.running().addresses()[0].port();
        for (name, value) in [
            ("supi", json!("imsi-001010000000001")),
            ("ipv4Addr", json!("10.0.0.1")),
            ("ipv6Prefix", json!("2001:db8:1:2::/64")),
            ("ipDomain", json!("a")),
            ("dnn", json!("internet")),
            ("snssai", json!({"sst": 1, "sd": "00000a"})),
            ("pcfDiamHost", json!("pcf.example.org")),
            ("pcfDiamRealm", json!("example.org")),
            (
                "pcfSmIpEndPoints",
                json!([{"ipv4Address": "127.0.0.1", "port": port}]),
            ),
        ] {
            assert_eq!(binding[name], value, "{name}");
        }

        // An update with the same address causes no request; one with another causes a PATCH.
        let update = format!("{path}/update");
        pcf.post(&update, &json!({"ratType": "EUTRA"})).await;
        let moved = json!({"repPolicyCtrlReqTriggers": ["UE_IP_CH"], "relIpv4Address": "10.0.0.1"});
        pcf.post(&update, &moved).await;
        until(|| server.count() == 2).await;
        let seen = &server.seen()[1];
        assert_eq!(
            (&seen.method, seen.uri().path().to_owned()),
            (&Method::PATCH, format!("{BINDINGS}/1"))
        );
        assert_eq!(seen.json()["ipv4Addr"], Value::Null);
        until(|| pcf.running().count(pcf::Event::BindingRegistered) == 2).await;

        // Where the binding is outlives the process.
        pcf.stop();
        let mut config = crate::support::config(pcf.directory.path());
        config.bsf.api_roots = vec![server.root()];
        pcf.running = Some(pcf::start(config).unwrap());
        let address = pcf.running().addresses()[0];
        pcf.origin = format!("http://{address}").parse().unwrap();
        pcf.post(&format!("{path}/delete"), &json!({})).await;
        until(|| server.count() == 3).await;
        let seen = &server.seen()[2];
        assert_eq!(
            (&seen.method, seen.uri().path().to_owned()),
            (&Method::DELETE, format!("{BINDINGS}/1"))
        );
    });
}

#[test]
fn a_bsf_that_fails_harms_no_session_and_gets_the_binding_later() {
    local(async {
        let server = bsf(3);
        let pcf = with_bsf(&server);
        let path = pcf.session(&json!({})).await;
        assert_eq!(pcf.get(&path).await.status, StatusCode::OK);
        until(|| pcf.running().count(pcf::Event::BindingRegistered) == 1).await;
        assert_eq!(pcf.running().count(pcf::Event::BindingRetried), 3);
    });
}

#[test]
fn a_bsf_is_discovered_at_the_nrf() {
    local(async {
        let server = bsf(0);
        let port: u16 = server.root().rsplit(':').next().unwrap().parse().unwrap();
        let profile = json!({"nfInstanceId": "0c6a2e4f-7d7e-4a53-9f36-6f1f0a8d8030", "nfType": "BSF",
            "nfStatus": "REGISTERED", "nfServices": [{"serviceInstanceId": "1", "serviceName": "nbsf-management",
            "scheme": "http", "nfServiceStatus": "REGISTERED", "ipEndPoints": [{"ipv4Address": "127.0.0.1", "port": port}]}]});
        let nrf = Server::start(move |seen| match seen.uri().path() {
            "/nnrf-disc/v1/nf-instances" => {
                let found = json!({"validityPeriod": 60, "nfInstances": [profile]});
                sbi::json::response(StatusCode::OK, &found)
            }
            _ => no_content(),
        });
        let root = nrf.root();
        let pcf = start(|config| {
            config.nrf.api_roots = vec![root];
            config.bsf.discover = true;
        });
        for number in 1..=2 {
            pcf.session(&json!({"pduSessionId": number})).await;
            until(|| pcf.running().count(pcf::Event::BindingRegistered) == number).await;
        }
        let asked = nrf
            .seen()
            .iter()
            .filter(|seen| seen.uri().path().starts_with("/nnrf-disc"))
            .count();
        assert_eq!((server.count(), asked), (2, 1), "what was discovered is cached");
    });
}

#[test]
fn bindings_that_find_no_room_are_dropped_and_counted() {
    local(async {
        let server = bsf(0);
        server.holds();
        let root = server.root();
        let pcf = start(|config| {
            config.bsf.api_roots = vec![root];
            (config.bsf.parallel, config.bsf.queue) = (1, 2);
        });
        for number in 0..5 {
            pcf.session(&json!({"pduSessionId": number})).await;
        }
        assert_eq!(pcf.running().count(pcf::Event::BindingDropped), 2);
        server.releases();
        until(|| pcf.running().count(pcf::Event::BindingRegistered) == 3).await;
    });
}

#[test]
fn a_gx_session_is_bound_with_the_diameter_name_of_the_pcf() {
    local(async {
        let server = bsf(0);
        let pcf = with_bsf(&server);
        let pgw = peer("pgw.example.org", &pcf).await;
        let gx = async |text: &str| ask(&pgw, "pgw.example.org", "pgw;1;1", text).await;
        gx(CCR_I).await;
        until(|| pcf.running().count(pcf::Event::BindingRegistered) == 1).await;
        let binding = server.seen()[0].json();
        for (name, value) in [
            ("supi", json!("imsi-001010000000001")),
            ("ipv4Addr", json!("10.0.0.1")),
            ("dnn", json!("ims")),
            ("snssai", json!({"sst": 1})),
            ("pcfDiamHost", json!("pcf.example.org")),
            ("pcfDiamRealm", json!("example.org")),
        ] {
            assert_eq!(binding[name], value, "{name}");
        }
        gx(CCR_T).await;
        until(|| server.count() == 2).await;
        assert_eq!(server.seen()[1].method, Method::DELETE);
    });
}

#[test]
fn a_pcf_without_diameter_gives_no_diameter_name() {
    local(async {
        let server = bsf(0);
        let root = server.root();
        let pcf = start(|config| {
            config.bsf.api_roots = vec![root];
            config.diameter.enabled = false;
        });
        pcf.session(&json!({})).await;
        until(|| server.count() == 1).await;
        assert_eq!(server.seen()[0].json().get("pcfDiamHost"), None);
    });
}

#[test]
fn the_pcf_registers_with_its_services_and_deregisters() {
    local(async {
        let nrf = Server::start(|seen| match seen.method.as_str() {
            "PUT" => {
                crate::judge::is("TS29510_Nnrf_NFManagement.yaml", "NFProfile", &seen.json());
                sbi::json::response(StatusCode::CREATED, &seen.json())
            }
            _ => no_content(),
        });
        let root = nrf.root();
        let set = "set1.pcfset.5gc.mnc001.mcc001";
        let mut pcf = start(|config| {
            config.nrf.api_roots = vec![root];
            config.nrf.profile.insert("nfSetIdList".to_owned(), json!([set]));
            let windows = json!([{"name": "n", "from": "00:00", "to": "06:00", "ratingGroup": 1}]);
            config.bdt.windows = serde_json::from_value(windows).unwrap();
        });
        until(|| nrf.count() >= 1).await;
        let profile = nrf.seen()[0].json();
        assert_eq!(profile["nfType"], "PCF");
        let info = json!({"rxDiamHost": "pcf.example.org", "rxDiamRealm": "example.org"});
        assert_eq!(profile["pcfInfo"], info);
        let names: Vec<&str> = profile["nfServices"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|service| service["serviceName"].as_str())
            .collect();
        assert_eq!(
            names,
            [
                "npcf-smpolicycontrol",
                "npcf-am-policy-control",
                "npcf-ue-policy-control",
                "npcf-policyauthorization",
                "npcf-bdtpolicycontrol"
            ]
        );
        // An SMF learns that any PCF of the set serves the session (TS 29.500 §6.12).
        let created = pcf.post(SM_POLICIES, &context(&json!({}))).await;
        let binding = format!("bl=nf-set; nfset={set}");
        assert_eq!(created.header("3gpp-sbi-binding"), binding);
        let running = pcf.running.take().unwrap();
        tokio::task::spawn_blocking(move || running.stop().unwrap())
            .await
            .unwrap();
        assert!(nrf.seen().iter().any(|seen| seen.method == Method::DELETE));
    });
}
