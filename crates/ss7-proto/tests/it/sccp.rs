//! SCCP: vectors by hand, pointers that lie, relays and returns.

use ss7_proto::point_code::PointCode;
use ss7_proto::sccp::{
    Address, Connection, Fault, Format, Management, ManagementType, Message, MessageType, ReturnCause,
    Segmentation, Unitdata, optional_part,
};

use crate::exercise::{every_sccp, unitdata};

/// UDT of class 0 with return on error, to 436601234567 (subsystem 6), from point code 1234 (subsystem 8).
const UDT: &[u8] = &[
    0x09, 0x80, 3, 14, 18, 11, 0x12, 6, 0, 0x12, 4, 0x34, 0x66, 0x10, 0x32, 0x54, 0x76, 4, 0x43, 0xd2, 4, 8,
    2, 0xaa, 0xbb,
];

fn udt(octets: &[u8]) -> Unitdata<'_> {
    match Message::parse(octets) {
        Ok(Message::Unitdata(unitdata)) => unitdata,
        other => panic!("{other:?}"),
    }
}

fn connection(octets: &[u8]) -> Connection<'_> {
    match Message::parse(octets) {
        Ok(Message::Connection(connection)) => connection,
        other => panic!("{other:?}"),
    }
}

#[test]
fn udt_by_hand() {
    let message = udt(UDT);
    assert_eq!(message.protocol_class(), Some(0));
    assert!(message.returns_on_error());
    assert_eq!(message.data, [0xaa, 0xbb]);
    let called = Address::parse(message.called, Format::Itu).unwrap();
    assert!(called.route_on_title);
    assert_eq!((called.ssn, called.point_code), (Some(6), None));
    let title = called.title.unwrap();
    assert_eq!(
        (title.translation_type, title.numbering_plan, title.nature),
        (Some(0), Some(1), Some(4))
    );
    assert_eq!(title.digits().unwrap().to_string(), "436601234567");
    let calling = Address::parse(message.calling, Format::Itu).unwrap();
    assert!(!calling.route_on_title);
    assert_eq!(
        (calling.ssn, calling.point_code),
        (Some(8), Some(PointCode(1234)))
    );
    let mut again = Vec::new();
    message.write(&mut again).unwrap();
    assert_eq!(again, UDT);
}

#[test]
fn pointers_that_lie() {
    let with = |at: usize, pointer: u8| {
        let mut octets = UDT.to_vec();
        octets[at] = pointer;
        Message::parse(&octets).map(|message| message.message_type())
    };
    // Into the pointers, at itself, past the end, at the last octet with a length past the end.
    for (at, pointer) in [
        (2, 0),
        (2, 2),
        (3, 1),
        (4, 0),
        (2, 255),
        (3, 250),
        (4, 255),
        (4, 21),
    ] {
        assert!(
            matches!(with(at, pointer), Err(Fault::Pointer { .. })),
            "{at} {pointer}"
        );
    }
    assert!(matches!(with(4, 20), Err(Fault::PartTooLong(2))));
    assert!(matches!(with(5, 255), Err(Fault::PartTooLong(0))));
    for length in 1..5 {
        assert_eq!(Message::parse(&UDT[..length]).unwrap_err(), Fault::Short(length));
    }
    for length in 5..UDT.len() {
        assert!(Message::parse(&UDT[..length]).is_err(), "{length}");
    }
    assert_eq!(Message::parse(&[]).unwrap_err(), Fault::Empty);
    for number in [0, 0x15, 0x80, 0xff] {
        assert_eq!(
            Message::parse(&[number; 30]).unwrap_err(),
            Fault::MessageType(number)
        );
    }
}

#[test]
fn long_pointers_that_lie() {
    let octets = every_sccp().into_iter().find(|octets| octets[0] == 0x13).unwrap();
    for at in (3..11).step_by(2) {
        for pointer in [[0xff, 0xff], [1, 0], [0, 0x80]] {
            let mut octets = octets.clone();
            octets[at..at + 2].copy_from_slice(&pointer);
            assert!(Message::parse(&octets).is_err(), "{at} {pointer:?}");
        }
    }
    let optional = octets.len() - 10;
    for length in 0..=optional {
        assert!(Message::parse(&octets[..length]).is_err(), "{length}");
    }
}

