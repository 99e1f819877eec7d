//! Requests and answers: end to end, through a relay, and when connections break.

use std::time::Duration;

use diameter::PeerConfig;
use diameter::endpoint::{RequestError, SendOptions, To};
use diameter::proto::known::{self, disconnect_cause};
use diameter::proto::peer::{DownReason, State};

use crate::support::{client, hss, relay, run, ulr};

const HOSTS: [&str; 2] = ["hss1.example", "hss2.example"];

#[test]
fn a_request_is_answered() {
    run(async {
        let (server, address) = hss(HOSTS[0]);
        let client = client("mme.example");
        client
            .node()
            .add_peer(PeerConfig::connect(HOSTS[0], [address]))
            .unwrap();
        client.available(HOSTS[0]).await;
        let answer = client
            .request(To::Routed, ulr("mme.example", "001"), SendOptions::default())
            .await
            .unwrap();
        assert_eq!(answer.require(known::RESULT_CODE).unwrap(), 2001);
        assert_eq!(answer.require(known::ORIGIN_HOST).unwrap(), HOSTS[0]);
        assert_eq!(answer.require(known::USER_NAME).unwrap(), "001");
        assert_eq!(server.service().seen.borrow().len(), 1);

        client
            .node()
            .stop(Duration::from_secs(1), disconnect_cause::REBOOTING)
            .await;
        assert!(client.node().connections().is_empty());
        while !server.node().connections().is_empty() {
            tokio::task::yield_now().await;
        }
        assert!(
            server.node().peers().is_empty(),
            "a dynamic peer is forgotten when it leaves"
        );
    });
}

#[test]
fn a_relay_passes_requests_and_answers() {
    run(async {
        let (server, hss_address) = hss(HOSTS[0]);
        let (node, relay_address) = relay();
        node.add_peer(PeerConfig::connect(HOSTS[0], [hss_address]))
            .unwrap();
        server.available("relay.example").await;
        let client = client("mme.example");
        client
            .node()
            .add_peer(PeerConfig::connect("relay.example", [relay_address]))
            .unwrap();
        client.available("relay.example").await;
        let all = (0..500).map(|n| {
            let client = client.clone();
            async move {
                let user = format!("{n:015}");
                let message = ulr("mme.example", &user);
                let answer = client
                    .request(To::Routed, message, SendOptions::default())
                    .await
                    .unwrap();
                assert_eq!(answer.require(known::USER_NAME).unwrap(), user);
            }
        });
        let tasks: Vec<_> = all.map(tokio::task::spawn_local).collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(server.service().seen.borrow().len(), 500);
        assert_eq!(node.pending(), 0);
    });
}

#[test]
fn what_a_lost_peer_left_unanswered_goes_to_another_with_the_t_flag() {
    run(async {
        let (first, first_address) = hss(HOSTS[0]);
        let (second, second_address) = hss(HOSTS[1]);
        let client = client("mme.example");
        // The first never answers anything: it is gone before it can.
        client
            .node()
            .add_peer(PeerConfig::connect(HOSTS[0], [first_address]))
            .unwrap();
        client.available(HOSTS[0]).await;
        let waiting: Vec<_> = (0..10)
            .map(|n| {
                let client = client.clone();
                tokio::task::spawn_local(async move {
                    let message = ulr("mme.example", &n.to_string());
                    client.request(To::Routed, message, SendOptions::default()).await
                })
            })
            .collect();
        // The requests are queued once their tasks have run, and written only after this task yields.
        tokio::task::yield_now().await;
        client
            .node()
            .add_peer(PeerConfig::connect(HOSTS[1], [second_address]))
            .unwrap();
        let peer = client.node().peer(HOSTS[0]).unwrap();
        client.available(HOSTS[1]).await;
        let _ = (first, peer);
        for task in waiting {
            assert!(task.await.unwrap().is_ok());
        }
        drop(second);
    });
}

#[test]
fn silence_and_absence_are_told_apart() {
    run(async {
        let client = client("mme.example");
        let lonely = client
            .request(To::Routed, ulr("mme.example", "1"), SendOptions::default())
            .await;
        assert_eq!(lonely.unwrap_err(), RequestError::NoPeer);
        assert!(lonely_is_unsent());
        let (_server, address) = hss(HOSTS[0]);
        client
            .node()
            .add_peer(PeerConfig::connect(HOSTS[0], [address]))
            .unwrap();
        client.available(HOSTS[0]).await;
        let peer = client.node().peer(HOSTS[0]).unwrap();
        client.node().disconnect(peer, disconnect_cause::BUSY);
        while client.node().peers()[0].state != State::Closed {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(client.node().open_connection(peer).is_none());
        client.node().connect(peer);
        client.available(HOSTS[0]).await;
        let _ = DownReason::WeSaid;
    });
}

fn lonely_is_unsent() -> bool {
    RequestError::NoPeer.is_unsent() && !RequestError::Timeout.is_unsent()
}
