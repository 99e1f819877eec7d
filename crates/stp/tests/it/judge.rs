//! tshark reads what the STP sends.

use ss7_proto::m3ua::{MessageType, ServiceIndicator, Tag};
use ss7_proto::sccp;
use testpeer::tshark::{COMPLAINTS, tshark};

use crate::support::{Asp, OWN, config, isup, msu, start, with_word};
use crate::translation::{subsystem, title, unitdata};

/// Each message in an SCTP packet of its own (LINKTYPE_SCTP), with M3UA's payload protocol identifier.
pub(crate) fn capture(messages: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(0xa1b2_c3d4_u32.to_le_bytes());
    file.extend([2, 0, 4, 0]);
    for word in [0, 0, 65_535, 248] {
        file.extend(u32::to_le_bytes(word));
    }
    for (n, message) in (1_u32..).zip(messages) {
        let mut packet = [2905_u16.to_be_bytes(), 2906_u16.to_be_bytes()].concat();
        packet.extend([0, 0, 0, 7, 0, 0, 0, 0, 0, 3]);
        packet.extend(u16::try_from(16 + message.len()).unwrap().to_be_bytes());
        packet.extend(n.to_be_bytes());
        packet.extend([0, 1, 0, 0, 0, 0, 0, 3]);
        packet.extend(message);
        packet.resize(packet.len().next_multiple_of(4), 0);
        let length = u32::try_from(packet.len()).unwrap().to_le_bytes();
        file.extend([n.to_le_bytes(), [0; 4], length, length].concat());
        file.extend(packet);
    }
    file
}

#[test]
fn all_that_the_stp_sends_decodes_without_a_complaint() {
    let mut settings = config();
    settings.network_appearance = Some(7);
    let stp = start(settings);
    let at = stp.addresses()[0];
    let mut one = Asp::connect(at, 11);
    let mut all = Vec::new();
    let mut asp = |asp: &mut Asp, octets: &[u8]| {
        asp.send(octets);
        all.extend(asp.settle());
    };
    asp(&mut one, &crate::support::plain(MessageType::Aspup));
    asp(&mut one, &crate::support::aspac(11));
    // DUNA, DUPU, ERR, REG RSP is in another test, UDTS, XUDTS, answers to DAUD.
    asp(&mut one, &isup(11, 1, 2, 0, b"x"));
    asp(&mut one, &isup(11, 1, OWN, 0, b"x"));
    asp(&mut one, &isup(99, 1, 2, 0, b"x"));
    asp(
        &mut one,
        &with_word(MessageType::Daud, Tag::AFFECTED_POINT_CODE, 14 << 24),
    );
    for kind in [sccp::MessageType::Udt, sccp::MessageType::Xudt] {
        let octets = unitdata(kind, 9, &title("4366", 6), &subsystem(8, Some(1)), b"\x62\x00");
        asp(&mut one, &msu(11, 1, OWN, 3, ServiceIndicator::SCCP, &octets));
    }
    let mut two = Asp::active(at, 12, 12);
    one.send(&isup(11, 1, 2, 9, b"\x01\x00\x10"));
    all.push(two.expect(MessageType::Data));
    assert!(all.len() >= 10, "{}", all.len());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sent.pcap");
    std::fs::write(&file, capture(&all)).unwrap();
    let fields = [
        "-T",
        "fields",
        "-e",
        "m3ua.message_class",
        "-e",
        "m3ua.message_type",
        "-e",
        "m3ua.protocol_data_dpc",
    ];
    let Some(read) = tshark(&fields, &file) else {
        return;
    };
    assert_eq!(read.lines().count(), all.len());
    for wanted in [
        "2\t1\t", "2\t2\t", "2\t5\t", "0\t0\t", "0\t1\t", "3\t4\t", "4\t3\t", "1\t1\t1", "1\t1\t2",
    ] {
        assert!(
            read.lines().any(|line| line == wanted),
            "{wanted:?} is missing:\n{read}"
        );
    }
    // The ISUP part of the last message is made up and not judged.
    let complaints = tshark(&["-Y", &format!("({COMPLAINTS}) && !isup"), "-V"], &file).unwrap();
    assert_eq!(complaints, "");
}
