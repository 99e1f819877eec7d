//! The settings of an equipment identity register.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Validate};

/// Equipment identity register: answers ME-Identity-Check-Requests by its lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Eir {
    /// The lists: one `LIST,IMEI`, `LIST,FIRST,LAST` or `pair,IMEI,IMSI,LIST` per line, where LIST is white, grey or
    /// black, and FIRST and LAST are TACs or more digits of an IMEI. Reloaded when it changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// A file of the router's own, in which it keeps entries that are changed one by one
    /// (`PUT` and `DELETE /dsr/applications/NAME/equipment/IMEI`); they go before the lists. Absent: none can be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<PathBuf>,
    /// Status of equipment that no list has.
    pub on_unlisted: Unlisted,
    /// Status of equipment whose IMEI is in pairs, but not with the IMSI of the request; absent or `unknown`: the other
    /// lists decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_other_subscriber: Option<Unlisted>,
    /// Bound on ranges, of 16 bytes each. One of more than 2^32 IMEIs counts as several.
    pub max_ranges: usize,
    /// Bound on single IMEIs, of 8 bytes each.
    pub max_imeis: usize,
    /// Bound on pairs, of 13 bytes each.
    pub max_pairs: usize,
    /// Bound on IMEIs in `changes`.
    pub max_changes: usize,
}

impl Default for Eir {
    fn default() -> Self {
        Self {
            file: None,
            changes: None,
            on_unlisted: Unlisted::default(),
            on_other_subscriber: None,
            max_ranges: 10_000_000,
            max_imeis: 10_000_000,
            max_pairs: 100_000_000,
            max_changes: 1_000_000,
        }
    }
}

/// What equipment is that is in no list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Unlisted {
    /// DIAMETER_ERROR_EQUIPMENT_UNKNOWN.
    #[default]
    Unknown,
    /// WHITELISTED.
    White,
    /// GREYLISTED.
    Grey,
    /// BLACKLISTED.
    Black,
}

impl Validate for Eir {
    fn validate(&self, faults: &mut Faults) {
        if self.file.is_none() {
            faults
                .at("file")
                .say("is absent", "the path of a file with the lists");
        }
    }
}
