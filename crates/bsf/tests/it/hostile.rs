//! Diameter peers that break the rules: a clear result, bounded memory, no effect on other peers.

use std::net::SocketAddr;

use bsf::Event;
use bsf::config::{RxPeer, RxTransport};
use diameter::endpoint::Endpoint;
use diameter::proto::known::{self, application, command};
use diameter::proto::peer::ApplicationId;
use diameter::proto::{AvpFlags, AvpKey, AvpWriter, MessageBuilder, MessageMut, ResultCode};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;
use testpeer::diameter::Peer;

use crate::rx::{AF, BSF, PCF, aar, ask, begun, connect, peer, result};
use crate::support::{Bsf, binding, local, start};

const RX: &[ApplicationId] = &[ApplicationId::tgpp(application::RX)];

fn diameter(bsf: &Bsf) -> SocketAddr {
    bsf.running.as_ref().unwrap().diameter_addresses()[0]
}

/// A BSF with a binding and its PCF, and an AF that behaves.
async fn running(
    change: impl FnOnce(&mut bsf::Config),
) -> (Bsf, Endpoint<crate::rx::Peer>, Endpoint<crate::rx::Peer>) {
    let (pcf, address) = peer(PCF);
    let bsf = start(|config| {
        config.rx.peers = vec![RxPeer {
            host: PCF.to_owned(),
            addresses: vec![address],
            transport: RxTransport::Tcp,
            names: Vec::new(),
        }];
        change(config);
    });
    let (af, _) = peer(AF);
    connect(&af, &bsf).await;
    pcf.available(BSF).await;
    bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
    (bsf, af, pcf)
}

async fn assert_served(af: &Endpoint<crate::rx::Peer>, session: &str) {
    assert_eq!(result(&ask(af, BSF, aar(session, [10, 0, 0, 1])).await), 2001);
}

/// The AVP inside Failed-AVP.
fn failed(answer: &MessageMut) -> (u32, u32) {
    let mut group = answer.require(known::FAILED_AVP).unwrap();
    let avp = group.next().unwrap().unwrap();
    (avp.vendor, avp.code)
}

fn without(message: &MessageMut, code: u32) -> MessageMut {
    let mut builder = MessageBuilder::new(message.header());
    for avp in message.avps().map(Result::unwrap).filter(|avp| avp.code != code) {
        builder.copy(&avp);
    }
    builder.finish().unwrap()
}

#[test]
fn faults_are_told_with_the_failed_avp() {
    local(async {
        let (bsf, af, pcf) = running(|_| {}).await;
        let mut bad = Peer::connect(diameter(&bsf)).await;
        bad.capabilities("bad.example", RX).await;
        let good = || aar("bad;1;1", [10, 0, 0, 1]).finish().unwrap();

        // What a request needs to be routed and answered.
        for (code, what) in [(263, 263), (264, 264), (296, 296), (283, 283), (8, 8)] {
            bad.send(without(&good(), code).as_bytes()).await;
            let answer = bad.expect_result(command::AA, ResultCode::MISSING_AVP).await;
            assert_eq!(failed(&answer), (0, what));
        }
        // An AVP with the M flag that the BSF does not know, alone and within a group.
        let unknown = AvpKey {
            code: 65_000,
            vendor: 10415,
        };
        let mut inner = AvpWriter::with_capacity(16);
        inner.put_raw(
            unknown,
            AvpFlags(AvpFlags::VENDOR.0 | AvpFlags::MANDATORY.0),
            b"x",
        );
        let mut alone = aar("bad;1;2", [10, 0, 0, 1]);
        alone.append_encoded(inner.as_bytes());
        let mut within = aar("bad;1;3", [10, 0, 0, 1]);
        within.put_raw(
            AvpKey {
                code: 517,
                vendor: 10415,
            },
            AvpFlags(AvpFlags::VENDOR.0 | AvpFlags::MANDATORY.0),
            inner.as_bytes(),
        );
        for request in [alone, within] {
            bad.send(request.finish().unwrap().as_bytes()).await;
            let answer = bad.expect_result(command::AA, ResultCode::AVP_UNSUPPORTED).await;
            assert_eq!(failed(&answer), (10415, 65_000));
        }
        // Without the M flag it passes.
        let mut passes = aar("bad;1;4", [10, 0, 0, 1]);
        passes.put_raw(unknown, AvpFlags::VENDOR, b"x");
        bad.send(passes.finish().unwrap().as_bytes()).await;
        bad.expect_result(command::AA, ResultCode::SUCCESS).await;
        // Addresses that are none.
        let mut short = begun(command::AA, "bad;1;5", AF);
        short.put(known::FRAMED_IP_ADDRESS, &[10, 0]);
        let mut prefix = begun(command::AA, "bad;1;6", AF);
        prefix.put(known::FRAMED_IPV6_PREFIX, &[0, 200, 1]);
        for (request, code) in [(short, 8), (prefix, 97)] {
            bad.send(request.finish().unwrap().as_bytes()).await;
            let answer = bad
                .expect_result(command::AA, ResultCode::INVALID_AVP_VALUE)
                .await;
            assert_eq!(failed(&answer), (0, code));
        }
        // An AVP that reaches beyond the message.
        let mut broken = good().as_bytes().to_vec();
        let second = 20
            + good()
                .avps()
                .next()
                .unwrap()
                .unwrap()
                .raw
                .len()
                .next_multiple_of(4);
        broken[second + 5..second + 8].copy_from_slice(&[0xff; 3]);
        bad.send(&broken).await;
        bad.expect_result(command::AA, ResultCode::INVALID_AVP_LENGTH)
            .await;

        // Sessions that are not known.
        for code in [
            command::SESSION_TERMINATION,
            command::RE_AUTH,
            command::ABORT_SESSION,
        ] {
            bad.send(begun(code, "bad;9;9", "bad.example").finish().unwrap().as_bytes())
                .await;
            let answer = bad.expect_result(code, ResultCode(5002)).await;
            assert_eq!(answer.require(known::SESSION_ID).unwrap(), "bad;9;9");
        }
        assert_eq!(
            pcf.service().seen.borrow().len(),
            1,
            "only what was in order came through"
        );
        assert_served(&af, "af;1;1").await;
    });
}

