//! Discovery among what was learned ("SCP followed by NRF"), and who may use whom.

use http::{Method, StatusCode};
use scp::config::Order;
use serde_json::{Value, json};

use crate::support::{Got, PATH, Producer, Scp, local, nrf_that_finds, start};

/// An SCP that knows these profiles and queries this NRF when none of them matches.
fn knowing(nrf: &Producer, profiles: Vec<Value>) -> Scp {
    let root = nrf.root();
    start(|config| {
        config.producers = profiles;
        config.nrf.roots = vec![root];
        config.nrf.register = false;
        config.nrf.nf_types.clear();
        config.discovery.order = Order::ScpThenNrf;
    })
}

/// An NRF that knows this producer.
fn nrf_with(producer: &Producer) -> Producer {
    nrf_that_finds(vec![producer.profile(&json!({}))])
}

async fn wish(scp: &Scp, more: &[(&str, &str)]) -> Got {
    let usual = [
        ("3gpp-sbi-discovery-target-nf-type", "UDM"),
        ("3gpp-sbi-discovery-requester-nf-type", "AMF"),
        ("3gpp-sbi-discovery-service-names", "nudm-sdm"),
    ];
    scp.ask(Method::GET, PATH, &[&usual, more].concat()).await
}

#[test]
fn subscribers_slices_and_groups_are_judged_here_and_the_rest_by_the_nrf() {
    local(async {
        let (first, second, of_nrf) = (Producer::start(1), Producer::start(2), Producer::start(3));
        let nrf = nrf_with(&of_nrf);
        let range = |from: u32| json!([{"start": format!("0010100000{from:05}"), "end": format!("0010100000{:05}", from + 999)}]);
        let scp = knowing(
            &nrf,
            vec![
                first.profile(&json!({"udmInfo": {"supiRanges": range(0)}, "sNssais": [{"sst": 1}]})),
                second.profile(
                    &json!({"udmInfo": {"supiRanges": range(1_000)}, "sNssais": [{"sst": 2}],
                    "plmnList": [{"mcc": "001", "mnc": "01"}]}),
                ),
            ],
        );
        let supi = |value| ("3gpp-sbi-discovery-supi", value);
        for _ in 0..5 {
            assert_eq!(wish(&scp, &[supi("imsi-001010000000500")]).await.by(), first.id);
            assert_eq!(wish(&scp, &[supi("imsi-001010000001500")]).await.by(), second.id);
            let slice = ("3gpp-sbi-discovery-snssais", "[{\"sst\":2}]");
            assert_eq!(wish(&scp, &[slice]).await.by(), second.id);
            let plmn = (
                "3gpp-sbi-discovery-target-plmn-list",
                "[{\"mcc\":\"001\",\"mnc\":\"01\"}]",
            );
            assert_eq!(wish(&scp, &[plmn]).await.by(), second.id);
        }
        assert_eq!(nrf.count(), 0, "all of it is known here");
        let why = |supi: &str| {
            let asked = [
                ("path", PATH),
                ("target-nf-type", "UDM"),
                ("requester-nf-type", "AMF"),
                ("supi", supi),
            ];
            let asked = asked.map(|(name, value)| (name.to_owned(), value.to_owned()));
            scp.running.as_ref().unwrap().why(&asked)
        };
        let explained = why("imsi-001010000001500").await;
        assert_eq!(
            explained["candidates"].as_array().unwrap().len(),
            1,
            "{explained}"
        );
        assert_eq!(explained["candidates"][0]["nfInstanceId"], second.id);
        // No cached profile serves this subscriber, and only the NRF may know a parameter of a later release.
        assert_eq!(wish(&scp, &[supi("imsi-001010000009000")]).await.by(), of_nrf.id);
        assert_eq!(
            wish(&scp, &[("3gpp-sbi-discovery-of-a-later-release", "1")])
                .await
                .by(),
            of_nrf.id
        );
        assert_eq!(nrf.count(), 2);
        let asked = &nrf.seen()[1].path;
        assert!(asked.contains("of-a-later-release=1"), "{asked}");
    });
}

#[test]
fn what_the_consumer_prefers_is_tried_first_and_the_rest_stands_in() {
    local(async {
        let (near, far) = (Producer::start(1), Producer::start(2));
        let nrf = nrf_with(&near);
        let scp = knowing(
            &nrf,
            vec![
                near.profile(&json!({"locality": "near", "priority": 1})),
                far.profile(&json!({"locality": "far", "priority": 9})),
            ],
        );
        let far_wished = [("3gpp-sbi-discovery-preferred-locality", "far")];
        for _ in 0..10 {
            assert_eq!(wish(&scp, &far_wished).await.by(), far.id);
            assert_eq!(wish(&scp, &[]).await.by(), near.id);
        }
        far.fails_with(503);
        assert_eq!(wish(&scp, &far_wished).await.by(), near.id);
    });
}

#[test]
fn profiles_say_who_may_use_them() {
    local(async {
        let (roaming, home) = (Producer::start(1), Producer::start(2));
        let nrf = nrf_with(&home);
        let mut profile = roaming.profile(&json!({"plmnList": [{"mcc": "001", "mnc": "01"}]}));
        profile["nfServices"][0]["allowedPlmns"] = json!([{"mcc": "262", "mnc": "01"}]);
        profile["nfServices"][0]["allowedOperationsPerNfType"] = json!({"AMF": ["nudm-sdm:am-data:read"]});
        let scp = knowing(&nrf, vec![profile]);
        let root = roaming.root();
        let from = async |more: (&str, &str)| {
            let headers = [("3gpp-sbi-target-apiroot", root.as_str()), more];
            let got = scp.ask(Method::GET, PATH, &headers).await;
            (got.status, got.by().to_owned())
        };
        let network = |plmn| ("3gpp-sbi-originating-network-id", plmn);
        let served = (StatusCode::OK, roaming.id.clone());
        let refused = (StatusCode::FORBIDDEN, String::new());
        assert_eq!(from(network("262-01")).await, served);
        assert_eq!(from(network("001-01")).await, served, "its own network");
        assert_eq!(from(network("999-99")).await, refused);
        assert_eq!(from(("x-nothing", "said")).await, served);
        let scope = |scope| ("3gpp-sbi-access-scope", scope);
        assert_eq!(from(scope("nudm-sdm nudm-sdm:am-data:read")).await, served);
        assert_eq!(from(scope("nudm-sdm nudm-sdm:sm-data:read")).await, refused);
        assert_eq!(roaming.count(), 4);
    });
}

/// Parameters of operators' guides that no release has: as preferences they exclude no profile, so that the SCP need not
/// ask an NRF.
#[test]
fn preferences_that_are_not_known_are_no_reason_to_ask_an_nrf() {
    local(async {
        let (known, of_nrf) = (Producer::start(1), Producer::start(2));
        let nrf = nrf_with(&of_nrf);
        let scp = knowing(&nrf, vec![known.profile(&json!({}))]);
        let slices = ("3gpp-sbi-discovery-preferred-snssais", r#"[{"sst":1}]"#);
        let own = known.id.clone();
        let instance = ("3gpp-sbi-discovery-preferred-target-nf-instance-id", own.as_str());
        for preference in [slices, instance] {
            assert_eq!(wish(&scp, &[preference]).await.by(), known.id, "{preference:?}");
        }
        assert_eq!(nrf.count(), 0);
        // What would exclude some is for the NRF, which alone knows it.
        let unknown = ("3gpp-sbi-discovery-colour", "blue");
        assert_eq!(wish(&scp, &[unknown]).await.by(), of_nrf.id);
    });
}
