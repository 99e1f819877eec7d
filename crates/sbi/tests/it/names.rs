//! Names resolved by a real name server on loopback.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use sbi::client::{Client, ClientConfig, Scheme, SendErrorKind, SendOptions};
use sbi::dns::{Dns, DnsConfig, DnsError};
use sbi::server::ServerConfig;
use sbi::{Body, Response};
use settings::Period;
use testpeer::dns::NameServer;

use crate::support::{local, start};

fn asking(server: &NameServer, change: impl FnOnce(&mut DnsConfig)) -> Dns {
    let mut config = DnsConfig {
        servers: vec![server.address],
        timeout: Period::from_millis(400),
        attempts: 1,
        ..DnsConfig::default()
    };
    change(&mut config);
    Dns::start(&config).unwrap()
}

#[test]
fn addresses_and_services_are_found_and_remembered() {
    local(async {
        let server = NameServer::start().await.unwrap();
        server.addresses("udm1.example.org", 60, &["127.0.0.1".parse().unwrap()]);
        server.services(
            "_http._tcp.udm1.example.org",
            60,
            &[
                (1, 10, 8080, "UDM2.example.org."),
                (2, 0, 8081, "udm3.example.org."),
            ],
        );
        let dns = asking(&server, |_| {});
        let many = (0..50).map(|_| dns.addresses("udm1.example.org"));
        for found in futures_util::future::join_all(many).await {
            assert_eq!(
                found.unwrap().to_vec(),
                ["127.0.0.1".parse::<std::net::IpAddr>().unwrap()]
            );
        }
        assert_eq!(server.asked(), 2, "A and AAAA, once for all who wait");
        for _ in 0..3 {
            let found = dns.services(Scheme::Http, "udm1.example.org").await.unwrap();
            let mut hosts: Vec<_> = found
                .iter()
                .map(|one| (one.priority, one.port, &*one.host))
                .collect();
            hosts.sort_unstable();
            assert_eq!(
                hosts,
                [(1, 8080, "udm2.example.org"), (2, 8081, "udm3.example.org")]
            );
        }
        assert_eq!(server.asked(), 3);
        let none = dns.services(Scheme::Https, "udm1.example.org").await;
        assert_eq!(none, Err(DnsError::NoRecords));
        assert_eq!(dns.services(Scheme::Https, "udm1.example.org").await, none);
        assert_eq!(server.asked(), 4, "that there is nothing is remembered");
        assert_eq!((dns.stats().names, dns.stats().failed), (3, 0));
    });
}

#[test]
fn a_silent_server_costs_a_bounded_time_and_what_was_known_stays_in_use() {
    local(async {
        let server = NameServer::start().await.unwrap();
        server.addresses("a.example.org", 0, &["127.0.0.1".parse().unwrap()]);
        let dns = asking(&server, |config| config.retry_after = Period::from_millis(1));
        assert!(dns.addresses("a.example.org").await.is_ok());
        server.silent(true);
        assert!(dns.addresses("a.example.org").await.is_ok(), "the old answer");
        let unknown = tokio::time::timeout(Duration::from_secs(5), dns.addresses("b.example.org")).await;
        assert!(unknown.unwrap().is_err());
        assert!(dns.stats().failed >= 2);
    });
}

#[test]
fn a_client_connects_by_name_and_to_the_address_that_listens() {
    local(async {
        let server = NameServer::start().await.unwrap();
        let there = start(ServerConfig::default(), |_| async { Response::default() }).addr;
        // No server listens at the first address.
        let both = ["127.0.0.77".parse().unwrap(), there.ip()];
        server.addresses("nf.example.org", 60, &both);
        let dns = asking(&server, |_| {});
        let client = Client::with_names(Arc::new(ClientConfig::default()), None, Some(dns));
        let send = async |host: &str| {
            let origin = format!("http://{host}:{}", there.port()).parse().unwrap();
            let request = http::Request::get("/").body(Body::empty()).unwrap();
            client.send(&origin, request, SendOptions::default()).await
        };
        assert_eq!(send("nf.example.org").await.unwrap().status(), StatusCode::OK);
        let unknown = send("unknown.example.org").await.unwrap_err();
        assert!(matches!(unknown.kind, SendErrorKind::Connect(_)), "{unknown}");
    });
}
