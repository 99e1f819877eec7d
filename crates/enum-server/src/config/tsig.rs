//! Keys of signed queries.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::Secret;

/// A key that this server shares with clients (RFC 8945).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TsigKey {
    /// The name of the key, the same on both sides, of at most 100 octets.
    pub name: String,
    /// How messages are signed.
    #[serde(default)]
    pub algorithm: Algorithm,
    /// Where the key is, in base64.
    pub secret: Secret,
}

/// How messages are signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// HMAC with SHA-1, for clients that know no other.
    HmacSha1,
    /// HMAC with SHA-256.
    #[default]
    HmacSha256,
    /// HMAC with SHA-384.
    HmacSha384,
    /// HMAC with SHA-512.
    HmacSha512,
}
