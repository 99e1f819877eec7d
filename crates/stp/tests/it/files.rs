//! Files of translations as people write them.

use ss7_proto::m3ua::MessageType;
use stp::config::{Entry, NextRouting};

use crate::support::{Asp, start};
use crate::translation::{title, to_stp, translating, udt};

#[test]
fn a_byte_order_mark_is_not_part_of_the_first_column() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("numbers.csv");
    std::fs::write(&file, "\u{feff}digits,group,subsystem\r\n4388,hlr,6\r\n").unwrap();
    let mut settings = translating();
    settings.translation.sets[0].file = Some(file);
    let stp = start(settings);
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    one.send(&to_stp(11, 1, &udt(&title("43881", 6), &title("43699", 8), b"")));
    two.expect(MessageType::Data);
}

#[test]
fn a_first_line_that_misses_columns_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("numbers.csv");
    let mut settings = translating();
    settings.translation.sets[0].file = Some(file.clone());
    for (text, what) in [
        ("group,subsystem\nhlr,6\n", ":1: has no column `digits`"),
        ("# numbers\n\ngroup\n", ":3: has no column `digits`"),
        ("digits,subsystem\n43,6\n", ":1: has no column `group`"),
        ("4388,hlr\n4389,hlr\n", ":1: column `4388`"),
        ("digits;group\n4388;hlr\n", ":1: column `digits;group`"),
        (
            "digits,group,digits\n1,hlr,2\n",
            ":1: column `digits` occurs twice",
        ),
        ("digits,group\n\u{feff}1,hlr\n", ":2: "),
        (
            "digits,group,routing\n1,hlr,title\n2,hlr,subsystem\n",
            ":3: routes by subsystem",
        ),
        (
            "digits,group,routing,subsystem\n1,hlr,subsystem,0\n",
            ":2: routes by subsystem",
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        let mut faults = settings::Faults::default();
        stp::check_files(&settings, &mut faults);
        let faults = faults.into_vec();
        let name = file.display().to_string();
        assert!(
            faults.len() == 1 && faults[0].what.contains(&format!("{name}{what}")),
            "{text:?}: {faults:?}"
        );
    }
}

/// Each mistake with its line, as many as a person mends at once; one that two lines make with both.
#[test]
fn each_mistake_of_a_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("numbers.csv");
    let name = file.display().to_string();
    let mut settings = translating();
    settings.translation.sets[0].file = Some(file.clone());
    let found = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let mut faults = settings::Faults::default();
        stp::check_files(&settings, &mut faults);
        let whats = faults.into_vec().into_iter().map(|fault| fault.what);
        whats.collect::<Vec<String>>()
    };
    let lines = found("digits,group,subsystem\n4388,hlr,six\n# none\n43x,hlr,6\n4389,gone,6\n4390,hlr\n");
    assert_eq!(
        lines,
        [
            format!("{name}:2: subsystem: `six` is not a number from 0 to 255"),
            format!("{name}:4: `43x` is not a number of at most 40 digits (0 to 9, a to f)"),
            format!("{name}:5: names no group: `gone`"),
            format!("{name}:6: has 2 columns; the first line names 3"),
        ]
    );
    assert_eq!(
        found(&format!("digits,group\n{}", "x,hlr\n".repeat(1_000))).len(),
        10
    );
    let twice = found("digits,group\n4388,hlr\n\n4389,hlr\n4388,hlr\n");
    assert_eq!(
        twice,
        [format!("4388 to 4388 occurs twice in a set ({name}:2, {name}:5)")]
    );
    let overlap = found("digits,group\n438810-438819,hlr\n438815-438829,hlr\n");
    assert!(
        overlap.len() == 1 && overlap[0].ends_with(&format!("({name}:2, {name}:3)")),
        "{overlap:?}"
    );
    // One of the two in the settings.
    let twice = found("digits,group\n4388,hlr\n43660,hlr\n");
    assert!(
        twice.len() == 1 && twice[0].ends_with(&format!("({name}:3)")),
        "{twice:?}"
    );
}

/// Q.713 §3.4.1: an address that is routed by subsystem has one.
#[test]
fn an_entry_that_routes_by_subsystem_names_one() {
    for subsystem in [None, Some(0)] {
        let mut settings = translating();
        settings.translation.sets[0].entries.push(Entry {
            digits: "4399".to_owned(),
            group: "hlr".to_owned(),
            routing: NextRouting::Subsystem,
            subsystem,
            ..Entry::default()
        });
        let mut faults = settings::Faults::default();
        settings::Validate::validate(&settings, &mut faults);
        let faults = faults.into_vec();
        assert!(
            faults.len() == 1
                && faults[0].path.contains("translation.sets[0].entries[3]")
                && faults[0].what.contains("routes by subsystem"),
            "{faults:?}"
        );
    }
}
