//! Screening by what messages carry, and of those that cannot be read.

use ss7_proto::m3ua::{MessageType, ServiceIndicator};
use ss7_proto::mtp3::Management;
use ss7_proto::tcap::element;
use ss7_proto::{PointCode, sccp};
use stp::config::{Action, Party, Route, Rule, ScreeningList};

use crate::neighbour::Neighbour;
use crate::segments::segment;
use crate::signalling_links::{east, is_available};
use crate::support::{Asp, config, data, faults, isup, metric, msu, start, until};
use crate::translation::{subsystem, title, to_stp, udt, unitdata};

fn blocking(rule: Rule) -> stp::Config {
    let mut settings = config();
    settings.application_servers[0].screening = Some("list".to_owned());
    settings.screening = vec![ScreeningList {
        name: "list".to_owned(),
        otherwise: Action::Allow,
        rules: vec![
            Rule {
                name: "friends".to_owned(),
                opc: vec!["9".to_owned()],
                ..Rule::default()
            },
            Rule {
                action: Action::Block,
                ..rule
            },
        ],
    }];
    settings
}

fn party(digits: &str) -> Option<Party> {
    Some(Party {
        digits: vec![digits.to_owned()],
        ..Party::default()
    })
}

/// A connection request to an address.
fn cr(called: &[u8]) -> Vec<u8> {
    let length = u8::try_from(called.len()).unwrap();
    [&[1, 0, 0, 1, 2, 2, 0, length][..], called].concat()
}

#[test]
fn what_a_rule_cannot_read_does_not_pass_it() {
    let to = title("436601", 6);
    let from = title("43699", 8);
    // More digits than a number has; a title of indicator 9; an indicator that announces more than there is; no octet at all;
    // a pointer past the end; an unknown type; nothing.
    let long = [&[0x12, 6, 0, 0x12, 4][..], &[0x11; 30]].concat();
    let unknown = [0x26, 6, 0x43, 0x66];
    let unreadable = [
        udt(&to, &long, b"x"),
        udt(&to, &unknown, b"x"),
        udt(&to, &[0x43, 1], b"x"),
        udt(&to, &[], b"x"),
        vec![9, 0x80, 3, 200, 5, 1, 0x42, 1, 0x42, 0],
        vec![0xee, 1, 2],
        vec![],
    ];
    let stp = start(blocking(Rule {
        calling: party("4399"),
        ..Rule::default()
    }));
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    let sccp = |opc, octets: &[u8]| msu(11, opc, 2, 0, ServiceIndicator::SCCP, octets);
    for octets in &unreadable {
        one.send(&sccp(1, octets));
    }
    // What decides before the rule needs no address, other users have none, and the called party is not asked for.
    one.send(&sccp(9, &unreadable[0]));
    one.send(&isup(11, 1, 2, 0, b"call"));
    one.send(&sccp(1, &udt(&long, &from, b"x")));
    one.send(&sccp(1, &cr(&long)));
    one.send(&sccp(1, &udt(&to, &subsystem(8, Some(1)), b"x")));
    for wanted in [
        unreadable[0].clone(),
        b"call".to_vec(),
        udt(&long, &from, b"x"),
        cr(&long),
        udt(&to, &subsystem(8, Some(1)), b"x"),
    ] {
        assert_eq!(data(&two.expect(MessageType::Data)).user_data, wanted);
    }
    let decisions = |rule| {
        let name = format!("signalbox_stp_screening_decisions_total{{list=\"list\",rule=\"{rule}\"}}");
        metric(&stp, &name)
    };
    assert_eq!(
        ["unreadable", "friends", "otherwise"].map(decisions),
        [unreadable.len() as f64, 1.0, 4.0]
    );
    assert_eq!(
        metric(&stp, "signalbox_stp_undelivered_messages_total{why=\"screened\"}"),
        unreadable.len() as f64
    );
}

