//! Groups that share by transaction: each message of a transaction has one node.

use ss7_proto::m3ua::MessageType;
use ss7_proto::tcap::element;
use stp::config::{Entry, Group, GroupMode};

use crate::support::{Asp, faults, metric, start, until};
use crate::translation::{member, parsed, title, to_stp, translating, udt, why};

const HLR: &str = "43660123";
const MSC: &str = "43699";

/// `two` and `three` share the transactions of 43660; 43699 is the MSC `one`.
fn settings() -> stp::Config {
    let mut settings = translating();
    settings.translation.groups[0].mode = GroupMode::Transaction;
    settings.translation.groups.push(Group {
        name: "msc".to_owned(),
        members: vec![stp::config::GroupMember {
            subsystem: None,
            ..member(1)
        }],
        ..Group::default()
    });
    settings.translation.sets[0].entries.push(Entry {
        digits: MSC.to_owned(),
        group: "msc".to_owned(),
        ..Entry::default()
    });
    settings
}

/// A message of TCAP: tag, the identifiers of sender and receiver.
fn tcap(tag: u8, own: Option<u32>, other: Option<u32>) -> Vec<u8> {
    let mut out = Vec::new();
    element(tag, &mut out, |out| {
        for (tag, id) in [(0x48, own), (0x49, other)] {
            let id = id.map(u32::to_be_bytes);
            id.into_iter()
                .for_each(|id| element(tag, out, |out| out.extend(id)));
        }
    });
    out
}

const BEGIN: u8 = 0x62;
const END: u8 = 0x64;
const CONTINUE: u8 = 0x65;
const ABORT: u8 = 0x67;

fn count(stp: &stp::Running, outcome: &str) -> f64 {
    let name = format!("signalbox_stp_transaction_messages_total{{outcome=\"{outcome}\"}}");
    metric(stp, &name)
}

/// The MSC and the HLRs.
struct Nodes {
    msc: Asp,
    hlrs: [Asp; 2],
}

impl Nodes {
    fn active(stp: &stp::Running) -> Self {
        let at = stp.addresses()[0];
        Self {
            msc: Asp::active(at, 11, 11),
            hlrs: [Asp::active(at, 12, 12), Asp::active(at, 13, 13)],
        }
    }

    /// Sends a message to the HLRs, which have all behind one title, and returns which of them has got it.
    fn send(&mut self, content: &[u8]) -> usize {
        self.msc
            .send(&to_stp(11, 1, &udt(&title(HLR, 6), &title(MSC, 8), content)));
        let is_data = |octets: &Vec<u8>| {
            let message = ss7_proto::m3ua::Message::parse(octets).unwrap();
            message.message_type() == MessageType::Data
        };
        let mut found = None;
        until("an HLR has the message", || {
            found = (0..2).find(|at| self.hlrs[*at].settle().iter().any(is_data));
            found.is_some()
        });
        found.unwrap()
    }

    /// One of the HLRs sends a message to the MSC.
    fn answer(&mut self, hlr: usize, content: &[u8]) {
        let (context, code) = [(12, 2), (13, 3)][hlr];
        let octets = udt(&title(MSC, 8), &title(HLR, 6), content);
        self.hlrs[hlr].send(&to_stp(context, code, &octets));
        let received = self.msc.expect(MessageType::Data);
        assert_eq!(parsed(&received).data, content);
    }
}

