//! Tables of files in module comments: each file of the folder stands in the table, and nothing else does.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::pages::sources;
use crate::workspace::root;

#[test]
fn tables_of_files_name_the_files_of_their_folder() {
    let (mut files, mut seen, mut wrong) = (Vec::new(), 0, Vec::new());
    sources(&root().join("crates"), &mut files);
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let Some(named) = named(&text) else { continue };
        seen += 1;
        let there = there(&file);
        for name in there.symmetric_difference(&named) {
            let side = if there.contains(name) { "lacks" } else { "invents" };
            wrong.push(format!("{} {side} {name}", file.display()));
        }
    }
    assert!(seen >= 5, "{seen} tables");
    assert_eq!(wrong, [""; 0]);
}

/// What the table of a module comment names in its first column; none without a table of files.
fn named(text: &str) -> Option<BTreeSet<String>> {
    let comment = text.lines().take_while(|line| line.starts_with("//!"));
    let mut rows = comment.skip_while(|line| !line.starts_with("//! | file |"));
    rows.next()?;
    let cells = rows
        .take_while(|line| line.starts_with("//! |"))
        .filter_map(|line| line.split('|').nth(1));
    // Names are between backticks: every second part.
    let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    Some(names.map(str::to_owned).filter(|name| name != "mod").collect())
}

/// The modules beside a file, apart from those of its tests.
fn there(file: &Path) -> BTreeSet<String> {
    let folder = file.parent().unwrap();
    let own = file.file_stem();
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .filter(|path| path.is_dir() || path.extension().is_some_and(|ending| ending == "rs"))
        .filter(|path| path.file_stem() != own)
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .filter(|name| !matches!(name.as_str(), "bin" | "tests" | "main"))
        .collect()
}

#[test]
fn names_are_read_from_the_first_column() {
    let text = "//! Purpose.\n//!\n//! | file | what |\n//! |---|---|\n//! | `mod` (this) | `x` |\n//! | [`a`], `b` | c |\n\nmod a;";
    assert_eq!(
        named(text),
        Some(BTreeSet::from(["a".to_owned(), "b".to_owned()]))
    );
    assert_eq!(named("//! | table | rows |\n"), None);
}
