//! jSS7 (Maven Central: `org.mobicents.protocols.ss7`) as an SMSC and an HLR behind the STP, with M3UA over TCP.

use std::path::Path;
use std::process::{Command, Stdio};

use stp::Config;
use stp::config::{Entry, Group, GroupMember, NextRouting, TranslationSet};

use crate::equipment::settings;
use crate::support::{metric, start};

const ARTIFACTS: [&str; 4] = [
    "org.mobicents.protocols.ss7.map:map-impl:8.0.112",
    "org.mobicents.protocols.ss7.sccp:sccp-impl:8.0.112",
    "org.mobicents.protocols.ss7.m3ua:m3ua-impl:8.0.112",
    "org.mobicents.protocols.sctp:sctp-impl:2.0.16",
];
/// What the stack names and Maven Central lacks: links of hardware, a shell.
const ABSENT: [&str; 2] = ["org.mobicents.protocols.stream", "org.mobicents.commons"];
const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
/// Dialogues of the SMSC.
const COUNT: usize = 200;

/// What the register of the STP says of equipment.
const EQUIPMENT: [(&str, &str); 4] = [
    ("352099001761400", "is whiteListed"),
    ("352099001761481", "is blackListed"),
    ("352099001761499", "is greyListed"),
    // unknownEquipment.
    ("490154203237518", "has error 7"),
];
const REGISTER: &str = "white,35209900,35209999\nblack,35209900176148\ngrey,35209900176149\n";

/// The SMSC has the title 43660111 and subsystem 8, the HLR 43660222 and 6.
fn between_smsc_and_hlr(register: &Path) -> Config {
    let mut config = settings(register);
    let nodes = [("smsc", 1, 8, "43660111"), ("hlr", 2, 6, "43660222")];
    config.translation.groups = nodes
        .map(|(name, code, subsystem, _)| Group {
            name: name.to_owned(),
            members: vec![GroupMember {
                point_code: code.to_string(),
                subsystem: Some(subsystem),
                ..GroupMember::default()
            }],
            ..Group::default()
        })
        .to_vec();
    let entries = nodes.map(|(name, _, subsystem, title)| Entry {
        digits: title.to_owned(),
        group: name.to_owned(),
        routing: NextRouting::Subsystem,
        subsystem: Some(subsystem),
        ..Entry::default()
    });
    config.translation.sets = vec![TranslationSet {
        name: "e164".to_owned(),
        numbering_plan: Some(1),
        entries: entries.to_vec(),
        ..TranslationSet::default()
    }];
    config
}

/// What the peers print, line by line; `None` where they cannot be had.
fn run(stp: &stp::Running) -> Option<Vec<String>> {
    let Some(jars) = testpeer::maven::jars(env!("CARGO_TARGET_TMPDIR"), "jss7", &ARTIFACTS, &ABSENT) else {
        testpeer::skip::missing("a Java compiler, Maven, or jSS7 from Maven Central,");
        return None;
    };
    let at = stp.addresses()[0];
    let [smsc, hlr] = [(); 2].map(|()| free_ports::row(1, 12).unwrap());
    let mut java = Command::new("java");
    java.args(["-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp"])
        .arg(jars.join("*"))
        .arg(format!("-Dlog4j.configuration=file:{DATA}/log4j.properties"))
        .arg(format!("{DATA}/MapPeers.java"))
        .arg(at.ip().to_string())
        .args([at.port(), smsc, hlr].map(|port| port.to_string()))
        .arg(COUNT.to_string())
        .args(EQUIPMENT.map(|(imei, _)| imei))
        .stdin(Stdio::null());
    let output = testpeer::skip::output(&mut java)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    Some(text.lines().map(str::to_owned).collect())
}

/// ASPUP, ASPAC, then a dialogue of MAP for each number: its Begin and its End are both addressed by title, which the STP
/// translates. checkIMEI is answered by the STP itself.
#[test]
fn an_smsc_and_an_hlr_of_jss7_speak_map_through_the_stp() {
    let folder = tempfile::tempdir().unwrap();
    let register = folder.path().join("equipment.csv");
    std::fs::write(&register, REGISTER).unwrap();
    let stp = start(between_smsc_and_hlr(&register));
    let Some(lines) = run(&stp) else { return };
    for at in 0..COUNT {
        let number = format!("{}{:06}", ["43660", "436601"][at % 2], 100_000 + at);
        let tail = &number[number.len() - 9..];
        for line in [
            format!("hlr: {number} for 43660111"),
            format!("smsc: {number} is 232010{tail} at 43660999{}", &tail[7..]),
        ] {
            let found = lines.iter().filter(|printed| **printed == line).count();
            assert_eq!(found, 1, "`{line}` is not there once: {lines:#?}");
        }
    }
    let mut others: Vec<_> = lines[..].iter().filter(|line| !line.contains("43660")).collect();
    others.sort();
    let mut expected: Vec<String> = EQUIPMENT
        .map(|(imei, status)| format!("smsc: {imei} {status}"))
        .to_vec();
    expected.extend(["hlr: active", "smsc: active", "smsc: done"].map(str::to_owned));
    expected.sort();
    assert_eq!(others, expected.iter().collect::<Vec<_>>());
    assert_eq!(
        metric(&stp, "signalbox_stp_translated_messages_total{set=\"e164\"}"),
        2.0 * COUNT as f64
    );
}
