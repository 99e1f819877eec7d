//! Bindings of PDU sessions.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Got, binding, config, local, start};

#[test]
fn register_find_change_remove() {
    local(async {
        let bsf = start(|_| {});
        let created = bsf.post("pcfBindings", &binding(&json!({}))).await;
        let path = bsf.path(&created);
        crate::judge::is("PcfBinding", &created.json);
        assert_eq!(created.json["vendorExtra"], json!({"kept": [1, 2.50, null]}));
        assert_eq!(created.json["suppFeat"], "7");

        let found = bsf.find("ipv4Addr=10.0.0.1").await;
        assert_eq!((found.status, &found.json), (StatusCode::OK, &created.json));
        for query in [
            "supi=imsi-001010000000001",
            "gpsi=msisdn-15551234567",
            "ipv4Addr=10.0.0.1&dnn=INTERNET&snssai=%7B%22sst%22%3A1%2C%22sd%22%3A%2200000A%22%7D&supi=imsi-001010000000001",
        ] {
            assert_eq!(bsf.find(query).await.status, StatusCode::OK, "{query}");
        }
        for query in [
            "ipv4Addr=10.0.0.2",
            "ipv4Addr=10.0.0.1&dnn=ims",
            "ipv4Addr=10.0.0.1&ipDomain=a",
            "ipv4Addr=10.0.0.1&snssai=%7B%22sst%22%3A2%7D",
            "supi=imsi-2",
            "macAddr48=00-00-00-00-00-01",
        ] {
            assert_eq!(bsf.find(query).await.status, StatusCode::NO_CONTENT, "{query}");
        }

        let patch = json!({"ipv4Addr": null, "ipv6Prefix": "2001:db8:1::/64", "pcfFqdn": "pcf2.example.org"});
        let patched = bsf
            .ask(
                Method::PATCH,
                &path,
                "application/merge-patch+json",
                patch.to_string(),
            )
            .await;
        assert_eq!(patched.status, StatusCode::OK, "{}", patched.json);
        crate::judge::is("PcfBinding", &patched.json);
        assert_eq!(bsf.find("ipv4Addr=10.0.0.1").await.status, StatusCode::NO_CONTENT);
        let found = bsf.find("ipv6Prefix=2001:db8:1::77/128").await;
        assert_eq!(found.json["pcfFqdn"], "pcf2.example.org");

        let gone = bsf.ask(Method::DELETE, &path, "", "").await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT);
        let again = bsf.ask(Method::DELETE, &path, "", "").await;
        assert_eq!(again.status, StatusCode::NOT_FOUND);
        assert_eq!(
            bsf.find("supi=imsi-001010000000001").await.status,
            StatusCode::NO_CONTENT
        );
    });
}

#[test]
fn the_longest_prefix_answers() {
    local(async {
        let bsf = start(|_| {});
        for (prefix, pcf) in [
            ("2001:db8::/32", "a.example.org"),
            ("2001:db8:0:1::/64", "b.example.org"),
            ("2001:db8:0:1::5/128", "c.example.org"),
        ] {
            let one = binding(&json!({"ipv4Addr": null, "ipv6Prefix": prefix, "pcfFqdn": pcf}));
            bsf.path(&bsf.post("pcfBindings", &one).await);
        }
        let routed = binding(
            &json!({"ipv4FrameRouteList": ["192.0.2.0/24"], "ipv6FrameRouteList": ["2001:db8:f::/48"],
            "addIpv6Prefixes": ["2001:db8:a::/64"], "macAddr48": "00-1b-21-3c-9d-f0", "addMacAddrs": ["00-1B-21-3C-9D-F1"],
            "pcfFqdn": "d.example.org"}),
        );
        bsf.path(&bsf.post("pcfBindings", &routed).await);
        for (query, pcf) in [
            ("ipv6Prefix=2001:db8:0:1::5/128", "c.example.org"),
            ("ipv6Prefix=2001:db8:0:1::6/128", "b.example.org"),
            ("ipv6Prefix=2001:db8:0:2::6/128", "a.example.org"),
            ("ipv6Prefix=2001:db8:f::1/128", "d.example.org"),
            ("ipv6Prefix=2001:db8:a::1/128", "d.example.org"),
            ("ipv4Addr=192.0.2.200", "d.example.org"),
            ("macAddr48=00-1b-21-3c-9d-f1", "d.example.org"),
        ] {
            assert_eq!(bsf.find(query).await.json["pcfFqdn"], pcf, "{query}");
        }
        let plain = bsf.find("ipv4Addr=192.0.2.200&supp-feat=2").await;
        assert_eq!(plain.json.get("addMacAddrs"), None, "{}", plain.json);
        assert_eq!(plain.json["suppFeat"], "2");
    });
}

