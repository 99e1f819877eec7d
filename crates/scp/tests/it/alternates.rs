//! Alternates of producers that DNS names.

use std::time::Duration;

use http::{Method, StatusCode};
use routing::policy::{Reroute, ServicePolicy, StagePolicy};
use serde_json::json;
use settings::Period;
use testpeer::dns::NameServer;

use crate::support::{Got, PATH, Producer, Scp, local, start};

fn resolving(server: &NameServer, policy: ServicePolicy) -> Scp {
    let address = server.address;
    start(|config| {
        config.dns.servers = vec![address];
        config.dns.timeout = Period::from_millis(500);
        config.policies = vec![policy];
    })
}

fn with_alternates() -> ServicePolicy {
    ServicePolicy {
        dns_srv_alternates: true,
        ..ServicePolicy::default()
    }
}

fn at_loopback(server: &NameServer, names: &[&str]) {
    for name in names {
        server.addresses(name, 60, &["127.0.0.1".parse().unwrap()]);
    }
}

async fn get(scp: &Scp, root: &str) -> Got {
    let headers = [("3gpp-sbi-target-apiroot", root)];
    scp.ask(Method::GET, PATH, &headers).await
}

#[test]
fn the_targets_of_srv_records_stand_in_in_their_order() {
    local(async {
        let server = NameServer::start().await.unwrap();
        let (dead, second, third) = (Producer::start(1), Producer::start(2), Producer::start(3));
        at_loopback(&server, &["udm1.test", "udm2.test", "udm3.test"]);
        let (root, port) = (
            format!("http://udm1.test:{}", dead.address.port()),
            second.address.port(),
        );
        server.services(
            "_http._tcp.udm1.test",
            60,
            &[
                (9, 0, third.address.port(), "udm3.test."),
                (1, 0, dead.address.port(), "udm1.test."),
                (5, 0, port, "udm2.test."),
            ],
        );
        let scp = resolving(&server, with_alternates());
        assert_eq!(get(&scp, &root).await.by(), dead.id);
        assert_eq!(
            server.asked(),
            2,
            "no alternates are queried for a producer that answers"
        );
        dead.stop();
        tokio::time::sleep(Duration::from_millis(50)).await;
        for _ in 0..20 {
            let got = get(&scp, &root).await;
            assert_eq!(
                (got.status, got.by()),
                (StatusCode::OK, second.id.as_str()),
                "{got:?}"
            );
            // The answer names the producer that answered instead (TS 29.500 §6.10.4).
            assert_eq!(
                got.header("3gpp-sbi-target-apiroot"),
                format!("http://udm2.test:{port}")
            );
        }
        second.stop();
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(get(&scp, &root).await.by(), third.id);
        // Three hosts with two kinds of addresses, and the service, once each; the hosts that refuse again, in case that they
        // have moved, at most once a second.
        assert!((7..40).contains(&server.asked()), "{}", server.asked());
        assert!(scp.count("signalbox_scp_dns_alternates_total", "found") >= 21.0);
        assert!(scp.count("signalbox_scp_dns_names", "") >= 4.0);
    });
}

#[test]
fn a_producer_known_by_its_address_has_alternates_by_its_fqdn() {
    local(async {
        let server = NameServer::start().await.unwrap();
        let (busy, other) = (Producer::start(1), Producer::start(2));
        at_loopback(&server, &["udm2.test"]);
        server.services(
            "_http._tcp.udm1.test",
            60,
            &[(1, 1, other.address.port(), "udm2.test.")],
        );
        let (profile, address) = (
            busy.profile(&json!({"fqdn": "udm1.test", "nfSetIdList": []})),
            server.address,
        );
        let scp = start(|config| {
            config.dns.servers = vec![address];
            config.policies = vec![with_alternates()];
            config.producers = vec![profile];
        });
        assert_eq!(get(&scp, &busy.root()).await.by(), busy.id);
        busy.fails_with(503);
        assert_eq!(get(&scp, &busy.root()).await.by(), other.id);
        // A failure that others would not mend is the answer.
        busy.fails_with(404);
        assert_eq!(get(&scp, &busy.root()).await.status, StatusCode::NOT_FOUND);
    });
}

#[test]
fn nobody_is_asked_where_the_policy_does_not_say_so_and_a_dead_server_costs_little() {
    local(async {
        let server = NameServer::start().await.unwrap();
        let other = Producer::start(2);
        at_loopback(&server, &["udm1.test", "udm2.test"]);
        server.services(
            "_http._tcp.udm1.test",
            60,
            &[(1, 1, other.address.port(), "udm2.test.")],
        );
        let root = "http://udm1.test:9";
        let elsewhere = StagePolicy {
            reroute: Reroute::None,
            ..StagePolicy::default()
        };
        let without_rerouting = ServicePolicy {
            initial: elsewhere,
            subsequent: elsewhere,
            ..with_alternates()
        };
        for policy in [ServicePolicy::default(), without_rerouting] {
            let scp = resolving(&server, policy);
            let got = get(&scp, root).await;
            assert_eq!(got.cause(), "TARGET_NF_NOT_REACHABLE");
        }
        assert_eq!(other.count(), 0);
        let scp = resolving(&server, with_alternates());
        // Its address is known; then the server says nothing more.
        assert_eq!(get(&scp, root).await.by(), other.id);
        let scp = resolving(&server, with_alternates());
        server.silent(true);
        let got = tokio::time::timeout(Duration::from_secs(10), get(&scp, root))
            .await
            .unwrap();
        assert_eq!(got.cause(), "TARGET_NF_NOT_REACHABLE");
        assert!(scp.count("signalbox_scp_dns_failures_total", "") >= 1.0);
    });
}
