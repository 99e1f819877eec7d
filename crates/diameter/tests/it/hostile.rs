//! Peers that break the rules: an answer or a clean close, bounded memory, and no effect on other peers.

use std::time::Duration;

use diameter::endpoint::{Endpoint, SendOptions, To};
use diameter::proto::known::{self, command};
use diameter::proto::peer::Capabilities;
use diameter::proto::{CommandFlags, ResultCode};
use diameter::{DynamicPeers, Limits, NodeConfig, Security};
use testpeer::diameter::Peer;

use crate::support::{Hss, S6A, config, hss, listen, run, ulr, until};

fn server(limits: Limits) -> (Endpoint<Hss>, std::net::SocketAddr) {
    let config = NodeConfig {
        limits,
        ..config("hss.example", S6A)
    };
    let endpoint = Endpoint::new(config, Hss::default(), None, 1);
    let address = listen(endpoint.node(), Security::None);
    (endpoint, address)
}

/// A well-behaved connected peer, which is still served after the attack.
async fn assert_served(peer: &mut Peer) {
    peer.send(ulr("good.example", "1").as_bytes()).await;
    peer.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
        .await;
}

#[test]
fn other_protocols_end_their_connection_alone() {
    run(async {
        let (server, address) = hss("hss.example");
        let mut good = Peer::connect(address).await;
        good.capabilities("good.example", S6A).await;
        let cases: [&[u8]; 6] = [
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            &[0; 64],
            &[1, 0, 0, 19, 0x80, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1],
            &[
                1, 0, 0, 22, 0x80, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0,
            ],
            &[0xff; 4096],
            &[1, 0, 0, 20, 0x00, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1],
        ];
        for bytes in cases {
            let mut bad = Peer::connect(address).await;
            bad.send(bytes).await;
            while bad.next().await.is_some() {}
        }
        assert_served(&mut good).await;
        until(|| server.node().connections().len() == 1).await;
    });
}

#[test]
fn a_claim_of_16_megabytes_reserves_nothing_and_is_answered() {
    run(async {
        let (_server, address) = hss("hss.example");
        let mut bad = Peer::connect(address).await;
        bad.capabilities("bad.example", S6A).await;
        let mut huge = ulr("bad.example", "1").as_bytes().to_vec();
        huge[1..4].copy_from_slice(&[0xff, 0xff, 0xfc]);
        bad.send(&huge).await;
        bad.expect_result(command::UPDATE_LOCATION, ResultCode::INVALID_MESSAGE_LENGTH)
            .await;
        bad.expect_close().await;
    });
}

#[test]
fn broken_avps_are_answered_with_the_failed_avp_and_the_connection_lives() {
    run(async {
        let (_server, address) = hss("hss.example");
        let mut bad = Peer::connect(address).await;
        bad.capabilities("bad.example", S6A).await;
        let request = ulr("bad.example", "1");
        // The third AVP claims to reach beyond the message; or less than its own header.
        let third = 20
            + request
                .avps()
                .take(2)
                .map(|avp| avp.unwrap().raw.len().next_multiple_of(4))
                .sum::<usize>();
        for length in [[0xff, 0xff, 0xff], [0, 0, 3]] {
            let mut broken = request.as_bytes().to_vec();
            broken[third + 5..third + 8].copy_from_slice(&length);
            bad.send(&broken).await;
            let answer = bad
                .expect_result(command::UPDATE_LOCATION, ResultCode::INVALID_AVP_LENGTH)
                .await;
            let failed = answer.require(known::FAILED_AVP).unwrap();
            assert!(failed.find(known::ORIGIN_HOST).unwrap().is_some());
        }
        let mut flags = request.as_bytes().to_vec();
        flags[4] |= CommandFlags::ERROR.0;
        bad.send(&flags).await;
        bad.expect_result(command::UPDATE_LOCATION, ResultCode::INVALID_HDR_BITS)
            .await;
        bad.send(request.as_bytes()).await;
        bad.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
            .await;
    });
}

