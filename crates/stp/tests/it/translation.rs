//! Global titles, return on error, management of subsystems, screening.

use ss7_proto::m3ua::{MessageType, ServiceIndicator};
use ss7_proto::sccp::{
    self, Address, AddressBuf, Format, GlobalTitleBuf, Management, ManagementType, ReturnCause, Unitdata,
};
use ss7_proto::{Digits, PointCode};
use stp::Config;
use stp::config::{
    Action, Entry, Group, GroupMember, GroupMode, NextRouting, Party, Rule, ScreeningList, TranslationSet,
};

use crate::support::{Asp, OWN, config, data, link, metric, msu, plain, server, start, until};

pub(crate) fn title(digits: &str, ssn: u8) -> Vec<u8> {
    written(AddressBuf {
        ssn: Some(ssn),
        route_on_title: true,
        title: Some(GlobalTitleBuf {
            indicator: 4,
            translation_type: 0,
            numbering_plan: 1,
            nature: 4,
            digits: Digits::parse(digits).unwrap(),
        }),
        ..AddressBuf::default()
    })
}

pub(crate) fn subsystem(ssn: u8, code: Option<u32>) -> Vec<u8> {
    written(AddressBuf {
        ssn: Some(ssn),
        point_code: code.map(PointCode),
        ..AddressBuf::default()
    })
}

pub(crate) fn written(address: AddressBuf) -> Vec<u8> {
    let mut out = Vec::new();
    address.write(Format::Itu, &mut out).unwrap();
    out
}

/// UDT or XUDT that asks for return on error.
pub(crate) fn unitdata(
    kind: sccp::MessageType,
    hops: u8,
    called: &[u8],
    calling: &[u8],
    data: &[u8],
) -> Vec<u8> {
    let mut out = Vec::new();
    Unitdata {
        message_type: kind,
        class_or_cause: 0x80,
        hop_counter: hops,
        called,
        calling,
        data,
        optional: &[],
    }
    .write(&mut out)
    .unwrap();
    out
}

pub(crate) fn udt(called: &[u8], calling: &[u8], data: &[u8]) -> Vec<u8> {
    unitdata(sccp::MessageType::Udt, 0, called, calling, data)
}

pub(crate) fn to_stp(context: u32, opc: u32, octets: &[u8]) -> Vec<u8> {
    msu(context, opc, OWN, 5, ServiceIndicator::SCCP, octets)
}

pub(crate) fn parsed(octets: &[u8]) -> Unitdata<'_> {
    match sccp::Message::parse(data(octets).user_data).unwrap() {
        sccp::Message::Unitdata(unitdata) => unitdata,
        sccp::Message::Connection(_) => panic!("a connection"),
    }
}

pub(crate) fn member(code: u32) -> GroupMember {
    GroupMember {
        point_code: code.to_string(),
        subsystem: Some(6),
        ..GroupMember::default()
    }
}

/// `two` and `three` are HLRs, of which `two` is preferred.
pub(crate) fn translating() -> Config {
    let mut config = config();
    config.links.push(link("c", 13));
    config.application_servers.push(server("three", 13, 3, &["c"]));
    config.translation.groups = vec![Group {
        name: "hlr".to_owned(),
        mode: GroupMode::Dominant,
        members: vec![member(2), member(3)],
    }];
    let entry = |digits: &str| Entry {
        digits: digits.to_owned(),
        group: "hlr".to_owned(),
        ..Entry::default()
    };
    config.translation.sets = vec![TranslationSet {
        name: "e164".to_owned(),
        numbering_plan: Some(1),
        entries: vec![
            entry("43660"),
            Entry {
                remove: 2,
                prefix: "0".to_owned(),
                nature: Some(3),
                ..entry("436610-436649")
            },
            Entry {
                routing: NextRouting::Subsystem,
                subsystem: Some(6),
                ..entry("4367")
            },
        ],
        ..TranslationSet::default()
    }];
    config
}