#[test]
fn every_message_survives_every_cut() {
    for octets in every_sccp() {
        Message::parse(&octets).unwrap();
        for length in 0..octets.len() {
            // An optional part may lack its end, and so end where a parameter does.
            if Message::parse(&octets[..length]).is_ok() {
                assert!(
                    matches!(octets[length..], [0] | [0x12, 1, 5, 0] | [0x0f, 3, ..]),
                    "{length}: {octets:02x?}"
                );
            }
        }
    }
}

#[test]
fn variable_parts_in_any_order() {
    // Data, then calling, then called, with a gap.
    let octets = [0x09, 0, 10, 6, 1, 2, 0xaa, 0xbb, 0xee, 2, 0x42, 8, 2, 0x42, 6];
    let message = udt(&octets);
    assert_eq!(
        (message.called, message.calling, message.data),
        (&[0x42, 6][..], &[0x42, 8][..], &[0xaa, 0xbb][..])
    );
}

#[test]
fn a_relay_changes_the_called_address_alone() {
    let original = every_sccp();
    for octets in original.iter().filter(|octets| !udt_like(octets).is_empty()) {
        let message = udt(octets);
        let mut out = Vec::new();
        let translated = Unitdata {
            called: &[0x43, 1, 0, 6],
            ..message
        };
        translated.write(&mut out).unwrap();
        let read = udt(&out);
        assert_eq!(
            (read.calling, read.data, read.optional, read.hop_counter),
            (
                message.calling,
                message.data,
                message.optional,
                message.hop_counter
            )
        );
        assert_eq!(read.called, [0x43, 1, 0, 6]);
    }
}

fn udt_like(octets: &[u8]) -> &[u8] {
    match octets[0] {
        0x09 | 0x0a | 0x11..=0x14 => octets,
        _ => &[],
    }
}

#[test]
fn parts_too_long_for_their_pointers_are_not_written() {
    let address = [0x42; 200];
    let mut out = vec![7];
    assert!(unitdata(&address, &address, &[1]).write(&mut out).is_err());
    assert_eq!(out, [7]);
    assert!(
        unitdata(&[0x42, 6], &[0x42, 6], &[0; 256])
            .write(&mut out)
            .is_err()
    );
    assert!(
        unitdata(&[0x42, 6], &[0x42, 6], &[0; 255])
            .write(&mut out)
            .is_ok()
    );
    let long = Unitdata {
        message_type: MessageType::Ludt,
        ..unitdata(&[0x42, 6], &[0x42, 6], &[0x55; 3952])
    };
    let mut out = Vec::new();
    long.write(&mut out).unwrap();
    assert_eq!(udt(&out).data.len(), 3952);
}

/// Each length of data and of the called address: all parts read back, the optional part too.
#[test]
fn the_optional_part_of_long_data_stands_before_them() {
    let optional = optional_part(None, Some(5));
    for (called, length) in (2..40).flat_map(|called| (180..=255).map(move |length| (called, length))) {
        let (called, data) = (vec![0x42; called], vec![0x55; length]);
        for message_type in [MessageType::Xudt, MessageType::Xudts] {
            let message = Unitdata {
                message_type,
                hop_counter: 9,
                optional: &optional,
                ..unitdata(&called, &[0x42, 6], &data)
            };
            let mut out = Vec::new();
            message.write(&mut out).unwrap();
            assert_eq!(udt(&out), message);
        }
    }
}

