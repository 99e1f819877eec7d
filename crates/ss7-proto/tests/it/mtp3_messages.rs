//! Messages of management and tests of MTP3: vectors, tshark as the judge.

use ss7_proto::m2pa::{Content, Message, PPID};
use ss7_proto::m3ua::ServiceIndicator;
use ss7_proto::mtp3::{Changeover, Inhibiting, Management, Msu, TestMessage};
use ss7_proto::{Plan, PointCode};

use crate::capture::judge;

fn every() -> Vec<(Management, Vec<u8>)> {
    let code = PointCode(6545);
    vec![
        (
            Management::ChangeoverOrder(Changeover::Short(0x55)),
            vec![0x11, 0x55],
        ),
        (
            Management::ChangeoverAcknowledgement(Changeover::Short(0x55)),
            vec![0x21, 0x55],
        ),
        (
            Management::ChangeoverOrder(Changeover::Extended(0x0a_0b0c)),
            vec![0x31, 0x0c, 0x0b, 0x0a],
        ),
        (
            Management::ChangeoverAcknowledgement(Changeover::Extended(0x0a_0b0c)),
            vec![0x41, 0x0c, 0x0b, 0x0a],
        ),
        (Management::ChangebackDeclaration(0xa5), vec![0x51, 0xa5]),
        (Management::ChangebackAcknowledgement(0xa5), vec![0x61, 0xa5]),
        (Management::ChangeoverOrder(Changeover::Emergency), vec![0x12]),
        (
            Management::ChangeoverAcknowledgement(Changeover::Emergency),
            vec![0x22],
        ),
        (Management::TransferProhibited(code), vec![0x14, 0x91, 0x19]),
        (Management::TransferRestricted(code), vec![0x34, 0x91, 0x19]),
        (Management::TransferAllowed(code), vec![0x54, 0x91, 0x19]),
        (Management::RouteSetTest(code), vec![0x15, 0x91, 0x19]),
        (Management::TrafficRestartAllowed, vec![0x17]),
        (
            Management::TransferControlled {
                destination: code,
                level: 2,
            },
            vec![0x23, 0x91, 0x99],
        ),
        (Management::CongestionTest, vec![0x13]),
        (Management::Inhibiting(Inhibiting::Inhibit), vec![0x16]),
        (Management::Inhibiting(Inhibiting::Uninhibit), vec![0x26]),
        (
            Management::Inhibiting(Inhibiting::InhibitAcknowledgement),
            vec![0x36],
        ),
        (
            Management::Inhibiting(Inhibiting::UninhibitAcknowledgement),
            vec![0x46],
        ),
        (Management::Inhibiting(Inhibiting::InhibitDenied), vec![0x56]),
        (Management::Inhibiting(Inhibiting::ForcedUninhibit), vec![0x66]),
        (Management::Inhibiting(Inhibiting::LocalTest), vec![0x76]),
        (Management::Inhibiting(Inhibiting::RemoteTest), vec![0x86]),
        (
            Management::UserPartUnavailable {
                destination: code,
                user: 5,
                cause: 1,
            },
            vec![0x1a, 0x91, 0x19, 0x15],
        ),
    ]
}

#[test]
fn every_management_message_reads_back() {
    for (message, wanted) in every() {
        let mut octets = Vec::new();
        message.write(Plan::Itu, &mut octets);
        assert_eq!(octets, wanted, "{message:?}");
        assert_eq!(Management::read(&octets, Plan::Itu), Some(message));
        for length in 0..octets.len() {
            assert_eq!(
                Management::read(&octets[..length], Plan::Itu),
                None,
                "{message:?}"
            );
        }
    }
    // China's point codes have 24 bits; ITU's spare bits do not count.
    let controlled = Management::TransferControlled {
        destination: PointCode(0x0a_0b0c),
        level: 3,
    };
    let mut octets = Vec::new();
    controlled.write(Plan::Ansi, &mut octets);
    assert_eq!(octets, [0x23, 0x0c, 0x0b, 0x0a, 3]);
    assert_eq!(Management::read(&octets, Plan::Ansi), Some(controlled));
    let far = Management::TransferProhibited(PointCode(0x0a_0b0c));
    let mut octets = Vec::new();
    far.write(Plan::Ansi, &mut octets);
    assert_eq!(octets, [0x14, 0x0c, 0x0b, 0x0a]);
    assert_eq!(Management::read(&octets, Plan::Ansi), Some(far));
    assert_eq!(
        Management::read(&[0x14, 0x91, 0xd9], Plan::Itu),
        Some(Management::TransferProhibited(PointCode(6545)))
    );
    for unknown in [&[][..], &[0x71, 0], &[0x00], &[0x06], &[0x96], &[0xff, 1, 2, 3]] {
        assert_eq!(Management::read(unknown, Plan::Itu), None);
    }
}

