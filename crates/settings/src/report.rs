//! All faults of one text, shown as a compiler shows them.

use std::fmt;

use crate::node::Place;
use crate::secrets;

/// One fault with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where in the text.
    pub place: Place,
    /// Which setting, such as `nrf.listen[0]`; empty when the text as a whole is at fault.
    pub path: String,
    /// What is wrong.
    pub what: String,
    /// What would be right.
    pub expected: String,
}

/// Everything that is wrong with one text. `Display` shows file, line, column, the line itself and what was
/// expected, like a compiler:
///
/// ```text
/// error: unknown key `lsiten`
///  --> signalbox.yaml:2:3
///   |
/// 2 |   lsiten: 127.0.0.1:8010
///   |   ^^^^^^ expected one of the keys of `nrf`; did you mean `listen`?
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    name: String,
    findings: Vec<Finding>,
    /// Text of the lines that the findings point at.
    excerpts: Vec<Option<String>>,
}

/// An excerpt longer than this is cut: a minified line does not help.
const EXCERPT: usize = 200;

impl Report {
    pub(crate) fn new(name: &str, text: &str, mut findings: Vec<Finding>) -> Self {
        let hidden = secrets::hide(text);
        for finding in &mut findings {
            finding.what = hidden.within(&finding.path, &finding.what);
            finding.expected = hidden.within("", &finding.expected);
        }
        let text = hidden.text.as_str();
        findings.sort_by(|a, b| a.place.cmp(&b.place).then_with(|| a.path.cmp(&b.path)));
        findings.dedup();
        let wanted: std::collections::HashSet<usize> =
            findings.iter().map(|finding| finding.place.line).collect();
        let lines: std::collections::HashMap<usize, &str> = text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
            .filter(|(number, _)| wanted.contains(number))
            .collect();
        let excerpts = findings
            .iter()
            .map(|finding| {
                lines.get(&finding.place.line).map(|line| {
                    line.chars()
                        .take(EXCERPT)
                        .map(|c| if c.is_control() { ' ' } else { c })
                        .collect()
                })
            })
            .collect();
        Self {
            name: name.to_owned(),
            findings,
            excerpts,
        }
    }

    /// A report that a file could not be read at all.
    #[must_use]
    pub fn unreadable(name: &str, error: &std::io::Error) -> Self {
        Self::new(
            name,
            "",
            vec![Finding {
                place: Place {
                    line: 1,
                    column: 1,
                    width: 1,
                },
                path: String::new(),
                what: format!("cannot read the file: {error}"),
                expected: "a readable file".to_owned(),
            }],
        )
    }

    /// The file (or other source) that is at fault.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All faults on one line, for logs.
    #[must_use]
    pub fn brief(&self) -> String {
        let words = |finding: &Finding| {
            let Finding {
                place,
                path,
                what,
                expected,
            } = finding;
            let path = if path.is_empty() {
                String::new()
            } else {
                format!("{path}: ")
            };
            format!(
                "{}:{}:{}: {path}{what} (expected {expected})",
                self.name, place.line, place.column
            )
        };
        let all: Vec<String> = self.findings.iter().map(words).collect();
        all.join("; ")
    }

    /// Adds faults that were found elsewhere: in files that the text names, each at the place of the setting.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let (mut findings, mut excerpts) = (self.findings, self.excerpts);
        findings.extend(other.findings);
        excerpts.extend(other.excerpts);
        Self {
            name: self.name,
            findings,
            excerpts,
        }
    }

    /// The faults in the order of the text; at least one.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (finding, excerpt) in self.findings.iter().zip(&self.excerpts) {
            let Finding {
                place,
                path,
                what,
                expected,
            } = finding;
            match path.is_empty() {
                true => writeln!(f, "error: {what}")?,
                false => writeln!(f, "error: {path}: {what}")?,
            }
            let number = place.line.to_string();
            let gutter = " ".repeat(number.len());
            writeln!(f, "{gutter}--> {}:{}:{}", self.name, place.line, place.column)?;
            match excerpt {
                Some(line) if !line.trim().is_empty() => {
                    let room = line.chars().count();
                    let before = place.column.saturating_sub(1).min(room);
                    let carets = place.width.min(room - before).max(1);
                    writeln!(f, "{gutter} |")?;
                    writeln!(f, "{number} | {line}")?;
                    writeln!(
                        f,
                        "{gutter} | {}{} expected {expected}",
                        " ".repeat(before),
                        "^".repeat(carets)
                    )?;
                }
                _ => writeln!(f, "{gutter} = expected {expected}")?,
            }
            writeln!(f)?;
        }
        match self.findings.len() {
            1 => write!(f, "{}: 1 mistake", self.name),
            several => write!(f, "{}: {several} mistakes", self.name),
        }
    }
}

impl std::error::Error for Report {}
