//! Messages in segments: to subsystems of the STP, and to others.

use std::collections::HashMap;
use std::path::Path;

use settings::Period;
use ss7_proto::m3ua::{MessageType, ServiceIndicator};
use ss7_proto::sccp::{self, ReturnCause, Segmentation, Unitdata};
use ss7_proto::tcap::{ComponentType, Transaction};
use stp::config::GroupMode;

use crate::equipment::{begin, check, settings};
use crate::support::{Asp, OWN, data, metric, msu, start, until};
use crate::translation::{parsed, subsystem, title, to_stp, translating, udt};

/// The first of two segments, which asks for return on error.
pub(crate) fn segment(called: &[u8], calling: &[u8], data: &[u8]) -> Vec<u8> {
    let first = Segmentation {
        first: true,
        class: 0,
        remaining: 1,
        reference: 7,
    };
    segmented(sccp::MessageType::Xudt, called, calling, first, data)
}

/// A segment, which asks for return on error.
pub(crate) fn segmented(
    kind: sccp::MessageType,
    called: &[u8],
    calling: &[u8],
    segmentation: Segmentation,
    data: &[u8],
) -> Vec<u8> {
    let mut out = Vec::new();
    Unitdata {
        message_type: kind,
        class_or_cause: 0x80,
        hop_counter: 9,
        called,
        calling,
        data,
        optional: &sccp::optional_part(Some(segmentation), None),
    }
    .write(&mut out)
    .unwrap();
    out
}

/// An STP with lists of equipment.
fn register(folder: &Path, change: impl FnOnce(&mut stp::Config)) -> stp::Running {
    let file = folder.join("equipment.csv");
    std::fs::write(&file, "white,35209900,35209999\n").unwrap();
    let mut settings = settings(&file);
    change(&mut settings);
    start(settings)
}

/// Data in this many segments.
fn split(
    kind: sccp::MessageType,
    [called, calling]: [&[u8]; 2],
    reference: u32,
    data: &[u8],
    count: usize,
) -> Vec<Vec<u8>> {
    let segments = (0..count).map(|at| {
        let part = &data[at * data.len() / count..(at + 1) * data.len() / count];
        let segmentation = Segmentation {
            first: at == 0,
            class: 1,
            remaining: (count - 1 - at) as u8,
            reference,
        };
        segmented(kind, called, calling, segmentation, part)
    });
    segments.collect()
}

fn outcome(stp: &stp::Running, outcome: &str) -> f64 {
    let name = format!("signalbox_stp_reassemblies_total{{outcome=\"{outcome}\"}}");
    metric(stp, &name)
}

/// Whether an answer has the result of checkIMEI.
fn is_checked(octets: &[u8]) -> bool {
    let answer = Transaction::parse(parsed(octets).data).unwrap();
    let component = answer.components.clone().next().unwrap().unwrap();
    component.component_type == ComponentType::ReturnResult
}

#[test]
fn segments_to_the_register_are_put_together() {
    let folder = tempfile::tempdir().unwrap();
    let stp = register(folder.path(), |_| ());
    let mut one = Asp::active(stp.addresses()[0], 11, 11);
    let eir = subsystem(9, Some(OWN));
    let callers = [8, 149].map(|ssn| subsystem(ssn, Some(1)));
    let request = check(3, "352099001761481");
    for kind in [sccp::MessageType::Xudt, sccp::MessageType::Ludt] {
        for count in [2, 3, 16] {
            // Two messages at once, with one reference: the calling party distinguishes them.
            let all = callers
                .each_ref()
                .map(|calling| split(kind, [&eir, calling], 7, &request, count));
            for (first, second) in all[0].iter().zip(&all[1]) {
                one.send(&to_stp(11, 1, first));
                one.send(&to_stp(11, 1, second));
            }
            for calling in &callers {
                let received = one.expect(MessageType::Data);
                let answer = parsed(&received);
                assert_eq!((answer.called, answer.segmentation()), (&calling[..], None));
                assert!(is_checked(&received));
            }
        }
    }
    assert_eq!(outcome(&stp, "whole"), 12.0);
    assert_eq!(metric(&stp, "signalbox_stp_awaited_messages{hop=\"one\"}"), 0.0);
}

