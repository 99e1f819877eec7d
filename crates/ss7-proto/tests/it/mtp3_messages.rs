//! Messages of management and tests of MTP3: vectors, tshark as the judge.

use ss7_proto::m2pa::{Content, Message, PPID};
use ss7_proto::m3ua::ServiceIndicator;
use ss7_proto::mtp3::{Changeover, Inhibiting, Management, Msu, TestMessage, link_code};
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

/// Written about a link, a message has these octets, is read from them, and is none where some are missing.
fn reads_back(plan: Plan, link: u8, message: Management, wanted: &[u8]) {
    let mut octets = Vec::new();
    message.write(plan, link, &mut octets);
    assert_eq!(octets, wanted, "{message:?}");
    assert_eq!(Management::read(&octets, plan), Some(message));
    for length in 0..octets.len() {
        assert_eq!(Management::read(&octets[..length], plan), None, "{message:?}");
    }
}

#[test]
fn every_management_message_reads_back() {
    for (message, wanted) in every() {
        reads_back(Plan::Itu, 3, message, &wanted);
    }
    // China's point codes have 24 bits; ITU's spare bits do not count.
    let controlled = Management::TransferControlled {
        destination: PointCode(0x0a_0b0c),
        level: 3,
    };
    let mut octets = Vec::new();
    controlled.write(Plan::China, 0, &mut octets);
    assert_eq!(octets, [0x23, 0x0c, 0x0b, 0x0a, 3]);
    assert_eq!(Management::read(&octets, Plan::China), Some(controlled));
    let far = Management::TransferProhibited(PointCode(0x0a_0b0c));
    let mut octets = Vec::new();
    far.write(Plan::China, 0, &mut octets);
    assert_eq!(octets, [0x14, 0x0c, 0x0b, 0x0a]);
    assert_eq!(Management::read(&octets, Plan::China), Some(far));
    assert_eq!(
        Management::read(&[0x14, 0x91, 0xd9], Plan::Itu),
        Some(Management::TransferProhibited(PointCode(6545)))
    );
    for unknown in [&[][..], &[0x71, 0], &[0x00], &[0x06], &[0x96], &[0xff, 1, 2, 3]] {
        assert_eq!(Management::read(unknown, Plan::Itu), None);
    }
}

/// T1.111.4 §15: the code of the link (10) in the message, an octet more for it, point codes of 24 bits, messages about clusters.
fn every_of_ansi() -> Vec<(Management, Vec<u8>)> {
    let code = PointCode(0x05_1401);
    let cluster = PointCode(0x05_1400);
    let order = |changeover| Management::ChangeoverOrder(changeover);
    let acknowledgement = |changeover| Management::ChangeoverAcknowledgement(changeover);
    let long = Changeover::Extended(0x0a_0b0c);
    let controlled = Management::TransferControlled {
        destination: code,
        level: 2,
    };
    let unavailable = Management::UserPartUnavailable {
        destination: code,
        user: 5,
        cause: 1,
    };
    let rows: Vec<(Management, &[u8])> = vec![
        (order(Changeover::Short(0x55)), &[0x11, 0x5a, 0x05]),
        (acknowledgement(Changeover::Short(0x55)), &[0x21, 0x5a, 0x05]),
        (order(long), &[0x31, 0xca, 0xb0, 0xa0, 0x00]),
        (acknowledgement(long), &[0x41, 0xca, 0xb0, 0xa0, 0x00]),
        (Management::ChangebackDeclaration(0xa5), &[0x51, 0x5a, 0x0a]),
        (Management::ChangebackAcknowledgement(0xa5), &[0x61, 0x5a, 0x0a]),
        (order(Changeover::Emergency), &[0x12, 0x0a]),
        (acknowledgement(Changeover::Emergency), &[0x22, 0x0a]),
        (Management::TransferProhibited(code), &[0x14, 0x01, 0x14, 0x05]),
        (Management::ClusterProhibited(cluster), &[0x24, 0x00, 0x14, 0x05]),
        (Management::TransferRestricted(code), &[0x34, 0x01, 0x14, 0x05]),
        (Management::ClusterRestricted(cluster), &[0x44, 0x00, 0x14, 0x05]),
        (Management::TransferAllowed(code), &[0x54, 0x01, 0x14, 0x05]),
        (Management::ClusterAllowed(cluster), &[0x64, 0x00, 0x14, 0x05]),
        (Management::RouteSetTest(code), &[0x15, 0x01, 0x14, 0x05]),
        (Management::ClusterTest(cluster), &[0x35, 0x00, 0x14, 0x05]),
        (Management::TrafficRestartAllowed, &[0x17]),
        (Management::TrafficRestartWaiting, &[0x27]),
        (controlled, &[0x23, 0x01, 0x14, 0x05, 2]),
        (Management::CongestionTest, &[0x13]),
        (Management::Inhibiting(Inhibiting::Inhibit), &[0x16, 0x0a]),
        (Management::Inhibiting(Inhibiting::RemoteTest), &[0x86, 0x0a]),
        (unavailable, &[0x1a, 0x01, 0x14, 0x05, 0x15]),
    ];
    rows.into_iter()
        .map(|(message, octets)| (message, octets.to_vec()))
        .collect()
}

