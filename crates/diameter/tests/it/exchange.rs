//! Requests and answers: end to end, through a relay, and when connections break.

use std::rc::Rc;
use std::time::Duration;

use diameter::endpoint::{Endpoint, Request, RequestError, SendOptions, Service, To};
use diameter::proto::known::{self, command, disconnect_cause};
use diameter::proto::peer::{DownReason, State};
use diameter::proto::{CommandFlags, MessageMut, ResultCode};
use diameter::{BoundListener, PeerConfig, Security, Transport};
use testpeer::diameter::Peer;
use tokio::net::TcpListener;

use crate::support::{S6A, client, config, hss, listen, relay, run, ulr, until};

const HOSTS: [&str; 2] = ["hss1.example", "hss2.example"];
const RELAY: &str = "relay.example";

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
        until(|| server.node().connections().is_empty()).await;
        assert!(
            server.node().peers().is_empty(),
            "a dynamic peer is forgotten when it leaves"
        );
    });
}

/// A service that panics, in a task of its own, on requests for the subscriber `panic`.
struct Panics;

impl Service for Panics {
    async fn call(self: Rc<Self>, request: Request) -> MessageMut {
        tokio::task::yield_now().await;
        let user = request.message.get(known::USER_NAME).unwrap();
        assert_ne!(user, Some("panic"), "on purpose");
        request.answer(ResultCode::SUCCESS).finish().unwrap()
    }
}

#[test]
fn a_service_that_panics_still_serves_later_requests() {
    run(async {
        let server = Endpoint::with_max_calls(config(HOSTS[0], S6A), Panics, None, 1, 1);
        let address = listen(server.node(), Security::None);
        let client = client("mme.example");
        client
            .node()
            .add_peer(PeerConfig::connect(HOSTS[0], [address]))
            .unwrap();
        client.available(HOSTS[0]).await;
        let short = SendOptions {
            deadline: Duration::from_millis(100),
            ..SendOptions::default()
        };
        let lost = client
            .request(To::Routed, ulr("mme.example", "panic"), short)
            .await;
        assert!(lost.is_err(), "{lost:?}");
        // The bound of one call holds until the panic has ended the first.
        loop {
            let request = ulr("mme.example", "001");
            let answer = client.request(To::Routed, request, SendOptions::default()).await;
            match answer.unwrap().require(known::RESULT_CODE).unwrap() {
                2001 => break,
                code => assert_eq!(code, ResultCode::TOO_BUSY.0),
            }
        }
    });
}

