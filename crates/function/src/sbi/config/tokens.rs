//! Access tokens of consumers.

use std::path::PathBuf;

use ::sbi::oauth::Keys;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};

/// Access tokens that consumers send (TS 33.501 §13.4.1, TS 29.500 §6.7.3). The scope is the name of the service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Tokens {
    /// Whether a request without a valid token is refused.
    pub required: bool,
    /// Public keys of the NRFs that issue tokens.
    pub keys: Vec<TokenKey>,
    /// Files with JSON Web Key Sets (RFC 7517), such as an NRF gives at `/oauth2/jwks`.
    pub key_sets: Vec<PathBuf>,
    /// URIs of JSON Web Key Sets, fetched at the start and after each `refresh`
    /// (`http://127.0.0.1:8010/oauth2/jwks`). While one cannot be fetched, its keys stay as they were fetched last.
    pub key_set_uris: Vec<String>,
    /// How often key sets are fetched.
    pub refresh: Period,
    /// NF instance ids of the NRFs whose tokens are accepted; empty: of any whose key is known.
    pub issuers: Vec<String>,
    /// NF sets that this function is in, for tokens that are for a set.
    pub nf_sets: Vec<String>,
    /// Tokens that each worker caches as verified.
    pub remembered: usize,
}

/// Settings of a function that have those of tokens.
pub trait TokenSettings {
    /// Its settings of tokens.
    fn tokens(&self) -> &Tokens;
}

/// A public key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TokenKey {
    /// `kid` of the tokens it verifies.
    pub id: String,
    /// The key in PEM: EC P-256 or RSA.
    pub file: PathBuf,
}

impl Default for Tokens {
    fn default() -> Self {
        Self {
            required: false,
            keys: Vec::new(),
            key_sets: Vec::new(),
            key_set_uris: Vec::new(),
            refresh: Period::from_secs(600),
            issuers: Vec::new(),
            nf_sets: Vec::new(),
            remembered: 10_000,
        }
    }
}

impl Tokens {
    /// The keys of its files.
    ///
    /// # Errors
    /// When a file cannot be read or has no key; says which.
    pub fn read(&self) -> Result<Keys, String> {
        let read =
            |path: &PathBuf| std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
        let mut keys = Keys::new();
        for key in &self.keys {
            keys.add_pem(&key.id, &read(&key.file)?)
                .map_err(|error| format!("{}: {error}", key.file.display()))?;
        }
        for path in &self.key_sets {
            let added = keys.add_jwks(&read(path)?);
            let added = added.map_err(|error| format!("{}: {error}", path.display()))?;
            if added == 0 {
                return Err(format!("{}: no key in it can be used", path.display()));
            }
        }
        Ok(keys)
    }
}

impl Validate for Tokens {
    fn validate(&self, faults: &mut Faults) {
        if self.required && self.keys.is_empty() && self.key_sets.is_empty() && self.key_set_uris.is_empty() {
            faults.at("required").say(
                "is true without a key to verify tokens with",
                "`keys`, `keySets` or `keySetUris`",
            );
        }
        for (index, uri) in self.key_set_uris.iter().enumerate() {
            let usable = uri
                .parse()
                .is_ok_and(|uri| ::sbi::client::Origin::of_uri(&uri).is_ok());
            if !usable {
                faults
                    .at(format!("keySetUris[{index}]"))
                    .say("is not an absolute URI", "http://host:port/oauth2/jwks");
            }
        }
        if self.refresh.is_zero() {
            faults.at("refresh").say("is 0", "some time, such as 10m");
        }
        if self.remembered == 0 {
            faults.at("remembered").say("is 0", "at least 1");
        }
    }
}
