//! Dependencies that nothing uses.

use std::fs;
use std::path::Path;

use crate::pages::sources;
use crate::workspace::{Workspace, root};

/// Libraries whose name in sources is another one.
const OTHER_NAMES: &[(&str, &str)] = &[("rustls-webpki", "webpki")];

#[test]
fn the_workspace_lists_no_library_that_no_crate_uses() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let listed = manifest
        .lines()
        .skip_while(|line| *line != "[workspace.dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once(" = "))
        // Our own crates stand there for their order.
        .filter(|(_, what)| !what.starts_with("{ path = "))
        .map(|(name, _)| name);
    let workspace = Workspace::read();
    let mut manifests: Vec<String> = workspace
        .members
        .iter()
        .map(|member| fs::read_to_string(member.folder.join("Cargo.toml")).unwrap())
        .collect();
    // The fuzz targets are a workspace of their own.
    manifests.extend(fs::read_to_string(root().join("fuzz/Cargo.toml")));
    let is_used = |name: &str| {
        let declared = |line: &str| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with('.') || rest.starts_with(" = "))
        };
        manifests.iter().any(|manifest| manifest.lines().any(declared))
    };
    let unused: Vec<&str> = listed.filter(|name| !is_used(name)).collect();
    assert_eq!(unused, [""; 0], "remove them from [workspace.dependencies]");
}

#[test]
fn crates_name_each_library_that_they_declare() {
    let mut wrong = Vec::new();
    for member in Workspace::read().members {
        let text = text_of(&member.folder);
        for name in &member.declared {
            let other = OTHER_NAMES.iter().find(|(listed, _)| listed == name);
            let shown = other.map_or(name.as_str(), |(_, other)| other);
            if !names(&text, &shown.replace('-', "_")) {
                wrong.push(format!("{}: {name}", member.name));
            }
        }
    }
    wrong.sort();
    wrong.dedup();
    assert_eq!(wrong, [""; 0], "declared and never named; remove them");
}

/// All sources of a crate, with its tests and with what they take from other crates by `#[path]`.
fn text_of(folder: &Path) -> String {
    let mut files = Vec::new();
    sources(folder, &mut files);
    let mut text = String::new();
    while let Some(file) = files.pop() {
        let own = fs::read_to_string(&file).unwrap();
        for path in own
            .split("#[path = \"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
        {
            let other = file.parent().unwrap().join(path);
            if other.exists() && !other.canonicalize().unwrap().starts_with(folder) {
                files.push(other);
            }
        }
        text += &own;
    }
    text
}

/// Whether a text has a name as a word.
fn names(text: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let after = text[start + name.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}