#[test]
fn a_relay_passes_requests_and_answers() {
    run(async {
        let (server, hss_address) = hss(HOSTS[0]);
        let (node, relay_address) = relay();
        node.add_peer(PeerConfig::connect(HOSTS[0], [hss_address]))
            .unwrap();
        server.available(RELAY).await;
        let client = client("mme.example");
        client
            .node()
            .add_peer(PeerConfig::connect(RELAY, [relay_address]))
            .unwrap();
        client.available(RELAY).await;
        let tasks: Vec<_> = (0..500)
            .map(|n| {
                let client = client.clone();
                tokio::task::spawn_local(async move {
                    let user = format!("{n:015}");
                    let message = ulr("mme.example", &user);
                    let answer = client
                        .request(To::Routed, message, SendOptions::default())
                        .await
                        .unwrap();
                    assert_eq!(answer.require(known::USER_NAME).unwrap(), user);
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(server.service().seen.borrow().len(), 500);
        assert_eq!(node.pending(), 0);
    });
}

/// A relay between a scripted MME and two scripted HSSs, all connected.
async fn scripted() -> (diameter::Node<crate::support::Relay>, Peer, [Peer; 2]) {
    let (node, address) = relay();
    let mut servers = Vec::new();
    for host in HOSTS {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        node.add_peer(PeerConfig::connect(host, [listener.local_addr().unwrap()]))
            .unwrap();
        let mut server = Peer::accept(&listener).await;
        server.answer_capabilities(host, S6A).await;
        let peer = node.peer(host).unwrap();
        until(|| node.open_connection(peer).is_some()).await;
        servers.push(server);
    }
    let mut mme = Peer::connect(address).await;
    mme.capabilities("mme.example", S6A).await;
    (node, mme, servers.try_into().unwrap())
}

#[test]
fn a_relay_touches_only_what_it_must() {
    run(async {
        let (_node, mut mme, [mut hss, _]) = scripted().await;
        let mut request = ulr("mme.example", "001010000000001");
        request.set_hop_by_hop(77);
        request.set_end_to_end(88);
        mme.send(request.as_bytes()).await;
        let relayed = hss.expect(command::UPDATE_LOCATION).await;
        assert_ne!(relayed.hop_by_hop(), 77);
        assert_eq!((relayed.end_to_end(), relayed.flags()), (88, request.flags()));
        let sent = request.as_bytes();
        assert_eq!(
            relayed.as_bytes()[20..sent.len()],
            sent[20..],
            "every AVP as it was"
        );
        assert_eq!(relayed.require(known::ROUTE_RECORD).unwrap(), "mme.example");
        assert_eq!(relayed.avps().count(), request.avps().count() + 1);
        hss.answer(&relayed, ResultCode::SUCCESS).await;
        let answer = mme
            .expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
            .await;
        assert_eq!((answer.hop_by_hop(), answer.end_to_end()), (77, 88));
    });
}

#[test]
fn what_a_lost_peer_left_unanswered_goes_to_another_with_the_t_flag() {
    run(async {
        let (node, mut mme, [mut first, mut second]) = scripted().await;
        for n in 0..10 {
            mme.send(ulr("mme.example", &n.to_string()).as_bytes()).await;
        }
        let mut originals = Vec::new();
        for _ in 0..10 {
            originals.push(first.expect(command::UPDATE_LOCATION).await);
        }
        first.answer(&originals[0], ResultCode::SUCCESS).await;
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
            .await;
        first.break_off();
        for original in &originals[1..] {
            let again = second.expect(command::UPDATE_LOCATION).await;
            assert!(again.flags().contains(CommandFlags::RETRANSMITTED));
            assert!(
                originals
                    .iter()
                    .any(|original| original.as_bytes()[20..] == again.as_bytes()[20..])
            );
            second.answer(&again, ResultCode::SUCCESS).await;
            let _ = original;
        }
        for _ in 0..9 {
            mme.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
                .await;
        }
        assert_eq!(node.app().down.borrow()[..], [DownReason::Lost]);
        assert_eq!(node.pending(), 0);
    });
}

#[test]
fn a_loop_is_detected_and_an_answer_without_a_request_is_dropped() {
    run(async {
        let (node, mut mme, [mut hss, _]) = scripted().await;
        let stray =
            "ULA app=16777251 flags=P hbh=12345 e2e=1 { Session-Id = \"x\" Result-Code = DIAMETER_SUCCESS }";
        hss.send_text(stray).await;
        let looped = "ULR app=16777251 hbh=5 e2e=6 { Session-Id = \"x\" Route-Record = \"relay.example\" }";
        mme.send_text(looped).await;
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::UNABLE_TO_DELIVER)
            .await;
        let unmatched = |_: &()| {
            node.connections()
                .iter()
                .map(|c| c.figures().answers_unmatched.get())
                .sum::<u64>()
        };
        until(|| unmatched(&()) == 1).await;
    });
}

#[test]
fn a_client_that_reconnects_under_its_name_replaces_itself() {
    run(async {
        let (node, mut mme, [mut hss, _]) = scripted().await;
        mme.send(ulr("mme.example", "1").as_bytes()).await;
        let request = hss.expect(command::UPDATE_LOCATION).await;
        let old = node.open_connection(node.peer("mme.example").unwrap()).unwrap();
        let mut again = Peer::connect(old.local()).await;
        again.capabilities("mme.example", S6A).await;
        assert!(!old.is_open());
        assert!(node.app().down.borrow().contains(&DownReason::Replaced));
        let new = node.open_connection(node.peer("mme.example").unwrap()).unwrap();
        assert_ne!(new.id(), old.id());
        // The old connection ends in order, and the answer that arrives now has no receiver.
        mme.expect_close().await;
        hss.answer(&request, ResultCode::SUCCESS).await;
        again.send(ulr("mme.example", "2").as_bytes()).await;
        let next = hss.expect(command::UPDATE_LOCATION).await;
        hss.answer(&next, ResultCode::SUCCESS).await;
        again
            .expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
            .await;
    });
}

#[test]
fn silence_absence_and_leaving_are_different_errors() {
    run(async {
        let client = client("mme.example");
        let lonely = client
            .request(To::Routed, ulr("mme.example", "1"), SendOptions::default())
            .await;
        assert_eq!(lonely.unwrap_err(), RequestError::NoPeer);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        client
            .node()
            .add_peer(PeerConfig::connect(HOSTS[0], [listener.local_addr().unwrap()]))
            .unwrap();
        let mut hss = Peer::accept(&listener).await;
        hss.answer_capabilities(HOSTS[0], S6A).await;
        client.available(HOSTS[0]).await;

        let impatient = SendOptions {
            deadline: Duration::from_millis(50),
            failover: true,
        };
        let silence = client
            .request(To::Peer(HOSTS[0]), ulr("mme.example", "2"), impatient)
            .await;
        assert_eq!(silence.unwrap_err(), RequestError::Timeout);
        let late = hss.expect(command::UPDATE_LOCATION).await;
        hss.answer(&late, ResultCode::SUCCESS).await;

        let again = client.clone();
        let pending = tokio::task::spawn_local(async move {
            again
                .request(
                    To::Peer(HOSTS[0]),
                    ulr("mme.example", "3"),
                    SendOptions::default(),
                )
                .await
        });
        hss.expect(command::UPDATE_LOCATION).await;
        hss.break_off();
        assert_eq!(pending.await.unwrap().unwrap_err(), RequestError::ConnectionLost);
    });
}

#[test]
fn a_disconnect_sends_a_dpr_and_lasts_until_connect() {
    run(async {
        let (server, address) = hss(HOSTS[0]);
        let client = client("mme.example");
        let peer = client
            .node()
            .add_peer(PeerConfig::connect(HOSTS[0], [address]))
            .unwrap();
        client.available(HOSTS[0]).await;
        client.node().disconnect(peer, disconnect_cause::BUSY);
        until(|| client.node().peers()[0].state == State::Closed).await;
        assert!(client.node().open_connection(peer).is_none());
        client.node().connect(peer);
        client.available(HOSTS[0]).await;
        client
            .node()
            .remove_peer(peer, disconnect_cause::DO_NOT_WANT_TO_TALK_TO_YOU);
        until(|| client.node().peers().is_empty()).await;
        until(|| server.node().connections().is_empty()).await;
    });
}

#[test]
fn both_may_connect_at_once() {
    run(async {
        let (a, b) = (
            crate::support::endpoint("a.example"),
            crate::support::endpoint("b.example"),
        );
        let address = |node: &diameter::Node<_>| crate::support::listen(node, diameter::Security::None);
        let (at_a, at_b) = (address(a.node()), address(b.node()));
        a.node()
            .add_peer(PeerConfig::connect("b.example", [at_b]))
            .unwrap();
        b.node()
            .add_peer(PeerConfig::connect("a.example", [at_a]))
            .unwrap();
        a.available("b.example").await;
        b.available("a.example").await;
        until(|| a.node().connections().len() == 1 && b.node().connections().len() == 1).await;
        let answer = a
            .request(
                To::Peer("b.example"),
                ulr("a.example", "1"),
                SendOptions::default(),
            )
            .await;
        assert_eq!(answer.unwrap().require(known::ORIGIN_HOST).unwrap(), "b.example");
    });
}

#[test]
fn an_answer_is_not_stopped_by_an_unsupported_application() {
    run(async {
        let (_server, address) = hss(HOSTS[0]);
        let mut peer = Peer::connect(address).await;
        peer.capabilities("mme.example", S6A).await;
        peer.send_text("CCR app=16777238 hbh=3 e2e=4 { Session-Id = \"s\" }")
            .await;
        let answer = peer.expect_result(272, ResultCode::APPLICATION_UNSUPPORTED).await;
        assert!(answer.flags().contains(CommandFlags::ERROR));
        assert_eq!(answer.require(known::SESSION_ID).unwrap(), "s");
    });
}

#[test]
fn a_dynamic_peer_that_gets_configured_keeps_its_connection() {
    run(async {
        let (server, address) = hss(HOSTS[0]);
        let mut mme = Peer::connect(address).await;
        mme.capabilities("mme.example", S6A).await;
        let before = server.node().peers();
        assert!(!before[0].configured);
        let id = server
            .node()
            .add_peer(PeerConfig::await_from("mme.example"))
            .unwrap();
        assert_eq!((id, server.node().peers()[0].configured), (before[0].id, true));
        assert!(
            server
                .node()
                .add_peer(PeerConfig::await_from("MME.example"))
                .is_err()
        );
        mme.break_off();
        until(|| server.node().connections().is_empty()).await;
        assert_eq!(server.node().peers().len(), 1, "it is expected back");
    });
}

#[test]
fn ipv4_and_ipv6_come_in_at_one_listener_and_figures_outlive_connections() {
    run(async {
        let server = crate::support::endpoint(HOSTS[0]);
        let any = BoundListener::bind("[::]:0".parse().unwrap(), Transport::Tcp).unwrap();
        let port = any.address().port();
        server.node().listen(any, Security::None).unwrap();
        for address in [format!("127.0.0.1:{port}"), format!("[::1]:{port}")] {
            let client = client("mme.example");
            let peer = client
                .node()
                .add_peer(PeerConfig::connect(HOSTS[0], [address.parse().unwrap()]))
                .unwrap();
            client.available(HOSTS[0]).await;
            for _ in 0..2 {
                let message = ulr("mme.example", "1");
                client
                    .request(To::Routed, message, SendOptions::default())
                    .await
                    .unwrap();
            }
            client.node().disconnect(peer, disconnect_cause::REBOOTING);
            until(|| client.node().connections().is_empty()).await;
            let totals = client.node().peers()[0].totals;
            assert_eq!((totals.connections, totals.requests_out), (1, 2));
            client.node().connect(peer);
            client.available(HOSTS[0]).await;
            assert_eq!(client.node().peers()[0].totals.connections, 2);
            client
                .node()
                .stop(Duration::ZERO, disconnect_cause::REBOOTING)
                .await;
        }
    });
}
