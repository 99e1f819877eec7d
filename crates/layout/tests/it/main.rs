//! What the sources of all crates keep to (ARCHITECTURE.md).

mod budgets;
mod dependencies;
mod pages;
mod picture;
mod tables;
mod workspace;

use std::collections::BTreeSet;

use layout::Rooms;
use workspace::Workspace;

/// Crates that name no runtime, no socket and no TLS, in the whole of their trees.
const PURE: &[&str] = &[
    "bindings",
    "bounded",
    "diameter-proto",
    "discovery",
    "mediation",
    "model",
    "numbers",
    "overload",
    "pcc",
    "policy",
    "records",
    "registry",
    "routing",
    "http2",
    "sbi-proto",
    "settings",
    "ss7-proto",
];

/// What a pure crate must not have below it.
const RUNTIMES: &[&str] = &[
    "async-std",
    "axum",
    "h2",
    "hickory-resolver",
    "hyper",
    "mio",
    "native-tls",
    "openssl",
    "rustls",
    "smol",
    "socket2",
    "tokio",
    "tokio-rustls",
    "tokio-util",
];

/// Circles that still stand. The list may only shrink: a circle outside of it fails the suite, and so does an entry
/// without a circle.
const KNOWN: &[(&str, &str)] = &[];

#[test]
fn no_rooms_of_a_crate_import_one_another() {
    let known: Vec<(&str, BTreeSet<String>)> = KNOWN
        .iter()
        .map(|(name, rooms)| (*name, rooms.split(' ').map(str::to_owned).collect()))
        .collect();
    let mut standing = BTreeSet::new();
    let mut wrong = String::new();
    for member in Workspace::read().members {
        let rooms = Rooms::read(&member.folder.join("src")).unwrap();
        for circle in rooms.circles() {
            let listed =
                |(name, rooms): &(&str, BTreeSet<String>)| *name == member.name && circle.is_subset(rooms);
            match known.iter().position(listed) {
                Some(place) => drop(standing.insert(place)),
                None => {
                    let names: Vec<&str> = circle.iter().map(String::as_str).collect();
                    wrong += &format!("{}: {}\n{}", member.name, names.join(" "), rooms.explain(&circle));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "circles between rooms:\n{wrong}");
    let gone: Vec<_> = (0..KNOWN.len())
        .filter(|place| !standing.contains(place))
        .map(|place| KNOWN[place])
        .collect();
    assert!(
        gone.is_empty(),
        "these circles are gone; remove them from KNOWN: {gone:?}"
    );
}

#[test]
fn pure_crates_have_no_runtime_below_them() {
    let workspace = Workspace::read();
    let mut wrong = Vec::new();
    for name in PURE {
        assert!(
            workspace.members.iter().any(|member| member.name == *name),
            "{name} is not a crate of the workspace"
        );
        let below = workspace.tree(name);
        wrong.extend(
            below
                .iter()
                .filter(|below| RUNTIMES.contains(&below.as_str()))
                .map(|below| format!("{name} -> … -> {below}")),
        );
    }
    assert_eq!(
        wrong, [""; 0],
        "run `cargo tree -e normal -p CRATE -i RUNTIME` to see the way"
    );
}

/// The order is that of the workspace's list of dependencies, which begins with the lowest crate.
#[test]
fn arrows_between_crates_run_downwards() {
    let workspace = Workspace::read();
    let floor = |name: &str| workspace.order.iter().position(|listed| listed == name);
    let mut wrong = Vec::new();
    for member in &workspace.members {
        let own = floor(&member.name).unwrap_or(usize::MAX);
        for dependency in &member.dependencies {
            let Some(below) = floor(dependency) else { continue };
            if below >= own {
                wrong.push(format!("{} -> {dependency}", member.name));
            }
        }
    }
    assert_eq!(
        wrong, [""; 0],
        "a crate depends on one that the root Cargo.toml lists after it"
    );
}
