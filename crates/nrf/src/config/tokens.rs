//! Access tokens.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};

/// Access tokens for consumers (TS 29.510 §5.4.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Tokens {
    /// Private keys in PEM (PKCS#8; EC P-256 or RSA); the first signs, the others only verify while they are
    /// rotated out. Empty: a key is made and kept in the store's directory.
    pub signing_keys: Vec<PathBuf>,
    /// Age at which a key that the NRF made itself is followed by another; the old one verifies until then
    /// next. At least the life of a token; 0: never.
    pub rotate_every: Period,
    /// Life of a token; at most 24 hours.
    pub validity: Period,
    /// Who may get tokens for whom; the first rule that fits decides. No rule fits: allowed.
    pub auth_rules: Vec<AuthRule>,
    /// Whether consumers must be registered to get a token.
    pub require_registration: bool,
    /// Whether this NRF's own services (management, discovery) require a token.
    pub protect_own_services: bool,
}

/// One rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct AuthRule {
    /// Consumer NF types; empty: all.
    pub consumers: Vec<String>,
    /// Producer NF types; empty: all.
    pub producers: Vec<String>,
    /// Scopes (service names); empty: all.
    pub scopes: Vec<String>,
    /// Whether such requests are refused.
    pub deny: bool,
}

impl Default for Tokens {
    fn default() -> Self {
        Self {
            signing_keys: Vec::new(),
            rotate_every: Period::from_secs(0),
            validity: Period::from_secs(3_600),
            auth_rules: Vec::new(),
            require_registration: true,
            protect_own_services: false,
        }
    }
}

impl Validate for Tokens {
    fn validate(&self, faults: &mut Faults) {
        let seconds = self.validity.as_secs();
        if !(1..=86_400).contains(&seconds) {
            faults.at("validity").say("is out of range", "1s to 24h");
        }
        if !self.rotate_every.is_zero() && self.rotate_every.as_secs() < seconds {
            let reason = "tokens would outlive the keys that verify them";
            faults.at("rotateEvery").say(reason, "at least `validity`, or 0");
        }
    }
}