#[test]
fn the_most_recent_session_or_a_word_that_it_is_ambiguous() {
    local(async {
        let bsf = start(|_| {});
        for (pcf, domain) in [("old", json!("a")), ("new", json!("a")), ("other", json!("b"))] {
            let one = binding(
                &json!({"pcfFqdn": format!("{pcf}.example.org"), "ipDomain": domain, "pcfId": null,
                "pcfSmFqdn": null, "pcfDiamHost": null}),
            );
            bsf.path(&bsf.post("pcfBindings", &one).await);
        }
        let found = bsf.find("ipv4Addr=10.0.0.1&ipDomain=a").await;
        assert_eq!(found.json["pcfFqdn"], "new.example.org");
        for query in ["ipv4Addr=10.0.0.1", "supi=imsi-001010000000001"] {
            let ambiguous = bsf.find(query).await;
            assert_eq!(
                (ambiguous.status, ambiguous.cause()),
                (StatusCode::BAD_REQUEST, "MULTIPLE_BINDING_INFO_FOUND"),
                "{query}"
            );
        }
    });
}

/// Private addresses are used in many domains.
#[test]
fn found_among_more_of_its_address_than_are_read_at_once() {
    local(async {
        let bsf = start(|config| config.max_candidates = 4);
        for domain in 0..60 {
            let one = binding(
                &json!({"ipDomain": format!("d{domain}"), "pcfFqdn": format!("pcf{domain}.example.org")}),
            );
            bsf.path(&bsf.post("pcfBindings", &one).await);
        }
        for domain in 0..60 {
            let found = bsf.find(&format!("ipv4Addr=10.0.0.1&ipDomain=d{domain}")).await;
            assert_eq!(found.status, StatusCode::OK, "d{domain}");
            assert_eq!(found.json["pcfFqdn"], format!("pcf{domain}.example.org"));
        }
        assert_eq!(
            bsf.find("ipv4Addr=10.0.0.1").await.cause(),
            "MULTIPLE_BINDING_INFO_FOUND"
        );
    });
}

/// An older session is given an address that one begun later has left behind.
#[test]
fn who_took_the_address_last_has_it() {
    local(async {
        let bsf = start(|_| {});
        let one = |pcf: &str, address: &str| binding(&json!({"pcfFqdn": pcf, "ipv4Addr": address}));
        let older = bsf.path(
            &bsf.post("pcfBindings", &one("older.example.org", "10.0.0.1"))
                .await,
        );
        bsf.path(
            &bsf.post("pcfBindings", &one("newer.example.org", "10.0.0.2"))
                .await,
        );
        let patch = json!({"ipv4Addr": "10.0.0.2"}).to_string();
        let patched = bsf
            .ask(Method::PATCH, &older, "application/merge-patch+json", patch)
            .await;
        assert_eq!(patched.status, StatusCode::OK, "{}", patched.json);
        let found = bsf.find("ipv4Addr=10.0.0.2").await;
        assert_eq!(found.json["pcfFqdn"], "older.example.org");
    });
}

pub fn combination(pcf: u8, more: &Value) -> Value {
    let mut one = binding(&json!({
        "pcfId": format!("6f1c7a52-0000-4000-8000-00000000000{pcf}"), "pcfSmFqdn": format!("sm.pcf{pcf}.example.org"),
        "pcfSmIpEndPoints": [{"ipv4Address": "192.0.2.1", "port": 80}], "ipv4Addr": format!("10.0.0.{pcf}"),
        "paraCom": {"supi": "imsi-001010000000001", "dnn": "internet", "snssai": {"sst": 1, "sd": "00000a"}}
    }));
    one.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    one
}

