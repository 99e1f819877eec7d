//! Several workers on one address: a peer lives on one of them, wherever its connections are accepted.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;

use diameter::endpoint::{Endpoint, SendOptions, To};
use diameter::proto::known;
use diameter::{BoundListener, Directory, PeerConfig, Seat, Security, Transport};
use testpeer::diameter::Peer;
use worker::Shutdown;

use crate::security::Authority;
use crate::support::{Hss, S6A, client, config, run, ulr};

const WORKERS: usize = 3;

/// Three workers that serve one address as one node.
fn cluster(shutdown: &Shutdown) -> (SocketAddr, Vec<std::thread::JoinHandle<()>>) {
    secured_cluster(shutdown, &Security::None)
}

fn secured_cluster(
    shutdown: &Shutdown,
    security: &Security,
) -> (SocketAddr, Vec<std::thread::JoinHandle<()>>) {
    let first = BoundListener::bind("127.0.0.1:0".parse().unwrap(), Transport::Tcp).unwrap();
    let address = first.address();
    let mut first = Some(first);
    let (ready, started) = mpsc::sync_channel(WORKERS);
    let threads = Directory::seats(WORKERS)
        .into_iter()
        .map(|seat: Seat| {
            let listener = first
                .take()
                .unwrap_or_else(|| BoundListener::bind(address, Transport::Tcp).unwrap());
            let (shutdown, ready, security) = (shutdown.clone(), ready.clone(), security.clone());
            std::thread::spawn(move || {
                run(async {
                    let endpoint = Endpoint::new(config("hss.example", S6A), Hss::default(), Some(seat), 9);
                    endpoint.node().listen(listener, security).unwrap();
                    ready.send(()).unwrap();
                    shutdown.fired().await;
                    endpoint.node().stop(Duration::ZERO, 0).await;
                });
            })
        })
        .collect();
    for _ in 0..WORKERS {
        started.recv().unwrap();
    }
    (address, threads)
}

#[test]
fn a_peer_that_comes_back_meets_itself_on_whatever_worker() {
    let shutdown = Shutdown::new();
    let (address, threads) = cluster(&shutdown);
    run(async {
        let mut last: Option<Peer> = None;
        // Twenty connections are spread over three workers by the kernel; the peer's machine is on one.
        for n in 0..20 {
            let mut mme = Peer::connect(address).await;
            mme.capabilities("mme.example", S6A).await;
            if let Some(mut old) = last.take() {
                old.expect_close().await;
            }
            mme.send(ulr("mme.example", &n.to_string()).as_bytes()).await;
            mme.expect(known::command::UPDATE_LOCATION).await;
            last = Some(mme);
        }
    });
    shutdown.fire();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn many_peers_spread_over_the_workers() {
    let shutdown = Shutdown::new();
    let (address, threads) = cluster(&shutdown);
    run(async {
        let clients: Vec<_> = (0..12).map(|n| client(&format!("mme{n}.example"))).collect();
        for client in &clients {
            client
                .node()
                .add_peer(PeerConfig::connect("hss.example", [address]))
                .unwrap();
        }
        for (n, client) in clients.iter().enumerate() {
            client.available("hss.example").await;
            let message = ulr(&format!("mme{n}.example"), "1");
            client
                .request(To::Routed, message, SendOptions::default())
                .await
                .unwrap();
        }
    });
    shutdown.fire();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// A connection may move to another worker with its CER, which judges it by its certificate as the first one would.
#[test]
fn a_certificate_counts_on_whatever_worker() {
    let authority = Authority::new();
    let shutdown = Shutdown::new();
    let (address, threads) = secured_cluster(&shutdown, &Security::Tls(authority.tls("hss.example")));
    run(async {
        for n in 0..12 {
            let (right, wrong) = (format!("mme{n}.example"), format!("other{n}.example"));
            let mme = client(&right);
            let with = |certificate: &str| PeerConfig {
                security: Security::Tls(authority.tls(certificate)),
                ..PeerConfig::connect("hss.example", [address])
            };
            mme.node().add_peer(with(&right)).unwrap();
            mme.available("hss.example").await;
            let forger = client(&right);
            forger.node().add_peer(with(&wrong)).unwrap();
            for turn in 0..5 {
                let message = ulr(&right, &turn.to_string());
                let answer = mme.request(To::Routed, message, SendOptions::default()).await;
                assert_eq!(answer.unwrap().require(known::RESULT_CODE).unwrap(), 2001);
                let is_open = forger.node().connections().iter().any(|one| one.is_open());
                assert!(!is_open, "a certificate of {wrong} for {right}");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    });
    shutdown.fire();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