#[test]
fn bytes_that_are_no_diameter_end_their_connection_alone() {
    local(async {
        let (bsf, af, _pcf) = running(|_| {}).await;
        let cases: [&[u8]; 4] = [
            b"GET / HTTP/1.1\r\n\r\n",
            &[0; 64],
            &[0xff; 4096],
            &[1, 0, 0, 19, 0x80],
        ];
        for (n, bytes) in cases.into_iter().enumerate() {
            let mut stranger = Peer::connect(diameter(&bsf)).await;
            stranger.send(bytes).await;
            let mut bad = Peer::connect(diameter(&bsf)).await;
            bad.capabilities(&format!("bad{n}.example"), RX).await;
            bad.send(bytes).await;
            bad.break_off();
            // Half a message, and then nothing: others do not wait for it.
            let mut slow = Peer::connect(diameter(&bsf)).await;
            slow.capabilities(&format!("slow{n}.example"), RX).await;
            slow.send(&aar("slow;1;1", [10, 0, 0, 1]).finish().unwrap().as_bytes()[..40])
                .await;
            assert_served(&af, &format!("af;1;{n}")).await;
        }
    });
}

#[test]
fn mutated_requests_are_answered_or_end_their_connection() {
    local(async {
        let (bsf, af, _pcf) = running(|config| config.rx.timeout = settings::Period::from_millis(200)).await;
        let mut random = StdRng::seed_from_u64(29_214);
        let mut whole = aar("bad;2;1", [10, 0, 0, 1]);
        whole
            .group(known::SUBSCRIPTION_ID, |group| {
                group
                    .put(known::SUBSCRIPTION_ID_TYPE, 1)
                    .put(known::SUBSCRIPTION_ID_DATA, "001010000000001");
            })
            .put(known::CALLED_STATION_ID, "internet");
        let whole = whole.finish().unwrap();
        for round in 0..40 {
            let mut bad = Peer::connect(diameter(&bsf)).await;
            bad.capabilities(&format!("bad{round}.example"), RX).await;
            for _ in 0..50 {
                let mut bytes = whole.as_bytes().to_vec();
                for _ in 0..random.random_range(1..4) {
                    // The length of the message stays: what follows would be taken for a part of it.
                    let at = random.random_range(4..bytes.len());
                    bytes[at] = random.random();
                }
                if !bad.try_send(&bytes).await {
                    break;
                }
            }
            bad.break_off();
        }
        assert_served(&af, "af;1;1").await;
        let running = bsf.running.as_ref().unwrap();
        assert!(running.count(Event::RxRequest) > 100);
    });
}

#[test]
fn a_peer_that_floods_is_held_to_its_rate() {
    local(async {
        let (bsf, af, pcf) = running(|config| config.rx.peer_rate = 20).await;
        let mut flood = Peer::connect(diameter(&bsf)).await;
        flood.capabilities("flood.example", RX).await;
        for session in 0..500 {
            let request = aar(&format!("flood;1;{session}"), [10, 0, 0, 1]);
            flood.send(request.finish().unwrap().as_bytes()).await;
        }
        let mut busy = 0;
        for _ in 0..500 {
            let answer = flood.expect(command::AA).await;
            let code = answer.get(known::RESULT_CODE).unwrap().unwrap();
            assert!(code == 2001 || code == 3004, "{code}");
            busy += u64::from(code == 3004);
        }
        assert!(busy > 0);
        assert_eq!(bsf.running.as_ref().unwrap().count(Event::RxPeerLimited), busy);
        assert_served(&af, "af;1;1").await;
        assert_eq!(pcf.service().seen.borrow().len() as u64, 500 - busy + 1);
    });
}

#[test]
fn a_silent_pcf_costs_its_own_sessions_only() {
    local(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let silent_address = listener.local_addr().unwrap();
        let (bsf, af, _pcf) = running(|config| {
            config.rx.timeout = settings::Period::from_millis(300);
            config.rx.peers.push(RxPeer {
                host: "silent.example".to_owned(),
                addresses: vec![silent_address],
                transport: RxTransport::Tcp,
                names: Vec::new(),
            });
        })
        .await;
        let mut silent = Peer::accept(&listener).await;
        silent.answer_capabilities("silent.example", RX).await;
        let other = binding(&json!({"ipv4Addr": "10.0.0.2", "pcfDiamHost": "silent.example"}));
        bsf.path(&bsf.post("pcfBindings", &other).await);
        let (unanswered, served) = tokio::join!(
            ask(&af, BSF, aar("af;1;1", [10, 0, 0, 2])),
            ask(&af, BSF, aar("af;1;2", [10, 0, 0, 1])),
        );
        assert_eq!((result(&unanswered), result(&served)), (3002, 2001));
        assert_eq!(
            silent
                .expect(command::AA)
                .await
                .require(known::SESSION_ID)
                .unwrap(),
            "af;1;1"
        );
        assert_eq!(bsf.running.as_ref().unwrap().count(Event::RxUnanswered), 1);
    });
}
