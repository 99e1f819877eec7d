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
    /// rotated out. Empty: the NRF generates a key and keeps it in the directory of the store.
    pub signing_keys: Vec<PathBuf>,
    /// Age at which the NRF rotates a key that it generated itself; the old key verifies until the next rotation. At least
    /// the life of a token; 0: never.
    pub rotate_every: Period,
    /// Life of a token; at most 24 hours.
    pub validity: Period,
    /// Which consumers may get tokens for which producers; the first matching rule decides. No match: allowed.
    pub auth_rules: Vec<AuthRule>,
    /// Whether consumers must be registered to get a token. A token for `nnrf-nfm`, by which an NF registers, is also
    /// granted to those that are not registered yet.
    pub require_registration: bool,
    /// Whether this NRF's own services (management, discovery) require a token. An NF that proves by its certificate
    /// or an assertion which instance it is registers without one.
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

impl AuthRule {
    /// Whether it is about every consumer that wants to register.
    fn covers_registration(&self) -> bool {
        let covers = |list: &[String], name: &str| list.is_empty() || list.iter().any(|one| one == name);
        self.consumers.is_empty() && covers(&self.producers, "NRF") && covers(&self.scopes, "nnrf-nfm")
    }
}

impl Tokens {
    /// The rule by which no consumer gets a token to register with.
    fn locks_out(&self) -> Option<usize> {
        // A rule for some consumers admits the others, or leaves them to a later rule.
        let at = self.auth_rules.iter().position(AuthRule::covers_registration)?;
        let lets_some_in = |rule: &AuthRule| {
            let one_of = |list: &[String], name: &str| list.is_empty() || list.iter().any(|one| one == name);
            !rule.deny && one_of(&rule.producers, "NRF") && one_of(&rule.scopes, "nnrf-nfm")
        };
        let decides = self.auth_rules.get(at).is_some_and(|rule| rule.deny);
        let earlier = self.auth_rules.iter().take(at).any(lets_some_in);
        (self.protect_own_services && decides && !earlier).then_some(at)
    }
}

impl Validate for Tokens {
    fn validate(&self, faults: &mut Faults) {
        let seconds = self.validity.as_secs();
        if !(1..=86_400).contains(&seconds) {
            faults.at("validity").say("is out of range", "1s to 24h");
        }
        if let Some(at) = self.locks_out() {
            faults.at(format!("authRules[{at}]")).say(
                "refuses every NF the token that `protectOwnServices` asks for, so none can register",
                "a rule before it that lets some consumers have `nnrf-nfm` of the NRF",
            );
        }
        if !self.rotate_every.is_zero() && self.rotate_every.as_secs() < seconds {
            let reason = "tokens would outlive the keys that verify them";
            faults.at("rotateEvery").say(reason, "at least `validity`, or 0");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_keep_every_nf_from_registering_are_found() {
        let rule = |consumers: &[&str], producers: &[&str], scopes: &[&str], deny| {
            let list = |names: &[&str]| names.iter().map(ToString::to_string).collect();
            AuthRule {
                consumers: list(consumers),
                producers: list(producers),
                scopes: list(scopes),
                deny,
            }
        };
        let all = || rule(&[], &[], &[], true);
        for (rules, found) in [
            (vec![all()], Some(0)),
            (vec![rule(&[], &["NRF"], &[], true)], Some(0)),
            (vec![rule(&[], &["UDM"], &["nnrf-nfm"], true)], None),
            (vec![rule(&["AF"], &[], &[], true)], None),
            (vec![rule(&["AF"], &[], &[], true), all()], Some(1)),
            (vec![rule(&["AMF"], &[], &[], false), all()], None),
            (vec![rule(&["AMF"], &["UDM"], &[], false), all()], Some(1)),
            (vec![rule(&[], &["NRF"], &["nnrf-nfm"], false), all()], None),
        ] {
            let mut tokens = Tokens {
                auth_rules: rules,
                protect_own_services: true,
                ..Tokens::default()
            };
            assert_eq!(tokens.locks_out(), found, "{tokens:?}");
            tokens.protect_own_services = false;
            assert_eq!(tokens.locks_out(), None);
        }
    }
}