/// The next message that returns has a cause.
fn returns(asp: &mut Asp, cause: ReturnCause) {
    let received = asp.expect(MessageType::Data);
    assert_eq!(parsed(&received).return_cause(), Some(cause));
}

/// Q.714 §4.1.1.2.3: what does not continue a message ends it.
#[test]
fn segments_out_of_sequence_return() {
    let folder = tempfile::tempdir().unwrap();
    let stp = register(folder.path(), |_| ());
    let mut one = Asp::active(stp.addresses()[0], 11, 11);
    let (eir, msc) = (subsystem(9, Some(OWN)), subsystem(8, Some(1)));
    let request = check(3, "352099001761481");
    let all = split(sccp::MessageType::Xudt, [&eir, &msc], 9, &request, 3);
    let fault = ReturnCause::ERROR_IN_MESSAGE_TRANSPORT;
    // Without the first; the third behind the first, after which the second has none; a segment of another origin.
    one.send(&to_stp(11, 1, &all[1]));
    returns(&mut one, fault);
    for at in [0, 2, 1] {
        one.send(&to_stp(11, 1, &all[at]));
    }
    returns(&mut one, fault);
    returns(&mut one, fault);
    one.send(&to_stp(11, 1, &all[0]));
    one.send(&to_stp(11, 77, &all[1]));
    returns(&mut one, fault);
    one.send(&to_stp(11, 1, &all[1]));
    one.send(&to_stp(11, 1, &all[2]));
    assert!(is_checked(&one.expect(MessageType::Data)));
    // A sender that begins again.
    for at in [0, 1, 0, 1, 2] {
        one.send(&to_stp(11, 1, &all[at]));
    }
    assert!(is_checked(&one.expect(MessageType::Data)));
    assert_eq!((outcome(&stp, "sequence"), outcome(&stp, "whole")), (4.0, 2.0));
}

#[test]
fn a_message_whose_segments_do_not_come_returns() {
    let folder = tempfile::tempdir().unwrap();
    let stp = register(folder.path(), |settings| {
        settings.segments.timeout = Period::from_millis(20);
    });
    let mut one = Asp::active(stp.addresses()[0], 11, 11);
    let (eir, msc) = (subsystem(9, Some(OWN)), subsystem(8, Some(1)));
    let request = check(3, "352099001761481");
    let all = split(sccp::MessageType::Xudt, [&eir, &msc], 9, &request, 2);
    one.send(&to_stp(11, 1, &all[0]));
    let received = one.expect(MessageType::Data);
    let returned = parsed(&received);
    assert_eq!(
        returned.return_cause(),
        Some(ReturnCause::ERROR_IN_MESSAGE_TRANSPORT)
    );
    assert_eq!((returned.called, returned.calling), (&msc[..], &eir[..]));
    assert_eq!(outcome(&stp, "late"), 1.0);
    one.send(&to_stp(11, 1, &all[1]));
    returns(&mut one, ReturnCause::ERROR_IN_MESSAGE_TRANSPORT);
}

