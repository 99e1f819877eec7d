//! SCTP of the kernel; where the machine's own has none, in one that the test boots (`testpeer::sctp`).

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use diameter::endpoint::{ClientOnly, Endpoint, SendOptions, To};
use diameter::proto::known::{self, disconnect_cause};
use diameter::{BoundListener, PeerConfig, Security, Transport};
use testpeer::freediameter::{FreeDiameter, Setup};

use crate::support::{Hss, REALM, client, endpoint, run, ulr, until};

const HSS: &str = "hss.example";
const MME: &str = "mme.example";
const FD: &str = "fd.example";

/// An HSS whose end point has these addresses, on one port.
fn hss(addresses: &[&str]) -> (Endpoint<Hss>, Vec<SocketAddr>) {
    let hss = endpoint(HSS);
    let ips: Vec<_> = addresses.iter().map(|ip| ip.parse().unwrap()).collect();
    let listener = BoundListener::bind_all(SocketAddr::new(ips[0], 0), &ips[1..], Transport::Sctp).unwrap();
    let port = listener.address().port();
    hss.node().listen(listener, Security::None).unwrap();
    (hss, ips.into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
}

fn over_sctp(host: &str, addresses: Vec<SocketAddr>) -> PeerConfig {
    PeerConfig {
        transport: Transport::Sctp,
        ..PeerConfig::connect(host, addresses)
    }
}

async fn ask(client: &Endpoint<ClientOnly>, user: &str) {
    let patient = SendOptions {
        deadline: Duration::from_secs(60),
        ..SendOptions::default()
    };
    let answer = client.request(To::Routed, ulr(MME, user), patient).await.unwrap();
    assert_eq!(answer.require(known::RESULT_CODE).unwrap(), 2001);
    assert_eq!(answer.require(known::USER_NAME).unwrap(), user);
}

#[test]
fn requests_of_any_size_are_answered() {
    if !testpeer::sctp::is_here("sctp::requests_of_any_size_are_answered") {
        return;
    }
    run(async {
        let (_hss, addresses) = hss(&["127.0.0.1"]);
        let client = client(MME);
        let peer = client.node().add_peer(over_sctp(HSS, addresses)).unwrap();
        client.available(HSS).await;
        // The longest has many DATA chunks.
        for size in [1, 1_000, 5_000, 60_000] {
            ask(&client, &"1".repeat(size)).await;
        }
        client.node().disconnect(peer, disconnect_cause::REBOOTING);
        until(|| client.node().connections().is_empty()).await;
    });
}

/// Adds addresses to a kernel that was booted for the test; of the machine's own kernel a test does not change the network.
fn has_added(addresses: &[&str]) -> bool {
    if !testpeer::sctp::is_booted() {
        testpeer::skip::unavailable("addresses are added to a kernel of the test's own only");
        return false;
    }
    for address in addresses {
        ip(&format!("addr add {address}/32 dev lo"));
    }
    true
}

fn ip(arguments: &str) {
    let done = Command::new("ip").args(arguments.split(' ')).status().unwrap();
    assert!(done.success(), "ip {arguments}");
}

#[test]
fn an_association_outlives_one_of_its_addresses() {
    if !testpeer::sctp::is_here("sctp::an_association_outlives_one_of_its_addresses") {
        return;
    }
    if !has_added(&["10.77.1.1", "10.77.2.1", "10.77.1.2", "10.77.2.2"]) {
        return;
    }
    run(async {
        let (hss, addresses) = hss(&["10.77.1.1", "10.77.2.1"]);
        let client = client(MME);
        let mut peer = over_sctp(HSS, addresses);
        peer.bind = ["10.77.1.2", "10.77.2.2"].map(|ip| ip.parse().unwrap()).to_vec();
        client.node().add_peer(peer).unwrap();
        client.available(HSS).await;
        ask(&client, "1").await;
        for address in ["10.77.1.1", "10.77.1.2"] {
            ip(&format!("addr del {address}/32 dev lo"));
        }
        for user in ["2", "3", "4"] {
            ask(&client, user).await;
        }
        assert_eq!(client.node().peers()[0].totals.connections, 1);
        assert_eq!(hss.service().seen.borrow().len(), 4);
    });
}

#[test]
fn free_diameter_is_a_peer() {
    if !testpeer::sctp::is_here("sctp::free_diameter_is_a_peer") {
        return;
    }
    if !has_added(&["10.77.1.1", "10.77.2.1"]) {
        return;
    }
    run(async {
        // It connects to the HSS, and the MME to it.
        let (_hss, addresses) = hss(&["10.77.2.1"]);
        let realm = &format!("fd.{REALM}");
        let setup = Setup {
            identity: FD,
            realm,
            port: 0,
            peers: &[(HSS, addresses[0])],
        };
        let Some(fd) = FreeDiameter::start_sctp(setup, "10.77.1.1".parse().unwrap()).await else {
            return;
        };
        let client = client(MME);
        client.node().add_peer(over_sctp(FD, vec![fd.address()])).unwrap();
        client.available(FD).await;
        let until_routed = async {
            let to_fd = SendOptions::default();
            loop {
                let answer = client.request(To::Peer(FD), ulr(MME, "1"), to_fd).await.unwrap();
                if answer.require(known::RESULT_CODE).unwrap() == 2001 {
                    return answer;
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        let answer = until_routed.await;
        assert_eq!(answer.require(known::ORIGIN_HOST).unwrap(), HSS);
        assert!(fd.log().contains("SCTP"), "{}", fd.log());
    });
}
