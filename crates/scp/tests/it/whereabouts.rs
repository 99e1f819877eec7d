//! Names and addresses: of producers, of this SCP, and of other networks.

use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::json;
use testpeer::dns::NameServer;

use crate::support::{PATH, Producer, Scp, knowing, local, start, until};

async fn to(scp: &Scp, root: &str) -> StatusCode {
    scp.ask(Method::GET, PATH, &[("3gpp-sbi-target-apiroot", root)])
        .await
        .status
}

#[test]
fn addresses_are_compared_and_not_their_texts() {
    local(async {
        let producer = Producer::at(1, "[::1]:0".parse().unwrap());
        let port = producer.address.port();
        for text in ["0:0:0:0:0:0:0:1", "::1", "0000::0001", "::0:1"] {
            let mut profile = producer.profile(&json!({}));
            profile["nfServices"][0]["ipEndPoints"] = json!([{"ipv6Address": text, "port": port}]);
            let scp = start(|config| {
                config.producers = vec![profile];
                config.forward_to_unknown = false;
            });
            for named in ["[::1]", "[0:0:0:0:0:0:0:1]", "[0::1]", "[::0001]"] {
                let root = format!("http://{named}:{port}");
                assert_eq!(to(&scp, &root).await, StatusCode::OK, "{text} {named}");
            }
        }
    });
}

#[test]
fn a_producer_with_name_and_address_is_known_by_both() {
    local(async {
        let producer = Producer::start(1);
        let port = producer.address.port();
        let profile = producer.profile(&json!({"fqdn": "LOCALHOST"}));
        let scp = start(|config| {
            config.producers = vec![profile];
            config.forward_to_unknown = false;
        });
        for host in ["127.0.0.1", "localhost"] {
            assert_eq!(
                to(&scp, &format!("http://{host}:{port}")).await,
                StatusCode::OK,
                "{host}"
            );
        }
        let other = format!("http://localhost:{}", Producer::start(2).address.port());
        assert_eq!(to(&scp, &other).await, StatusCode::GATEWAY_TIMEOUT);
    });
}

/// As free5GC registers its services.
#[test]
fn a_prefix_with_a_scheme_is_the_root() {
    local(async {
        let producer = Producer::start(1);
        let mut profile = producer.profile(&json!({"ipv4Addresses": ["127.0.0.9"]}));
        let service = profile["nfServices"][0].as_object_mut().unwrap();
        service.insert("apiPrefix".into(), json!(producer.root()));
        service.remove("ipEndPoints");
        let scp = start(|config| {
            config.producers = vec![profile];
            config.discovery.order = scp::config::Order::ScpThenNrf;
            config.forward_to_unknown = false;
        });
        assert_eq!(to(&scp, &producer.root()).await, StatusCode::OK);
        let wish = [
            ("3gpp-sbi-discovery-target-nf-type", "UDM"),
            ("3gpp-sbi-discovery-requester-nf-type", "AMF"),
        ];
        let got = scp.ask(Method::GET, PATH, &wish).await;
        assert_eq!((got.status, got.by()), (StatusCode::OK, &*producer.id), "{got:?}");
    });
}

#[test]
fn further_names_of_the_scp_name_no_producer() {
    local(async {
        let producer = Producer::start(1);
        let scp = knowing(&[&producer], |config| {
            config.names = vec!["scp".into(), "scp.core.svc".into(), "10.96.0.7:80".into()];
            config.discovery.order = scp::config::Order::ScpThenNrf;
            config.forward_to_unknown = false;
        });
        let port = scp.origin.port();
        let asked = async |authority: &str| {
            let request = http::Request::get(format!("http://{authority}{PATH}")).body(sbi::Body::empty());
            let origin = scp.origin.clone();
            let mut peer =
                testpeer::http2::Peer::client(format!("127.0.0.1:{}", origin.port()).parse().unwrap())
                    .await
                    .unwrap();
            drop(request);
            let fields = [
                (":method", "GET"),
                (":scheme", "http"),
                (":authority", authority),
                (":path", PATH),
                (
                    "3gpp-sbi-routing-binding",
                    "bl=nf-set; nfset=set1.udmset.5gc.mnc001.mcc001",
                ),
            ];
            peer.send(&testpeer::http2::frame::headers(1, &fields, true))
                .await
                .unwrap();
            let is_answer =
                |frame: &testpeer::http2::Frame| frame.kind == testpeer::http2::frame::kind::HEADERS;
            peer.wait_for("the answer", is_answer).await.unwrap().status()
        };
        for own in [
            format!("scp:{port}"),
            "scp.core.svc".to_owned(),
            format!("SCP.core.svc:{port}"),
            "10.96.0.7:80".to_owned(),
        ] {
            assert_eq!(asked(&own).await, Some(200), "{own}");
        }
        assert_eq!(asked("scp.elsewhere:8020").await, Some(504));
    });
}

