//! Secrets are referred to, never written into the configuration.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A secret by the file or the environment variable that holds it: `{file: /run/secrets/db}` or
/// `{env: DB_PASSWORD}`. The value itself never stands in the configuration, so neither can it be shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Secret {
    /// Path of a file whose content, without trailing line ends, is the secret.
    File(PathBuf),
    /// Name of an environment variable that holds the secret.
    Env(String),
}

/// Why a secret cannot be had. The secret itself is not part of it.
#[derive(Debug)]
pub enum SecretError {
    /// The file cannot be read.
    File(PathBuf, std::io::Error),
    /// The environment variable is not set, or is not text.
    Env(String),
    /// There is nothing in the file or variable.
    Empty(Secret),
}

impl std::fmt::Display for SecretError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path, error) => write!(f, "cannot read the secret in {}: {error}", path.display()),
            Self::Env(name) => write!(f, "the environment variable {name} is not set, or is not text"),
            Self::Empty(Secret::File(path)) => write!(f, "the secret in {} is empty", path.display()),
            Self::Empty(Secret::Env(name)) => write!(f, "the environment variable {name} is empty"),
        }
    }
}

impl std::error::Error for SecretError {}

impl Secret {
    /// Reads the secret; files are read each time, so that a rotated secret is found.
    ///
    /// # Errors
    /// When there is none.
    pub fn read(&self) -> Result<String, SecretError> {
        let value = match self {
            Self::File(path) => {
                std::fs::read_to_string(path).map_err(|error| SecretError::File(path.clone(), error))?
            }
            Self::Env(name) => std::env::var(name).map_err(|_| SecretError::Env(name.clone()))?,
        };
        let value = value.trim_end_matches(['\n', '\r']);
        if value.is_empty() {
            return Err(SecretError::Empty(self.clone()));
        }
        Ok(value.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_a_file_loses_its_line_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        std::fs::write(&path, "geheim\n").unwrap();
        assert_eq!(Secret::File(path.clone()).read().unwrap(), "geheim");
        std::fs::write(&path, "\n").unwrap();
        assert!(matches!(Secret::File(path).read(), Err(SecretError::Empty(_))));
        let error = Secret::Env("SIGNALBOX_NO_SUCH_VARIABLE".to_owned())
            .read()
            .unwrap_err();
        assert!(error.to_string().contains("SIGNALBOX_NO_SUCH_VARIABLE"));
    }
}