#[test]
fn a_connection_request_is_screened_by_its_called_party() {
    let stp = start(blocking(Rule {
        called: party("4366"),
        ..Rule::default()
    }));
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    for number in ["436601", "43670"] {
        one.send(&msu(11, 1, 2, 0, ServiceIndicator::SCCP, &cr(&title(number, 6))));
    }
    assert_eq!(
        data(&two.expect(MessageType::Data)).user_data,
        cr(&title("43670", 6))
    );
}

/// A Begin of TCAP with these components.
fn begin(components: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    element(0x62, &mut out, |out| {
        out.extend([0x48, 1, 7]);
        element(0x6c, out, |out| out.extend_from_slice(components));
    });
    out
}

/// It in a UDT.
fn tcap(components: &[u8]) -> Vec<u8> {
    udt(&title("436601", 6), &title("43699", 8), &begin(components))
}

#[test]
fn operations_are_screened_in_each_component() {
    let stp = start(blocking(Rule {
        operations: vec![71, 22],
        ..Rule::default()
    }));
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    let invoke = |code: u8| [0xa1, 6, 2, 1, 1, 2, 1, code];
    let result = [0xa2, 8, 2, 1, 1, 0x30, 3, 2, 1, 71];
    let returned = unitdata(
        sccp::MessageType::Udts,
        0,
        &title("436601", 6),
        &title("43699", 8),
        &begin(&invoke(71)),
    );
    for (octets, passes) in [
        (tcap(&invoke(71)), false),
        (tcap(&[invoke(2), invoke(22)].concat()), false),
        (tcap(&invoke(2)), true),
        (tcap(&result), true),
        (tcap(&[]), true),
        // What comes back is not invoked; other users of SCCP invoke nothing.
        (returned, true),
        (
            udt(&title("436601", 6), &title("43699", 8), b"\x00\x04\x30"),
            true,
        ),
        // What cannot be read: a component cut short, a ninth one, another segment.
        (tcap(&[0xa1, 9, 2]), false),
        (tcap(&invoke(2).repeat(9)), false),
        (tcap(&invoke(2).repeat(8)), true),
        (
            udt(&title("436601", 6), &title("43699", 8), b"\x62\x09\x48"),
            false,
        ),
        (segment(&title("436601", 6), &title("43699", 8), b"x"), false),
    ] {
        exchange(&mut one, &mut two, &octets, passes);
    }
}

/// A message to the STP itself that names another node in its called party: it would go there whatever `dpc` says.
#[test]
fn a_called_party_with_a_point_code_is_screened_by_it() {
    let stp = start(blocking(Rule {
        called: Some(Party {
            point_codes: vec!["2/1".to_owned()],
            ..Party::default()
        }),
        ..Rule::default()
    }));
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    let from = subsystem(8, Some(1));
    one.send(&to_stp(11, 1, &udt(&subsystem(6, Some(2)), &from, b"around")));
    // An address without a point code is that of the node that the message is for.
    let direct = udt(&subsystem(6, None), &from, b"direct");
    one.send(&msu(11, 1, 2, 0, ServiceIndicator::SCCP, &direct));
    assert_eq!(data(&two.expect(MessageType::Data)).user_data, direct);
    let wrong = blocking(Rule {
        calling: Some(Party {
            point_codes: vec!["9-9-9".to_owned()],
            ..Party::default()
        }),
        ..Rule::default()
    });
    assert_eq!(faults(&wrong), ["screening[0].rules[1].calling.pointCodes[0]"]);
}

