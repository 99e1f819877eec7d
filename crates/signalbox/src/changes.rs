//! Whose changes of the configuration file the admin endpoints accept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Secret, Validate};

/// Shortest secret, in octets.
const SHORTEST: usize = 16;

/// Changes of the configuration file over the admin endpoints (`signalbox network`, `signalbox config set`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub(crate) struct Config {
    /// What a client has to know (`Authorization: Bearer`) whose changes of the file are accepted, of 16 octets at least; absent: none
    /// are. It crosses the network as it is: the endpoints belong on loopback or on a network of administration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<Secret>,
}

impl Validate for Config {
    fn validate(&self, _: &mut Faults) {}
}

impl Config {
    /// Whether a client may change the file, by the value of its `Authorization`.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn admit(&self, authorization: Option<&str>) -> Result<(), String> {
        let Some(secret) = &self.secret else {
            return Err(
                "changes.secret is not set: the configuration is changed in its file alone".to_owned(),
            );
        };
        // Each time: a rotated one counts at once.
        let secret = secret
            .read()
            .map_err(|error| format!("changes.secret: {error}"))?;
        if secret.len() < SHORTEST {
            return Err(format!("changes.secret has fewer than {SHORTEST} octets"));
        }
        let shown = authorization.and_then(|value| value.strip_prefix("Bearer "));
        match shown.is_some_and(|shown| is_equal(shown.trim().as_bytes(), secret.as_bytes())) {
            true => Ok(()),
            false => Err("changes need the secret of changes.secret".to_owned()),
        }
    }
}

/// Compares in a time that says nothing of where the texts differ.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    let differs = one
        .iter()
        .zip(other)
        .fold(0, |all, (one, other)| all | (one ^ other));
    one.len() == other.len() && differs == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_knows_the_secret_is_admitted() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        let config = Config {
            secret: Some(Secret::File(file.clone())),
        };
        assert!(
            Config::default()
                .admit(Some("Bearer x"))
                .unwrap_err()
                .contains("not set")
        );
        assert!(
            config
                .admit(Some("Bearer x"))
                .unwrap_err()
                .contains("cannot read")
        );
        std::fs::write(&file, "short\n").unwrap();
        assert!(
            config
                .admit(Some("Bearer short"))
                .unwrap_err()
                .contains("16 octets")
        );
        std::fs::write(&file, "0123456789abcdef\n").unwrap();
        assert_eq!(config.admit(Some("Bearer 0123456789abcdef")), Ok(()));
        for wrong in [
            None,
            Some(""),
            Some("Bearer "),
            Some("Bearer 0123456789abcdeF"),
            Some("0123456789abcdef"),
        ] {
            assert!(config.admit(wrong).is_err(), "{wrong:?}");
        }
    }
}
