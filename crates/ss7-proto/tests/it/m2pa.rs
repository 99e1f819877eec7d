//! M2PA: every message, octets that lie, tshark as the judge.

use ss7_proto::m2pa::{Content, Fault, LinkStatus, Message, PPID};
use ss7_proto::m3ua::ServiceIndicator;
use ss7_proto::mtp3::Msu;
use ss7_proto::point_code::{Plan, PointCode};

use crate::capture::judge;

fn write(content: Content<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let (bsn, fsn) = (0x00ff_fffe, 0x00ff_ffff);
    Message { bsn, fsn, content }.write(&mut out);
    out
}

fn every() -> Vec<Vec<u8>> {
    let mut all: Vec<_> = LinkStatus::ALL
        .iter()
        .map(|status| write(Content::LinkStatus(*status)))
        .collect();
    all.push(write(Content::Acknowledgement));
    let mut msu = Vec::new();
    Msu {
        si: ServiceIndicator::SCCP,
        ni: 2,
        priority: 0,
        dpc: PointCode(6545),
        opc: PointCode(1234),
        sls: 11,
        user_data: &crate::exercise::every_sccp()[0],
    }
    .write(Plan::Itu, &mut msu);
    all.push(write(Content::UserData {
        priority: 0,
        msu: &msu,
    }));
    all
}

#[test]
fn every_message_reads_back() {
    for octets in every() {
        let message = Message::parse(&octets).unwrap();
        assert_eq!((message.bsn, message.fsn), (0x00ff_fffe, 0x00ff_ffff));
        assert_eq!(write(message.content), octets);
        // Behind an MSU, Processor Recovered and its answer keep the sequence of user data.
        let in_sequence = match message.content {
            Content::LinkStatus(status) => {
                matches!(status, LinkStatus::ProcessorRecovered | LinkStatus::Ready)
            }
            _ => true,
        };
        assert_eq!(message.stream(), u16::from(in_sequence));
        for length in 0..octets.len() {
            assert!(Message::parse(&octets[..length]).is_err());
        }
    }
}

#[test]
fn headers_that_lie() {
    let with = |at: usize, octet: u8| {
        let mut octets = write(Content::LinkStatus(LinkStatus::Ready));
        octets[at] = octet;
        Message::parse(&octets).map(drop)
    };
    assert_eq!(with(0, 2), Err(Fault::Version(2)));
    assert_eq!(with(2, 1), Err(Fault::Type(1, 2)));
    assert_eq!(with(3, 3), Err(Fault::Type(11, 3)));
    assert_eq!(with(7, 19), Err(Fault::Length));
    assert_eq!(with(4, 0xff), Err(Fault::Length));
    assert_eq!(with(19, 10), Err(Fault::LinkStatus(10)));
    assert_eq!(with(19, 0), Err(Fault::LinkStatus(0)));
    // The octets beside 24-bit numbers are unused.
    assert!(with(8, 0xff).is_ok());
    // A priority without an MSU.
    let mut lone = write(Content::Acknowledgement);
    lone.push(0);
    lone[7] = 17;
    assert_eq!(Message::parse(&lone), Err(Fault::Length));
}

#[test]
fn tshark_reads_every_message() {
    let messages = every();
    let fields = [
        "-T",
        "fields",
        "-e",
        "m2pa.bsn",
        "-e",
        "m2pa.fsn",
        "-e",
        "mtp3.dpc",
        "-e",
        "sccp.message_type",
    ];
    let Some((read, complaints)) = judge(PPID, &messages, &fields) else {
        return;
    };
    assert_eq!(complaints, "");
    assert_eq!(read.lines().count(), messages.len());
    assert!(
        read.lines().all(|line| line.starts_with("16777214\t16777215")),
        "{read}"
    );
    assert_eq!(read.lines().last(), Some("16777214\t16777215\t6545\t0x09"));
}