#[test]
fn a_cer_that_is_wrong_is_refused_by_name() {
    run(async {
        let (_server, address) = hss("hss.example");
        let mut nameless = Peer::connect(address).await;
        nameless.send_text("CER { Origin-Realm = \"example\" }").await;
        let cea = nameless
            .expect_result(command::CAPABILITIES_EXCHANGE, ResultCode::MISSING_AVP)
            .await;
        assert!(
            cea.require(known::FAILED_AVP)
                .unwrap()
                .find(known::ORIGIN_HOST)
                .unwrap()
                .is_some()
        );
        nameless.expect_close().await;

        let mut other = Peer::connect(address).await;
        other
            .send_cer(
                "gx.example",
                &[diameter::proto::peer::ApplicationId::tgpp(16_777_238)],
            )
            .await;
        other
            .expect_result(command::CAPABILITIES_EXCHANGE, ResultCode::NO_COMMON_APPLICATION)
            .await;
        other.expect_close().await;

        let mut ourselves = Peer::connect(address).await;
        ourselves.send_cer("HSS.example", S6A).await;
        ourselves
            .expect_result(command::CAPABILITIES_EXCHANGE, ResultCode::UNKNOWN_PEER)
            .await;
        ourselves.expect_close().await;
    });
}

#[test]
fn unknown_peers_are_refused_where_no_rule_admits_them() {
    run(async {
        let mut config = config("hss.example", S6A);
        config.dynamic = vec![DynamicPeers {
            realms: vec!["other".into()],
            max: 1,
            ..DynamicPeers::default()
        }];
        let server = Endpoint::new(config, Hss::default(), None, 1);
        let address = listen(server.node(), Security::None);
        let mut stranger = Peer::connect(address).await;
        stranger.send_cer("x.example", S6A).await;
        let cea = stranger
            .expect_result(command::CAPABILITIES_EXCHANGE, ResultCode::UNKNOWN_PEER)
            .await;
        assert!(cea.flags().contains(CommandFlags::ERROR));
        stranger.expect_close().await;
    });
}

#[test]
fn messages_before_capabilities_end_the_connection() {
    run(async {
        let (_server, address) = hss("hss.example");
        let mut hasty = Peer::connect(address).await;
        hasty.send(ulr("hasty.example", "1").as_bytes()).await;
        hasty.expect_close().await;
    });
}

#[test]
fn a_slow_sender_and_a_silent_one_are_cut_off() {
    run(async {
        let stall = Duration::from_millis(200);
        let (_server, address) = server(Limits {
            handshake: stall,
            read_stall: stall,
            ..Limits::default()
        });
        let mut silent = Peer::connect(address).await;
        silent.expect_close().await;
        let mut slow = Peer::connect(address).await;
        slow.capabilities("slow.example", S6A).await;
        slow.send(&ulr("slow.example", "1").as_bytes()[..30]).await;
        slow.expect_close().await;
    });
}

#[test]
fn a_peer_that_reads_nothing_meets_a_full_queue_and_then_the_end() {
    run(async {
        let limits = Limits {
            queue: 64 * 1024,
            write_stall: Duration::from_millis(300),
            ..Limits::default()
        };
        let (server, address) = server(limits);
        let mut deaf = Peer::connect(address).await;
        deaf.capabilities("deaf.example", S6A).await;
        let requests = ulr("deaf.example", "1").as_bytes().repeat(100);
        // Until the sockets' own buffers are full as well, and nothing more is taken.
        let until_cut = async { while deaf.try_send(&requests).await {} };
        until_cut.await;
        let queued: usize = server
            .node()
            .connections()
            .iter()
            .map(|connection| connection.queued())
            .sum();
        assert!(queued <= 64 * 1024 + 64 * 1024, "{queued} bytes are queued");
        until(|| server.node().connections().is_empty()).await;
    });
}

#[test]
fn a_flood_of_connections_and_cers_is_bounded() {
    run(async {
        let limits = Limits {
            handshakes_per_address: 8,
            connections: 20,
            ..Limits::default()
        };
        let (server, address) = server(limits);
        let mut good = Peer::connect(address).await;
        good.capabilities("good.example", S6A).await;
        let mut idle = Vec::new();
        for _ in 0..50 {
            idle.push(Peer::connect(address).await);
        }
        until(|| server.node().connections().len() == 9).await;
        assert_served(&mut good).await;
        drop(idle);
        until(|| server.node().connections().len() == 1).await;
        // The same name over and over: each replaces the last, none stays behind.
        for _ in 0..50 {
            let mut again = Peer::connect(address).await;
            again.capabilities("flood.example", S6A).await;
        }
        assert_served(&mut good).await;
        until(|| server.node().connections().len() <= 2).await;
    });
}