#[test]
fn another_pcf_is_told_who_has_the_combination() {
    local(async {
        let bsf = start(|_| {});
        bsf.path(&bsf.post("pcfBindings", &combination(1, &json!({}))).await);
        let refused = bsf.post("pcfBindings", &combination(2, &json!({}))).await;
        assert_eq!(
            (refused.status, refused.cause()),
            (StatusCode::FORBIDDEN, "EXISTING_BINDING_INFO_FOUND")
        );
        assert_eq!(refused.json["pcfSmFqdn"], "sm.pcf1.example.org");
        assert_eq!(refused.json["pcfSmIpEndPoints"][0]["port"], 80);
        crate::judge::is("ExtProblemDetails", &refused.json);
        // The same PCF again, another DNN, and a PCF without the feature are let in.
        for one in [
            combination(1, &json!({"ipv4Addr": "10.0.0.9"})),
            combination(
                3,
                &json!({"paraCom": {"supi": "imsi-001010000000001", "dnn": "ims"}, "dnn": "ims"}),
            ),
            combination(4, &json!({"suppFeat": "3"})),
        ] {
            bsf.path(&bsf.post("pcfBindings", &one).await);
        }
    });
}

#[test]
fn of_pcfs_that_ask_at_once_one_at_most_gets_the_combination() {
    local(async {
        let bsf = start(|_| {});
        for round in 0..20 {
            let supi = json!({"supi": format!("imsi-{round:015}"), "paraCom": {"supi": format!("imsi-{round:015}")}});
            let bodies: Vec<Value> = (1..=8).map(|pcf| combination(pcf, &supi)).collect();
            let answers: Vec<Got> =
                futures_util::future::join_all(bodies.iter().map(|body| bsf.post("pcfBindings", body))).await;
            let accepted = answers
                .iter()
                .filter(|answer| answer.status == StatusCode::CREATED)
                .count();
            let refused = answers
                .iter()
                .filter(|answer| answer.status == StatusCode::FORBIDDEN)
                .count();
            assert_eq!((accepted, refused), (1, 7));
        }
    });
}

#[test]
fn steps_of_a_shutdown() {
    local(async {
        let bsf = start(|_| {});
        let path = bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        let running = bsf.running.as_ref().unwrap();
        running.set_state(bsf::State::Partial).await.unwrap();
        let refused = bsf.post("pcfBindings", &binding(&json!({}))).await;
        assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(bsf.find("ipv4Addr=10.0.0.1").await.status, StatusCode::OK);
        running.set_state(bsf::State::Complete).await.unwrap();
        assert_eq!(
            bsf.find("ipv4Addr=10.0.0.1").await.status,
            StatusCode::SERVICE_UNAVAILABLE
        );
        running.set_state(bsf::State::Serving).await.unwrap();
        assert_eq!(
            bsf.ask(Method::DELETE, &path, "", "").await.status,
            StatusCode::NO_CONTENT
        );
        assert_eq!(running.count(bsf::Event::ShutOut), 2);
    });
}

/// What an operator has set outlives the restart of the instance, and concerns no other instance.
#[test]
fn what_an_operator_has_set_outlives_a_restart() {
    local(async {
        let directory = tempfile::tempdir().unwrap();
        let config = config(directory.path());
        let start = |change: fn(&mut bsf::Config)| {
            let mut config = config.clone();
            change(&mut config);
            bsf::start(config).unwrap()
        };
        let running = start(|_| {});
        let configured = running.congestion_control();
        running.set_state(bsf::State::Partial).await.unwrap();
        running.set_congestion_control(!configured).await.unwrap();
        running.stop().unwrap();
        for _ in 0..2 {
            let running = start(|_| {});
            assert_eq!(running.state(), bsf::State::Partial);
            assert_eq!(running.congestion_control(), !configured);
            running.stop().unwrap();
        }
        let other = start(|config| config.nf_instance_id = uuid::Uuid::new_v4().to_string());
        assert_eq!(other.state(), bsf::State::Serving);
        assert_eq!(other.congestion_control(), configured);
        other.stop().unwrap();
        // The configuration says something else now, which counts.
        let changed = start(|config| config.overload.enabled = !config.overload.enabled);
        assert_eq!(changed.congestion_control(), !configured);
        changed.set_congestion_control(configured).await.unwrap();
        changed.stop().unwrap();
        let back = start(|_| {});
        assert_eq!(back.congestion_control(), configured);
        back.stop().unwrap();
    });
}

#[test]
fn above_the_rate_429() {
    local(async {
        let bsf = start(|config| config.overload.ingress_rate = 10);
        let mut refused = 0;
        for _ in 0..50 {
            let got = bsf.find("ipv4Addr=10.0.0.1").await;
            refused += usize::from(got.status == StatusCode::TOO_MANY_REQUESTS);
        }
        assert!(refused > 0);
    });
}