#[test]
fn titles_lead_to_the_preferred_node_that_is_available() {
    let stp = start(translating());
    let at = stp.addresses()[0];
    let mut one = Asp::active(at, 11, 11);
    let mut three = Asp::active(at, 13, 13);
    let called = title("436601234567", 6);
    one.send(&to_stp(11, 1, &udt(&called, &subsystem(8, None), b"tcap")));
    let received = three.expect(MessageType::Data);
    let label = data(&received);
    assert_eq!(
        (label.opc, label.dpc, label.sls),
        (PointCode(OWN), PointCode(3), 5)
    );
    let relayed = parsed(&received);
    assert_eq!(
        relayed.called, called,
        "an address that is not changed passes octet for octet"
    );
    // The origin has changed: the calling party names its point code, so that the answer finds it.
    assert_eq!(relayed.calling, subsystem(8, Some(1)));
    assert_eq!(relayed.data, b"tcap");
    // An answer to that address goes by point code through the STP.
    three.send(&msu(
        13,
        3,
        1,
        5,
        ServiceIndicator::SCCP,
        &udt(&subsystem(8, Some(1)), &called, b"answer"),
    ));
    assert_eq!(parsed(&one.expect(MessageType::Data)).data, b"answer");
    let mut two = Asp::active(at, 12, 12);
    one.send(&to_stp(11, 1, &udt(&called, &title("43699", 8), b"tcap")));
    assert_eq!(parsed(&two.expect(MessageType::Data)).calling, title("43699", 8));
    // Address modification, and the next node routes by subsystem.
    one.send(&to_stp(
        11,
        1,
        &udt(&title("4366201", 6), &title("43699", 8), b""),
    ));
    let received = two.expect(MessageType::Data);
    let address = Address::parse(parsed(&received).called, Format::Itu).unwrap();
    let found = address.title.unwrap();
    assert_eq!(
        (found.digits().unwrap().to_string(), found.nature),
        ("066201".to_owned(), Some(3))
    );
    one.send(&to_stp(11, 1, &udt(&title("4367", 147), &title("43699", 8), b"")));
    let received = two.expect(MessageType::Data);
    let address = Address::parse(parsed(&received).called, Format::Itu).unwrap();
    assert_eq!((address.route_on_title, address.ssn), (false, Some(6)));
    assert_eq!(
        metric(&stp, "signalbox_stp_translated_messages_total{set=\"e164\"}"),
        4.0
    );
}

#[test]
fn what_cannot_be_delivered_returns_with_its_cause() {
    let stp = start(translating());
    let mut one = Asp::active(stp.addresses()[0], 11, 11);
    let calling = title("43699", 8);
    let other_plan = {
        let mut octets = title("26201", 6);
        octets[3] = 0x61;
        octets
    };
    let cases = [
        (title("4999", 6), 7, ReturnCause::NO_TRANSLATION_FOR_ADDRESS),
        (other_plan, 7, ReturnCause::NO_TRANSLATION_FOR_NATURE),
        (title("43660", 6), 7, ReturnCause::MTP_FAILURE),
        (title("43660", 6), 1, ReturnCause::HOP_COUNTER_VIOLATION),
        (subsystem(9, None), 7, ReturnCause::UNEQUIPPED_USER),
    ];
    for (called, hops, cause) in cases {
        one.send(&to_stp(
            11,
            1,
            &unitdata(sccp::MessageType::Xudt, hops, &called, &calling, b"tcap"),
        ));
        let received = one.expect(MessageType::Data);
        let label = data(&received);
        assert_eq!((label.opc, label.dpc), (PointCode(OWN), PointCode(1)));
        let service = parsed(&received);
        assert_eq!(service.message_type, sccp::MessageType::Xudts);
        assert_eq!(service.return_cause(), Some(cause), "{called:?}");
        assert_eq!(
            (service.called, service.calling, service.data),
            (&calling[..], &called[..], &b"tcap"[..])
        );
    }
    // UDT returns as UDTS; a message that does not ask for it, and a UDTS, do not return.
    one.send(&to_stp(11, 1, &udt(&title("4999", 6), &calling, b"x")));
    assert_eq!(
        parsed(&one.expect(MessageType::Data)).message_type,
        sccp::MessageType::Udts
    );
    let mut silent = udt(&title("4999", 6), &calling, b"x");
    silent[1] = 0;
    one.send(&to_stp(11, 1, &silent));
    silent[0] = 0x0a;
    one.send(&to_stp(11, 1, &silent));
    // Pointers that lead past the end, an unknown type, nothing at all.
    for broken in [&[9, 0x80, 3, 200, 5, 1, 0x42, 1, 0x42, 0][..], &[0xee], &[]] {
        one.send(&to_stp(11, 1, broken));
    }
    assert_eq!(one.settle(), Vec::<Vec<u8>>::new());
    assert_eq!(
        metric(&stp, "signalbox_stp_undelivered_messages_total{why=\"syntax\"}"),
        3.0
    );
    assert_eq!(metric(&stp, "signalbox_stp_returned_messages_total"), 6.0);
}

