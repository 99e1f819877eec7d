//! YAML to typed, validated configuration: every mistake at once, with line and column.
//!
//! The way of a text:
//!
//! 1. [`parse`](Limits): YAML to a tree that knows its places, within bounds (size, depth, aliases), duplicate
//!    keys refused;
//! 2. `schema`: the tree against the schema that `schemars` derives from the type: unknown keys with the
//!    nearest name, wrong types, missing keys, values out of range;
//! 3. serde makes the value;
//! 4. [`Validate`] says what a schema cannot.
//!
//! Whatever is wrong, in whichever step, ends in one [`Report`]. The same types render the [`reference`] page
//! of the book, so that no key can be undocumented. [`to_yaml`] writes a configuration that reads back equal.
//!
//! Call models and rule files are read the same way as configurations.

mod document;
mod emit;
mod faults;
mod formats;
mod node;
mod parse;
mod reference;
pub mod reload;
mod report;
mod schema;
mod types;

use std::path::Path;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use document::{Document, path_key};
pub use emit::{redacted, to_yaml};
pub use faults::{Fault, FaultAt, Faults, Validate};
pub use node::Place;
pub use parse::Limits;
pub use reference::reference;
pub use report::{Finding, Report};
pub use schema::describe::nearest;
pub use types::{ByteSize, FormatError, HostPort, Listen, Percent, Period, Secret, SecretError};

/// Reads a configuration from text. `name` is what messages call it, usually its path.
///
/// # Errors
/// Every mistake in the text, with its place.
pub fn from_str<T: DeserializeOwned + JsonSchema + Validate>(text: &str, name: &str) -> Result<T, Report> {
    from_str_within(text, name, Limits::default())
}

/// Reads a configuration from a file.
///
/// # Errors
/// Every mistake in the file with its place, or that it cannot be read.
pub fn from_file<T: DeserializeOwned + JsonSchema + Validate>(path: &Path) -> Result<T, Report> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| Report::unreadable(&name, &error))?;
    from_str(&text, &name)
}

/// As [`from_str`], with bounds other than the default ones.
///
/// # Errors
/// As [`from_str`].
pub fn from_str_within<T: DeserializeOwned + JsonSchema + Validate>(
    text: &str,
    name: &str,
    limits: Limits,
) -> Result<T, Report> {
    // Editors on some systems begin a file with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let refuse = |findings| Err(Report::new(name, text, findings));
    let finding = |fault: parse::Unreadable| Finding {
        place: fault.place,
        path: String::new(),
        what: fault.what,
        expected: fault.expected,
    };
    let (tree, faults) = match parse::parse(text, limits) {
        Ok(parsed) => parsed,
        Err(fault) => return refuse(vec![finding(fault)]),
    };
    let root = schema_of::<T>();
    let mut check = schema::Check::new(schema::Schema::new(&root));
    check.findings.extend(faults.into_iter().map(finding));
    let value = check.value(&tree, &root, "");
    let mut findings = std::mem::take(&mut check.findings);

    let Some(value) = value else {
        return refuse(findings);
    };
    let found = match serde_path_to_error::deserialize::<_, T>(value) {
        Ok(found) => found,
        Err(error) => {
            // A value with parts left out, because they are at fault, may fail for that alone.
            if findings.is_empty() {
                let path = error.path().to_string();
                let path = if path == "." { String::new() } else { path };
                let path = check.as_written(path);
                let (place, _) = tree.locate(&path);
                findings.push(Finding {
                    place,
                    path,
                    what: error.inner().to_string(),
                    expected: "another value (see the reference)".to_owned(),
                });
            }
            return refuse(findings);
        }
    };
    // Parts that are at fault already were left out, and defaults stand in their place: what those would be
    // blamed for is not the file's mistake.
    let mut faults = Faults::default();
    found.validate(&mut faults);
    let blamed: Vec<String> = findings.iter().map(|finding| finding.path.clone()).collect();
    for mut fault in faults.into_vec() {
        fault.path = check.as_written(fault.path);
        if blamed
            .iter()
            .any(|path| !path.is_empty() && fault.path.starts_with(path.as_str()))
        {
            continue;
        }
        let (place, whole) = tree.locate(&fault.path);
        let what = if whole || fault.path.is_empty() {
            fault.what
        } else {
            format!("{} (the key is not in the file: this is its default)", fault.what)
        };
        findings.push(Finding {
            place,
            path: fault.path,
            what,
            expected: fault.expected,
        });
    }
    if findings.is_empty() {
        Ok(found)
    } else {
        refuse(findings)
    }
}

/// The keys at the top of a document, to recognise its kind; none when it is not a YAML mapping.
#[must_use]
pub fn top_level_keys(text: &str) -> Vec<String> {
    match parse::parse(text, Limits::default()) {
        Ok((tree, _)) => tree.keys().map(str::to_owned).collect(),
        Err(_) => Vec::new(),
    }
}

/// The schema of what is read, as JSON.
#[must_use]
pub fn schema_of<T: JsonSchema + ?Sized>() -> Value {
    SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value()
}
