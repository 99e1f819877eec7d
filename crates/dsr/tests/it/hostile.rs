//! Peers that break the rules, at a whole router: an answer or a clean close, bounded memory, and no effect on other
//! peers.

use std::time::Duration;

use diameter::proto::known::{self, command};
use diameter::proto::{CommandFlags, MessageMut, ResultCode};
use dsr::config::DynamicPeers;
use dsr::{Config, Event, Running};
use testpeer::diameter::Peer;

use crate::support::{
    APPLICATIONS, DSR, MME, Waiting, answered, available, client, config, run, ulr_to, ulr_with, until, world,
};

const HSS: &str = "hss.example";

/// Two workers, so that connections are handed over as well.
fn two() -> Config {
    Config {
        workers: 2,
        ..config()
    }
}

/// A well-behaved client and server, which are still served after the attack.
struct Good {
    dsr: Running,
    mme: Peer,
    hss: Peer,
    _listening: Vec<Waiting>,
}

impl Good {
    async fn new(config: Config) -> Self {
        let (dsr, listening, mut peers) = world(config, [HSS], "").await;
        let mme = client(&dsr, MME).await;
        Self {
            mme,
            hss: peers.remove(0),
            _listening: listening,
            dsr,
        }
    }

    async fn is_served(&mut self) {
        self.mme.send(ulr_to(HSS).as_bytes()).await;
        answered(&mut self.mme, &mut self.hss).await;
    }

    async fn stranger(&self) -> Peer {
        Peer::connect(self.dsr.addresses()[0]).await
    }

    /// Waits until only the well-behaved peers are connected.
    async fn alone(&self) {
        until(|| (0..2).map(|worker| self.dsr.connections_of(worker)).sum::<i64>() == 2).await;
    }
}

/// Where the AVP at this position begins.
fn offset(message: &MessageMut, position: usize) -> usize {
    let before = message.avps().take(position);
    20 + before
        .map(|avp| avp.unwrap().raw.len().next_multiple_of(4))
        .sum::<usize>()
}

#[test]
fn other_protocols_end_their_connection_alone() {
    run(async {
        let mut good = Good::new(two()).await;
        let cases: [&[u8]; 7] = [
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            &[0; 64],
            // Shorter than a header; no multiple of four; another version; an answer to nothing.
            &[1, 0, 0, 19, 0x80, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1],
            &[
                1, 0, 0, 22, 0x80, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0,
            ],
            &[2, 0, 0, 20, 0x80, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1],
            &[1, 0, 0, 20, 0x00, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1],
            &[0xff; 4096],
        ];
        for bytes in cases {
            let mut bad = good.stranger().await;
            bad.send(bytes).await;
            while bad.next().await.is_some() {}
        }
        // The same from an admitted peer, before and after one of its requests.
        for (number, bytes) in cases.into_iter().take(5).enumerate() {
            let mut bad = good.stranger().await;
            bad.capabilities(&format!("bad{number}.example"), APPLICATIONS)
                .await;
            bad.send(ulr_to("unknown.example").as_bytes()).await;
            bad.send(bytes).await;
            bad.expect_result(command::UPDATE_LOCATION, ResultCode::UNABLE_TO_DELIVER)
                .await;
            while bad.next().await.is_some() {}
        }
        good.is_served().await;
        good.alone().await;
    });
}

#[test]
fn truncated_overlapping_and_misnumbered_avps_are_answered() {
    run(async {
        let mut good = Good::new(two()).await;
        let mut bad = client(&good.dsr, "bad.example").await;
        let request = ulr_to(HSS);
        let count = request.avps().count();
        for position in 0..count {
            let at = offset(&request, position);
            // Beyond the message; into the next AVP; shorter than its own header; nothing at all.
            for length in [[0xff, 0xff, 0xff], [0, 1, 0xf1], [0, 0, 7], [0, 0, 0]] {
                let mut broken = request.as_bytes().to_vec();
                broken[at + 5..at + 8].copy_from_slice(&length);
                bad.send(&broken).await;
                bad.expect_result(command::UPDATE_LOCATION, ResultCode::INVALID_AVP_LENGTH)
                    .await;
            }
        }
        // Cut off within an AVP, with a right length in the header.
        let at = offset(&request, count - 1) + 4;
        let mut cut = request.as_bytes()[..at].to_vec();
        cut[1..4].copy_from_slice(&(at as u32).to_be_bytes()[1..]);
        bad.send(&cut).await;
        bad.expect_result(command::UPDATE_LOCATION, ResultCode::INVALID_AVP_LENGTH)
            .await;
        let mut flags = ulr_to(HSS);
        flags.set_flags(flags.flags().with(CommandFlags::ERROR));
        bad.send(flags.as_bytes()).await;
        bad.expect_result(command::UPDATE_LOCATION, ResultCode::INVALID_HDR_BITS)
            .await;
        // None of it has reached the server, and the connection still works.
        bad.send(ulr_to(HSS).as_bytes()).await;
        answered(&mut bad, &mut good.hss).await;
        good.is_served().await;
    });
}