#[test]
fn every_message_of_a_transaction_has_one_node() {
    let stp = start(settings());
    let mut nodes = Nodes::active(&stp);
    let mut shares = [0; 2];
    for own in 0..24 {
        let hlr = nodes.send(&tcap(BEGIN, Some(own), None));
        shares[hlr] += 1;
        let other = 0x8000_0000 + own;
        nodes.answer(hlr, &tcap(CONTINUE, Some(other), Some(own)));
        for _ in 0..2 {
            assert_eq!(nodes.send(&tcap(CONTINUE, Some(own), Some(other))), hlr);
        }
        let tag = if own % 2 == 0 { END } else { ABORT };
        assert_eq!(nodes.send(&tcap(tag, None, Some(other))), hlr, "{own}");
    }
    assert!(shares.iter().all(|share| *share > 4), "{shares:?}");
    assert_eq!((count(&stp, "new"), count(&stp, "kept")), (24.0, 72.0));
    // The HLR begins: the answer names its identifier alone.
    for (hlr, id) in [(0, 7), (1, 8), (1, 9), (0, 10)] {
        nodes.answer(hlr, &tcap(BEGIN, Some(id), None));
        assert_eq!(nodes.send(&tcap(END, None, Some(id))), hlr);
    }
    assert_eq!((count(&stp, "unknown"), count(&stp, "moved")), (0.0, 0.0));
    // The identifiers of the MSC are left, whose End names those of the HLRs.
    assert_eq!(metric(&stp, "signalbox_stp_transactions"), 24.0);
    nodes.answer(0, &tcap(END, None, Some(3)));
    assert_eq!(metric(&stp, "signalbox_stp_transactions"), 23.0);
    // No transaction, or one that is not kept.
    nodes.send(b"no TCAP");
    nodes.send(&tcap(END, None, Some(77)));
    assert_eq!((count(&stp, "other"), count(&stp, "unknown")), (1.0, 1.0));
}

#[test]
fn a_transaction_moves_with_its_node_and_stays_there() {
    let stp = start(settings());
    let mut nodes = Nodes::active(&stp);
    let mut own = 0;
    while nodes.send(&tcap(BEGIN, Some(own), None)) != 0 {
        own += 1;
    }
    let begin = to_stp(
        11,
        1,
        &udt(&title(HLR, 6), &title(MSC, 8), &tcap(BEGIN, Some(own), None)),
    );
    let page = why(&stp, &begin).to_string();
    assert!(page.contains("shares by transaction: new"), "{page}");
    // The node is lost: its transaction moves, and does not return with it.
    nodes.hlrs[0].stream.shutdown(std::net::Shutdown::Both).unwrap();
    until("the node is lost", || {
        metric(&stp, "signalbox_stp_destination_available{destination=\"0-0-2\"}") == 0.0
    });
    let at = stp.addresses()[0];
    let more = tcap(CONTINUE, Some(own), Some(1));
    let octets = to_stp(11, 1, &udt(&title(HLR, 6), &title(MSC, 8), &more));
    nodes.msc.send(&octets);
    let received = nodes.hlrs[1].expect(MessageType::Data);
    assert_eq!(parsed(&received).data, more);
    assert_eq!(count(&stp, "moved"), 1.0);
    nodes.hlrs[0] = Asp::active(at, 12, 12);
    assert_eq!(nodes.send(&more), 1);
}

#[test]
fn the_table_is_bounded() {
    let mut settings = settings();
    settings.transactions.number = 16;
    let stp = start(settings);
    let mut nodes = Nodes::active(&stp);
    // Of one worker or several: what follows comes behind.
    for own in 0..500 {
        let content = tcap(BEGIN, Some(own), None);
        nodes
            .msc
            .send(&to_stp(11, 1, &udt(&title(HLR, 6), &title(MSC, 8), &content)));
    }
    nodes.msc.settle();
    assert_eq!(count(&stp, "new"), 500.0);
    let kept = metric(&stp, "signalbox_stp_transactions");
    let evicted = metric(&stp, "signalbox_stp_evicted_transactions_total");
    assert!(kept <= 16.0 && kept + evicted == 500.0, "{kept} {evicted}");
    let mut wrong = self::settings();
    wrong.transactions.number = 0;
    wrong.transactions.timeout = ::settings::Period::from_secs(0);
    assert_eq!(faults(&wrong), ["transactions.number", "transactions.timeout"]);
}