#[test]
fn a_prohibited_subsystem_gives_way_and_tests_are_answered() {
    let mut settings = translating();
    settings.subsystems = vec![8];
    let stp = start(settings);
    let at = stp.addresses()[0];
    let (mut one, mut two, mut three) = (
        Asp::active(at, 11, 11),
        Asp::active(at, 12, 12),
        Asp::active(at, 13, 13),
    );
    let manage = |kind, ssn, code, opc, context| {
        let mut content = Vec::new();
        let message = Management {
            management_type: kind,
            ssn,
            point_code: PointCode(code),
            multiplicity: 0,
            congestion_level: 0,
        };
        message.write(Format::Itu, &mut content);
        to_stp(
            context,
            opc,
            &udt(&subsystem(1, Some(OWN)), &subsystem(1, Some(opc)), &content),
        )
    };
    // A test of what is not here has no answer: the next answer is that of the next test.
    for ssn in [1, 9, 8] {
        one.send(&manage(ManagementType::Sst, ssn, OWN, 1, 11));
    }
    for ssn in [1, 8] {
        let received = one.expect(MessageType::Data);
        let allowed = Management::read(parsed(&received).data, Format::Itu).unwrap();
        assert_eq!(
            (allowed.management_type, allowed.ssn, allowed.point_code),
            (ManagementType::Ssa, ssn, PointCode(OWN))
        );
    }
    let call = to_stp(11, 1, &udt(&title("43660", 6), &title("43699", 8), b""));
    // Another node may not prohibit it.
    one.send(&manage(ManagementType::Ssp, 6, 2, 1, 11));
    one.settle();
    one.send(&call);
    two.expect(MessageType::Data);
    two.send(&manage(ManagementType::Ssp, 6, 2, 2, 12));
    two.settle();
    one.send(&call);
    three.expect(MessageType::Data);
    two.send(&manage(ManagementType::Ssa, 6, 2, 2, 12));
    two.settle();
    one.send(&call);
    two.expect(MessageType::Data);
}

#[test]
fn files_of_translations_are_read_again_and_name_their_mistakes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("numbers.csv");
    std::fs::write(&file, "digits,group,subsystem\n# a comment\n4388,hlr,6\n").unwrap();
    let mut settings = translating();
    settings.translation.sets[0].file = Some(file.clone());
    let stp = start(settings.clone());
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    let call = |number| to_stp(11, 1, &udt(&title(number, 6), &title("43699", 8), b""));
    one.send(&call("43881"));
    two.expect(MessageType::Data);
    std::fs::write(&file, "digits,group,subsystem\n4377,hlr,6\n4379,hlr,6\n").unwrap();
    assert_eq!(stp.reread(), Ok(true));
    until("the tables are in use", || {
        metric(&stp, "signalbox_stp_translations{set=\"e164\"}") == 5.0
    });
    one.send(&call("43771"));
    two.expect(MessageType::Data);
    one.send(&call("43881"));
    assert_eq!(
        parsed(&one.expect(MessageType::Data)).return_cause(),
        Some(ReturnCause::NO_TRANSLATION_FOR_ADDRESS)
    );
    for (text, place) in [
        ("digits,group\n1,hlr\n2,vlr\n", ":3: names no group"),
        ("digits,group\n1\n", ":2: has 1 columns"),
        ("digits,colour\n1,red\n", ":1: column `colour`"),
        ("digits,group,nature\n1,hlr,300\n", ":2: nature: `300`"),
        ("digits,group\n1,hlr\n1,hlr\n", "twice"),
    ] {
        std::fs::write(&file, text).unwrap();
        let refused = stp.reread().unwrap_err();
        assert!(refused.contains(place), "{refused}");
        let mut faults = settings::Faults::default();
        stp::check_files(&settings, &mut faults);
        assert!(!faults.is_empty(), "{text}");
    }
    one.send(&call("43771"));
    two.expect(MessageType::Data);
}

