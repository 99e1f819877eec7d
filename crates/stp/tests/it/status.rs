//! Congestion and users that are missing: TFC and UPU to nodes, SCON and DUPU to ASPs.

use ss7_proto::PointCode;
use ss7_proto::m2pa::{Content, LinkStatus};
use ss7_proto::m3ua::{Message, MessageType, ServiceIndicator, Tag};
use ss7_proto::mtp3::Management;

use crate::moves::{NORTH, with_north};
use crate::neighbour::Neighbour;
use crate::signalling_links::{EAST, east, is_available};
use crate::support::{Asp, isup, metric, start, until};

fn word(octets: &[u8], tag: Tag) -> Option<u32> {
    Message::parse(octets).unwrap().word(tag)
}

/// RFC 4666 §1.4.2.3: M3UA carries no network management; SSNM stands for it.
#[test]
fn what_nodes_report_to_an_application_server_becomes_ssnm() {
    let stp = start(east());
    let at = stp.addresses()[0];
    let mut one = Asp::active(at, 11, 11);
    let mut a = Neighbour::new(at, 21, 0);
    until("the link carries traffic", || is_available(&stp, "a"));
    let destination = PointCode(2);
    a.manage_for(
        1,
        0,
        Management::TransferControlled {
            destination,
            level: 2,
        },
    );
    let scon = one.expect(MessageType::Scon);
    assert_eq!(word(&scon, Tag::AFFECTED_POINT_CODE), Some(2));
    assert_eq!(word(&scon, Tag::CONGESTION_INDICATIONS), Some(2));
    a.manage_for(
        1,
        0,
        Management::UserPartUnavailable {
            destination,
            user: 5,
            cause: 1,
        },
    );
    let dupu = one.expect(MessageType::Dupu);
    assert_eq!(word(&dupu, Tag::AFFECTED_POINT_CODE), Some(2));
    assert_eq!(word(&dupu, Tag::USER_CAUSE), Some(1 << 16 | 5));
    // Others, and those that are forged in the name of another node, go nowhere.
    let dropped = || {
        metric(
            &stp,
            "signalbox_stp_undelivered_messages_total{why=\"user_part\"}",
        )
    };
    a.manage_for(1, 0, Management::TransferProhibited(destination));
    until("it is dropped", || dropped() == 1.0);
    // The next of a kind within a second is not reported.
    let controlled = Management::TransferControlled {
        destination,
        level: 2,
    };
    a.manage_for(1, 0, controlled);
    // To the STP itself: nothing follows.
    a.manage(0, controlled);
    a.manage(0, Management::CongestionTest);
    a.send_msu(ServiceIndicator::ISUP, [2, 1], b"call");
    let next = one.expect(MessageType::Data);
    assert_eq!(crate::support::data(&next).user_data, b"call");
    assert_eq!(dropped(), 1.0);
}

/// Q.704 §11.2.7, §15.17.
#[test]
fn a_node_is_notified_of_a_user_that_the_stp_does_not_have() {
    let stp = start(east());
    let mut a = Neighbour::new(stp.addresses()[0], 21, 0);
    until("the link carries traffic", || is_available(&stp, "a"));
    a.send_msu(ServiceIndicator::ISUP, [200, EAST], b"call");
    a.wait_for((
        0,
        Management::UserPartUnavailable {
            destination: PointCode(EAST),
            user: 5,
            cause: 1,
        },
    ));
}

/// Q.704 §11.2.3, §13.7: from half of a queue on, the origins of its messages are notified.
#[test]
fn the_queue_of_a_link_notifies_before_it_is_full() {
    let mut settings = with_north();
    settings.queue = 16;
    let stp = start(settings);
    let at = stp.addresses()[0];
    let mut a = Neighbour::new(at, 21, 0);
    let mut north = Neighbour::at(at, 23, 0, NORTH);
    until("both carry traffic", || {
        is_available(&stp, "a") && is_available(&stp, "n")
    });
    let mut one = Asp::active(at, 11, 11);
    let received = || metric(&stp, "signalbox_stp_received_bytes_total{link=\"a\"}");
    let before = received();
    a.send(Content::LinkStatus(LinkStatus::Busy));
    until("the STP knows that it is busy", || received() > before);
    for _ in 0..17 {
        one.send(&isup(11, 1, 2, 0, b"call"));
    }
    for level in [1, 2, 3] {
        // Where the messages take longer than a second, the level before is reported again.
        let mut found = Some(level - 1);
        while found == Some(level - 1) {
            let scon = one.expect(MessageType::Scon);
            assert_eq!(word(&scon, Tag::AFFECTED_POINT_CODE), Some(2));
            found = word(&scon, Tag::CONGESTION_INDICATIONS);
        }
        assert_eq!(found, Some(level));
    }
    north.send_msu(ServiceIndicator::ISUP, [NORTH, 2], b"call");
    north.wait_for((
        0,
        Management::TransferControlled {
            destination: PointCode(2),
            level: 3,
        },
    ));
}
