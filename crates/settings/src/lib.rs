//! YAML to typed, validated configuration: every mistake at once, with line and column.
//!
//! The way of a text:
//!
//! 1. [`parse`](Limits): YAML to a tree that knows its places, within bounds (size, depth, aliases), duplicate
//!    keys refused; `environment` replaces `${NAME}`;
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
mod environment;
mod faults;
mod formats;
mod node;
mod parse;
mod reference;
pub mod reload;
mod report;
mod schema;
mod secrets;
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
    read(text, name, limits, false, |_, _| {})
}

/// As [`from_str`], and has `further` judge what only the machine knows that the configuration is for: files, addresses.
/// It judges also when the text has mistakes, by the defaults in their place; what it says of settings that are not in the
/// text is left out. A text without any setting is refused, and names in `listen` are resolved.
///
/// # Errors
/// As [`from_str`].
pub fn from_str_and<T: DeserializeOwned + JsonSchema + Validate>(
    text: &str,
    name: &str,
    further: impl FnOnce(&T, &mut Faults),
) -> Result<T, Report> {
    read(text, name, Limits::default(), true, further)
}

fn read<T: DeserializeOwned + JsonSchema + Validate>(
    text: &str,
    name: &str,
    limits: Limits,
    is_of_machine: bool,
    further: impl FnOnce(&T, &mut Faults),
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
    let parsed = || {
        parse::refuse_binary(text)?;
        let (root, faults) = parse::parse(text, limits)?;
        if is_of_machine {
            parse::refuse_empty(&root, text)?;
        }
        Ok((root, faults))
    };
    let (mut tree, faults) = match parsed() {
        Ok(parsed) => parsed,
        Err(fault) => return refuse(vec![finding(fault)]),
    };
    let root = schema_of::<T>();
    let mut check = schema::Check::new(schema::Schema::new(&root));
    check.findings.extend(faults.into_iter().map(finding));
    check.resolves_names = is_of_machine;
    environment::expand(
        &mut tree,
        "",
        &|name| std::env::var(name).ok(),
        &mut check.findings,
    );
    let value = check.value(&tree, &root, "");
    let mut findings = std::mem::take(&mut check.findings);
    // Parts that are at fault already were left out, and defaults stand in their place: what those would be
    // blamed for is not the file's mistake.
    let mut blamed = std::mem::take(&mut check.left_out);

    let Some(value) = value else {
        return refuse(findings);
    };
    let Some(found) = deserialized::<T>(value, &tree, &check, &mut findings, &mut blamed) else {
        return refuse(findings);
    };
    let (mut faults, mut of_machine) = (Faults::default(), Faults::default());
    found.validate(&mut faults);
    further(&found, &mut of_machine);
    let judged = faults.into_vec().into_iter().map(|fault| (fault, false));
    let judged = judged.chain(of_machine.into_vec().into_iter().map(|fault| (fault, true)));
    for (mut fault, is_of_machine) in judged {
        fault.path = check.as_written(fault.path);
        let (place, whole) = tree.locate(&fault.path);
        let is_default = !whole && !fault.path.is_empty();
        // A key that is misspelt leaves a default, too.
        let is_misspelt = is_default && check.has_unknown_key(&fault.path);
        if is_misspelt || (is_of_machine && is_default) || blamed.iter().any(|path| is_of(&fault.path, path))
        {
            continue;
        }
        let what = match is_default {
            false => fault.what,
            true => format!("{} (the key is not in the file: this is its default)", fault.what),
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

/// Whether a setting is one that was left out, or a part of it.
fn is_of(path: &str, left_out: &str) -> bool {
    path.strip_prefix(left_out)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Keys that are left out in turn, at most, until the rest can be judged.
const MOST_PRUNED: usize = 64;

/// Makes the value. Where parts that are at fault prevent it, the key around them is left out as well, so that the rest is
/// judged all the same.
fn deserialized<T: DeserializeOwned>(
    mut value: Value,
    tree: &node::Node,
    check: &schema::Check<'_>,
    findings: &mut Vec<Finding>,
    blamed: &mut Vec<String>,
) -> Option<T> {
    let has_mistakes = !findings.is_empty();
    for _ in 0..MOST_PRUNED {
        let error = match serde_path_to_error::deserialize::<_, T>(value.clone()) {
            Ok(found) => return Some(found),
            Err(error) => error,
        };
        let path = error.path().to_string();
        let path = if path == "." { String::new() } else { path };
        let written = check.as_written(path.clone());
        // A value with parts left out, because they are at fault, may fail for that alone.
        if !has_mistakes {
            let (place, _) = tree.locate(&written);
            findings.push(Finding {
                place,
                path: written.clone(),
                what: error.inner().to_string(),
                expected: "another value (see the reference)".to_owned(),
            });
        }
        blamed.push(check.as_written(node::prune(&mut value, &path)?));
    }
    None
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
