//! Messages of each kind, as they are sent and as they arrive.

use super::*;
use callmodel::equipment::EquipmentLists;
use callmodel::stp::{Mix, StpModel};
use rand::SeedableRng;
use settings::Percent;
use ss7_proto::sccp::Message;

fn network(message_bytes: u16) -> Arc<Network> {
    let each = Percent::new(100.0 / 11.0);
    let model = StpModel {
        mps: 100.0,
        mix: Mix {
            translation: each,
            mtp_routing: each,
            screened: each,
            home_numbers: each,
            ported_calls: each,
            ported_messages: each,
            imsis: each,
            equipment: each,
            queries: each,
            prepaid: each,
            calls: each,
        },
        message_bytes,
        hlrs: 3,
        smscs: 2,
        translations: 1_000,
        numbers: 100,
        screening_rules: 1,
        equipment: Some(EquipmentLists::default()),
        drill: None,
    };
    Arc::new(Network::new(&model, 4))
}

/// What a faultless STP makes of a message: it changes addresses and label as the files say.
fn relayed(calls: &Calls, ticket: &Ticket, next: Next, octets: &[u8]) -> Vec<u8> {
    let data = ss7_proto::m3ua::Message::parse(octets).unwrap().data().unwrap();
    let choice = Choice::of(ticket).unwrap();
    let to = calls.party(next.to);
    let mut out = Vec::new();
    if choice.kind == Kind::MtpRouting {
        Data {
            routing_context: Some(to.routing_context()),
            ..data
        }
        .write(&mut out);
        return out;
    }
    if choice.kind == Kind::Call {
        let mut user_data = Vec::new();
        calls.call(choice).write_arriving(&mut user_data);
        Data {
            user_data: &user_data,
            ..data
        }
        .write(&mut out);
        return out;
    }
    let Ok(Message::Unitdata(unitdata)) = Message::parse(data.user_data) else {
        panic!("no UDT");
    };
    let digits = calls.digits(choice);
    let mut called = Vec::new();
    let address = calls.arriving(choice, to, &digits);
    address.write(Format::Itu, &mut called).unwrap();
    let mut user_data = Vec::new();
    Unitdata {
        called: &called,
        ..unitdata
    }
    .write(&mut user_data)
    .unwrap();
    Data {
        opc: OWN,
        dpc: to.point_code(),
        user_data: &user_data,
        ..data
    }
    .write(&mut out);
    out
}

#[test]
fn what_is_relayed_is_judged_and_every_change_is_seen() {
    for size in [120, 200, 260] {
        let network = network(size);
        let mut calls = Calls::new(
            &network,
            Share {
                thread: 0,
                threads: 1,
            },
        );
        let mut random = SmallRng::seed_from_u64(1);
        let mut seen = [0; Kind::ALL.len()];
        for transaction in 0..400 {
            let mut octets = Vec::new();
            let next = calls.next(&mut random, transaction, &mut octets);
            seen[usize::from(next.ticket.operation)] += 1;
            let kind = Choice::of(&next.ticket).unwrap().kind;
            let data = ss7_proto::m3ua::Message::parse(&octets).unwrap().data().unwrap();
            let reading = calls.read(&data).unwrap();
            assert_eq!((reading.transaction, reading.returned), (transaction, None));
            // User-to-user information of an IAM has at most 129 octets.
            let is_filled = size > 120 && !matches!(kind, Kind::Equipment | Kind::Call);
            let off = octets.len().abs_diff(usize::from(size));
            assert!(!is_filled || off < 12, "{kind:?}: {}", octets.len());
            if next.to == next.from {
                assert!(calls.judge(&next.ticket, transaction, &data).is_err(), "its echo");
                continue;
            }
            let arrived = relayed(&calls, &next.ticket, next, &octets);
            let data = ss7_proto::m3ua::Message::parse(&arrived).unwrap().data().unwrap();
            assert_eq!(calls.judge(&next.ticket, transaction, &data), Ok(()), "{kind:?}");
            let mut changed = data.user_data.to_vec();
            for at in [3, 8, 14, 20, changed.len() - 1] {
                changed[at] ^= 1;
                let wrong = Data {
                    user_data: &changed,
                    ..data
                };
                assert!(
                    calls.judge(&next.ticket, transaction, &wrong).is_err(),
                    "{kind:?} {at}"
                );
                changed[at] ^= 1;
            }
            let other = Data {
                opc: PointCode(77),
                ..data
            };
            assert!(calls.judge(&next.ticket, transaction, &other).is_err());
        }
        assert!(seen.iter().all(|count| *count > 10), "{seen:?}");
    }
}

#[test]
fn numbers_lead_to_nodes_of_their_own_thread() {
    let network = network(200);
    let mut random = SmallRng::seed_from_u64(2);
    for thread in 0..3 {
        let mut calls = Calls::new(&network, Share { thread, threads: 3 });
        for transaction in 0..300 {
            let next = calls.next(&mut random, transaction, &mut Vec::new());
            let choice = Choice::of(&next.ticket).unwrap();
            let expected = match choice.kind {
                Kind::Translation => network.server_of(choice.number, 0),
                Kind::HomeNumber | Kind::Imsi => network.hlr_of(choice.number),
                // The gateway is of one thread: models with it have no other.
                _ => continue,
            };
            assert_eq!(calls.party(next.to), expected, "{choice:?}");
        }
    }
}

#[test]
fn titles_lead_to_either_node_while_translations_are_replaced() {
    let network = network(200);
    let calls = Calls::new(
        &network,
        Share {
            thread: 0,
            threads: 1,
        },
    );
    let choice = Choice {
        kind: Kind::Translation,
        from: 0,
        number: 4,
        circuit: 0,
    };
    let servers = &calls.servers;
    assert_eq!(calls.receivers(choice), (servers[4], None));
    network.shift().begin();
    assert_eq!(calls.receivers(choice), (servers[4], Some(servers[0])));
    network.shift().complete();
    assert_eq!(calls.receivers(choice), (servers[0], None));
}
