//! Keys of signed queries.

use std::collections::HashMap;
use std::str::FromStr as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::tsig::{self, Key, KeyName};
use settings::Faults;

use crate::config::{Algorithm, TsigKey};

/// Least octets of a key. Shorter ones can be guessed.
const LEAST_OCTETS: usize = 16;

/// Most octets of a name at the wire: 512 octets without EDNS hold the longest question (271), OPT (11), and a signature by HMAC with
/// SHA-512, which has 103 besides its name.
const MOST_NAME_OCTETS: usize = 100;

/// Keys by name and algorithm.
#[derive(Clone, Default)]
pub(crate) struct Keys {
    by_name: HashMap<(KeyName, tsig::Algorithm), Arc<Key>>,
}

impl Keys {
    /// Reads the keys.
    ///
    /// # Errors
    /// Which one cannot be used.
    pub(crate) fn read(keys: &[TsigKey]) -> Result<Self, String> {
        let mut all = Self::default();
        for (index, key) in keys.iter().enumerate() {
            let key = read(key).map_err(|error| format!("tsig[{index}].secret: {error}"))?;
            let name = (key.name().clone(), key.algorithm());
            all.by_name.insert(name, Arc::new(key));
        }
        Ok(all)
    }

    pub(crate) fn store(&self) -> &HashMap<(KeyName, tsig::Algorithm), Arc<Key>> {
        &self.by_name
    }
}

/// Reads one key.
///
/// # Errors
/// What is wrong with it. The key itself is not part of it.
pub(super) fn read(key: &TsigKey) -> Result<Key, String> {
    let name = KeyName::from_str(&key.name).map_err(|error| error.to_string())?;
    let text = key.secret.read().map_err(|error| error.to_string())?;
    let octets = STANDARD
        .decode(text.trim())
        .map_err(|_| "the secret is not base64".to_owned())?;
    if octets.len() < LEAST_OCTETS {
        return Err(format!(
            "the key has {} octets; at least {LEAST_OCTETS} are needed",
            octets.len()
        ));
    }
    Key::new(algorithm(key.algorithm), &octets, name, None, None).map_err(|error| error.to_string())
}

const fn algorithm(algorithm: Algorithm) -> tsig::Algorithm {
    match algorithm {
        Algorithm::HmacSha1 => tsig::Algorithm::Sha1,
        Algorithm::HmacSha256 => tsig::Algorithm::Sha256,
        Algorithm::HmacSha384 => tsig::Algorithm::Sha384,
        Algorithm::HmacSha512 => tsig::Algorithm::Sha512,
    }
}

/// Reports wrong names. Secrets are not read.
pub(super) fn check(keys: &[TsigKey], faults: &mut Faults) {
    for (index, key) in keys.iter().enumerate() {
        let is_possible = KeyName::from_str(&key.name).is_ok_and(|name| name.len() <= MOST_NAME_OCTETS);
        if key.name.is_empty() || !is_possible {
            let what = format!("`{}` cannot name a key", key.name);
            let expected =
                format!("a name such as `client-1.example.net`, of at most {MOST_NAME_OCTETS} octets");
            faults.at(format!("tsig[{index}].name")).say(what, expected);
        }
        let is_twice = |other: &TsigKey| {
            let plain = |name: &str| name.trim_end_matches('.').to_ascii_lowercase();
            plain(&other.name) == plain(&key.name) && other.algorithm == key.algorithm
        };
        if keys.iter().take(index).any(is_twice) {
            let at = format!("tsig[{index}].name");
            faults
                .at(at)
                .say("is that of another key", "one key for each name and algorithm");
        }
    }
}