#[test]
fn returns_swap_addresses_and_obey_the_sender() {
    let message = udt(UDT);
    let returned = message.returned(ReturnCause::NO_TRANSLATION_FOR_ADDRESS).unwrap();
    assert_eq!(returned.message_type, MessageType::Udts);
    assert_eq!(
        (returned.called, returned.calling),
        (message.calling, message.called)
    );
    assert_eq!(returned.return_cause(), Some(ReturnCause(1)));
    assert_eq!(returned.protocol_class(), None);
    // A service message never returns, nor does one whose sender does not ask.
    assert_eq!(returned.returned(ReturnCause::UNQUALIFIED), None);
    let silent = Unitdata {
        class_or_cause: 1,
        ..message
    };
    assert_eq!(silent.returned(ReturnCause::UNQUALIFIED), None);
}

#[test]
fn hop_counters_end() {
    let hops = |hop_counter| {
        let message = Unitdata {
            message_type: MessageType::Xudt,
            hop_counter,
            ..udt(UDT)
        };
        message.next_hop().map(|message| message.hop_counter)
    };
    assert_eq!(hops(15), Ok(14));
    assert_eq!(hops(2), Ok(1));
    assert!(hops(1).is_err() && hops(0).is_err());
    assert_eq!(hops(255), Ok(14));
    assert_eq!(udt(UDT).next_hop(), Ok(udt(UDT)));
}

#[test]
fn segments_and_importance() {
    let octets = every_sccp().into_iter().find(|octets| octets[0] == 0x11).unwrap();
    let message = udt(&octets);
    let expected = Segmentation {
        first: true,
        class: 0,
        remaining: 1,
        reference: 0x0a_0b0c,
    };
    assert_eq!(message.segmentation(), Some(expected));
    assert_eq!(message.importance(), Some(5));
    // A segmentation parameter that is too short is none.
    let short = Unitdata {
        optional: &[0x10, 3, 1, 2, 3],
        ..message
    };
    assert_eq!(short.segmentation(), None);
}

#[test]
fn connections_are_relayed() {
    let all = every_sccp();
    let find = |number: u8| all.iter().find(|octets| octets[0] == number).unwrap();
    let cr = connection(find(1));
    assert_eq!(cr.source_reference(), Some(0x06_0504));
    assert_eq!(cr.destination_reference(), None);
    assert_eq!(cr.protocol_class(), Some(2));
    assert_eq!(cr.data(), Some(&[0xaa, 0xbb, 0xcc][..]));
    let mut out = Vec::new();
    cr.write_with_called(&[0x42, 6], &mut out).unwrap();
    let relayed = connection(&out);
    assert_eq!(relayed.called(), Some(&[0x42, 6][..]));
    assert_eq!((relayed.calling(), relayed.data()), (cr.calling(), cr.data()));
    assert!(
        connection(find(2))
            .write_with_called(&[0x42, 6], &mut out)
            .is_err()
    );
    let released = connection(find(4));
    assert_eq!(
        (released.cause(), released.destination_reference()),
        (Some(3), Some(0x03_0201))
    );
    let mut patched = find(5).clone();
    Connection::patch_references(&mut patched, Some(0x11_2233), Some(0x44_5566));
    assert_eq!(patched, [5, 0x33, 0x22, 0x11, 0x66, 0x55, 0x44]);
    assert_eq!(connection(find(6)).data(), Some(&[0xaa, 0xbb][..]));
}

#[test]
fn management_of_subsystems() {
    let ssc = [6, 8, 0x91, 0xd9, 1, 0xf4];
    let read = Management::read(&ssc, Format::Itu).unwrap();
    assert_eq!(read.management_type, ManagementType::Ssc);
    assert_eq!(
        (
            read.ssn,
            read.point_code,
            read.multiplicity,
            read.congestion_level
        ),
        (8, PointCode(6545), 1, 4)
    );
    let ansi = Management::read(&[1, 8, 1, 20, 5, 0], Format::Ansi).unwrap();
    assert_eq!(ansi.point_code, PointCode(332_801));
    for broken in [
        &[][..],
        &[7, 8, 0, 0, 0],
        &[0, 8, 0, 0, 0],
        &[1, 8, 0, 0],
        &ssc[..5],
    ] {
        assert_eq!(Management::read(broken, Format::Itu), None, "{broken:?}");
    }
}
