//! Sets of translations that messages select by more than their title; digits at the end of a number.

use ss7_proto::m3ua::MessageType;
use stp::config::{Entry, Group, TranslatedNumber, TranslationSet};

use crate::calls::{CAP_2, begin};
use crate::support::{Asp, faults, start};
use crate::translation::{member, parsed, title, to_stp, translating, udt, why};

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

/// `imsi` leads by IMSI, `partner` what a partner's nodes send to the number of the HLRs, `cap` by application context.
fn settings_of_content() -> stp::Config {
    let mut settings = settings();
    let other = |digits: &str| Entry {
        digits: digits.to_owned(),
        group: "other".to_owned(),
        ..Entry::default()
    };
    settings.translation.sets.truncate(1);
    settings.translation.sets.extend([
        TranslationSet {
            name: "imsi".to_owned(),
            number: TranslatedNumber::Imsi,
            entries: vec![other("23210")],
            ..TranslationSet::default()
        },
        TranslationSet {
            name: "partner".to_owned(),
            numbering_plan: Some(1),
            calling: vec!["4916".to_owned(), "4917".to_owned()],
            entries: vec![other("")],
            ..TranslationSet::default()
        },
        TranslationSet {
            name: "cap".to_owned(),
            numbering_plan: Some(1),
            application_context: Some("0.4.0.0.1.0.50".to_owned()),
            entries: vec![other("43660")],
            ..TranslationSet::default()
        },
    ]);
    settings
}

#[test]
fn a_set_is_selected_by_caller_context_and_numbers_of_map() {
    let stp = start(settings_of_content());
    let at = stp.addresses()[0];
    let (mut one, mut two, mut three) = (
        Asp::active(at, 11, 11),
        Asp::active(at, 12, 12),
        Asp::active(at, 13, 13),
    );
    // updateLocation of 23210…, then of 26201…
    let imsi = |first: u8| [0x30, 9, 4, 3, 0x32, first, 0xf0, 4, 2, 0x91, 0x34];
    let (home, foreign) = (begin(&[], 2, &imsi(0x12)), begin(&[], 2, &imsi(0x62)));
    for (called, calling, content, set) in [
        ("43660123", "43699", &home, Some("imsi")),
        ("999", "43699", &home, Some("imsi")),
        ("43660123", "43699", &foreign, None),
        ("43660123", "49161", &foreign, Some("partner")),
        ("43660123", "49170", &foreign, Some("partner")),
        ("43660123", "4918", &foreign, None),
        ("43660123", "43699", &begin(CAP_2, 0, &[]), Some("cap")),
        ("43660123", "43699", &b"no TCAP".to_vec(), None),
    ] {
        let octets = to_stp(11, 1, &udt(&title(called, 6), &title(calling, 8), content));
        let steps = why(&stp, &octets)["steps"].to_string();
        assert!(
            steps.contains(&format!("set `{}`", set.unwrap_or("e164"))),
            "{steps}"
        );
        assert!(
            steps.contains(&format!("selectors see calling party {calling}")),
            "{steps}"
        );
        one.send(&octets);
        let receiver = if set.is_some() { &mut three } else { &mut two };
        let received = receiver.expect(MessageType::Data);
        assert_eq!(parsed(&received).data, *content, "{called} {calling}");
        // The digits of another number decide; those of the title are sent.
        assert_eq!(parsed(&received).called, title(called, 6));
    }
    let octets = to_stp(11, 1, &udt(&title("999", 6), &title("43699", 8), &home));
    let steps = why(&stp, &octets)["steps"].to_string();
    for part in ["5 digits of IMSI decided", "IMSI 23210, operation 2"] {
        assert!(steps.contains(part), "{steps}");
    }
}

#[test]
fn selectors_that_fit_nothing_are_refused() {
    let mut settings = settings_of_content();
    let sets = &mut settings.translation.sets;
    sets[2].calling = vec!["4x".to_owned()];
    sets[2].calling.extend((0..32).map(|number| number.to_string()));
    sets[3].application_context = Some("CAP".to_owned());
    assert_eq!(
        faults(&settings),
        [
            "translation.sets[2].calling[0]",
            "translation.sets[2].calling",
            "translation.sets[3].applicationContext"
        ]
    );
    let mut twice = settings_of_content();
    twice.translation.sets[2].calling[1] = "4916".to_owned();
    assert_eq!(faults(&twice), ["translation.sets"]);
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
