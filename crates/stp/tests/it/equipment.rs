//! checkIMEI, answered by the lists of equipment.

use std::path::Path;

use ss7_proto::m3ua::MessageType;
use ss7_proto::sccp::{self, Format, Management, ManagementType};
use ss7_proto::tcap::{self, ComponentType, Transaction, element};
use ss7_proto::{Digits, PointCode};
use testpeer::tshark::{COMPLAINTS, tshark};

use crate::judge::capture;
use crate::support::{Asp, OWN, config, data, metric, start};
use crate::translation::{parsed, subsystem, to_stp, udt, unitdata};

pub(crate) fn settings(file: &Path) -> stp::Config {
    let mut config = config();
    config.equipment = Some(dsr_eir::config::Eir {
        file: Some(file.to_owned()),
        ..dsr_eir::config::Eir::default()
    });
    config
}

/// A Begin with checkIMEI in a version of equipmentMngt.
pub(crate) fn check(version: u8, imei: &str) -> Vec<u8> {
    let digits = Digits::parse(imei).unwrap();
    let mut octets = digits.packed().to_vec();
    if !imei.len().is_multiple_of(2) {
        *octets.last_mut().unwrap() |= 0xf0;
    }
    let put = |out: &mut Vec<u8>| element(4, out, |out| out.extend(&octets));
    let mut out = Vec::new();
    element(0x62, &mut out, |out| {
        out.extend([0x48, 2, 0xab, 0xcd]);
        if version > 1 {
            let dialogue = aarq(&[4, 0, 0, 1, 0, 13, version]);
            element(0x6b, out, |out| out.extend(dialogue));
        }
        element(0x6c, out, |out| {
            element(0xa1, out, |out| {
                out.extend([2, 1, 5, 2, 1, 43]);
                if version < 3 {
                    put(out);
                } else {
                    element(0x30, out, |out| {
                        put(out);
                        out.extend([3, 2, 6, 0x80]);
                    });
                }
            });
        });
    });
    out
}

