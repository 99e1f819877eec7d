//! Sets of translations that messages select by more than their title; digits at the end of a number.

use ss7_proto::m3ua::MessageType;
use stp::config::{Entry, Group, TranslationSet};

use crate::calls::begin;
use crate::support::{Asp, faults, start};
use crate::translation::{member, parsed, title, to_stp, translating, udt};

/// `43660` leads to `two`; updateLocation (2), what is for a VLR, and what comes from node 77 lead to `three`.
fn settings() -> stp::Config {
    let mut settings = translating();
    settings.translation.groups.push(Group {
        name: "other".to_owned(),
        members: vec![member(3)],
        ..Group::default()
    });
    let set = |name: &str| TranslationSet {
        name: name.to_owned(),
        numbering_plan: Some(1),
        entries: vec![Entry {
            digits: "43660".to_owned(),
            group: "other".to_owned(),
            ..Entry::default()
        }],
        ..TranslationSet::default()
    };
    settings.translation.sets.extend([
        TranslationSet {
            operation: Some(2),
            ..set("updates")
        },
        TranslationSet {
            subsystem: Some(7),
            ..set("vlr")
        },
        TranslationSet {
            opc: Some("77".to_owned()),
            ..set("tests")
        },
    ]);
    settings
}

#[test]
fn a_set_is_selected_by_operation_subsystem_and_origin() {
    let stp = start(settings());
    let at = stp.addresses()[0];
    let (mut one, mut two, mut three) = (
        Asp::active(at, 11, 11),
        Asp::active(at, 12, 12),
        Asp::active(at, 13, 13),
    );
    let from = title("43699", 8);
    for (opc, ssn, operation, is_other) in [
        (1, 6, Some(2), true),
        (1, 6, Some(46), false),
        (1, 7, Some(46), true),
        (77, 6, Some(46), true),
        (1, 6, None, false),
    ] {
        let content = operation.map_or_else(|| b"no TCAP".to_vec(), |code| begin(&[], code, &[]));
        let octets = udt(&title("43660123", ssn), &from, &content);
        one.send(&to_stp(11, opc, &octets));
        let receiver = if is_other { &mut three } else { &mut two };
        let received = receiver.expect(MessageType::Data);
        assert_eq!(parsed(&received).data, content, "{opc} {ssn} {operation:?}");
    }
}

#[test]
fn digits_change_at_both_ends_of_a_number() {
    let mut settings = settings();
    settings.translation.sets[0].entries.push(Entry {
        digits: "4371".to_owned(),
        group: "hlr".to_owned(),
        remove: 2,
        prefix: "0".to_owned(),
        remove_last: 3,
        suffix: "99".to_owned(),
        ..Entry::default()
    });
    let mut wrong = settings.clone();
    wrong.translation.sets[1].opc = Some("9-9-9".to_owned());
    assert_eq!(faults(&wrong), ["translation.sets[1].opc"]);
    let stp = start(settings);
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    one.send(&to_stp(
        11,
        1,
        &udt(&title("4371234567", 6), &title("43699", 8), b"x"),
    ));
    let received = two.expect(MessageType::Data);
    // 43 and 567 are gone.
    assert_eq!(parsed(&received).called, title("07123499", 6));
}