/// All clients of a front end without PROXY headers have its address.
#[test]
fn slow_clients_keep_no_newcomer_of_their_address_out() {
    run(async {
        let limits = Limits {
            handshakes_per_address: 8,
            ..Limits::default()
        };
        let (server, address) = server(limits);
        let mut slow = Vec::new();
        for number in 0..24 {
            let mut peer = Peer::connect(address).await;
            // A message that is cut in its Message Length.
            peer.try_send(&[1, 0]).await;
            slow.push(peer);
            let mut newcomer = Peer::connect(address).await;
            newcomer
                .capabilities(&format!("newcomer{number}.example"), S6A)
                .await;
            assert_served(&mut newcomer).await;
        }
        // Those of the newcomers may still be on their way to their end.
        until(|| server.node().connections().len() <= 8).await;
    });
}

#[test]
fn a_watchdog_flood_by_a_peer_that_reads_nothing_is_bounded() {
    run(async {
        let limits = Limits {
            queue: 16 * 1024,
            write_stall: Duration::from_millis(300),
            // This test reaches the bound of the queue, not that of the rate.
            base_rate: 0,
            ..Limits::default()
        };
        let (server, address) = server(limits);
        let mut deaf = Peer::connect(address).await;
        deaf.capabilities("deaf.example", S6A).await;
        let dwr = diameter::proto::text::parse(
            "DWR { Origin-Host = \"deaf.example\" Origin-Realm = \"example\" }",
            diameter::proto::Dictionary::standard(),
        )
        .unwrap();
        let flood = dwr.as_bytes().repeat(1000);
        while deaf.try_send(&flood).await {}
        until(|| server.node().connections().is_empty()).await;
    });
}

fn dwr(host: &str) -> Vec<u8> {
    let text = format!("DWR hbh=7 e2e=7 {{ Origin-Host = \"{host}\" Origin-Realm = \"example\" }}");
    let message = diameter::proto::text::parse(&text, diameter::proto::Dictionary::standard()).unwrap();
    message.as_bytes().to_vec()
}

#[test]
fn a_flood_of_the_base_protocol_ends_its_connection_alone() {
    run(async {
        let limits = Limits {
            base_rate: 50,
            ..Limits::default()
        };
        let (server, address) = server(limits);
        let mut good = Peer::connect(address).await;
        good.capabilities("good.example", S6A).await;
        let cer = {
            let mut cer = diameter::proto::MessageBuilder::request(command::CAPABILITIES_EXCHANGE, 0);
            Capabilities::new("flood.example", "example")
                .with_applications(S6A.iter().copied())
                .write(&mut cer);
            cer.finish().unwrap().as_bytes().to_vec()
        };
        let mut answer = ulr("flood.example", "1").as_bytes().to_vec();
        // The R flag makes a request; without, it is an answer to a request that was never sent.
        answer[4] &= 0x7f;
        for one in [dwr("flood.example"), cer, answer] {
            let mut flood = Peer::connect(address).await;
            flood.capabilities("flood.example", S6A).await;
            let many = one.repeat(100);
            // The flood is read to its bound and no further: it ends, whatever the peer still sends.
            while flood.try_send(&many).await {}
            until(|| server.node().connections().len() == 1).await;
            assert_served(&mut good).await;
        }
    });
}

#[test]
fn late_answers_to_abandoned_requests_do_not_count_as_a_flood() {
    run(async {
        let config = NodeConfig {
            limits: Limits {
                base_rate: 5,
                ..Limits::default()
            },
            ..config("mme.example", S6A)
        };
        let mme = Endpoint::new(config, diameter::endpoint::ClientOnly, None, 2);
        let address = listen(mme.node(), Security::None);
        let mut late = Peer::connect(address).await;
        late.capabilities("hss.example", S6A).await;
        mme.available("hss.example").await;
        let id = mme.node().peer("hss.example").unwrap();
        let connection = mme.node().open_connection(id).unwrap();
        let mut requests = Vec::new();
        for number in 0..20 {
            let options = SendOptions {
                deadline: Duration::from_millis(20),
                failover: false,
            };
            let request = ulr("mme.example", &number.to_string());
            mme.request(To::Peer("hss.example"), request, options)
                .await
                .unwrap_err();
            requests.push(late.expect(command::UPDATE_LOCATION).await);
        }
        for request in &requests {
            late.answer(request, ResultCode::SUCCESS).await;
        }
        late.send(&dwr("hss.example")).await;
        // The node may have asked as well, as it got no answers.
        while late.expect(command::DEVICE_WATCHDOG).await.is_request() {}
        assert_eq!(connection.figures().answers_unmatched.get(), 20);
        // They are answers without a request once more.
        for request in &requests {
            late.answer(request, ResultCode::SUCCESS).await;
        }
        late.expect_close().await;
    });
}