#[test]
fn check_imei_is_answered_by_the_lists_of_the_diameter_register() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("equipment.csv");
    std::fs::write(
        &file,
        "white,35209900,35209999\nblack,35209900176148\ngrey,35209900176149\n",
    )
    .unwrap();
    let stp = start(settings(&file));
    let mut one = Asp::active(stp.addresses()[0], 11, 11);
    let (eir, msc) = (subsystem(9, Some(OWN)), subsystem(8, Some(1)));
    let mut sent = Vec::new();
    for (kind, version, imei, status) in [
        (sccp::MessageType::Udt, 1, "352099001761481", Ok(1)),
        (sccp::MessageType::Udt, 2, "3520990017614923", Ok(2)),
        (sccp::MessageType::Xudt, 3, "35209900176140", Ok(0)),
        (sccp::MessageType::Udt, 3, "490154203237518", Err(7)),
        // Reject: the parameter is not an IMEI.
        (sccp::MessageType::Udt, 2, "4901542032375", Ok(2)),
        (sccp::MessageType::Udt, 2, "35209900176a4923", Ok(2)),
    ] {
        one.send(&to_stp(
            11,
            1,
            &unitdata(kind, 9, &eir, &msc, &check(version, imei)),
        ));
        let received = one.expect(MessageType::Data);
        let answer = parsed(&received);
        assert_eq!(
            (answer.message_type, answer.called, answer.calling),
            (kind, &msc[..], &eir[..])
        );
        let end = Transaction::parse(answer.data).unwrap();
        let context = end.context.and_then(|context| context.map());
        assert_eq!(context, (version > 1).then_some((13, version)));
        let component = end.components.clone().next().unwrap().unwrap();
        assert_eq!(component.invoke_id, Some(5));
        let is_imei = imei.len() >= 14 && !imei.contains('a');
        assert_eq!(component.component_type == ComponentType::Reject, !is_imei);
        let found = component.parameter.map(|parameter| {
            let first = parameter.elements().next();
            let inner = first.filter(|_| version == 3).map(Result::unwrap);
            inner.unwrap_or(parameter).value[0]
        });
        assert_eq!(found.ok_or(component.error.unwrap_or(0)), status, "{imei}");
        sent.push(received);
    }
    let count = |status| {
        let name = format!("signalbox_stp_equipment_checks_total{{status=\"{status}\"}}");
        metric(&stp, &name)
    };
    assert_eq!(
        ["white", "black", "grey", "unknown", "unreadable"].map(count),
        [1.0, 1.0, 1.0, 1.0, 2.0]
    );
    // A status test of the subsystem is answered.
    let mut test = Vec::new();
    Management {
        management_type: ManagementType::Sst,
        ssn: 9,
        point_code: PointCode(OWN),
        multiplicity: 0,
        congestion_level: 0,
    }
    .write(Format::Itu, &mut test);
    one.send(&to_stp(
        11,
        1,
        &udt(&subsystem(1, Some(OWN)), &subsystem(1, Some(1)), &test),
    ));
    let received = one.expect(MessageType::Data);
    let allowed = Management::read(parsed(&received).data, Format::Itu).unwrap();
    assert_eq!(
        (data(&received).dpc, allowed.management_type, allowed.ssn),
        (PointCode(1), ManagementType::Ssa, 9)
    );
    // A reload reads the lists again.
    std::fs::write(&file, "grey,35209900,35209999\n").unwrap();
    assert_eq!(stp.reread(), Ok(true));
    crate::support::until("the lists are in use", || {
        one.send(&to_stp(11, 1, &udt(&eir, &msc, &check(2, "352099001761481"))));
        one.expect(MessageType::Data);
        count("grey") > 1.0
    });
    // A file that was not written yet.
    std::fs::write(&file, "").unwrap();
    assert!(stp.reread().unwrap_err().contains("empty"));
    assert!(stp::start(settings(&file)).is_err());
    let mut faults = settings::Faults::default();
    stp::check_files(&settings(&file), &mut faults);
    let faults = faults.into_vec();
    assert!(
        faults.len() == 1 && faults[0].path == "stp.equipment.file" && faults[0].what.contains("is empty"),
        "{faults:?}"
    );
    std::fs::write(&file, "green,35209900\n").unwrap();
    assert!(stp.reread().unwrap_err().contains("equipment.csv"));
    judge(folder.path(), &sent);
}

/// tshark reads status and error, without a complaint.
fn judge(folder: &Path, sent: &[Vec<u8>]) {
    let file = folder.join("sent.pcap");
    std::fs::write(&file, capture(sent)).unwrap();
    let fields = [
        "-T",
        "fields",
        "-e",
        "gsm_map.ms.equipmentStatus",
        "-e",
        "gsm_old.localValue",
    ];
    let Some(read) = tshark(&fields, &file) else {
        return;
    };
    let lines: Vec<&str> = read.lines().collect();
    assert_eq!(lines[..3], ["1\t43", "2\t43", "0\t43"], "{read}");
    assert_eq!(tshark(&["-Y", COMPLAINTS, "-V"], &file).unwrap(), "");
}

#[test]
fn the_changes_of_a_router_are_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let (file, changes) = (folder.path().join("equipment.csv"), folder.path().join("changes"));
    std::fs::write(&file, "white,35209900\n").unwrap();
    let mut settings = settings(&file);
    settings.equipment.as_mut().unwrap().changes = Some(changes.clone());
    let mut faults = settings::Faults::default();
    settings::Validate::validate(&settings, &mut faults);
    let paths: Vec<String> = faults.into_vec().into_iter().map(|fault| fault.path).collect();
    assert_eq!(paths, ["equipment.changes"]);
    stp::check_files(&settings, &mut settings::Faults::default());
    assert!(!changes.exists());
}

