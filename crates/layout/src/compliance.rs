//! Which clauses of specifications the sources cite, and in which of their tests: the page `docs/reference/compliance.md`.
//!
//! A citation is `TS 29.510 §5.2.2.2`, `RFC 6733 §5.3` or `Q.714 §2.4` in a comment, several clauses with commas. One in a test, or in the
//! comment above it, names that test; one in the first comment of a file of tests names the file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Specification, then clause by its numbers.
type Clauses = BTreeMap<String, BTreeMap<Clause, Found>>;

/// A clause, ordered as in a table of contents.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Clause(Vec<(u32, String)>);

#[derive(Debug, Default)]
struct Found {
    /// Crates whose code cites it.
    code: BTreeSet<String>,
    /// Tests that cite it: `crate::test`, or the file.
    tests: BTreeSet<String>,
}

/// The page for the sources below a folder, which has `crates`.
///
/// # Errors
/// When a file cannot be read.
pub fn page(root: &Path) -> io::Result<String> {
    let mut clauses = Clauses::new();
    let crates = root.join("crates");
    let mut folders: Vec<PathBuf> = fs::read_dir(&crates)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    // Not this crate, whose examples of citations are not its own.
    folders.retain(|folder| !folder.ends_with("layout"));
    folders.sort();
    for folder in folders {
        let name = folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        for (part, is_test) in [("src", false), ("tests", true)] {
            let mut files = Vec::new();
            sources(&folder.join(part), &mut files)?;
            for file in files {
                let text = fs::read_to_string(&file)?;
                let place = file.strip_prefix(&folder).unwrap_or(&file).display().to_string();
                let is_test = is_test || place.ends_with("/tests.rs") || place.contains("/tests/");
                read(&text, (&name, &place, is_test), &mut clauses);
            }
        }
    }
    Ok(render(&clauses))
}

/// Adds every Rust file of a folder and of its subfolders; a folder that does not exist has none.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            sources(&path, found)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

/// Reads the citations of a file.
fn read(text: &str, (name, place, is_test): (&str, &str, bool), clauses: &mut Clauses) {
    let mut is_test = is_test;
    // The test that the lines belong to; comments above one wait for its name.
    let (mut test, mut above): (Option<String>, Vec<(String, Clause)>) = (None, Vec::new());
    let mut note = |(specification, clause): (String, Clause), is_test: bool, test: Option<&str>| {
        let found = clauses
            .entry(specification)
            .or_default()
            .entry(clause)
            .or_default();
        match (is_test, test) {
            (false, _) => found.code.insert(name.to_owned()),
            (true, Some(test)) => found.tests.insert(format!("{name}: `{test}`")),
            (true, None) => found.tests.insert(format!("{name}: {place}")),
        };
    };
    for line in text.lines() {
        let line = line.trim();
        is_test |= line == "#[cfg(test)]";
        if let Some(function) = function(line) {
            for citation in above.drain(..) {
                note(citation, is_test, Some(function));
            }
            test = Some(function.to_owned());
        } else if !line.starts_with("//") && !line.starts_with("#[") {
            for citation in above.drain(..) {
                note(citation, is_test, test.as_deref());
            }
        }
        let Some((_, comment)) = line.split_once("//") else {
            continue;
        };
        for citation in citations(comment) {
            match comment.starts_with('/') && is_test {
                true => above.push(citation),
                false => note(citation, is_test, test.as_deref()),
            }
        }
    }
}

/// The name of the function that begins on a line.
fn function(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("fn ")?;
    let is_item = before
        .split_whitespace()
        .all(|word| word.starts_with("pub") || ["async", "const", "unsafe"].contains(&word));
    rest.split(['(', '<']).next().filter(|_| is_item)
}

