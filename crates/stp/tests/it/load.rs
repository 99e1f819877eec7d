//! Many associations at once: nothing is lost, and each link selection keeps its order.

use std::collections::{HashMap, HashSet};

use numbers::{DestinationSet, Key, Kind, Writer};
use ss7_proto::m3ua::{AffectedPointCode, Message, MessageType, ServiceIndicator, Tag};
use stp::config::{Group, GroupMode};

use crate::support::{Asp, aspac, config, data, link, metric, msu, plain, server, start};
use crate::translation::{member, title, to_stp, translating, udt};

const SENDERS: u8 = 8;
const EACH: u32 = 2_048;

/// Messages of a receiver, which have to come in the order of their numbers for each sender and link selection.
fn receive(mut asp: Asp, count: u32) -> Asp {
    let mut last: HashMap<(u8, u8), u32> = HashMap::new();
    for _ in 0..count {
        let octets = asp.expect(MessageType::Data);
        let received = data(&octets);
        let (rest, number) = received.user_data.split_last_chunk::<4>().unwrap();
        let (sender, number) = (*rest.last().unwrap(), u32::from_be_bytes(*number));
        let before = last.insert((sender, received.sls), number);
        assert!(
            before.is_none_or(|before| before < number),
            "{sender} {number} behind {before:?}"
        );
    }
    asp
}

/// Half of the messages is routed by point code to `two`, half by number to `three`, while the tables are replaced.
#[test]
fn nothing_is_lost_between_many_associations_while_files_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("numbers.num");
    let mut writer = Writer::create(&file).unwrap();
    let set = writer
        .intern(&DestinationSet::parse("hlr=three").unwrap())
        .unwrap();
    writer
        .push(Key::new(Kind::Msisdn, b"4366012").unwrap(), set)
        .unwrap();
    writer.finish().unwrap();
    let mut settings = translating();
    settings.queue = 1_000_000;
    settings.number_services.file = Some(file);
    settings.translation.groups.push(Group {
        name: "three".to_owned(),
        mode: GroupMode::Solitary,
        members: vec![member(3)],
    });
    for sender in 0..SENDERS {
        let (name, number) = (format!("s{sender}"), 21 + sender);
        settings.links.push(link(&name, number));
        let server = server(&name, u32::from(number), u32::from(number), &[&name]);
        settings.application_servers.push(server);
    }
    let stp = start(settings);
    let at = stp.addresses()[0];
    let half = u32::from(SENDERS) * EACH / 2;
    let receivers = [12, 13].map(|number| {
        let asp = Asp::active(at, number, u32::from(number));
        std::thread::spawn(move || receive(asp, half))
    });
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| {
            std::thread::spawn(move || {
                let code = u32::from(21 + sender);
                let mut asp = Asp::active(at, 21 + sender, code);
                let (called, calling) = (title("4366012", 6), title("43699", 8));
                for number in 0..EACH {
                    let content = [&[sender][..], &number.to_be_bytes()].concat();
                    // By turns 16 messages of the one kind and 16 of the other.
                    let octets = if number / 16 % 2 == 0 {
                        let sls = (number % 16) as u8;
                        msu(code, code, 2, sls, ServiceIndicator::ISUP, &content)
                    } else {
                        to_stp(code, code, &udt(&called, &calling, &content))
                    };
                    asp.send(&octets);
                }
                asp
            })
        })
        .collect();
    while !senders.iter().all(std::thread::JoinHandle::is_finished) {
        assert_eq!(stp.reread(), Ok(true));
    }
    let senders = senders.into_iter().map(|one| one.join().unwrap());
    let _senders: Vec<Asp> = senders.collect();
    let _receivers = receivers.map(|one| one.join().unwrap());
    let home = metric(&stp, "signalbox_stp_number_lookups_total{outcome=\"home\"}");
    assert_eq!(home, f64::from(half));
}

/// Each change of states is worked out for all links. The first peer hears of each node that becomes available behind it.
#[test]
fn two_hundred_peers_become_active_at_once() {
    let numbers = 10..=209_u8;
    let name = |number: u8| format!("s{number}");
    let mut settings = config();
    settings.links = numbers
        .clone()
        .map(|number| link(&name(number), number))
        .collect();
    let servers = numbers.clone().map(|number| {
        let code = 1_000 + u32::from(number);
        server(&name(number), u32::from(number), code, &[&name(number)])
    });
    settings.application_servers = servers.collect();
    let stp = start(settings);
    let at = stp.addresses()[0];
    let mut first = Asp::active(at, 10, 10);
    let mut others: Vec<Asp> = numbers.skip(1).map(|number| Asp::connect(at, number)).collect();
    for (asp, number) in others.iter_mut().zip(11..) {
        asp.send(&[plain(MessageType::Aspup), aspac(number)].concat());
    }
    for asp in &mut others {
        asp.expect(MessageType::AspacAck);
    }
    let mut heard = HashSet::new();
    while heard.len() < others.len() {
        let dava = first.expect(MessageType::Dava);
        let message = Message::parse(&dava).unwrap();
        for code in AffectedPointCode::list(message.get(Tag::AFFECTED_POINT_CODE).unwrap()) {
            assert!(heard.insert(code.code), "twice: {code:?}");
        }
    }
}