#[test]
fn screening_rules_decide_in_order() {
    let rule = |name: &str, action| Rule {
        name: name.to_owned(),
        action,
        ..Rule::default()
    };
    let party = |digits: &str| {
        Some(Party {
            digits: vec![digits.to_owned()],
            ..Party::default()
        })
    };
    let mut settings = translating();
    settings.application_servers[0].screening = Some("list".to_owned());
    settings.screening = vec![ScreeningList {
        name: "list".to_owned(),
        otherwise: Action::Block,
        rules: vec![
            Rule {
                calling: party("4399"),
                ..rule("own-numbers", Action::Return)
            },
            Rule {
                called: Some(Party {
                    subsystems: vec![147],
                    ..Party::default()
                }),
                ..rule("cap", Action::Block)
            },
            Rule {
                service_indicators: vec![3],
                opc: vec!["0/3".to_owned()],
                ..rule("sccp", Action::Allow)
            },
        ],
    }];
    let stp = start(settings.clone());
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    let sccp = |opc, dpc, octets: &[u8]| msu(11, opc, dpc, 0, ServiceIndicator::SCCP, octets);
    let plain = udt(&title("43660", 6), &title("43699", 8), b"x");
    one.send(&sccp(1, 2, &udt(&title("43660", 6), &title("439901", 8), b"x")));
    assert_eq!(
        parsed(&one.expect(MessageType::Data)).return_cause(),
        Some(ReturnCause::UNQUALIFIED)
    );
    one.send(&sccp(1, 2, &udt(&title("43660", 147), &title("43699", 8), b"x")));
    one.send(&sccp(9, 2, &plain));
    one.send(&crate::support::isup(11, 1, 2, 0, b"x"));
    one.send(&sccp(1, 2, &plain));
    assert_eq!(data(&two.expect(MessageType::Data)).user_data, plain);
    assert_eq!(two.settle(), Vec::<Vec<u8>>::new());
    let decisions = |rule: &str| {
        let name = format!("signalbox_stp_screening_decisions_total{{list=\"list\",rule=\"{rule}\"}}");
        metric(&stp, &name)
    };
    assert_eq!(
        ["own-numbers", "cap", "sccp", "otherwise"].map(decisions),
        [1.0, 1.0, 1.0, 2.0]
    );
    // Beside the traffic.
    settings.screening[0].otherwise = Action::Allow;
    stp.reload(&settings).unwrap();
    one.send(&crate::support::isup(11, 1, 2, 0, b"x"));
    assert_eq!(data(&two.expect(MessageType::Data)).user_data, b"x");
}

/// What `signalbox stp why` shows of an MSU.
pub(crate) fn why(stp: &stp::Running, octets: &[u8]) -> serde_json::Value {
    why_from(stp, "", octets)
}

/// With a name in front.
pub(crate) fn why_from(stp: &stp::Running, from: &str, octets: &[u8]) -> serde_json::Value {
    let hex: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let path = format!("/stp/why/{from}{hex}");
    let page = testpeer::page(stp.handle().routes(), &path);
    let (status, body) = tokio::task::LocalSet::new().block_on(&runtime, page);
    assert_eq!(status, 200);
    serde_json::from_str(&body).unwrap()
}

#[test]
fn why_explains_with_the_code_that_decides() {
    let stp = start(translating());
    let at = stp.addresses()[0];
    let mut one = Asp::active(at, 11, 11);
    let call = to_stp(11, 1, &udt(&title("436601", 6), &title("43699", 8), b"x"));
    let explained = why(&stp, &call);
    assert_eq!(
        (explained["outcome"].as_str(), explained["cause"].as_str()),
        (Some("returned"), Some("unreachable"))
    );
    let mut two = Asp::active(at, 12, 12);
    let explained = why(&stp, &call);
    assert_eq!(
        (explained["outcome"].as_str(), explained["by"].as_str()),
        (Some("sent"), Some("two"))
    );
    let steps = explained["steps"].to_string();
    for part in [
        "ingress: `one`",
        "set `e164`, 5 digits decided",
        "leads to 0-0-2",
        "link `b`",
    ] {
        assert!(steps.contains(part), "{part} is missing: {steps}");
    }
    // What it shows is what is sent, and it has sent nothing itself.
    one.send(&call);
    let sent: String = two
        .expect(MessageType::Data)
        .iter()
        .map(|octet| format!("{octet:02x}"))
        .collect();
    assert_eq!(explained["sent"].as_str(), Some(sent.as_str()));
    assert_eq!(
        metric(&stp, "signalbox_stp_translated_messages_total{set=\"e164\"}"),
        1.0
    );
    assert!(why(&stp, &[1, 2, 3])["error"].is_string());
    // What a link refuses is not explained as if it were sent.
    let foreign = to_stp(77, 1, &udt(&title("436601", 6), &title("43699", 8), b"x"));
    assert_eq!(why(&stp, &foreign)["outcome"], "refused");
    for (octets, part) in [
        (plain(MessageType::Aspup), "ASPUP"),
        (call[..call.len() - 4].to_vec(), "not M3UA"),
    ] {
        let error = why(&stp, &octets)["error"].to_string();
        assert!(error.contains(part), "{error}");
    }
}