/// The same operation in forms that some nodes take for it: a global code, a number with more octets than it needs, longer tags, the
/// portion of components twice.
#[test]
fn operations_in_other_forms_do_not_pass() {
    let stp = start(blocking(Rule {
        operations: vec![71],
        ..Rule::default()
    }));
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    let whole = |octets: &[u8]| udt(&title("436601", 6), &title("43699", 8), octets);
    let with = |elements: &[u8]| {
        let mut out = Vec::new();
        element(0x62, &mut out, |out| {
            out.extend([0x48, 1, 7]);
            out.extend_from_slice(elements);
        });
        whole(&out)
    };
    let harmless: &[u8] = &[0x6c, 8, 0xa1, 6, 2, 1, 1, 2, 1, 2];
    let blocked: &[u8] = &[0x6c, 8, 0xa1, 6, 2, 1, 1, 2, 1, 71];
    let long_tag = [&[0x7f, 2, 13, 0x48, 1, 7][..], blocked].concat();
    let primitive = [&[0x42, 13, 0x48, 1, 7][..], blocked].concat();
    for (octets, passes) in [
        (with(harmless), true),
        (tcap(&[0xa1, 8, 2, 1, 1, 6, 3, 1, 2, 71]), false),
        (tcap(&[0xa1, 10, 2, 1, 1, 2, 5, 0, 0, 0, 0, 71]), false),
        (tcap(&[0xa1, 7, 2, 1, 1, 2, 2, 0, 71]), false),
        (tcap(&[0xa1, 7, 2, 1, 1, 0x1f, 2, 1, 71]), false),
        (tcap(&[0xbf, 1, 6, 2, 1, 1, 2, 1, 71]), false),
        (tcap(&[0xa1, 3, 2, 1, 1]), false),
        (with(&[harmless, blocked].concat()), false),
        (with(&[blocked, harmless].concat()), false),
        (
            with(&[&[0x7f][..], &[12], &blocked[1..], harmless].concat()),
            false,
        ),
        (whole(&long_tag), false),
        (whole(&primitive), false),
        // RANAP begins so.
        (whole(&[0x40, 1, 2]), true),
    ] {
        exchange(&mut one, &mut two, &octets, passes);
    }
}

/// Sends a message of SCCP, and another one behind it: the first comes or not.
fn exchange(one: &mut Asp, two: &mut Asp, octets: &[u8], passes: bool) {
    one.send(&msu(11, 1, 2, 0, ServiceIndicator::SCCP, octets));
    one.send(&isup(11, 1, 2, 0, b"next"));
    let received = two.expect(MessageType::Data);
    if passes {
        assert_eq!(data(&received).user_data, octets);
        two.expect(MessageType::Data);
    } else {
        assert_eq!(data(&received).user_data, b"next", "{octets:02x?}");
    }
}

/// A query of TCAP of ANSI that invokes an operation: 0xd0 for a national code, 0xd1 for a private one.
fn query(kind: u8, code: [u8; 2]) -> Vec<u8> {
    let mut out = Vec::new();
    element(0xe2, &mut out, |out| {
        out.extend([0xc7, 4, 1, 2, 3, 4]);
        element(0xe8, out, |out| {
            element(0xe9, out, |out| {
                out.extend([0xcf, 1, 5, kind, 2]);
                out.extend(code);
                out.extend([0xf2, 0]);
            });
        });
    });
    udt(&title("436601", 6), &title("43699", 8), &out)
}

#[test]
fn operations_of_ansi_are_screened_by_their_codes() {
    let stp = start(blocking(Rule {
        operations: vec![0x090d, 0x0401],
        ..Rule::default()
    }));
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    let passing = query(0xd1, [9, 14]);
    let blocked = [
        query(0xd1, [9, 13]),
        query(0xd0, [4, 1]),
        // With the bit that asks for a reply.
        query(0xd0, [0x84, 1]),
    ];
    for octets in [&blocked[..], std::slice::from_ref(&passing)].concat() {
        one.send(&msu(11, 1, 2, 0, ServiceIndicator::SCCP, &octets));
    }
    assert_eq!(data(&two.expect(MessageType::Data)).user_data, passing);
}

#[test]
fn messages_are_screened_by_their_type() {
    let stp = start(blocking(Rule {
        message_types: vec!["CR".to_owned(), "UDT".to_owned()],
        ..Rule::default()
    }));
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    let (called, calling) = (title("436601", 6), title("43699", 8));
    let xudt = unitdata(sccp::MessageType::Xudt, 9, &called, &calling, b"x");
    for octets in [&cr(&called), &udt(&called, &calling, b"x"), &xudt, &vec![0xee, 1]] {
        one.send(&msu(11, 1, 2, 0, ServiceIndicator::SCCP, octets));
    }
    // The first octet of another user is not a type of SCCP.
    one.send(&isup(11, 1, 2, 0, &[9, 9]));
    for wanted in [&xudt[..], &[0xee, 1], &[9, 9]] {
        assert_eq!(data(&two.expect(MessageType::Data)).user_data, wanted);
    }
    let mut faults = settings::Faults::default();
    let wrong = blocking(Rule {
        message_types: vec!["UDP".to_owned()],
        ..Rule::default()
    });
    settings::Validate::validate(&wrong, &mut faults);
    let paths: Vec<String> = faults.into_vec().into_iter().map(|fault| fault.path).collect();
    assert_eq!(paths, ["screening[0].rules[1].messageTypes[0]"]);
}

