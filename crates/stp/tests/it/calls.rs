//! Number services of calls at the wire: queries of INAP and CAP, InitialDP for prepaid subscribers, IAMs that pass through.

use std::path::Path;

use numbers::Kind;
use ss7_proto::Digits;
use ss7_proto::cap::operation;
use ss7_proto::isup::{Iam, Number};
use ss7_proto::m3ua::{MessageType, ServiceIndicator};
use ss7_proto::tcap::{self, ComponentType, OperationCode, Transaction, element};
use stp::config::{Entry, Group, GroupMember, GroupMode, NumberForm, Prepaid, Unallocated};
use testpeer::tshark::{COMPLAINTS, tshark};

use crate::interception::iam;
use crate::judge::capture;
use crate::number_services::{with_numbers, write};
use crate::support::{Asp, OWN, data, isup, metric, start, until};
use crate::translation::{member, parsed, subsystem, title, to_stp, translating, udt};

const NUMBERS: &[(Kind, &str, &str)] = &[
    (Kind::Imsi, "232100000000001", "scp=scp"),
    (Kind::Msisdn, "43660123", "hlr=three,scp=scp"),
    (Kind::Msisdn, "43664567", "rn=d99,network=23205"),
    (Kind::Msisdn, "43665570", "pcrf=pcrf1.example"),
    (Kind::Msisdn, "49171234567", "rn=d77"),
];

/// Own numbers begin with 43660; INAP and CAP are at 12 and 146, also by the title 4367099; IAMs of `one` are intercepted; `three`
/// is a service control point.
fn settings(file: &Path) -> stp::Config {
    let mut config = with_numbers(file);
    config.translation.groups.push(Group {
        name: "scp".to_owned(),
        mode: GroupMode::Solitary,
        members: vec![GroupMember {
            subsystem: None,
            ..member(3)
        }],
    });
    config.translation.groups.push(Group {
        name: "self".to_owned(),
        mode: GroupMode::Solitary,
        members: vec![GroupMember {
            subsystem: None,
            ..member(OWN)
        }],
    });
    config.translation.sets[0].entries.push(Entry {
        digits: "4367099".to_owned(),
        group: "self".to_owned(),
        ..Entry::default()
    });
    let services = &mut config.number_services;
    services.own = vec!["43660".to_owned()];
    services.own_routing_numbers = vec!["d0".to_owned()];
    services.calls.subsystems = vec![12, 146];
    services.calls.intercept = vec!["one".to_owned()];
    services.calls.form = NumberForm::National;
    services.calls.national_prefix = "0".to_owned();
    services.calls.international_prefix = "00".to_owned();
    config
}

/// A party's number: plan of E.164.
pub(crate) fn party(nature: u8, digits: &str) -> Vec<u8> {
    let mut out = Vec::new();
    Number {
        nature,
        indicators: 0x90,
        digits: Digits::parse(digits).unwrap(),
    }
    .write(&mut out);
    out
}

/// The argument of InitialDP: service key 100, then parts.
pub(crate) fn argument(parts: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    element(0x30, &mut out, |out| {
        out.extend([0x80, 1, 100]);
        for (tag, value) in parts {
            out.extend_from_slice(tag);
            out.push(u8::try_from(value.len()).unwrap());
            out.extend_from_slice(value);
        }
    });
    out
}

/// A Begin with one Invoke; without octets of an application context it has no dialogue.
pub(crate) fn begin(context: &[u8], operation: u8, argument: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    element(0x62, &mut out, |out| {
        out.extend([0x48, 2, 0xab, 0xcd]);
        if !context.is_empty() {
            element(0x6b, out, |out| out.extend(crate::equipment::aarq(context)));
        }
        element(0x6c, out, |out| {
            element(0xa1, out, |out| {
                out.extend([2, 1, 5, 2, 1, operation]);
                out.extend_from_slice(argument);
            });
        });
    });
    out
}