fn framed(si: u8, user_data: &[u8]) -> Vec<u8> {
    let mut msu = Vec::new();
    Msu {
        si: ServiceIndicator(si),
        ni: 2,
        priority: 0,
        dpc: PointCode(6545),
        opc: PointCode(1234),
        sls: 3,
        user_data,
    }
    .write(Plan::Itu, &mut msu);
    let mut out = Vec::new();
    let content = Content::UserData {
        priority: 0,
        msu: &msu,
    };
    Message {
        bsn: 0,
        fsn: 0,
        content,
    }
    .write(&mut out);
    out
}

#[test]
fn tshark_reads_management_the_same() {
    let mut messages: Vec<Vec<u8>> = every().iter().map(|(_, octets)| framed(0, octets)).collect();
    for acknowledges in [false, true] {
        let mut octets = Vec::new();
        let pattern = &[1, 2, 3, 4];
        TestMessage {
            acknowledges,
            pattern,
        }
        .write(&mut octets);
        messages.push(framed(1, &octets));
    }
    let fields = "mtp3mg.h0 mtp3mg.h1 mtp3mg.test.h0 mtp3mg.test.h1 mtp3mg.apc mtp3mg.cbc mtp3mg.test.length";
    let mut arguments = vec!["-T", "fields"];
    for field in fields.split(' ') {
        arguments.extend(["-e", field]);
    }
    let Some((read, complaints)) = judge(PPID, &messages, &arguments) else {
        return;
    };
    assert_eq!(complaints, "");
    let wanted = [
        "0x01\t0x01",
        "0x01\t0x02",
        "0x01\t0x03",
        "0x01\t0x04",
        "0x01\t0x05\t\t\t\t165",
        "0x01\t0x06\t\t\t\t165",
        "0x02\t0x01",
        "0x02\t0x02",
        "0x04\t0x01\t\t\t6545",
        "0x04\t0x03\t\t\t6545",
        "0x04\t0x05\t\t\t6545",
        "0x05\t0x01\t\t\t6545",
        "0x07\t0x01",
        "0x03\t0x02\t\t\t6545",
        "0x03\t0x01",
        "0x06\t0x01",
        "0x06\t0x02",
        "0x06\t0x03",
        "0x06\t0x04",
        "0x06\t0x05",
        "0x06\t0x06",
        "0x06\t0x07",
        "0x06\t0x08",
        "0x0a\t0x01\t\t\t6545",
        "\t\t0x01\t0x01\t\t\t4",
        "\t\t0x01\t0x02\t\t\t4",
    ];
    let lines: Vec<&str> = read.lines().map(str::trim_end).collect();
    assert_eq!(lines, wanted);
}

#[test]
fn test_messages_read_back() {
    let mut octets = Vec::new();
    TestMessage {
        acknowledges: false,
        pattern: b"abcd",
    }
    .write(&mut octets);
    assert_eq!(octets, b"\x11\x40abcd");
    for acknowledges in [false, true] {
        let message = TestMessage {
            acknowledges,
            pattern: b"xyz",
        };
        let mut octets = Vec::new();
        message.write(&mut octets);
        assert_eq!(TestMessage::read(&octets), Some(message));
        for length in 0..octets.len() {
            assert_eq!(TestMessage::read(&octets[..length]), None);
        }
    }
    assert_eq!(TestMessage::read(&[0x31, 0x00]), None);
}

#[test]
fn headings_and_destinations_are_those_of_their_messages() {
    let names = [
        "COO", "COA", "XCO", "XCA", "CBD", "CBA", "ECO", "ECA", "TFP", "TFR", "TFA", "RST", "TRA", "TFC",
        "RCT", "LIN", "LUN", "LIA", "LUA", "LID", "LFU", "LLT", "LRT", "UPU",
    ];
    let all = every();
    assert_eq!(names.len(), all.len());
    for (name, (message, octets)) in names.into_iter().zip(all) {
        assert_eq!(Management::heading(name), Some(octets[0]), "{name}");
        let names_one = matches!(name, "TFP" | "TFR" | "TFA" | "RST" | "TFC" | "UPU");
        assert_eq!(Management::names_destination(octets[0]), names_one, "{message:?}");
        if names_one {
            assert_eq!(Management::destination(&octets, Plan::Itu), Some(PointCode(6545)));
            assert_eq!(Management::destination(&octets[..2], Plan::Itu), None);
        }
    }
    assert_eq!(Management::heading("TFX"), None);
}
