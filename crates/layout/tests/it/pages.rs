//! The pages: links lead somewhere, and every alarm has its section.

use std::path::{Path, PathBuf};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Every Rust file of a folder and those in it.
pub(crate) fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// Numbers and names of the alarms that a source declares, as constants or in a table of the router; those of its tests are
/// no alarms of an operator.
fn alarms(source: &str) -> Vec<(u32, String)> {
    let source = source.split("\n#[cfg(test)]\n").next().unwrap_or_default();
    let constants = source
        .split("AlarmKind = AlarmKind {")
        .skip(1)
        .filter_map(|body| {
            let value = |key: &str| body.split_once(key)?.1.split_once(",\n").map(|(value, _)| value);
            let number = value("number: ")?.replace('_', "").parse().ok()?;
            Some((number, value("name: \"")?.trim_end_matches('"').to_owned()))
        });
    let table = source.split_once("\nalarms! {\n").map_or("", |(_, table)| table);
    let rows = table.lines().filter_map(|line| {
        // STASIS = 5005 "IPFE Backend in Stasis" Minor: …
        let (number, rest) = line.split_once(" = ")?.1.split_once(" \"")?;
        Some((number.parse().ok()?, rest.split_once('"')?.0.to_owned()))
    });
    constants.chain(rows).collect()
}

#[test]
fn every_alarm_has_its_section() {
    let page = std::fs::read_to_string(docs().join("operations.md")).unwrap();
    let mut files = Vec::new();
    for folder in std::fs::read_dir(docs().join("../crates")).unwrap() {
        let src = folder.unwrap().path().join("src");
        if src.is_dir() && !src.ends_with("telemetry/src") {
            sources(&src, &mut files);
        }
    }
    let declared = files
        .iter()
        .flat_map(|file| alarms(&std::fs::read_to_string(file).unwrap()));
    let declared: Vec<_> = declared.collect();
    assert!(declared.len() >= 19, "{declared:?}");
    for (number, name) in declared {
        let section = format!("<a id=\"alarm-{number}\"></a>\n### {number} {name}\n");
        assert!(page.contains(&section), "docs/operations.md lacks:\n{section}");
        let anchor = format!("<a id=\"alarm-{number}\"></a>");
        assert_eq!(page.matches(&anchor).count(), 1, "several alarms are {number}");
    }
}

/// The anchor that a heading gets: lower case, blanks as hyphens, without punctuation.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    kept.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut pages: Vec<PathBuf> = std::fs::read_dir(docs())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .collect();
    let top = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];
    pages.extend(top.map(|name| docs().join("..").join(name)));
    for page in pages {
        let body = std::fs::read_to_string(&page).unwrap();
        // A link may be broken over two lines.
        let body = body.split_whitespace().collect::<Vec<_>>().join(" ");
        for link in body.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") {
                continue;
            }
            let (file, wanted) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => page.clone(),
                file => page.parent().unwrap().join(file),
            };
            assert!(target.exists(), "{}: {link} leads nowhere", page.display());
            if wanted.is_empty() {
                continue;
            }
            let body = std::fs::read_to_string(&target).unwrap();
            let explicit = body.contains(&format!("<a id=\"{wanted}\">"));
            let mut headings = body.lines().filter(|line| line.starts_with('#')).map(anchor);
            assert!(
                explicit || headings.any(|anchor| anchor == wanted),
                "{}: {link} names no heading",
                page.display()
            );
        }
    }
}

#[test]
fn the_page_of_clauses_is_that_of_the_sources() {
    let page = std::fs::read_to_string(docs().join("reference/compliance.md")).unwrap();
    let made = layout::compliance::page(&docs().join("..")).unwrap();
    assert!(
        page == made,
        "docs/reference/compliance.md is stale: run `make docs` and commit it"
    );
    assert!(page.lines().filter(|line| line.starts_with("| ")).count() > 500);
}