pub(crate) const CAP_2: &[u8] = &[4, 0, 0, 1, 0, 50, 1];
const CORE_INAP: &[u8] = &[4, 0, 1, 1, 1, 0, 0];

pub(crate) fn calls(stp: &stp::Running, service: &str, outcome: &str) -> f64 {
    let labels = format!("{{service=\"{service}\",outcome=\"{outcome}\"}}");
    metric(stp, &format!("signalbox_stp_calls_total{labels}"))
}

pub(crate) fn stp_with(folder: &Path, change: impl FnOnce(&mut stp::Config)) -> stp::Running {
    let file = folder.join("numbers.num");
    write(&file, NUMBERS);
    let mut settings = settings(&file);
    change(&mut settings);
    start(settings)
}

/// The operation in return and its argument.
pub(crate) fn answered(asp: &mut Asp, octets: &[u8]) -> (u8, Vec<u8>, Vec<u8>) {
    let (inap, ssp) = (subsystem(12, Some(OWN)), subsystem(12, Some(1)));
    asp.send(&to_stp(11, 1, &udt(&inap, &ssp, octets)));
    let received = asp.expect(MessageType::Data);
    let answer = parsed(&received);
    assert_eq!((answer.called, answer.calling), (&ssp[..], &inap[..]));
    let end = Transaction::parse(answer.data).unwrap();
    assert_eq!(
        (end.message_type, end.destination.unwrap().octets()),
        (tcap::MessageType::End, &[0xab, 0xcd][..])
    );
    let invoke = end.components.clone().next().unwrap().unwrap();
    assert_eq!(invoke.component_type, ComponentType::Invoke);
    let Some(OperationCode::Local(operation)) = invoke.operation else {
        panic!("{invoke:?}")
    };
    let argument = invoke
        .parameter
        .map_or(Vec::new(), |parameter| parameter.value.to_vec());
    (u8::try_from(operation).unwrap(), argument, received)
}

/// The number of Connect.
fn routed(argument: &[u8]) -> (u8, u8, String) {
    let [0xa0, _, 4, _, number @ ..] = argument else {
        panic!("{argument:02x?}")
    };
    let number = Number::read(number).unwrap();
    (number.nature, number.indicators, number.digits.to_string())
}

#[test]
fn initial_dp_is_answered_with_the_routing_number() {
    let folder = tempfile::tempdir().unwrap();
    let stp = stp_with(folder.path(), |_| ());
    let mut one = Asp::active(stp.addresses()[0], 11, 11);
    let mut sent = Vec::new();
    // National, international, subscriber, unknown with a prefix; a number of another country keeps its code.
    for (context, nature, dialled, wanted) in [
        (CORE_INAP, 3, "664567", "d99664567"),
        (CAP_2, 4, "43664567f", "d99664567f"),
        (&[], 2, "0664567", "d99664567"),
        (CAP_2, 2, "0043664567", "d99664567"),
        (CAP_2, 4, "49171234567", "d7749171234567"),
    ] {
        let called = party(nature, dialled);
        let request = begin(context, 0, &argument(&[(&[0x82], &called)]));
        let (code, argument, received) = answered(&mut one, &request);
        assert_eq!(code, operation::CONNECT);
        assert_eq!(routed(&argument), (8, 0x90, wanted.to_owned()));
        let end = Transaction::parse(parsed(&received).data).unwrap();
        let echoed = end.context.map(|context| context.octets().to_vec());
        assert_eq!(echoed, (!context.is_empty()).then(|| context.to_vec()));
        sent.push(received);
    }
    // Home; not listed; of another service; too short; another plan; behind a foreign routing number.
    for (nature, dialled) in [
        (4, "43660123"),
        (4, "43660999"),
        (4, "43665570"),
        (3, "66"),
        (2, "664567"),
        (8, "d88664567"),
        (4, ""),
        (4, "4366456743664567436645674366456743664567"),
    ] {
        let called = party(nature, dialled);
        let (code, argument, received) =
            answered(&mut one, &begin(CAP_2, 0, &argument(&[(&[0x82], &called)])));
        assert_eq!((code, argument), (operation::CONTINUE, Vec::new()), "{dialled}");
        sent.push(received);
    }
    // By a title that leads to this STP; the answer comes from it.
    let called = party(3, "664567");
    let (here, ssp) = (title("4367099", 146), subsystem(146, Some(1)));
    let request = begin(CAP_2, 0, &argument(&[(&[0x82], &called)]));
    one.send(&to_stp(11, 1, &udt(&here, &ssp, &request)));
    let received = one.expect(MessageType::Data);
    assert_eq!(parsed(&received).calling, here);
    sent.push(received);
    // Our own routing number: the call goes on without it, or is one that would circle.
    let called = party(8, "d0660123");
    let (code, found, received) = answered(&mut one, &begin(CAP_2, 0, &argument(&[(&[0x82], &called)])));
    assert_eq!(
        (code, routed(&found)),
        (operation::CONNECT, (3, 0x90, "660123".to_owned()))
    );
    sent.push(received);
    let called = party(8, "d0664567");
    let (code, ..) = answered(&mut one, &begin(CAP_2, 0, &argument(&[(&[0x82], &called)])));
    assert_eq!(code, operation::CONTINUE);
    let count = |outcome| calls(&stp, "query", outcome);
    assert_eq!(
        ["routed", "home", "unlisted", "unconditioned", "circular"].map(count),
        [6.0, 2.0, 2.0, 5.0, 1.0]
    );
    judge(folder.path(), &sent, "camel || inap");
}

