//! Every operation on bytes and events of an unknown sender. Shared by the bounded runs of this suite and the targets
//! in `fuzz/`.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use diameter_proto::check::{Strictness, check};
use diameter_proto::frame::{next_frame, wanted};
use diameter_proto::overload::{doic, load, priority};
use diameter_proto::peer::{
    ApplicationId, Capabilities, Duplicate, Input, Machine, Output, PeerSettings, Reopen, Side, State,
};
use diameter_proto::{Dictionary, Message, MessageBuilder, Origin, Routing, known, text};

/// Seed messages.
pub(crate) fn examples() -> Vec<Vec<u8>> {
    let dictionary = Dictionary::standard();
    let mut cer = MessageBuilder::request(257, 0);
    let mut node = Capabilities::new("a.example", "example")
        .with_applications([ApplicationId::tgpp(16_777_251), ApplicationId::auth(4)]);
    node.addresses = vec![IpAddr::V4(Ipv4Addr::LOCALHOST)];
    node.write(&mut cer);
    let texts = [
        "DWR hbh=1 e2e=2 { Origin-Host = \"a\" Origin-Realm = \"r\" }",
        "DPR { Origin-Host = \"a\" Origin-Realm = \"r\" Disconnect-Cause = BUSY }",
        "RAR { Session-Id = \"a;1\" Origin-Host = \"a\" Origin-Realm = \"r\" Destination-Realm = \"r\"
           Destination-Host = \"b\" Auth-Application-Id = 4 Re-Auth-Request-Type = AUTHORIZE_ONLY
           Proxy-Info = { Proxy-Host = \"p\" Proxy-State = 0x0102 } Route-Record = \"q\" DRMP = PRIORITY_3 }",
        "STA flags=P { Session-Id = \"a;1\" Result-Code = DIAMETER_SUCCESS Origin-Host = \"a\"
           Origin-Realm = \"r\" Failed-AVP = { Proxy-Info = { Proxy-Host = \"p\" Proxy-State = 0x } }
           Load = { Load-Type = HOST Load-Value = 9 SourceID = \"h\" }
           OC-Supported-Features = { OC-Feature-Vector = 1 }
           OC-OLR = { OC-Sequence-Number = 1 OC-Report-Type = HOST_REPORT OC-Reduction-Percentage = 9 } }",
    ];
    let mut examples = vec![cer.finish().unwrap().into_bytes().to_vec()];
    for example in texts {
        examples.push(text::parse(example, dictionary).unwrap().as_bytes().to_vec());
    }
    examples
}

/// Every operation on bytes of an unknown sender.
pub(crate) fn message(bytes: &[u8], deep: bool) {
    let mut stream = BytesMut::from(bytes);
    assert!(wanted(&stream, 4096) <= 4096);
    while let Ok(Some(message)) = next_frame(&mut stream, 4096) {
        assert!(message.as_bytes().len().is_multiple_of(4));
    }
    let Ok(message) = Message::parse(bytes) else {
        return;
    };
    let scanned = Routing::scan(&message, b"a");
    assert_eq!(scanned.is_ok(), message.check_frames().is_ok());
    if let Ok(routing) = scanned {
        routing.subscription_ids().count();
        let _ = routing.experimental_result();
    }
    let dictionary = Dictionary::standard();
    let outcome = check(
        &message,
        dictionary,
        if deep {
            Strictness::Pedantic
        } else {
            Strictness::default()
        },
    );
    if let Err(fault) = outcome {
        let answer = MessageBuilder::error_answer(&message, &Origin::new("me", "here"), &fault);
        assert!(
            answer.check_frames().is_ok(),
            "an answer is whole even if the request was not"
        );
        assert_eq!(answer.get(known::RESULT_CODE).unwrap(), Some(fault.code.0));
    }
    if deep {
        let _ = Capabilities::read(&message);
        let _ = priority::of(&message);
        let _ = doic::SupportedFeatures::of(&message);
        let _ = (
            doic::Report::all(&message).count(),
            load::Load::all(&message).count(),
        );
        let printed = text::print(&message, dictionary).to_string();
        let _ = text::parse(&printed, dictionary);
    }
}

/// Events in any order: never a panic, never a `Down` without an `Up`, and always a way out of a state that
/// may not last. `choose(n)` picks a number below `n`; the run ends when it has had enough.
pub(crate) fn peer(seed: u64, events: usize, choose: &mut dyn FnMut(usize) -> usize) {
    let examples = examples();
    let local = Capabilities::new("m.example", "example").with_applications([ApplicationId::RELAY]);
    let settings = PeerSettings {
        initiate: choose(2) == 0,
        duplicate: [Duplicate::Reject, Duplicate::Replace][choose(2)],
        reopen: [Reopen::Never, Reopen::AfterSilence, Reopen::Always][choose(3)],
        ..PeerSettings::default()
    };
    let mut machine = Machine::new(Arc::new(local), settings, seed);
    let mut now = Instant::now();
    let mut up = false;
    for _ in 0..events {
        now += Duration::from_millis(choose(20_000) as u64);
        let example = &examples[choose(examples.len())];
        let message = Message::parse(&example[..]).unwrap();
        let side = [Side::Initiator, Side::Responder][choose(2)];
        match choose(9) {
            0 => machine.handle(now, Input::Start),
            1 => machine.handle(
                now,
                Input::Connected {
                    local: IpAddr::V4(Ipv4Addr::LOCALHOST),
                },
            ),
            2 => machine.handle(now, Input::ConnectFailed),
            3 => {
                let cer = Message::parse(&examples[0][..]).unwrap();
                let remote = Capabilities::read(&cer).unwrap();
                let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
                let same_address = choose(2) == 0;
                machine.handle(
                    now,
                    Input::ConnectedBy {
                        cer: cer.view(),
                        remote,
                        local,
                        same_address,
                    },
                );
            }
            4 => machine.handle(now, Input::Disconnected(side)),
            5 => machine.handle(now, Input::Timer),
            6 => machine.handle(now, Input::Stop(choose(4) as i32)),
            7 => machine.traffic(now),
            _ => machine.handle(now, Input::Received(side, message.view())),
        }
        while let Some(output) = machine.output() {
            match output {
                Output::Up { .. } => assert!(!std::mem::replace(&mut up, true), "up twice"),
                Output::Down(_) => assert!(std::mem::replace(&mut up, false), "down without up"),
                Output::Send(_, message) | Output::Reject(message) => {
                    assert!(Message::parse(message.as_bytes()).unwrap().check_frames().is_ok());
                }
                _ => {}
            }
        }
        assert_eq!(up, machine.open_side().is_some(), "in {}", machine.state());
        if !matches!(machine.state(), State::Closed) {
            assert!(machine.deadline().is_some(), "{} lasts for ever", machine.state());
        }
    }
}

/// Bytes as a CER or CEA: what is read is written and read again as the same, and is bounded.
pub(crate) fn capabilities(bytes: &[u8]) {
    let Ok(message) = Message::parse(bytes) else {
        return;
    };
    match Capabilities::read(&message) {
        Ok(read) => {
            assert!(read.origin.host.len() <= 255 && read.origin.realm.len() <= 255);
            let mut written = MessageBuilder::request(257, 0);
            read.write(&mut written);
            let written = written.finish().unwrap();
            assert_eq!(Capabilities::read(&written).unwrap(), read);
        }
        Err(fault) => {
            let answer = MessageBuilder::error_answer(&message, &Origin::new("b", "r"), &fault);
            assert!(answer.check_frames().is_ok());
        }
    }
}
