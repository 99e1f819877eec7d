//! Number portability and the HLRs of numbers, at the wire.

use std::path::Path;

use numbers::{DestinationSet, Key, Kind, Writer};
use ss7_proto::m3ua::MessageType;
use ss7_proto::sccp::{self, Address, AddressBuf, Format, GlobalTitleBuf, ReturnCause};
use ss7_proto::tcap::{self, ComponentType, OperationCode, Transaction, element};
use ss7_proto::{Digits, PointCode};
use stp::config::{CallRelated, Entry, Group, GroupMode, MobileTitle, NextRouting};
use testpeer::tshark::{COMPLAINTS, tshark};

use crate::equipment::aarq;
use crate::judge::capture;
use crate::segments::segment;
use crate::support::{Asp, data, metric, start};
use crate::translation::{member, parsed, title, to_stp, translating, udt, unitdata, written};

/// Numbers in ascending order: kind, digits, what is said of them.
pub(crate) fn write(path: &Path, entries: &[(Kind, &str, &str)]) {
    let mut writer = Writer::create(path).unwrap();
    for (kind, digits, set) in entries {
        let set = writer.intern(&DestinationSet::parse(set).unwrap()).unwrap();
        let key = Key::new(*kind, digits.as_bytes()).unwrap();
        writer.push(key, set).unwrap();
    }
    writer.finish().unwrap();
}

const NUMBERS: &[(Kind, &str, &str)] = &[
    (Kind::Imsi, "232100000000001", "hlr=three"),
    (Kind::Msisdn, "43660123", "hlr=three"),
    (Kind::Msisdn, "43664567", "rn=990,network=23205"),
    (Kind::Msisdn, "43664568", "rn=D01"),
    (Kind::Msisdn, "43665569", "pcrf=pcrf1.example"),
    (Kind::Msisdn, "43665570", "pcrf=pcrf1.example,three"),
    (Kind::Msisdn, "43665571", "peer.example"),
    (Kind::Msisdn, "436761111", "hlr=three"),
    (Kind::Msisdn, "436642222222222", "rn=990,network=23205"),
];

/// As [`translating`], with a file of numbers, for the country 43 and its area 660; `three` has numbers of its own.
pub(crate) fn with_numbers(file: &Path) -> stp::Config {
    let mut config = translating();
    config.translation.groups.push(Group {
        name: "three".to_owned(),
        mode: GroupMode::Solitary,
        members: vec![member(3)],
    });
    config.number_services.file = Some(file.to_owned());
    config.number_services.country_code = "43".to_owned();
    config.number_services.area_code = "660".to_owned();
    config
}

/// What begins with 43 leads to `two`, numbers behind routing numbers to `two` as well.
fn settings(file: &Path) -> stp::Config {
    let mut config = with_numbers(file);
    for digits in ["43", "d01", "990"] {
        config.translation.sets[0].entries.push(Entry {
            digits: digits.to_owned(),
            group: "hlr".to_owned(),
            ..Entry::default()
        });
    }
    config.number_services.own = vec!["43660".to_owned(), "43664".to_owned()];
    config.number_services.own_routing_numbers = vec!["d0".to_owned(), "d02".to_owned()];
    config.number_services.mobile_titles = vec![MobileTitle {
        title: "43660".to_owned(),
        imsi: "23210".to_owned(),
    }];
    config
}

/// A title of a plan and nature.
fn number(plan: u8, nature: u8, digits: &str) -> Vec<u8> {
    written(AddressBuf {
        ssn: Some(6),
        route_on_title: true,
        title: Some(GlobalTitleBuf {
            indicator: 4,
            translation_type: 0,
            numbering_plan: plan,
            nature,
            digits: Digits::parse(digits).unwrap(),
        }),
        ..AddressBuf::default()
    })
}

/// Digits as MAP has them.
fn tbcd(text: &str) -> Vec<u8> {
    let digits = Digits::parse(text).unwrap();
    let mut octets = digits.packed().to_vec();
    if text.len() % 2 == 1 {
        *octets.last_mut().unwrap() |= 0xf0;
    }
    octets
}

/// A Begin that invokes an operation for a number, in a version of the context locationInfoRetrieval.
fn begin(operation: u8, version: u8, msisdn: &str) -> Vec<u8> {
    let mut out = Vec::new();
    element(0x62, &mut out, |out| {
        out.extend([0x48, 4, 0xde, 0xad, 0xbe, 0xef]);
        if version > 1 {
            let dialogue = aarq(&[4, 0, 0, 1, 0, 5, version]);
            element(0x6b, out, |out| out.extend(dialogue));
        }
        element(0x6c, out, |out| {
            element(0xa1, out, |out| {
                out.extend([2, 1, 1, 2, 1, operation]);
                element(0x30, out, |out| {
                    element(0x80, out, |out| {
                        out.push(0x91);
                        out.extend(tbcd(msisdn));
                    });
                    if version == 3 {
                        out.extend([0x83, 1, 0, 0x86, 3, 0x91, 0x34, 0x66]);
                    }
                });
            });
        });
    });
    out
}

