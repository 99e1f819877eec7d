//! Limits of received content: patches, regular expressions.

use model::pattern;
use sbi::json::patch;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::ByteSize;

/// JSON Patches of profiles and subscriptions (RFC 6902). The result is bounded by `maxProfileSize` and
/// `subscriptions.maxSize`; a patch that asks for more is answered 413.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Patches {
    /// Operations of a patch at most.
    pub max_operations: usize,
    /// Bytes that all operations of a patch together may read, compare and move.
    pub max_work: ByteSize,
}

impl Default for Patches {
    fn default() -> Self {
        Self {
            max_operations: 1_000,
            max_work: ByteSize::mib(16),
        }
    }
}

impl Patches {
    pub(crate) fn limits(&self, size: ByteSize) -> patch::Limits {
        patch::Limits {
            operations: self.max_operations,
            size: size.as_usize(),
            work: self.max_work.as_usize(),
        }
    }
}

/// Regular expressions (`pattern`, `allowedNfDomains`, `addressDomains`) of a profile or a subscription; more are
/// answered 400. Each compiles to 16 KiB at most.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Patterns {
    /// Distinct expressions at most.
    pub max: usize,
    /// Bytes of their compiled programs together.
    pub max_bytes: ByteSize,
}

impl Default for Patterns {
    fn default() -> Self {
        let limits = pattern::Limits::default();
        Self {
            max: limits.patterns,
            max_bytes: ByteSize::mib(1),
        }
    }
}

impl Patterns {
    pub(crate) fn limits(&self) -> pattern::Limits {
        pattern::Limits {
            patterns: self.max,
            bytes: self.max_bytes.as_usize(),
        }
    }
}