/// TS 29.500 §6.1.4.3: a SEPP gets requests for other networks, and where they go in `3gpp-Sbi-Target-apiRoot`.
#[test]
fn producers_of_other_networks_are_reached_through_a_sepp() {
    local(async {
        let (sepp, own) = (Producer::start(7), Producer::start(1));
        let foreign = own.profile(&json!({
            "nfInstanceId": "00000000-0000-4000-8000-0000000000ff", "nfType": "AUSF", "ipv4Addresses": null,
            "fqdn": "ausf.5gc.mnc070.mcc999.3gppnetwork.org",
            "nfServices": [{"serviceInstanceId": "1", "serviceName": "nausf-auth", "scheme": "https",
                "nfServiceStatus": "REGISTERED", "versions": []}]
        }));
        let mut foreign = foreign;
        foreign.as_object_mut().unwrap().remove("ipv4Addresses");
        let (profiles, root) = (vec![own.profile(&json!({})), foreign], sepp.root());
        let scp = start(|config| {
            config.producers = profiles;
            config.networks.plmns = vec!["001-01".into()];
            config.networks.sepps = vec![root];
            config.discovery.order = scp::config::Order::ScpThenNrf;
            config.forward_to_unknown = false;
        });
        let foreign_root = "https://ausf.5gc.mnc070.mcc999.3gppnetwork.org";
        let discovered = [
            ("3gpp-sbi-discovery-target-nf-type", "AUSF"),
            ("3gpp-sbi-discovery-requester-nf-type", "AMF"),
            ("3gpp-sbi-max-forward-hops", "5; nodetype=scp"),
        ];
        let path = "/nausf-auth/v1/ue-authentications";
        assert_eq!(
            scp.ask(Method::GET, path, &discovered).await.status,
            StatusCode::OK
        );
        // One that no profile has: the name says whose it is.
        let unknown = "https://udm.5gc.mnc071.mcc999.3gppnetwork.org";
        assert_eq!(to(&scp, unknown).await, StatusCode::OK);
        let roots: Vec<_> = sepp
            .seen()
            .iter()
            .map(|seen| {
                seen.headers["3gpp-sbi-target-apiroot"]
                    .to_str()
                    .unwrap()
                    .to_owned()
            })
            .collect();
        assert_eq!(roots, [format!("{foreign_root}:443"), unknown.to_owned()]);
        let headers = &sepp.seen()[0].headers;
        assert!(!headers.contains_key("3gpp-sbi-max-forward-hops"));
        assert!(!headers.keys().any(|name| name.as_str().contains("discovery")));
        // The own network is reached without it.
        assert_eq!(to(&scp, &own.root()).await, StatusCode::OK);
        assert_eq!((sepp.count(), own.count()), (2, 1));
    });
}

/// RFC 9110 §7.7: a proxy does not change path and query.
#[test]
fn a_path_reaches_the_producer_as_it_was_written() {
    local(async {
        let producer = Producer::start(1);
        let scp = knowing(&[&producer], |_| {});
        let target = [("3gpp-sbi-target-apiroot", &*producer.root())];
        for path in [
            "/nudm-sdm/v2/%2f%2F%aa%AA%41",
            "/nudm-sdm/v2/%7Ex/a?q=%41%2f",
            "/nudm%2Dsdm/v2/x",
        ] {
            assert_eq!(scp.ask(Method::GET, path, &target).await.status, StatusCode::OK);
            assert_eq!(producer.seen().last().unwrap().path, path);
        }
    });
}

