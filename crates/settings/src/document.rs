//! A document that is not read by a schema: its plain meaning, and reports that point into its text.
//!
//! Languages of our own (policy projects) check what they read themselves. They name what is at fault by its path, and
//! the document knows the line.

use serde_json::Value;

use crate::node::{Node, join_key};
use crate::parse::{self, Limits, Unreadable};
use crate::{Fault, Finding, Report};

/// The tree of one YAML or JSON document, with the places of its parts.
#[derive(Debug)]
pub struct Document {
    name: String,
    text: String,
    root: Node,
}

impl Document {
    /// Parses a text. `name` is what reports call it, usually its path.
    ///
    /// # Errors
    /// That the text is not YAML, exceeds a limit or has duplicate keys.
    pub fn parse(text: &str, name: &str, limits: Limits) -> Result<Self, Report> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let finding = |fault: Unreadable| Finding {
            place: fault.place,
            path: String::new(),
            what: fault.what,
            expected: fault.expected,
        };
        match parse::parse(text, limits) {
            Ok((root, faults)) if faults.is_empty() => Ok(Self {
                name: name.to_owned(),
                text: text.to_owned(),
                root,
            }),
            Ok((_, faults)) => Err(Report::new(name, text, faults.into_iter().map(finding).collect())),
            Err(fault) => Err(Report::new(name, text, vec![finding(fault)])),
        }
    }

    /// The plain meaning by the YAML 1.2 core schema.
    #[must_use]
    pub fn to_json(&self) -> Value {
        self.root.to_json()
    }

    /// The document with each scalar as its text: what `mcc: 001` means is for the program to say whose file it is.
    #[must_use]
    pub fn to_texts(&self) -> Value {
        self.root.to_texts()
    }

    /// A report of faults, each at the line of its path.
    #[must_use]
    pub fn report(&self, faults: Vec<Fault>) -> Report {
        let findings = faults.into_iter().map(|fault| Finding {
            place: self.root.locate(&fault.path).0,
            path: fault.path,
            what: fault.what,
            expected: fault.expected,
        });
        Report::new(&self.name, &self.text, findings.collect())
    }
}

/// `path` and one more key, quoted where the key itself has dots or brackets.
#[must_use]
pub fn path_key(path: &str, key: &str) -> String {
    join_key(path, key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_shown_at_its_line() {
        let text = "blocks:\n  - if: true\n    then:\n      - sett: {a: 1}\n";
        let document = Document::parse(text, "p.yaml", Limits::default()).unwrap();
        assert_eq!(document.to_json()["blocks"][0]["if"], true);
        let report = document.report(vec![Fault {
            path: path_key("blocks[0].then[0]", "sett"),
            what: "unknown".to_owned(),
            expected: "`set`".to_owned(),
        }]);
        assert_eq!(report.findings()[0].place.line, 4);
        let numbers = Document::parse("mnc: 01\nsd: '000001'\nno:\n", "p.yaml", Limits::default()).unwrap();
        assert_eq!(
            numbers.to_texts(),
            serde_json::json!({"mnc": "01", "sd": "000001", "no": ""})
        );
        let twice = Document::parse("a: 1\na: 2\n", "p.yaml", Limits::default()).unwrap_err();
        assert_eq!(twice.findings()[0].place.line, 2);
    }
}