/// A relay does not read AVPs that it does not route by (RFC 6733 §2.8.1): the server decides whether it knows an AVP,
/// and its answer is relayed.
#[test]
fn an_unknown_mandatory_avp_passes_and_the_answer_to_it_comes_back() {
    run(async {
        let mut good = Good::new(two()).await;
        let request = ulr_with("1", |b| {
            b.put(known::DESTINATION_HOST, HSS);
            // Code 4711 of vendor 99999, with the M flag.
            let avp = [0, 0, 0x12, 0x67, 0xc0, 0, 0, 16, 0, 1, 0x86, 0x9f, 1, 2, 3, 4];
            b.append_encoded(&avp);
        });
        good.mme.send(request.as_bytes()).await;
        let seen = good.hss.expect(command::UPDATE_LOCATION).await;
        let strange = seen.avps().flatten().find(|avp| avp.code == 4711).unwrap();
        assert!(strange.vendor == 99_999 && strange.data == [1, 2, 3, 4]);
        good.hss.answer(&seen, ResultCode::AVP_UNSUPPORTED).await;
        good.mme
            .expect_result(command::UPDATE_LOCATION, ResultCode::AVP_UNSUPPORTED)
            .await;
        // In a CER the router itself decides.
        let mut bad = good.stranger().await;
        bad.send_text(
            "CER { Origin-Host = \"odd.example\" Origin-Realm = \"example\" Host-IP-Address = 127.0.0.1 \
             Vendor-Id = 1 Product-Name = \"odd\" Auth-Application-Id = 16777251 \
             Destination-Host = \"x\" }",
        )
        .await;
        bad.next().await.expect("an answer");
        good.is_served().await;
    });
}

#[test]
fn a_claim_of_16_megabytes_reserves_nothing() {
    run(async {
        let mut good = Good::new(two()).await;
        let before = resident();
        for round in 0..20 {
            // From unknown peers, and from admitted ones.
            let mut bad = good.stranger().await;
            if round % 2 == 0 {
                bad.capabilities(&format!("bad{round}.example"), APPLICATIONS)
                    .await;
            }
            let mut huge = ulr_to(HSS).as_bytes().to_vec();
            huge[1..4].copy_from_slice(&[0xff, 0xff, 0xfc]);
            bad.send(&huge).await;
            if round % 2 == 0 {
                bad.expect_result(command::UPDATE_LOCATION, ResultCode::INVALID_MESSAGE_LENGTH)
                    .await;
            }
            while bad.next().await.is_some() {}
        }
        let more = resident().saturating_sub(before);
        assert!(
            more < 16 << 20,
            "{more} bytes more than before twenty claims of 16 MB"
        );
        good.is_served().await;
        good.alone().await;
    });
}

/// Resident memory of this process in bytes; 0 where the system does not report it.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = pages
        .split_whitespace()
        .nth(1)
        .and_then(|n| n.parse::<usize>().ok());
    pages.unwrap_or_default() * 4096
}

