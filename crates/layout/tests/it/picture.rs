//! The picture of ARCHITECTURE.md is that of `cargo metadata`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::{env, fs};

use crate::workspace::{Workspace, root};

/// The floors of the picture, from above, and their crates.
const FLOORS: &[(&str, &str, &str)] = &[
    ("binary", "the binary", "signalbox"),
    (
        "functions",
        "network functions",
        "nrf scp bsf pcf scef dsr ipfe stp enum-server sds dp console",
    ),
    (
        "applications",
        "applications inside the router",
        "dsr-app dsr-rbar dsr-eir dsr-fabr dsr-dsa dsr-pdra dsr-ocdra",
    ),
    (
        "laboratory",
        "laboratory",
        "lab attack workload simulators report loadgen callmodel testpeer free-ports fuzz-support layout",
    ),
    (
        "platform",
        "platform",
        "follow function notifier nrf-client store sbr sbi diameter telemetry observability tls worker",
    ),
    (
        "pure",
        "pure: no runtime in their trees",
        "discovery routing mediation policy pcc records registry bindings numbers dp-proto sbi-proto http2 diameter-proto \
         ss7-proto capture overload bounded settings model",
    ),
];

/// What begins and ends the picture.
const FENCES: (&str, &str) = ("```mermaid\n", "```\n");

/// `UPDATE=1 cargo test -p layout picture` draws it.
#[test]
fn the_picture_shows_the_crates_and_the_arrows_between_their_floors() {
    let page = root().join("ARCHITECTURE.md");
    let text = fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(FENCES.0).unwrap();
    let (shown, after) = rest.split_once(FENCES.1).unwrap();
    let drawn = drawn(&Workspace::read());
    if env::var_os("UPDATE").is_some() {
        fs::write(&page, format!("{before}{}{drawn}{}{after}", FENCES.0, FENCES.1)).unwrap();
        return;
    }
    assert_eq!(shown, drawn, "run: UPDATE=1 cargo test -p layout picture");
}

fn drawn(workspace: &Workspace) -> String {
    let floor_of = |name: &str| {
        let has = |(_, _, crates): &&(&str, &str, &str)| crates.split_whitespace().any(|one| one == name);
        FLOORS.iter().find(has).map(|(floor, ..)| *floor)
    };
    let mut arrows = BTreeSet::new();
    for member in &workspace.members {
        let from = floor_of(&member.name);
        let from = from.unwrap_or_else(|| panic!("{} stands on no floor of the picture", member.name));
        let below = member.dependencies.iter().filter_map(|name| floor_of(name));
        arrows.extend(below.filter(|to| *to != from).map(|to| (from, to)));
    }
    let mut out = "flowchart TD\n".to_owned();
    for (floor, title, crates) in FLOORS {
        let _ = writeln!(out, "  subgraph {floor} [\"{title}\"]");
        let crates: Vec<&str> = crates.split_whitespace().collect();
        for row in crates.chunks(6) {
            let shown: Vec<String> = row.iter().map(|name| node(name)).collect();
            let _ = writeln!(out, "    {}", shown.join("; "));
        }
        out += "  end\n";
    }
    for (from, to) in arrows {
        let _ = writeln!(out, "  {from} --> {to}");
    }
    out
}

/// A crate in the picture; a hyphen would end the name of a node.
fn node(name: &str) -> String {
    let id = name.replace('-', "");
    if id == name {
        id
    } else {
        format!("{id}[\"{name}\"]")
    }
}

#[test]
fn each_crate_has_a_row_that_says_what_it_does() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let table = text.split_once("| crate | what it does |").unwrap().1;
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let first: Vec<&str> = rows.filter_map(|line| line.split('|').nth(1)).collect();
    let named: BTreeSet<&str> = first
        .iter()
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect();
    let workspace = Workspace::read();
    let there: BTreeSet<&str> = workspace
        .members
        .iter()
        .map(|member| member.name.as_str())
        .collect();
    assert_eq!(named, there);
}
