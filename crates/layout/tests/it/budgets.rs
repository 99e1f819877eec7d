//! Budgets that only fall: how many rooms import one room, how many floors a function has, how many settings a section has.

use std::fs;

use layout::Rooms;

use crate::workspace::{Workspace, root};

/// Network functions: a chain of rooms longer than a person can follow is a pile.
const FUNCTIONS: &[&str] = &[
    "nrf",
    "scp",
    "bsf",
    "pcf",
    "scef",
    "dsr",
    "ipfe",
    "stp",
    "enum-server",
    "sds",
    "dp",
    "console",
];

/// Floors of a function, at most.
const FLOORS: usize = 12;

/// Rooms that import one room, at most.
const IMPORTERS: usize = 15;

/// Functions with more floors, and how many they may have. The list only shrinks, and so do its numbers.
const MORE_FLOORS: &[(&str, usize)] = &[("nrf", 13), ("pcf", 22)];

/// Rooms that more others import, and how many may. The list only shrinks, and so do its numbers.
const MORE_IMPORTERS: &[(&str, &str, usize)] = &[
    ("dsr", "config", 22),
    ("pcf", "activity", 24),
    ("pcf", "association", 42),
    ("pcf", "config", 19),
    ("pcf", "events", 29),
    ("pcf", "worker", 26),
    ("signalbox", "config", 18),
    // What each command ends with.
    ("signalbox", "failure", 20),
];

/// Rows of the reference of settings, without groups, for each section. A row more needs a row less, or a reason in the
/// commit that raises the number.
const SETTINGS: &[(&str, usize)] = &[
    ("log", 4),
    ("admin", 4),
    // A server that takes them: its address, authorities and token, and how many may wait.
    ("alarms", 4),
    ("traces", 8),
    ("changes", 1),
    ("nrf", 286),
    ("scp", 487),
    ("bsf", 265),
    ("pcf", 471),
    ("scef", 216),
    ("dsr", 653),
    ("ipfe", 34),
    ("stp", 152),
    ("enum", 40),
    ("sds", 177),
    ("dp", 27),
    // Users, TLS and the names it goes by.
    ("console", 13),
];

#[test]
fn functions_have_few_floors() {
    let mut wrong = Vec::new();
    for name in FUNCTIONS {
        let floors = rooms_of(name).floors();
        let listed = MORE_FLOORS.iter().find(|(listed, _)| listed == name);
        let most = listed.map_or(FLOORS, |(_, most)| *most);
        if floors > most {
            wrong.push(format!("{name}: {floors} floors, at most {most}"));
        }
        if listed.is_some() && floors <= FLOORS {
            wrong.push(format!("{name} has {floors} floors: remove it from MORE_FLOORS"));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn no_room_is_imported_by_all_others() {
    let mut wrong = Vec::new();
    for member in Workspace::read().members {
        let rooms = rooms_of(&member.name);
        let importers = rooms.importers();
        for (room, count) in &importers {
            let listed = |one: &&(&str, &str, usize)| one.0 == member.name && one.1 == *room;
            let most = MORE_IMPORTERS.iter().find(listed).map_or(IMPORTERS, |one| one.2);
            if *count > most {
                wrong.push(format!(
                    "{}: {room} is imported by {count} rooms, at most {most}",
                    member.name
                ));
            }
        }
        for (_, room, _) in MORE_IMPORTERS.iter().filter(|one| one.0 == member.name) {
            if importers.get(room).is_none_or(|count| *count <= IMPORTERS) {
                wrong.push(format!("{}: remove {room} from MORE_IMPORTERS", member.name));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn sections_of_the_configuration_do_not_grow() {
    let page = fs::read_to_string(root().join("docs/reference/configuration.md")).unwrap();
    let mut wrong = Vec::new();
    for (section, most) in SETTINGS {
        let key = format!("| `{section}.");
        let rows = page
            .lines()
            .filter(|line| line.starts_with(&key) && !line.contains("` | group |"));
        let count = rows.count();
        if count > *most {
            wrong.push(format!("{section}: {count} settings, at most {most}"));
        }
    }
    assert_eq!(wrong, [""; 0], "docs/reference/configuration.md");
}

fn rooms_of(name: &str) -> Rooms {
    Rooms::read(&root().join("crates").join(name).join("src")).unwrap()
}
