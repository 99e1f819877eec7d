//! checkIMEI, answered by the lists of equipment.

use std::path::Path;

use ss7_proto::m3ua::MessageType;
use ss7_proto::sccp::{self, Format, Management, ManagementType, ReturnCause};
use ss7_proto::tcap::{Transaction, element};
use ss7_proto::{Digits, PointCode};
use testpeer::tshark::{COMPLAINTS, tshark};

use crate::judge::capture;
use crate::support::{Asp, OWN, config, data, metric, start};
use crate::translation::{parsed, subsystem, to_stp, udt, unitdata};

fn settings(file: &Path) -> stp::Config {
    let mut config = config();
    config.equipment = Some(dsr_eir::config::Eir {
        file: Some(file.to_owned()),
        ..dsr_eir::config::Eir::default()
    });
    config
}

/// A Begin with checkIMEI in a version of equipmentMngt.
fn check(version: u8, imei: &str) -> Vec<u8> {
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
            element(0x6b, out, |out| {
                element(0x28, out, |out| {
                    out.extend([0x06, 7, 0, 0x11, 0x86, 5, 1, 1, 1]);
                    element(0xa0, out, |out| {
                        element(0x60, out, |out| {
                            out.extend([0x80, 2, 7, 0x80, 0xa1, 9, 6, 7, 4, 0, 0, 1, 0, 13, version]);
                        });
                    });
                });
            });
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
        (sccp::MessageType::Udt, 2, "4901542032375", Err(36)),
        (sccp::MessageType::Udt, 2, "35209900176a4923", Err(36)),
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
    // What is not checkIMEI returns; a status test of the subsystem is answered.
    one.send(&to_stp(11, 1, &udt(&eir, &msc, b"\x62\x04\x48\x02\xab\xcd")));
    assert_eq!(
        parsed(&one.expect(MessageType::Data)).return_cause(),
        Some(ReturnCause::UNQUALIFIED)
    );
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
    judge(folder.path(), &sent);
    // A reload reads the lists again.
    std::fs::write(&file, "grey,35209900,35209999\n").unwrap();
    assert_eq!(stp.reread(), Ok(true));
    crate::support::until("the lists are in use", || {
        one.send(&to_stp(11, 1, &udt(&eir, &msc, &check(2, "352099001761481"))));
        one.expect(MessageType::Data);
        count("grey") > 1.0
    });
    std::fs::write(&file, "green,35209900\n").unwrap();
    assert!(stp.reread().unwrap_err().contains("equipment.csv"));
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
    let mut settings = settings(Path::new("/nowhere/equipment.csv"));
    settings.equipment.as_mut().unwrap().changes = Some("/nowhere/changes".into());
    let mut faults = settings::Faults::default();
    settings::Validate::validate(&settings, &mut faults);
    let paths: Vec<String> = faults.into_vec().into_iter().map(|fault| fault.path).collect();
    assert_eq!(paths, ["equipment.changes"]);
}