#[test]
fn ranges_of_digits_and_lists_behind_lists_decide() {
    let stp = start({
        let mut settings = blocking(Rule {
            name: "abroad".to_owned(),
            list: Some("numbers".to_owned()),
            service_indicators: vec![3],
            ..Rule::default()
        });
        settings.screening.push(ScreeningList {
            name: "numbers".to_owned(),
            otherwise: Action::Block,
            rules: vec![Rule {
                name: "ours".to_owned(),
                called: party("436610-436649"),
                ..Rule::default()
            }],
        });
        settings
    });
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    for number in ["43660999", "436610", "4366499", "43661", "43665"] {
        let octets = udt(&title(number, 6), &title("43699", 8), b"x");
        one.send(&msu(11, 1, 2, 0, ServiceIndicator::SCCP, &octets));
    }
    one.send(&isup(11, 1, 2, 0, b"call"));
    for wanted in [
        &udt(&title("436610", 6), &title("43699", 8), b"x")[..],
        &udt(&title("4366499", 6), &title("43699", 8), b"x"),
        b"call",
    ] {
        assert_eq!(data(&two.expect(MessageType::Data)).user_data, wanted);
    }
    for (list, rule, count) in [
        ("list", "abroad", 5.0),
        ("list", "otherwise", 1.0),
        ("numbers", "ours", 2.0),
        ("numbers", "otherwise", 3.0),
    ] {
        let name = format!("signalbox_stp_screening_decisions_total{{list=\"{list}\",rule=\"{rule}\"}}");
        assert_eq!(metric(&stp, &name), count, "{list} {rule}");
    }
    let wrong = blocking(Rule {
        list: Some("none".to_owned()),
        management: vec!["TFX".to_owned()],
        affected: vec!["1-2".to_owned()],
        called: party("4-3"),
        ..Rule::default()
    });
    let rule = "screening[0].rules[1]";
    assert_eq!(
        faults(&wrong),
        ["list", "management[0]", "affected[0]", "called.digits[0]"].map(|key| format!("{rule}.{key}"))
    );
}

/// A neighbour that may not prohibit a destination does not close the route to it.
#[test]
fn management_is_screened_by_heading_and_affected_destination() {
    let mut settings = east();
    settings.routes.push(Route {
        destination: "3".to_owned(),
        via: "neighbour".to_owned(),
        priority: 0,
    });
    settings.link_sets[0].screening = Some("list".to_owned());
    settings.screening = vec![ScreeningList {
        name: "list".to_owned(),
        otherwise: Action::Allow,
        rules: vec![Rule {
            name: "not-theirs".to_owned(),
            action: Action::Block,
            management: ["TFP", "TFR", "TFA"].map(str::to_owned).to_vec(),
            affected: vec!["2".to_owned()],
            ..Rule::default()
        }],
    }];
    let stp = start(settings);
    let mut a = Neighbour::new(stp.addresses()[0], 21, 0);
    until("the link carries traffic", || is_available(&stp, "a"));
    let available = |code| {
        metric(
            &stp,
            &format!("signalbox_stp_destination_available{{destination=\"0-0-{code}\"}}"),
        )
    };
    for code in [2, 3] {
        a.manage(0, Management::TransferProhibited(PointCode(code)));
    }
    until("TFP has closed the other route", || available(3) == 0.0);
    assert_eq!(available(2), 1.0);
    let name = "signalbox_stp_screening_decisions_total{list=\"list\",rule=\"not-theirs\"}";
    assert_eq!(metric(&stp, name), 1.0);
}
