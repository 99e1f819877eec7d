//! What numbers resolve to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::Period;

/// A template of the records of a number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Profile {
    /// By which numbers and ranges refer to it. `none` is reserved: a number with it does not exist.
    pub name: String,
    /// How long clients may cache the records.
    pub ttl: Period,
    /// The records. One whose parameters a number does not have is left out.
    pub records: Vec<Record>,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            name: String::new(),
            ttl: Period::from_secs(3_600),
            records: Vec::new(),
        }
    }
}

/// A NAPTR record (RFC 3403 §4.1). In `regexp` and `replacement`, `{number}` is the number without `+`, `{NAME}` the parameter
/// of that name which the number has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Record {
    /// Records of a lower order win. Clients differ in what they make of several orders under one number (RFC 5483 §3), so that one
    /// order for all is best.
    pub order: u16,
    /// Among records of one order, lower values are preferred.
    pub preference: u16,
    /// `u`: the result is a URI. Empty: `replacement` is the next name to ask for, which few clients do.
    pub flags: String,
    /// The service: `E2U+sip`, `E2U+pstn:tel` (RFC 6116 §3.4.3).
    pub service: String,
    /// Delimiter, pattern, delimiter, result, delimiter: `!^.*$!sip:+{number}@example.net!`.
    pub regexp: String,
    /// The next name, where flags are empty; otherwise the root.
    pub replacement: String,
}

impl Default for Record {
    fn default() -> Self {
        Self {
            order: 10,
            preference: 10,
            flags: "u".to_owned(),
            service: String::new(),
            regexp: String::new(),
            replacement: ".".to_owned(),
        }
    }
}