/// A Begin: the octets of its dialogue portion, and those of its components.
pub(crate) fn begin(dialogue: &[u8], components: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    element(0x62, &mut out, |out| {
        out.extend([0x48, 2, 0xab, 0xcd]);
        if !dialogue.is_empty() {
            element(0x6b, out, |out| out.extend(dialogue));
        }
        if !components.is_empty() {
            element(0x6c, out, |out| out.extend(components));
        }
    });
    out
}

/// EXTERNAL with an AARQ that names a context.
pub(crate) fn aarq(context: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    element(0x28, &mut out, |out| {
        out.extend([0x06, 7, 0, 0x11, 0x86, 5, 1, 1, 1]);
        element(0xa0, out, |out| {
            element(0x60, out, |out| {
                out.extend([0x80, 2, 7, 0x80]);
                element(0xa1, out, |out| element(0x06, out, |out| out.extend(context)));
            });
        });
    });
    out
}

fn lists(folder: &Path) -> stp::Running {
    let file = folder.join("equipment.csv");
    std::fs::write(&file, "white,35209900,35209999\n").unwrap();
    start(settings(&file))
}

/// Q.773 §4.2.2, §4.2.3, TS 29.002 §17.6.1: what reached the register is answered by it, and never returned by SCCP.
#[test]
fn what_the_register_cannot_serve_is_rejected_or_aborted() {
    let folder = tempfile::tempdir().unwrap();
    let stp = lists(folder.path());
    let mut one = Asp::active(stp.addresses()[0], 11, 11);
    let (eir, msc) = (subsystem(9, Some(OWN)), subsystem(8, Some(1)));
    let (v3, foreign) = (aarq(&[4, 0, 0, 1, 0, 13, 3]), aarq(&[4, 0, 0, 1, 0, 5, 3]));
    let rejected = |problem: [u8; 3]| [&[0xa4, 6, 2, 1, 5][..], &problem].concat();
    let aare = |context: u8, version: u8| [6, 7, 4, 0, 0, 1, 0, context, version, 0xa2, 3, 2, 1, 1].to_vec();
    let (end, abort) = (tcap::MessageType::End, tcap::MessageType::Abort);
    let mut sent = Vec::new();
    for (octets, kind, part) in [
        // Another operation; a global one.
        (
            begin(&v3, &[0xa1, 6, 2, 1, 5, 2, 1, 22]),
            end,
            rejected([0x81, 1, 1]),
        ),
        (
            begin(&[], &[0xa1, 6, 2, 1, 5, 6, 1, 43]),
            end,
            rejected([0x81, 1, 1]),
        ),
        // Without an argument; with an empty one; without the IMEI.
        (
            begin(&[], &[0xa1, 6, 2, 1, 5, 2, 1, 43]),
            end,
            vec![0xa3, 6, 2, 1, 5, 2, 1, 35],
        ),
        (
            begin(&v3, &[0xa1, 8, 2, 1, 5, 2, 1, 43, 0x30, 0]),
            end,
            vec![0xa3, 6, 2, 1, 5, 2, 1, 35],
        ),
        (
            begin(&v3, &[0xa1, 12, 2, 1, 5, 2, 1, 43, 0x30, 4, 3, 2, 6, 0x80]),
            end,
            vec![0xa3, 6, 2, 1, 5, 2, 1, 35],
        ),
        // An argument of another type.
        (
            begin(&[], &[0xa1, 9, 2, 1, 5, 2, 1, 43, 2, 1, 9]),
            end,
            rejected([0x81, 1, 2]),
        ),
        (
            begin(&v3, &[0xa1, 11, 2, 1, 5, 2, 1, 43, 0x30, 3, 2, 1, 9]),
            end,
            rejected([0x81, 1, 2]),
        ),
        // An identifier that is none; octets that are not BER.
        (
            begin(&[], &[0xa1, 7, 2, 2, 1, 0, 2, 1, 43]),
            end,
            vec![0xa4, 5, 5, 0, 0x80, 1, 1],
        ),
        (begin(&[], &[0xa1, 9, 2, 1]), end, vec![0xa4, 5, 5, 0, 0x80, 1, 2]),
        // No component, and two.
        (begin(&v3, &[]), abort, vec![0x64, 3, 0x80, 1, 0]),
        (
            begin(&[], &[0xa1, 6, 2, 1, 5, 2, 1, 43].repeat(2)),
            abort,
            vec![0x67, 4, 0x49, 2, 0xab, 0xcd],
        ),
        // Another context; a version to come; a dialogue that cannot be read is not version 1.
        (begin(&foreign, &[0xa1, 6, 2, 1, 5, 2, 1, 43]), abort, aare(5, 3)),
        (begin(&aarq(&[4, 0, 0, 1, 0, 13, 4]), &[]), abort, aare(13, 3)),
        (
            begin(&[0x28, 0], &[0xa1, 6, 2, 1, 5, 2, 1, 43]),
            abort,
            vec![0x64, 3, 0x80, 1, 1],
        ),
        // A transaction that is not known.
        (
            b"\x65\x08\x48\x02\xab\xcd\x49\x02\x01\x02".to_vec(),
            abort,
            vec![0x4a, 1, 1],
        ),
    ] {
        one.send(&to_stp(11, 1, &udt(&eir, &msc, &octets)));
        let received = one.expect(MessageType::Data);
        let answer = parsed(&received);
        assert_eq!(
            (answer.message_type, answer.called),
            (sccp::MessageType::Udt, &msc[..])
        );
        let message = Transaction::parse(answer.data).unwrap();
        assert_eq!(
            (message.message_type, message.destination.unwrap().octets()),
            (kind, &[0xab, 0xcd][..])
        );
        let has = answer.data.windows(part.len()).any(|all| all == part);
        assert!(has, "{:02x?} has {part:02x?}", answer.data);
        sent.push(received);
    }
    // End, Abort, Unidirectional and what is not TCAP have no answer.
    for octets in [
        &b"\x64\x04\x49\x02\xab\xcd"[..],
        b"\x67\x04\x49\x02\xab\xcd",
        b"\x61\x00",
        b"x",
        b"",
    ] {
        one.send(&to_stp(11, 1, &udt(&eir, &msc, octets)));
        let before = one.settle();
        assert!(
            !before.iter().any(|octets| octets[3] == 1 && octets[2] == 1),
            "{octets:02x?}"
        );
    }
    let file = folder.path().join("refused.pcap");
    std::fs::write(&file, capture(&sent)).unwrap();
    if let Some(complaints) = tshark(&["-Y", "_ws.malformed", "-V"], &file) {
        assert_eq!(complaints, "");
    }
}

/// Q.714 §4: a service message to a subsystem of this STP is neither executed nor answered.
#[test]
fn service_messages_are_not_served() {
    let folder = tempfile::tempdir().unwrap();
    let stp = lists(folder.path());
    let mut one = Asp::active(stp.addresses()[0], 11, 11);
    let mut management = Vec::new();
    Management {
        management_type: ManagementType::Sst,
        ssn: 9,
        point_code: PointCode(OWN),
        multiplicity: 0,
        congestion_level: 0,
    }
    .write(Format::Itu, &mut management);
    let services = [
        sccp::MessageType::Udts,
        sccp::MessageType::Xudts,
        sccp::MessageType::Ludts,
    ];
    for kind in services {
        for (ssn, octets) in [
            (9, check(3, "352099001761481")),
            (1, management.clone()),
            (77, vec![1]),
        ] {
            let (called, calling) = (subsystem(ssn, Some(OWN)), subsystem(ssn, Some(1)));
            one.send(&to_stp(11, 1, &unitdata(kind, 9, &called, &calling, &octets)));
        }
        let before = one.settle();
        assert!(
            !before.iter().any(|octets| octets[3] == 1 && octets[2] == 1),
            "{kind:?}"
        );
    }
}