/// The citations of a comment.
fn citations(comment: &str) -> Vec<(String, Clause)> {
    let (mut found, mut specification) = (Vec::new(), None);
    let trimmed =
        |word: &'_ str| -> String { word.trim_matches(['(', ')', ',', '.', ';', ':', '`']).to_owned() };
    let is_number = |word: &String| word.starts_with(|c: char| c.is_ascii_digit());
    let mut words = comment.split_whitespace().map(trimmed).peekable();
    while let Some(word) = words.next() {
        if let Some(clause) = word.strip_prefix('§') {
            let known = Option::clone(&specification).zip(Clause::parse(clause));
            found.extend(known);
        } else if word == "TS" || word == "RFC" {
            specification = words.next_if(is_number).map(|number| format!("{word} {number}"));
        } else if word
            .strip_prefix("Q.")
            .is_some_and(|rest| is_number(&rest.to_owned()))
        {
            specification = Some(format!("ITU-T {word}"));
        }
    }
    found
}

impl Clause {
    /// `5.2.2.3.2`, `6.1.3c.3`, `A.2`; nothing for what is none.
    fn parse(text: &str) -> Option<Self> {
        let part = |part: &str| {
            let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, letters) = part.split_at(digits);
            // Annexes follow the clauses.
            let number = if number.is_empty() {
                u32::MAX
            } else {
                number.parse().ok()?
            };
            let is_part = !part.is_empty() && letters.chars().all(|c| c.is_ascii_alphabetic());
            is_part.then(|| (number, letters.to_owned()))
        };
        text.split('.').map(part).collect::<Option<_>>().map(Self)
    }
}

impl std::fmt::Display for Clause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, (number, letters)) in self.0.iter().enumerate() {
            let dot = if at == 0 { "" } else { "." };
            match number {
                &u32::MAX => write!(f, "{dot}{letters}")?,
                number => write!(f, "{dot}{number}{letters}")?,
            }
        }
        Ok(())
    }
}

/// Tests that a row names; more are counted.
const SHOWN: usize = 4;

fn render(clauses: &Clauses) -> String {
    let mut page = String::from(HEAD);
    for (specification, found) in clauses {
        let tested = found.values().filter(|one| !one.tests.is_empty()).count();
        let _ = write!(
            page,
            "\n## {specification}\n\nClauses: {}, in tests {tested}.\n\n| clause | tests | code of |\n|---|---|---|\n",
            found.len()
        );
        for (clause, Found { code, tests }) in found {
            let mut shown: Vec<String> = tests.iter().take(SHOWN).cloned().collect();
            if tests.len() > SHOWN {
                shown.push(format!("{} more", tests.len() - SHOWN));
            }
            let code: Vec<&str> = code.iter().map(String::as_str).collect();
            let _ = writeln!(
                page,
                "| {clause} | {} | {} |",
                shown.join("<br>"),
                code.join(", ")
            );
        }
    }
    page
}

const HEAD: &str = "\
<!-- Generated by `make docs` from the comments of the sources. -->
# Clauses of specifications

Which clauses the code follows, and which tests hold it to them: each row is a clause that a comment cites. A test is named by its crate and its
name, or by its file where the whole file is about the clause. A clause without a test is cited by code alone; its behaviour may be tested by a test
that does not name it. What a function does not have stands on its page (`docs/nrf.md` and so on), clause by clause where that matters.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn citations_belong_to_tests_files_and_code() {
        let source = "\
//! Tokens (TS 29.510 §6.3).
/// Answers as RFC 6733 §5.5.4, §6.1 and (TS 33.310 §6.1.3c.3) want it; §x is none.
fn code() {}
#[cfg(test)]
mod tests {
    /// (Q.714 §2.4)
    #[test]
    fn first() {
        // TS 29.510 §6.3.5
    }
}
";
        let mut clauses = Clauses::new();
        read(source, ("nrf", "src/tokens.rs", false), &mut clauses);
        read(
            "//! As TS 29.510 §6.3 says.\n",
            ("nrf", "tests/it/tokens.rs", true),
            &mut clauses,
        );
        let page = render(&clauses);
        for row in [
            "| 6.3 | nrf: tests/it/tokens.rs | nrf |\n| 6.3.5 | nrf: `first` |  |",
            "| 5.5.4 |  | nrf |\n| 6.1 |  | nrf |",
            "| 6.1.3c.3 |  | nrf |",
            "## ITU-T Q.714\n\nClauses: 1, in tests 1.",
            "| 2.4 | nrf: `first` |  |",
        ] {
            assert!(page.contains(row), "{row}\n{page}");
        }
    }
}