/// 65,535 messages of 16 segments that never end, from one application server: the other one is served.
#[test]
fn segments_that_never_end_fill_the_table_of_their_sender_only() {
    let folder = tempfile::tempdir().unwrap();
    let stp = register(folder.path(), |settings| {
        settings.segments.timeout = Period::from_secs(3_600);
    });
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    let eir = subsystem(9, Some(OWN));
    let flood = (0..65_535_u32).flat_map(|reference| {
        let calling = subsystem(8, Some(reference & 0x3fff));
        let first = Segmentation {
            first: true,
            class: 1,
            remaining: 15,
            reference,
        };
        let mut octets = segmented(sccp::MessageType::Xudt, &eir, &calling, first, &[0x62; 100]);
        // Without return on error.
        octets[1] = 0;
        to_stp(11, 1, &octets)
    });
    one.send(&flood.collect::<Vec<u8>>());
    one.settle();
    let awaited = |hop: &str| metric(&stp, &format!("signalbox_stp_awaited_messages{{hop=\"{hop}\"}}"));
    assert_eq!(
        (awaited("one"), outcome(&stp, "full")),
        (1_024.0, 65_535.0 - 1_024.0)
    );
    let request = check(3, "352099001761481");
    for octets in split(
        sccp::MessageType::Xudt,
        [&eir, &subsystem(8, Some(2))],
        1,
        &request,
        2,
    ) {
        two.send(&to_stp(12, 2, &octets));
    }
    assert!(is_checked(&two.expect(MessageType::Data)));
    // What is whole is served for the one that floods as well.
    one.send(&to_stp(11, 1, &udt(&eir, &subsystem(8, Some(1)), &request)));
    assert!(is_checked(&one.expect(MessageType::Data)));
    until("the first one's are bounded", || awaited("two") == 0.0);
}

/// Segments have room for more than a UDT has: indefinite lengths that nest 1,000 deep, and the longest LUDT.
#[test]
fn what_nests_a_thousand_deep_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let stp = register(folder.path(), |_| ());
    let mut one = Asp::active(stp.addresses()[0], 11, 11);
    let (eir, msc) = (subsystem(9, Some(OWN)), subsystem(8, Some(1)));
    let nested = begin(&[], &[0xa1, 0x80].repeat(1_000));
    let long = begin(&[], &[&[0xa1, 0x82, 0x0b, 0xb8][..], &[0xff; 3_000]].concat());
    for (kind, request) in [
        (sccp::MessageType::Xudt, &nested),
        (sccp::MessageType::Ludt, &nested),
        (sccp::MessageType::Xudt, &long),
    ] {
        for octets in split(kind, [&eir, &msc], 3, request, 16) {
            one.send(&to_stp(11, 1, &octets));
        }
        // Reject: the component is badly structured (Q.773 §4.2.2).
        let answer = one.expect(MessageType::Data);
        let answer = parsed(&answer).data;
        assert!(
            answer.windows(3).any(|part| part[..2] == [0x80, 1]),
            "{answer:02x?}"
        );
    }
    one.send(&to_stp(11, 1, &udt(&eir, &msc, &check(3, "352099001761481"))));
    assert!(is_checked(&one.expect(MessageType::Data)));
}

/// Segments of a message have one link selection: they go to one node of a group that shares the load.
#[test]
fn segments_that_pass_go_to_one_node() {
    let mut settings = translating();
    settings.translation.groups[0].mode = GroupMode::Loadshare;
    let stp = start(settings);
    let at = stp.addresses()[0];
    let mut one = Asp::active(at, 11, 11);
    let nodes = [12, 13].map(|from| Asp::active(at, from, u32::from(from)));
    let (called, calling) = (title("436601234", 6), title("43699", 8));
    for sls in 0..16_u8 {
        let parts = [&called[..], &calling[..]];
        for octets in split(sccp::MessageType::Xudt, parts, u32::from(sls), &[7; 300], 3) {
            one.send(&msu(11, 1, OWN, sls, ServiceIndicator::SCCP, &octets));
        }
    }
    let sent = |link: &str| {
        metric(
            &stp,
            &format!("signalbox_stp_sent_messages_total{{link=\"{link}\"}}"),
        )
    };
    until("all are written", || sent("b") + sent("c") == 48.0);
    let mut taken = HashMap::new();
    let mut counts = [0; 2];
    for (node, mut asp) in nodes.into_iter().enumerate() {
        for octets in asp.settle() {
            if octets[2..4] != [1, 1] {
                continue;
            }
            let segmentation = parsed(&octets).segmentation().unwrap();
            assert_eq!(*taken.entry(segmentation.reference).or_insert(node), node);
            assert_eq!(u32::from(data(&octets).sls), segmentation.reference);
            counts[node] += 1;
        }
    }
    assert_eq!((counts[0] + counts[1], taken.len()), (48, 16));
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
}