/// The called party BCD number of CAP.
#[test]
fn numbers_as_mobiles_have_dialled_them_are_looked_up() {
    let folder = tempfile::tempdir().unwrap();
    let stp = stp_with(folder.path(), |_| ());
    let mut one = Asp::active(stp.addresses()[0], 11, 11);
    let mut sent = Vec::new();
    for (dialled, wanted) in [
        (&[0x81, 0x60, 0x46, 0x65, 0xf7][..], operation::CONNECT),
        (&[0x91, 0x34, 0x66, 0x54, 0x76], operation::CONNECT),
        (&[0xa1, 0x66, 0x54, 0x76], operation::CONNECT),
        // Another plan; a short number; digits that are none.
        (&[0x89, 0x60, 0x46, 0x65, 0xf7], operation::CONTINUE),
        (&[0x81, 0x21, 0xf3], operation::CONTINUE),
        (&[0x91, 0x34, 0x66, 0xa4, 0x76], operation::CONTINUE),
        (&[0x91], operation::CONTINUE),
    ] {
        let request = begin(CAP_2, 0, &argument(&[(&[0x9f, 0x38], dialled)]));
        let (code, argument, received) = answered(&mut one, &request);
        assert_eq!(code, wanted, "{dialled:02x?}");
        if code == operation::CONNECT {
            assert_eq!(routed(&argument), (8, 0x10, "d99664567".to_owned()));
        }
        sent.push(received);
    }
    judge(folder.path(), &sent, "camel || inap");
}

/// tshark reads all without a complaint.
pub(crate) fn judge(folder: &Path, sent: &[Vec<u8>], wanted: &str) {
    let file = folder.join("sent.pcap");
    std::fs::write(&file, capture(sent)).unwrap();
    let options = ["-o", "inap.ssn:12,146", "-Y"];
    let Some(complaints) = tshark(&[&options[..], &[COMPLAINTS, "-V"]].concat(), &file) else {
        return;
    };
    assert_eq!(complaints, "");
    let read = tshark(&[&options[..], &[wanted]].concat(), &file).unwrap();
    assert_eq!(read.lines().count(), sent.len(), "{read}");
}

