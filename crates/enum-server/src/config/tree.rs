//! Trees of names.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::Period;

/// A tree of names, whose apex this server has authority for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Tree {
    /// The name at the top: `e164.arpa`, `3.4.e164.arpa`, `e164enum.net`, or a private one.
    pub apex: String,
    /// The digits that the apex stands for: `43` where it is `3.4.e164.arpa`. Empty: none, numbers begin below the apex.
    pub digits: String,
    /// Servers that have this tree (NS), the primary one first.
    pub name_servers: Vec<String>,
    /// Mailbox of who is responsible, with a dot for the `@` (SOA). Empty: `hostmaster` at the apex.
    pub contact: String,
    /// How long clients may cache SOA and NS.
    pub ttl: Period,
    /// How long clients may cache that a number does not exist (RFC 2308 §5).
    pub negative_ttl: Period,
    /// The service of a number whose destination names its profile in this tree. A destination without a service is that of all.
    pub service: String,
    /// Ranges of numbers that exist without an entry of their own.
    pub ranges: Vec<NumberRange>,
}

impl Default for Tree {
    fn default() -> Self {
        Self {
            apex: String::new(),
            digits: String::new(),
            name_servers: Vec::new(),
            contact: String::new(),
            ttl: Period::from_secs(86_400),
            negative_ttl: Period::from_secs(300),
            service: "enum".to_owned(),
            ranges: Vec::new(),
        }
    }
}

/// Numbers that begin with the same digits. Where several ranges fit, the one with most digits counts, and an entry for the
/// number itself before all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct NumberRange {
    /// What they begin with, in international form without `+`.
    pub digits: String,
    /// The profile of these numbers; `none`: they do not exist.
    pub profile: String,
    /// Least digits of a number. Fewer are an incomplete number: NODATA. 0: as many as `digits`.
    #[schemars(range(max = 15))]
    pub min_digits: usize,
    /// Most digits of a number.
    #[schemars(range(min = 1, max = 15))]
    pub max_digits: usize,
}

impl Default for NumberRange {
    fn default() -> Self {
        Self {
            digits: String::new(),
            profile: String::new(),
            min_digits: 0,
            max_digits: 15,
        }
    }
}