#[test]
fn every_management_message_of_ansi_reads_back() {
    for (message, octets) in every_of_ansi() {
        reads_back(Plan::Ansi, 10, message, &octets);
        let is_about_link = matches!(octets[0] & 0x0f, 1 | 2 | 6);
        assert!(!is_about_link || link_code(0, &octets, Plan::Ansi) == 10);
    }
    // Spare bits, and tests of what was restricted.
    let order = Management::ChangeoverOrder(Changeover::Short(0x55));
    assert_eq!(Management::read(&[0x11, 0x5a, 0xfd], Plan::Ansi), Some(order));
    let test = Management::RouteSetTest(PointCode(0x05_1401));
    assert_eq!(
        Management::read(&[0x25, 0x01, 0x14, 0x05], Plan::Ansi),
        Some(test)
    );
    let test = Management::ClusterTest(PointCode(0x05_1400));
    assert_eq!(
        Management::read(&[0x45, 0x00, 0x14, 0x05], Plan::Ansi),
        Some(test)
    );
    // ITU has neither TRW nor clusters.
    assert_eq!(Management::read(&[0x27], Plan::Itu), None);
    assert_eq!(Management::read(&[0x24, 0x00, 0x14, 0x05], Plan::China), None);
}

#[test]
fn tshark_reads_management_of_ansi_the_same() {
    let mut messages: Vec<Vec<u8>> = every_of_ansi()
        .iter()
        .map(|(_, octets)| framed_in(Plan::Ansi, 0, octets))
        .collect();
    for acknowledges in [false, true] {
        let mut octets = Vec::new();
        let pattern = &[1, 2, 3, 4];
        TestMessage {
            acknowledges,
            pattern,
        }
        .write(Plan::Ansi, 10, &mut octets);
        messages.push(framed_in(Plan::Ansi, 2, &octets));
    }
    let fields = "mtp3mg.h0 mtp3mg.h1 mtp3mg.test.h0 mtp3mg.test.h1 mtp3mg.ansi_apc mtp3mg.slc mtp3mg.cbc mtp3mg.fsn \
                  mtp3mg.test.length";
    let mut arguments = vec!["-o", "mtp3.standard:ANSI", "-T", "fields"];
    arguments.extend(["-E", "separator=,", "-E", "occurrence=f"]);
    for field in fields.split(' ').filter(|field| !field.is_empty()) {
        arguments.extend(["-e", field]);
    }
    let Some((read, complaints)) = judge(PPID, &messages, &arguments) else {
        return;
    };
    assert_eq!(complaints, "");
    let lines: Vec<&str> = read.lines().map(|line| line.trim_end_matches(',')).collect();
    let wanted = [
        "0x01,0x01,,,,10,,85",
        "0x01,0x02,,,,10,,85",
        "0x01,0x03,,,,10,,658188",
        "0x01,0x04,,,,10,,658188",
        "0x01,0x05,,,,10,165",
        "0x01,0x06,,,,10,165",
        "0x02,0x01,,,,10",
        "0x02,0x02,,,,10",
        "0x04,0x01,,,5-20-1",
        "0x04,0x02,,,5-20-0",
        "0x04,0x03,,,5-20-1",
        "0x04,0x04,,,5-20-0",
        "0x04,0x05,,,5-20-1",
        "0x04,0x06,,,5-20-0",
        "0x05,0x01,,,5-20-1",
        "0x05,0x03,,,5-20-0",
        "0x07,0x01",
        "0x07,0x02",
        "0x03,0x02,,,5-20-1",
        "0x03,0x01",
        "0x06,0x01,,,,10",
        "0x06,0x08,,,,10",
        "0x0a,0x01,,,5-20-1",
        ",,0x01,0x01,,10,,,4",
        ",,0x01,0x02,,10,,,4",
    ];
    assert_eq!(lines, wanted);
}

fn framed(si: u8, user_data: &[u8]) -> Vec<u8> {
    framed_in(Plan::Itu, si, user_data)
}

fn framed_in(plan: Plan, si: u8, user_data: &[u8]) -> Vec<u8> {
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
    .write(plan, &mut msu);
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
        .write(Plan::Itu, 3, &mut octets);
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
    .write(Plan::Itu, 5, &mut octets);
    assert_eq!(octets, b"\x11\x40abcd");
    for acknowledges in [false, true] {
        let message = TestMessage {
            acknowledges,
            pattern: b"xyz",
        };
        let mut octets = Vec::new();
        message.write(Plan::Ansi, 5, &mut octets);
        assert_eq!(TestMessage::read(&octets), Some(message));
        assert_eq!(octets[1], 0x35);
        assert_eq!(link_code(9, &octets, Plan::Ansi), 5);
        assert_eq!(link_code(9, &octets, Plan::Itu), 9);
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
        for plan in [Plan::Itu, Plan::Ansi] {
            assert_eq!(Management::heading(name, plan), Some(octets[0]), "{name}");
        }
        let names_one = matches!(name, "TFP" | "TFR" | "TFA" | "RST" | "TFC" | "UPU");
        assert_eq!(Management::names_destination(octets[0]), names_one, "{message:?}");
        if names_one {
            assert_eq!(Management::destination(&octets, Plan::Itu), Some(PointCode(6545)));
            assert_eq!(Management::destination(&octets[..2], Plan::Itu), None);
        }
    }
    assert_eq!(Management::heading("TFX", Plan::Itu), None);
    for (name, heading) in [
        ("TCP", 0x24),
        ("TCR", 0x44),
        ("TCA", 0x64),
        ("RSP", 0x15),
        ("RCP", 0x35),
        ("RCR", 0x45),
        ("TRW", 0x27),
    ] {
        assert_eq!(Management::heading(name, Plan::Ansi), Some(heading), "{name}");
        assert_eq!(Management::heading(name, Plan::China), None, "{name}");
        let is_of_cluster = name.as_bytes()[1] == b'C';
        assert_eq!(
            Management::names_cluster(heading, Plan::Ansi),
            is_of_cluster,
            "{name}"
        );
        assert!(!Management::names_cluster(heading, Plan::Itu), "{name}");
    }
}