/// Names that consumers invent get no series of their own.
#[test]
fn invented_names_do_not_fill_the_metrics() {
    local(async {
        let producer = Producer::start(1);
        let consumer = Producer::start(2);
        let scp = knowing(&[&producer, &consumer], |config| config.forward_to_unknown = true);
        let root = producer.root();
        let ask = async |path: &str, agent: &str| {
            let headers = [("3gpp-sbi-target-apiroot", &*root), ("user-agent", agent)];
            scp.ask(Method::GET, path, &headers).await
        };
        let size = || scp.registry.render().len();
        let known = format!("UDM-{}", consumer.id);
        ask(PATH, &known).await;
        ask(PATH, "AMF").await;
        ask("/nother-0/v1/x", "AMF-0").await;
        let before = size();
        for number in 1..100 {
            ask(&format!("/nother-{number}/v1/x"), &format!("AMF-{number}")).await;
        }
        assert!(size() < before + 500, "{before} {}", size());
        let text = scp.registry.render();
        assert!(text.contains(&format!("consumer=\"{known}\"")) && text.contains("consumer=\"AMF\""));
        assert!(!text.contains("nother-") && text.contains("service=\"nudm-sdm\""));
    });
}

/// A producer of this name and port, and an SCP that resolves it.
fn named(server: &NameServer, port: u16) -> Scp {
    let producer = json!({
        "nfInstanceId": "00000000-0000-4000-8000-000000000001", "nfType": "UDM", "nfStatus": "REGISTERED",
        "fqdn": "udm.test", "nfServices": [{"serviceInstanceId": "1", "serviceName": "nudm-sdm", "scheme": "http",
            "nfServiceStatus": "REGISTERED", "versions": [], "ipEndPoints": [{"port": port}]}]
    });
    let address = server.address;
    start(|config| {
        config.dns.servers = vec![address];
        config.producers = vec![producer];
        config.protection.breaker.open = settings::Period::from_secs(600);
        config.forward_to_unknown = false;
    })
}

fn at(server: &NameServer, addresses: &[&str]) {
    let addresses: Vec<_> = addresses.iter().map(|one| one.parse().unwrap()).collect();
    server.addresses("udm.test", 600, &addresses);
}

#[test]
fn a_name_that_has_moved_is_resolved_again() {
    local(async {
        let server = NameServer::start().await.unwrap();
        let old = Producer::start(1);
        let port = old.address.port();
        at(&server, &["127.0.0.1"]);
        let scp = named(&server, port);
        let root = format!("http://udm.test:{port}");
        assert_eq!(to(&scp, &root).await, StatusCode::OK);
        let new = Producer::at(2, format!("127.0.0.2:{port}").parse().unwrap());
        at(&server, &["127.0.0.2"]);
        old.stop();
        // An answer of name servers that is younger than a second is believed.
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        assert_eq!(to(&scp, &root).await, StatusCode::OK);
        assert_eq!(new.count(), 1);
    });
}

#[test]
fn a_new_address_begins_with_a_closed_circuit() {
    local(async {
        let server = NameServer::start().await.unwrap();
        let old = Producer::start(1);
        let port = old.address.port();
        at(&server, &["127.0.0.1"]);
        let scp = named(&server, port);
        let root = format!("http://udm.test:{port}");
        assert_eq!(to(&scp, &root).await, StatusCode::OK);
        old.stop();
        until("the circuit opens", async || {
            to(&scp, &root).await;
            scp.count("signalbox_scp_passed_over_total", "reason=\"open\"") > 0.0
        })
        .await;
        let _new = Producer::at(2, format!("127.0.0.2:{port}").parse().unwrap());
        at(&server, &["127.0.0.2"]);
        until("it serves at the new address", async || {
            to(&scp, &root).await == StatusCode::OK
        })
        .await;
    });
}

#[test]
fn all_addresses_of_a_name_get_requests() {
    local(async {
        let server = NameServer::start().await.unwrap();
        let one = Producer::start(1);
        let port = one.address.port();
        let other = Producer::at(2, format!("127.0.0.2:{port}").parse().unwrap());
        at(&server, &["127.0.0.1", "127.0.0.2"]);
        let scp = named(&server, port);
        let root = format!("http://udm.test:{port}");
        until("both are connected", async || {
            to(&scp, &root).await;
            one.count() > 0 && other.count() > 0
        })
        .await;
        let before = (one.count(), other.count());
        for _ in 0..40 {
            assert_eq!(to(&scp, &root).await, StatusCode::OK);
        }
        let got = (one.count() - before.0, other.count() - before.1);
        assert!(got.0 >= 10 && got.1 >= 10, "{got:?}");
    });
}
