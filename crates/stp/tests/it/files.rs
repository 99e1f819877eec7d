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