#[test]
fn unallocated_numbers_are_released_where_the_settings_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let stp = stp_with(folder.path(), |config| {
        config.number_services.calls.unallocated = Unallocated::Release;
    });
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    let mut released = Vec::new();
    // Of an own range and not listed; behind our routing number, and not here.
    for (nature, dialled) in [(4, "43660999"), (8, "d0664567"), (8, "d0665570")] {
        let called = party(nature, dialled);
        let (code, cause, _) = answered(&mut one, &begin(CAP_2, 0, &argument(&[(&[0x82], &called)])));
        assert_eq!((code, &cause[..]), (operation::RELEASE_CALL, &[0x83, 0x81][..]));
        // ISUP: REL in the name of the exchange that does not get the IAM, for the circuit.
        one.send(&isup(11, 1, 2, 9, &iam(nature, dialled, &[])));
        let received = one.expect(MessageType::Data);
        let release = data(&received);
        assert_eq!((release.opc.0, release.dpc.0, release.sls), (2, 1, 9));
        assert_eq!(release.user_data, [0x23, 1, 0x0c, 2, 0, 2, 0x83, 0x81]);
        released.push(received);
    }
    // Of other networks it is not ours to say.
    let octets = iam(4, "43676999", &[]);
    one.send(&isup(11, 1, 2, 9, &octets));
    assert_eq!(data(&two.expect(MessageType::Data)).user_data, octets);
    assert_eq!(
        (
            calls(&stp, "query", "released"),
            calls(&stp, "interception", "released")
        ),
        (3.0, 3.0)
    );
    // tshark may take longer than peers may be silent.
    judge(
        folder.path(),
        &released,
        "isup.message_type == 12 && isup.cause_indicator == 1",
    );
}

/// What reached the subsystem is answered by it (Q.773 §4.2.2, TS 29.078 §5.5), and never returned by SCCP.
#[test]
fn what_is_no_query_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let stp = stp_with(folder.path(), |_| ());
    let mut one = Asp::active(stp.addresses()[0], 11, 11);
    let (inap, ssp) = (subsystem(146, Some(OWN)), subsystem(146, Some(1)));
    let called = party(3, "664567");
    let good = argument(&[(&[0x82], &called)]);
    let map = [4, 0, 0, 1, 0, 5, 3];
    let mut nested = vec![0x30, 0x80];
    nested.extend([0xa6, 0x80].repeat(100));
    for (octets, part) in [
        // Without a called number: missingParameter.
        (begin(CAP_2, 0, &argument(&[])), &[0xa3, 6, 2, 1, 5, 2, 1, 7][..]),
        (
            begin(CAP_2, 0, &argument(&[(&[0x82], &[0x83])])),
            &[0xa3, 6, 2, 1, 5, 2, 1, 7],
        ),
        (begin(CAP_2, 0, &[]), &[0xa3, 6, 2, 1, 5, 2, 1, 7]),
        // Another operation; a short message that no rule relays.
        (begin(CAP_2, 16, &good), &[0x81, 1, 1]),
        (begin(CAP_2, 60, &good), &[0x81, 1, 1]),
        // A context of MAP: Abort.
        (begin(&map, 0, &good), &[0xa2, 3, 2, 1, 1]),
        // Nested 100 deep, as a UDT has room for: Reject.
        (begin(CAP_2, 0, &nested), &[0xa4, 5, 5, 0, 0x80, 1, 2]),
        // A dialogue of another STP's making.
        (
            b"\x65\x08\x48\x02\xab\xcd\x49\x02\x01\x02".to_vec(),
            &[0x4a, 1, 1],
        ),
    ] {
        one.send(&to_stp(11, 1, &udt(&inap, &ssp, &octets)));
        let received = one.expect(MessageType::Data);
        let answer = parsed(&received).data;
        let has = answer.windows(part.len()).any(|all| all == part);
        assert!(has, "{answer:02x?} has {part:02x?}");
    }
    assert_eq!(calls(&stp, "query", "refused"), 8.0);
    // Every octet changed, every length: the peer beside notices nothing.
    let request = udt(&inap, &ssp, &begin(CAP_2, 0, &good));
    for place in 0..request.len() {
        for octet in [0, 0xff, 0x80, request[place] ^ 1] {
            let mut changed = request.clone();
            changed[place] = octet;
            one.send(&to_stp(11, 1, &changed));
        }
        one.send(&to_stp(11, 1, &request[..place]));
        one.settle();
    }
    one.send(&to_stp(11, 1, &request));
    one.expect(MessageType::Data);
}

