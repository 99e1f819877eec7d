//! IAMs that pass through, at the wire.

use std::collections::HashSet;

use numbers::Kind;
use ss7_proto::isup::{AnsiIam, Iam};
use ss7_proto::m3ua::MessageType;

use crate::calls::{calls, judge, party, stp_with};
use crate::number_services::write;
use crate::support::{Asp, data, isup};

/// An IAM to a number: circuit 0x123, then optional parameters.
pub(crate) fn iam(nature: u8, called: &str, optional: &[u8]) -> Vec<u8> {
    let called = party(nature, called);
    let length = u8::try_from(called.len()).unwrap();
    let pointer = if optional.is_empty() { 0 } else { 2 + length };
    [
        &[0x23, 1, 1, 0, 0x60, 1, 10, 0, 2, pointer, length][..],
        &called,
        optional,
    ]
    .concat()
}

/// Calling party number, optional forward call indicators with simple segmentation, portability status.
const OPTIONAL: &[u8] = &[
    0x0a, 7, 4, 0x13, 0x34, 0x66, 0x10, 0x32, 0x54, 8, 1, 4, 0x8d, 1, 0x81, 0,
];

/// What `two` gets of a message from `one`, its label unchanged.
fn through(one: &mut Asp, two: &mut Asp, octets: &[u8]) -> Vec<u8> {
    one.send(&isup(11, 1, 2, 7, octets));
    let received = two.expect(MessageType::Data);
    let message = data(&received);
    assert_eq!((message.opc.0, message.dpc.0, message.sls), (1, 2, 7));
    received
}

#[test]
fn an_iam_is_completed_on_its_way() {
    let folder = tempfile::tempdir().unwrap();
    let stp = stp_with(folder.path(), |_| ());
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    let mut sent = Vec::new();
    for (nature, called, wanted) in [
        (3, "664567", (8, "d99664567")),
        (4, "43664567f", (8, "d99664567f")),
        (2, "0664567", (8, "d99664567")),
        (8, "d0660123", (3, "660123")),
    ] {
        for optional in [&[][..], OPTIONAL] {
            let octets = iam(nature, called, optional);
            sent.push(through(&mut one, &mut two, &octets));
            let received = data(sent.last().unwrap()).user_data.to_vec();
            let read = Iam::parse(&received).unwrap();
            let number = read.called().unwrap();
            assert_eq!((number.nature, &number.digits.to_string()[..]), wanted);
            assert_eq!(number.indicators, 0x90);
            assert_eq!(received[..8], octets[..8]);
            // The optional part stays, but for the status of a ported number.
            let mut expected = optional.to_vec();
            if wanted.0 == 8 && !expected.is_empty() {
                expected[14] = 0x83;
            }
            assert!(received.ends_with(&expected));
            assert_eq!(received.len(), 11 + usize::from(received[10]) + expected.len());
        }
    }
    assert_eq!(calls(&stp, "interception", "routed"), 6.0);
    // Of an application server that is not named nothing is intercepted.
    let octets = iam(3, "664567", &[]);
    two.send(&isup(12, 2, 1, 7, &octets));
    assert_eq!(data(&one.expect(MessageType::Data)).user_data, octets);
    judge(folder.path(), &sent, "isup.message_type == 1");
}

/// Home, unlisted, unconditioned, circular; a number that was queried; no room; what cannot be read as an IAM.
#[test]
fn what_is_not_ported_passes_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let stp = stp_with(folder.path(), |_| ());
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    let queried = [0x8d, 1, 0x82, 0];
    // With it the message has 268 octets, which is what an MSU has room for.
    let full = [&[0x20, 249][..], &[0; 249], &[0]].concat();
    for octets in [
        iam(3, "660123", OPTIONAL),
        iam(3, "676999", &[]),
        iam(2, "664567", &[]),
        iam(1, "999", &[]),
        iam(4, "", &[]),
        iam(8, "d0664567", &[]),
        iam(3, "664567", &queried),
        iam(3, "664567", &full),
        b"\x23\x01\x06\x16\x04\x00".to_vec(),
        b"\x23\x01\x01\x00\x60\x01\x0a\x00\x00\x00".to_vec(),
        b"\x23\x01\x01".to_vec(),
        b"\x23".to_vec(),
    ] {
        assert_eq!(data(&through(&mut one, &mut two, &octets)).user_data, octets);
    }
    let count = |outcome| calls(&stp, "interception", outcome);
    assert_eq!(
        [
            "home",
            "unlisted",
            "unconditioned",
            "circular",
            "queried",
            "oversize"
        ]
        .map(count),
        [1.0, 2.0, 2.0, 1.0, 1.0, 1.0]
    );
}