fn lookups(stp: &stp::Running, outcome: &str) -> f64 {
    metric(
        stp,
        &format!("signalbox_stp_number_lookups_total{{outcome=\"{outcome}\"}}"),
    )
}

/// What a relayed message names: digits, nature, whether it is routed by title.
fn called(octets: &[u8]) -> (String, Option<u8>, bool) {
    let unitdata = parsed(octets);
    let address = Address::parse(unitdata.called, Format::Itu).unwrap();
    let title = address.title.unwrap();
    (
        title.digits().unwrap().to_string(),
        title.nature,
        address.route_on_title,
    )
}

#[test]
fn own_numbers_lead_to_their_hlr_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("numbers.num");
    write(&file, NUMBERS);
    let stp = start(settings(&file));
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    let mut three = Asp::active(at, 13, 13);
    // International, national, subscriber number; IMSI; mobile global title; ported in.
    for (plan, nature, digits) in [
        (1, 4, "43660123"),
        (1, 4, "43660123f"),
        (1, 3, "660123"),
        (1, 1, "123"),
        (6, 4, "232100000000001"),
        (7, 4, "436600000000001"),
        (1, 4, "436761111"),
        // A destination without a service.
        (1, 4, "43665570"),
    ] {
        let address = number(plan, nature, digits);
        one.send(&to_stp(11, 1, &udt(&address, &title("43699", 8), b"x")));
        let received = three.expect(MessageType::Data);
        assert_eq!(parsed(&received).called, address, "it passes octet for octet");
    }
    // Our routing number led here: the HLR gets the number without it.
    one.send(&to_stp(
        11,
        1,
        &udt(&number(1, 4, "d02436761111"), &title("43699", 8), b"x"),
    ));
    assert_eq!(
        called(&three.expect(MessageType::Data)),
        ("436761111".to_owned(), Some(4), true)
    );
    assert_eq!(lookups(&stp, "home"), 9.0);
    // Not listed, an entry of another service, too short, letters, another subsystem: translation decides.
    let other = title("43660123", 8);
    for address in [
        number(1, 4, "43660999"),
        number(1, 4, "43665569"),
        number(1, 4, "43665571"),
        number(1, 4, "4366"),
        number(1, 4, "43b60123"),
        number(1, 3, "43660123"),
        other,
    ] {
        one.send(&to_stp(11, 1, &udt(&address, &title("43699", 8), b"x")));
        assert_eq!(parsed(&two.expect(MessageType::Data)).called, address);
    }
    assert_eq!(
        (lookups(&stp, "unlisted"), lookups(&stp, "unconditioned")),
        (4.0, 2.0)
    );
    // A number that is not here and came with our routing number would circle.
    for digits in ["d0243664567", "d0243660999"] {
        one.send(&to_stp(11, 1, &udt(&number(1, 4, digits), &sccp_address(), b"x")));
        assert_eq!(
            parsed(&one.expect(MessageType::Data)).return_cause(),
            Some(ReturnCause::NO_TRANSLATION_FOR_ADDRESS)
        );
    }
    assert_eq!(lookups(&stp, "circular"), 2.0);
}

#[test]
fn an_hlr_may_be_routed_by_subsystem_and_a_reload_reads_the_file_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("numbers.num");
    write(&file, NUMBERS);
    let mut settings = settings(&file);
    settings.number_services.routing = NextRouting::Subsystem;
    let stp = start(settings.clone());
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    let mut three = Asp::active(at, 13, 13);
    let call = to_stp(11, 1, &udt(&number(1, 4, "43660123"), &title("43699", 8), b"x"));
    one.send(&call);
    assert_eq!(
        called(&three.expect(MessageType::Data)),
        ("43660123".to_owned(), Some(4), false)
    );
    write(&file, &[(Kind::Msisdn, "43660123", "hlr=hlr")]);
    assert_eq!(stp.reread(), Ok(true));
    crate::support::until("the file is in use", || {
        one.send(&call);
        one.settle();
        metric(&stp, "signalbox_stp_egress_messages_total{hop=\"two\"}") > 0.0
    });
    two.expect(MessageType::Data);
    // Mistakes are named, and the former file stays.
    for (set, what) in [
        ("hlr=nowhere", "names no group"),
        ("rn=xyz", "`rn` has 1 to 10 digits"),
        ("rn=f1", "`rn` has 1 to 10 digits"),
        ("rn=d01,network=1", "5 or 6 digits"),
        ("hlr=hlr,rn=d01", "both"),
    ] {
        write(&file, &[(Kind::Msisdn, "43660123", set)]);
        let refused = stp.reread().unwrap_err();
        assert!(
            refused.contains(what) && refused.contains("numbers.num"),
            "{refused}"
        );
        let mut faults = settings::Faults::default();
        stp::check_files(&settings, &mut faults);
        assert_eq!(faults.into_vec().len(), 1, "{set}");
    }
    std::fs::write(&file, "not a file of numbers").unwrap();
    assert!(stp.reread().is_err());
    one.send(&call);
    two.expect(MessageType::Data);
}