#[test]
fn one_busy_peer_leaves_turns_to_the_others() {
    let by_number = Limits {
        turn: 8,
        ..Limits::default()
    };
    let by_time = Limits {
        turn_time: Duration::ZERO,
        ..Limits::default()
    };
    for limits in [by_number, by_time] {
        leaves_turns_to_the_others(limits);
    }
}

fn leaves_turns_to_the_others(limits: Limits) {
    run(async {
        let (server, address) = server(limits);
        let mut good = Peer::connect(address).await;
        good.capabilities("good.example", S6A).await;
        let mut busy = Peer::connect(address).await;
        busy.capabilities("busy.example", S6A).await;
        // Far more than a turn in one read: none is lost, and none is kept back until more comes.
        let requests = ulr("busy.example", "1").as_bytes().repeat(500);
        busy.send(&requests).await;
        assert_served(&mut good).await;
        for _ in 0..500 {
            busy.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
                .await;
        }
        let unread = &server.service().unread;
        assert!(unread.get() > 400, "{} lay unread", unread.get());
        unread.set(0);
        assert_served(&mut good).await;
        busy.send(ulr("busy.example", "1").as_bytes()).await;
        busy.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
            .await;
        assert_eq!(unread.get(), 0, "all was read");
    });
}

#[test]
fn a_configured_name_is_taken_from_its_addresses_and_networks_only() {
    run(async {
        let (server, address) = server(Limits::default());
        let elsewhere: std::net::SocketAddr = "192.0.2.1:3868".parse().unwrap();
        let mut peer = diameter::PeerConfig::await_from("hss2.example");
        peer.networks = vec!["192.0.2.0/24".parse().unwrap()];
        let id = server.node().add_peer(peer).unwrap();
        let mut pinned = diameter::PeerConfig::connect("hss3.example", [elsewhere]);
        pinned.settings.connect_timeout = Duration::from_secs(30);
        server.node().add_peer(pinned).unwrap();
        for host in ["hss2.example", "HSS2.example", "hss3.example"] {
            Peer::refused(address, host, "example", S6A, ResultCode::UNKNOWN_PEER).await;
        }
        server
            .node()
            .set_networks(id, vec!["127.0.0.0/8".parse().unwrap()]);
        Peer::admitted(address, "hss2.example", "example", S6A).await;
    });
}

#[test]
fn a_name_of_60_kilobytes_is_refused_with_a_short_answer() {
    run(async {
        let (_server, address) = server(Limits::default());
        let mut long = Peer::connect(address).await;
        long.send_cer(&"x".repeat(60_000), S6A).await;
        let answer = long
            .expect_result(command::CAPABILITIES_EXCHANGE, ResultCode::INVALID_AVP_VALUE)
            .await;
        assert!(
            answer.as_bytes().len() < 1000,
            "{} bytes",
            answer.as_bytes().len()
        );
        assert!(answer.get(known::FAILED_AVP).is_ok());
        long.expect_close().await;
    });
}

#[test]
fn connections_of_ours_that_fail_do_not_widen_the_bound_on_handshakes() {
    run(async {
        let limits = Limits {
            handshakes: 2,
            handshakes_per_address: 100,
            ..Limits::default()
        };
        let (server, address) = server(limits);
        let refusing = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut peer = diameter::PeerConfig::connect("refusing.example", [refusing.local_addr().unwrap()]);
        peer.settings.reconnect_min = Duration::from_millis(1);
        peer.settings.reconnect_max = Duration::from_millis(2);
        server.node().add_peer(peer).unwrap();
        // Four that we make end before their CEA.
        for _ in 0..4 {
            let mut there = Peer::accept(&refusing).await;
            let cer = there.expect(command::CAPABILITIES_EXCHANGE).await;
            there.answer(&cer, ResultCode::NO_COMMON_APPLICATION).await;
            there.expect_close().await;
        }
        drop(refusing);
        let mut silent = Vec::new();
        for _ in 0..6 {
            silent.push(Peer::connect(address).await);
        }
        // Beyond two, those that say nothing are closed.
        let mut last = silent.pop().unwrap();
        last.expect_close().await;
        until(|| server.node().connections().len() <= 2).await;
    });
}