#[test]
fn a_slow_or_silent_sender_is_disconnected() {
    run(async {
        let mut slow = two();
        slow.limits.handshake = settings::Period::from_millis(200);
        slow.limits.read_stall = settings::Period::from_millis(200);
        let mut good = Good::new(slow).await;
        let mut silent = good.stranger().await;
        silent.expect_close().await;
        let mut halfway = good.stranger().await;
        halfway.send(&ulr_to(HSS).as_bytes()[..30]).await;
        halfway.expect_close().await;
        let mut known = client(&good.dsr, "slow.example").await;
        known.send(&ulr_to(HSS).as_bytes()[..30]).await;
        known.expect_close().await;
        // A byte now and then is not enough.
        let mut dripping = client(&good.dsr, "drip.example").await;
        let bytes = ulr_to(HSS);
        for byte in bytes.as_bytes().chunks(1) {
            if !dripping.try_send(byte).await {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        dripping.expect_close().await;
        good.is_served().await;
        good.alone().await;
    });
}

#[test]
fn floods_of_connections_and_of_cers_are_bounded() {
    run(async {
        let mut small = two();
        small.limits.handshakes_per_address = 4;
        small.limits.connections = 40;
        small.dynamic_peers = vec![DynamicPeers {
            max: 10,
            ..DynamicPeers::default()
        }];
        let mut good = Good::new(small).await;
        // Connections that say nothing: four for each worker stay.
        let mut idle = Vec::new();
        for _ in 0..60 {
            idle.push(good.stranger().await);
        }
        until(|| good.dsr.count(Event::ConnectionRefused) >= 40).await;
        good.is_served().await;
        drop(idle);
        // One name over and over: each replaces the last.
        for _ in 0..40 {
            let mut again = good.stranger().await;
            again.capabilities("flood.example", APPLICATIONS).await;
        }
        // Ever new names: ten for each worker are let in.
        let mut many = Vec::new();
        let mut refused = 0;
        for number in 0..60 {
            let mut one = good.stranger().await;
            one.send_cer(&format!("flood{number}.example"), APPLICATIONS)
                .await;
            if let Some(answer) = one.next().await {
                match answer.require(known::RESULT_CODE).unwrap() {
                    2001 => many.push(one),
                    3004 => refused += 1,
                    other => panic!("{other}"),
                }
            }
        }
        assert!(
            many.len() <= 20 && refused >= 40,
            "{} let in, {refused} refused",
            many.len()
        );
        // CERs within a connection change nothing.
        for _ in 0..200 {
            many[0].send_cer("flood0.example", APPLICATIONS).await;
        }
        good.is_served().await;
        many.clear();
        good.alone().await;
        good.is_served().await;
    });
}

#[test]
fn a_cer_that_is_wrong_is_refused_by_name() {
    run(async {
        let mut good = Good::new(two()).await;
        // Our own name; a name that cannot be; nothing in common.
        let mut bad = good.stranger().await;
        bad.send_cer(DSR, APPLICATIONS).await;
        bad.expect_result(command::CAPABILITIES_EXCHANGE, ResultCode::UNKNOWN_PEER)
            .await;
        bad.expect_close().await;
        let mut bad = good.stranger().await;
        bad.send_text("CER { Origin-Realm = \"example\" Host-IP-Address = 127.0.0.1 Vendor-Id = 1 Product-Name = \"x\" }")
            .await;
        bad.expect_result(command::CAPABILITIES_EXCHANGE, ResultCode::MISSING_AVP)
            .await;
        bad.expect_close().await;
        good.is_served().await;
        good.alone().await;
    });
}

/// The rule that admits dynamic peers bounds them.
#[test]
fn peers_of_a_rule_keep_to_its_applications_rate_and_number() {
    run(async {
        let mut ruled = config();
        ruled.dynamic_peers = vec![DynamicPeers {
            realms: vec!["example".to_owned()],
            accepts: vec![known::application::S6A],
            ingress: Some(dsr::config::Ingress {
                reserved: 0,
                maximum: 5,
            }),
            max: 1,
            ..DynamicPeers::default()
        }];
        let (dsr, _listening, mut peers) = world(ruled, [HSS], "").await;
        let mut mme = client(&dsr, MME).await;
        mme.send(ulr_to(HSS).as_bytes()).await;
        answered(&mut mme, &mut peers[0]).await;
        // The rate lets one through in 200 ms.
        tokio::time::sleep(Duration::from_millis(400)).await;
        mme.send_text(
            "AAR app=16777236 { Session-Id = \"x;1\" Origin-Host = \"mme.example\" Origin-Realm = \"example\" \
             Destination-Realm = \"epc.example\" Destination-Host = \"hss.example\" Auth-Application-Id = 16777236 }",
        )
        .await;
        mme.expect_result(command::AA, ResultCode::APPLICATION_UNSUPPORTED)
            .await;
        assert_eq!(dsr.count(Event::NotAccepted), 1);
        for _ in 0..50 {
            mme.send(ulr_to(HSS).as_bytes()).await;
        }
        until(|| dsr.count(Event::Request) >= 52).await;
        assert!(dsr.count(Event::IngressDiscarded) >= 30);
        // One at a time.
        let mut second = Peer::connect(dsr.addresses()[0]).await;
        second.send_cer("second.example", APPLICATIONS).await;
        second
            .expect_result(command::CAPABILITIES_EXCHANGE, ResultCode::TOO_BUSY)
            .await;
        // Not of a realm that is welcome. The configured server is not bound by any of this.
        mme.break_off();
        until(|| dsr.hops().get(MME.as_bytes()).is_none()).await;
        let mut foreign = Peer::connect(dsr.addresses()[0]).await;
        foreign
            .send_text(
                "CER { Origin-Host = \"mme.elsewhere\" Origin-Realm = \"elsewhere\" Host-IP-Address = 127.0.0.1 \
                 Vendor-Id = 1 Product-Name = \"x\" Auth-Application-Id = 16777251 }",
            )
            .await;
        foreign
            .expect_result(command::CAPABILITIES_EXCHANGE, ResultCode::UNKNOWN_PEER)
            .await;
        available(&dsr, HSS).await;
    });
}

#[test]
fn a_flood_of_the_base_protocol_ends_its_connection_alone() {
    run(async {
        let mut bounded = two();
        bounded.limits.base_rate = 100;
        let mut good = Good::new(bounded).await;
        let mut flood = good.stranger().await;
        flood.capabilities("flood.example", APPLICATIONS).await;
        let text = "DWR { Origin-Host = \"flood.example\" Origin-Realm = \"example\" }";
        let dwr = diameter::proto::text::parse(text, diameter::proto::Dictionary::standard()).unwrap();
        let many = dwr.as_bytes().repeat(200);
        while flood.try_send(&many).await {}
        until(|| good.dsr.count(Event::Flooded) == 1).await;
        good.alone().await;
        good.is_served().await;
    });
}

/// While a server that connects to the router is disconnected, no other peer gets its name and its requests.
#[test]
fn a_configured_name_is_accepted_only_from_the_networks_of_the_peer() {
    run(async {
        let mut named = two();
        let peer = |host: &str, networks: &[&str]| dsr::config::Peer {
            host: host.to_owned(),
            networks: networks.iter().map(|network| network.parse().unwrap()).collect(),
            ..dsr::config::Peer::default()
        };
        named.peers = vec![
            peer("away.example", &["192.0.2.0/24"]),
            peer("here.example", &[]),
            peer("anywhere.example", &["0.0.0.0/0", "::/0"]),
        ];
        let mut good = Good::new(named).await;
        let at = good.dsr.addresses()[0];
        Peer::refused(
            at,
            "away.example",
            "example",
            APPLICATIONS,
            ResultCode::UNKNOWN_PEER,
        )
        .await;
        let mut here = good.stranger().await;
        here.capabilities("here.example", APPLICATIONS).await;
        let mut anywhere = good.stranger().await;
        anywhere.capabilities("anywhere.example", APPLICATIONS).await;
        // A reload changes the networks of the peer, and no connection ends for it.
        let mut moved = dsr::Config::clone(&good.dsr.snapshot().config);
        let away = moved
            .peers
            .iter_mut()
            .find(|peer| peer.host == "away.example")
            .unwrap();
        away.networks = vec!["127.0.0.0/8".parse().unwrap()];
        let here_now = moved
            .peers
            .iter_mut()
            .find(|peer| peer.host == "here.example")
            .unwrap();
        here_now.networks = vec!["192.0.2.0/24".parse().unwrap()];
        good.dsr.reload(&moved).unwrap();
        let mut back = loop {
            let mut back = good.stranger().await;
            back.send_cer("away.example", APPLICATIONS).await;
            let cea = back.expect(command::CAPABILITIES_EXCHANGE).await;
            if cea.require(known::RESULT_CODE).unwrap() == 2001 {
                break back;
            }
        };
        let dwr = "DWR { Origin-Host = \"x.example\" Origin-Realm = \"example\" }";
        for peer in [&mut here, &mut anywhere, &mut back] {
            peer.send_text(dwr).await;
            peer.expect(command::DEVICE_WATCHDOG).await;
        }
        good.is_served().await;
    });
}