#[test]
fn ported_numbers_are_answered_or_relayed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("numbers.num");
    write(&file, NUMBERS);
    let stp = start(settings(&file));
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    let calling = sccp_address();
    let mut sent = Vec::new();
    // sendRoutingInfo of each version, in UDT and XUDT.
    for (kind, version) in [
        (sccp::MessageType::Udt, 1),
        (sccp::MessageType::Udt, 2),
        (sccp::MessageType::Xudt, 3),
    ] {
        let request = number(1, 4, "43664567");
        one.send(&to_stp(
            11,
            1,
            &unitdata(kind, 9, &request, &calling, &begin(22, version, "43664567")),
        ));
        let received = one.expect(MessageType::Data);
        let answer = parsed(&received);
        assert_eq!(
            (
                answer.message_type,
                answer.called,
                answer.calling,
                answer.returns_on_error()
            ),
            (kind, &calling[..], &request[..], false)
        );
        assert_eq!(data(&received).dpc, PointCode(1));
        let end = Transaction::parse(answer.data).unwrap();
        assert_eq!(end.message_type, tcap::MessageType::End);
        assert_eq!(end.destination.unwrap().octets(), [0xde, 0xad, 0xbe, 0xef]);
        let context = end.context.and_then(|context| context.map());
        assert_eq!(context, (version > 1).then_some((5, version)));
        let result = end.components.clone().next().unwrap().unwrap();
        assert_eq!(
            (result.component_type, result.invoke_id, result.operation),
            (
                ComponentType::ReturnResult,
                Some(1),
                Some(OperationCode::Local(22))
            )
        );
        let parts: Vec<(u32, Vec<u8>)> = result
            .parameter
            .unwrap()
            .elements()
            .map(|part| part.map(|part| (part.tag.0, part.value.to_vec())).unwrap())
            .collect();
        let imsi = tbcd("232050000000000");
        let roaming = [&[0x91][..], &tbcd("99043664567")].concat();
        if version == 3 {
            assert_eq!(parts, [(0x89, imsi), (0x04, roaming), (0x8d, vec![1])]);
        } else {
            assert_eq!(parts, [(0x04, imsi), (0x04, roaming)]);
        }
        sent.push(received);
    }
    // A roaming number has 16 digits at most: the number stands beside the routing number.
    let long = "436642222222222";
    one.send(&to_stp(
        11,
        1,
        &udt(&number(1, 4, long), &calling, &begin(22, 3, long)),
    ));
    let received = one.expect(MessageType::Data);
    let text = parsed(&received).data.to_vec();
    let beside = [&[0x8c, 9, 0x91][..], &tbcd(long)].concat();
    assert!(text.windows(beside.len()).any(|part| part == beside));
    sent.push(received);
    assert_eq!(lookups(&stp, "answered"), 4.0);
    // What is not for us to answer is relayed with the routing number: SRI-SM, version 2 without a network or room, another
    // number in the argument, a part of a message, what cannot be read.
    let segmented = segment(&number(1, 4, "43664567"), &calling, &begin(22, 3, "43664567"));
    let mut unreadable = begin(22, 3, "43664567");
    let external = unreadable.iter().position(|octet| *octet == 0x28).unwrap();
    unreadable[external] = 0x29;
    let request = |digits: &str, text: &[u8]| udt(&number(1, 4, digits), &calling, text);
    for (octets, wanted) in [
        (request("43664567", &begin(45, 3, "43664567")), "99043664567"),
        (request("43664568", &begin(22, 2, "43664568")), "d0143664568"),
        (request(long, &begin(22, 2, long)), "990436642222222222"),
        (request("43664567", &begin(22, 3, "43664568")), "99043664567"),
        (request("43664567", b"\x62\x03\x48\x01"), "99043664567"),
        (segmented, "99043664567"),
        // What a service message returns is not a request; a dialogue that cannot be read is not version 1.
        (
            unitdata(
                sccp::MessageType::Udts,
                0,
                &number(1, 4, "43664567"),
                &calling,
                &begin(22, 3, "43664567"),
            ),
            "99043664567",
        ),
        (request("43664567", &unreadable), "99043664567"),
        (udt(&number(1, 3, "664567"), &calling, b"x"), "99043664567"),
    ] {
        one.send(&to_stp(11, 1, &octets));
        let received = two.expect(MessageType::Data);
        assert_eq!(called(&received), (wanted.to_owned(), Some(4), true));
        sent.push(received);
    }
    assert_eq!(lookups(&stp, "relayed"), 9.0);
    judge(folder.path(), &sent);
}