/// Every octet of an IAM changed, and every length: each message goes on, whole or with another number.
#[test]
fn no_change_of_an_iam_breaks_anything() {
    let folder = tempfile::tempdir().unwrap();
    let stp = stp_with(folder.path(), |_| ());
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    let octets = iam(3, "664567", OPTIONAL);
    for place in 0..octets.len() {
        for octet in [0, 0xff, 0x80, octets[place] ^ 1, octets[place].wrapping_add(1)] {
            let mut changed = octets.clone();
            changed[place] = octet;
            let received = through(&mut one, &mut two, &changed);
            let received = data(&received).user_data;
            // Circuit and type are never touched.
            assert_eq!(received[..3], changed[..3]);
        }
        let cut = &octets[..place];
        let received = through(&mut one, &mut two, cut);
        assert!(data(&received).user_data.len() >= cut.len());
    }
}

/// A reload beside the calls: none is lost, each has the routing number of one of the two files.
#[test]
fn calls_go_on_while_the_file_is_read_again() {
    const CALLS: usize = 2_000;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("numbers.num");
    let stp = stp_with(folder.path(), |config| config.queue = 1_000_000);
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    let octets = iam(3, "664567", &[]);
    let message = isup(11, 1, 2, 7, &octets);
    let sender = std::thread::spawn(move || {
        (0..CALLS).for_each(|_| one.send(&message));
        one
    });
    let receiver = std::thread::spawn(move || {
        let called = |_| {
            let received = two.expect(MessageType::Data);
            let called = Iam::parse(data(&received).user_data).unwrap().called().unwrap();
            called.digits.to_string()
        };
        (0..CALLS).map(called).collect::<HashSet<String>>()
    });
    for routing in ["rn=d55", "rn=d99"].iter().cycle() {
        write(&file, &[(Kind::Msisdn, "43664567", routing)]);
        assert_eq!(stp.reread(), Ok(true));
        if receiver.is_finished() {
            break;
        }
    }
    let _one = sender.join().unwrap();
    let numbers = receiver.join().unwrap();
    let known = |number: &String| number == "d55664567" || number == "d99664567";
    assert!(numbers.iter().all(known), "{numbers:?}");
    assert_eq!(calls(&stp, "interception", "routed"), CALLS as f64);
}

/// An IAM of ANSI: user service information, then the called number, then optional parameters.
fn iam_of_ansi(called: &str, indicators: u8, optional: &[u8]) -> Vec<u8> {
    let called = party(3, called);
    let length = u8::try_from(called.len()).unwrap();
    let pointer = if optional.is_empty() { 0 } else { 6 + length };
    [
        &[0x23, 1, 1, 0, 0x60, indicators, 10, 3, 6, pointer][..],
        &[3, 0x80, 0x90, 0xa2, length],
        &called,
        optional,
    ]
    .concat()
}

/// T1.113: the routing number in the place of the called number, that in a generic address, and bit M of the forward call indicators.
#[test]
fn an_iam_of_ansi_gets_the_routing_number_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let stp = stp_with(folder.path(), |config| {
        config.point_codes.plan = stp::config::NumberingPlan::Ansi;
    });
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    let calling = [0x0a, 7, 3, 0x10, 0x66, 0x50, 0x55, 0x89, 0x67, 0];
    for optional in [&[][..], &calling] {
        let received = through(&mut one, &mut two, &iam_of_ansi("664567", 1, optional));
        let octets = data(&received).user_data;
        let read = AnsiIam::parse(octets).unwrap();
        assert!(read.is_queried());
        let numbers = [read.called().unwrap(), read.ported().unwrap()];
        let shown = numbers.map(|number| (number.nature, number.digits.to_string()));
        assert_eq!(shown, [(3, "d99".to_owned()), (3, "664567".to_owned())]);
        assert_eq!(read.calling().is_some(), !optional.is_empty());
    }
    // Queried before, home, not listed, of the form of ITU, cut.
    for octets in [
        iam_of_ansi("664567", 0x11, &calling),
        iam_of_ansi("660123", 1, &calling),
        iam_of_ansi("676999", 1, &[]),
        iam(3, "664567", &[]),
        iam_of_ansi("664567", 1, &[])[..12].to_vec(),
    ] {
        assert_eq!(data(&through(&mut one, &mut two, &octets)).user_data, octets);
    }
    let count = |outcome| calls(&stp, "interception", outcome);
    assert_eq!(
        ["routed", "queried", "home", "unlisted"].map(count),
        [2.0, 1.0, 1.0, 1.0]
    );
}