#[test]
fn a_reload_changes_the_services_and_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("numbers.num");
    let stp = stp_with(folder.path(), |_| ());
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    write(&file, &[(Kind::Msisdn, "43664567", "rn=d55")]);
    assert_eq!(stp.reread(), Ok(true));
    let octets = iam(3, "664567", &[]);
    until("the file is in use", || {
        one.send(&isup(11, 1, 2, 7, &octets));
        let received = two.expect(MessageType::Data);
        let called = Iam::parse(data(&received).user_data).unwrap().called().unwrap();
        called.digits.to_string() == "d55664567"
    });
    for (set, what) in [
        ("scp=nowhere", "names no group"),
        ("scp=self", "a point code of this STP"),
    ] {
        write(&file, &[(Kind::Msisdn, "43664567", set)]);
        let settings = settings(&file);
        let mut faults = settings::Faults::default();
        stp::check_files(&settings, &mut faults);
        let faults = faults.into_vec();
        assert!(
            faults.len() == 1 && faults[0].what.contains(what) && faults[0].what.contains("numbers.num"),
            "{faults:?}"
        );
    }
}

#[test]
fn why_names_what_becomes_of_a_call() {
    let folder = tempfile::tempdir().unwrap();
    let stp = stp_with(folder.path(), |_| ());
    let _two = Asp::active(stp.addresses()[0], 12, 12);
    let _one = Asp::active(stp.addresses()[0], 11, 11);
    let request = begin(CAP_2, 0, &argument(&[(&[0x82], &party(3, "664567"))]));
    let query = udt(&subsystem(146, Some(OWN)), &subsystem(146, Some(1)), &request);
    for (octets, wanted) in [
        (
            isup(11, 1, 2, 7, &iam(3, "664567", &[])),
            "interception: called number d99664567, nature 8",
        ),
        (
            crate::support::msu(11, 1, OWN, 5, ServiceIndicator::SCCP, &query),
            "query: Connect to d99664567, nature 8",
        ),
    ] {
        let page = crate::translation::why(&stp, &octets).to_string();
        assert!(page.contains(wanted), "{page}");
    }
    assert_eq!(calls(&stp, "query", "routed"), 0.0);
}

#[test]
fn settings_of_calls_are_checked() {
    let mut settings = translating();
    let calls = &mut settings.number_services.calls;
    calls.intercept = vec!["nowhere".to_owned()];
    calls.form = NumberForm::National;
    calls.national_prefix = "a".to_owned();
    calls.subsystems = vec![0, 1];
    calls.routed_nature = 128;
    calls.prepaid = vec![Prepaid {
        group: Some("nowhere".to_owned()),
        ..Prepaid::default()
    }];
    let mut faults = settings::Faults::default();
    settings::Validate::validate(&settings, &mut faults);
    let paths = faults.into_vec().into_iter().map(|fault| fault.path);
    let mut paths: Vec<String> = paths.filter(|path| path.starts_with("numberServices")).collect();
    paths.sort();
    assert_eq!(
        paths,
        [
            "numberServices.calls.form",
            "numberServices.calls.intercept[0]",
            "numberServices.calls.nationalPrefix",
            "numberServices.calls.prepaid[0].group",
            "numberServices.calls.prepaid[0].serviceKeys",
            "numberServices.calls.routedNature",
            "numberServices.calls.subsystems[0]",
            "numberServices.calls.subsystems[1]",
            "numberServices.file",
        ]
    );
}