/// tshark reads the answers without a complaint, and the portability status.
fn judge(folder: &Path, sent: &[Vec<u8>]) {
    let file = folder.join("sent.pcap");
    std::fs::write(&file, capture(sent)).unwrap();
    // What we relay was broken by the test; answers come first.
    let first = |filter: &str| format!("frame.number <= 4 && ({filter})");
    let fields = [
        "-T",
        "fields",
        "-e",
        "gsm_map.ch.numberPortabilityStatus",
        "-e",
        "e212.imsi",
    ];
    let Some(read) = tshark(&fields, &file) else {
        return;
    };
    let lines: Vec<&str> = read.lines().collect();
    assert_eq!(lines[0], "\t232050000000000", "{read}");
    assert_eq!(lines[2], "1\t232050000000000", "{read}");
    let complaints = tshark(&["-Y", &first(COMPLAINTS), "-V"], &file).unwrap();
    assert_eq!(complaints, "");
}

fn sccp_address() -> Vec<u8> {
    written(AddressBuf {
        ssn: Some(8),
        point_code: Some(PointCode(1)),
        ..AddressBuf::default()
    })
}

#[test]
fn call_related_requests_are_relayed_where_the_settings_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("numbers.num");
    write(&file, NUMBERS);
    let mut settings = settings(&file);
    settings.number_services.call_related = CallRelated::Relay;
    let stp = start(settings);
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    let octets = udt(
        &number(1, 4, "43664567"),
        &sccp_address(),
        &begin(22, 3, "43664567"),
    );
    one.send(&to_stp(11, 1, &octets));
    assert_eq!(called(&two.expect(MessageType::Data)).0, "99043664567");
    // Without a route to the other network it returns.
    drop(two);
    crate::support::until("two is unreachable", || {
        metric(&stp, "signalbox_stp_destination_available{destination=\"0-0-2\"}") == 0.0
    });
    one.send(&to_stp(11, 1, &octets));
    let received = one.expect(MessageType::Data);
    let returned = parsed(&received);
    assert_eq!(returned.return_cause(), Some(ReturnCause::MTP_FAILURE));
    // The sender knows the number without the routing number (Q.714 §4.2).
    assert_eq!(returned.calling, number(1, 4, "43664567"));
}

/// Every octet of a request changed, and every length: each message is answered, relayed, returned or dropped, and the peer beside
/// notices nothing.
#[test]
fn no_change_of_a_request_breaks_anything() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("numbers.num");
    write(&file, NUMBERS);
    let stp = start(settings(&file));
    let at = stp.addresses()[0];
    let (mut one, _two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    let request = udt(
        &number(1, 4, "43664567"),
        &sccp_address(),
        &begin(22, 3, "43664567"),
    );
    for place in 0..request.len() {
        for octet in [0, 0xff, 0x80, request[place] ^ 1, request[place].wrapping_add(1)] {
            let mut changed = request.clone();
            changed[place] = octet;
            one.send(&to_stp(11, 1, &changed));
        }
        one.send(&to_stp(11, 1, &request[..place]));
        one.settle();
    }
    let mut three = Asp::active(at, 13, 13);
    let calling = crate::translation::subsystem(8, Some(3));
    let request = udt(&number(1, 4, "43664567"), &calling, &begin(22, 3, "43664567"));
    three.send(&to_stp(13, 3, &request));
    let answer = three.expect(MessageType::Data);
    let end = Transaction::parse(parsed(&answer).data).unwrap();
    assert_eq!(end.message_type, tcap::MessageType::End);
}

#[test]
fn settings_of_numbers_are_checked() {
    let mut settings = translating();
    settings.number_services.country_code = "4a".to_owned();
    settings.number_services.own = vec![String::new()];
    settings.number_services.own_routing_numbers = vec!["f".to_owned()];
    settings.number_services.mobile_titles = vec![MobileTitle {
        title: "43".to_owned(),
        imsi: "2".to_owned(),
    }];
    let mut faults = settings::Faults::default();
    settings::Validate::validate(&settings, &mut faults);
    let paths: Vec<String> = faults.into_vec().into_iter().map(|fault| fault.path).collect();
    assert_eq!(
        paths,
        [
            "numberServices.countryCode",
            "numberServices.own[0]",
            "numberServices.mobileTitles[0].imsi",
            "numberServices.ownRoutingNumbers[0]"
        ]
    );
}
