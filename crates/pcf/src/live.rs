//! What is derived from settings and changes with them.

use std::sync::Arc;

use bytes::Bytes;
use sbi::oauth::{AssertionAuthorities, Keys};

use crate::config::Config;
use crate::projects::Projects;

/// What is derived from settings.
#[derive(Clone, Debug)]
pub struct Derived {
    /// The policy projects.
    pub(crate) projects: Projects,
    /// Keys that access tokens are verified with.
    pub(crate) keys: Arc<Keys>,
    /// Keys and authorities that verify client credentials assertions.
    pub(crate) authorities: Arc<AssertionAuthorities>,
    /// Key sets as they were fetched last.
    fetched: Arc<Vec<Bytes>>,
}

/// The settings in effect, and what is derived from them.
pub(crate) type Effective = function::live::Effective<Config, Derived>;
/// Holds what is in effect.
pub(crate) type Live = function::live::Live<Config, Derived>;

impl Derived {
    /// What settings ask for; key sets that were fetched stay.
    pub(crate) fn new(config: &Config, before: Option<&Effective>) -> Result<Self, String> {
        let fetched = before.map(|before| before.fetched.clone()).unwrap_or_default();
        let authorities = AssertionAuthorities::read(&config.identity.assertions)
            .map_err(|fault| format!("identity.{fault}"))?;
        Ok(Self {
            projects: Projects::read(&config.policy)?,
            keys: Arc::new(keys(config, &fetched)?),
            authorities: Arc::new(authorities),
            fetched,
        })
    }

    /// The same with projects whose files have changed; none: they have not.
    pub(crate) fn with_changed_projects(before: &Effective) -> Result<Option<Self>, String> {
        let projects = Projects::read(&before.config.policy)?;
        if projects.is_same(&before.projects) {
            return Ok(None);
        }
        Ok(Some(Self {
            projects,
            ..before.derived.clone()
        }))
    }

    /// The same with other key sets that were fetched.
    pub(crate) fn with_fetched(before: &Effective, fetched: Vec<Bytes>) -> Result<Self, String> {
        Ok(Self {
            keys: Arc::new(keys(&before.config, &fetched)?),
            fetched: Arc::new(fetched),
            ..before.derived.clone()
        })
    }

    /// Key sets as they were fetched last.
    pub(crate) fn fetched(&self) -> &[Bytes] {
        &self.fetched
    }
}

fn keys(config: &Config, fetched: &[Bytes]) -> Result<Keys, String> {
    let mut keys = config.tokens.read()?;
    for set in fetched {
        // It was parsed once when it was fetched.
        let _ = keys.add_jwks(set);
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    #[test]
    fn marked_settings_are_those_that_can_change() {
        let marked = settings::reload::keys::<crate::Config>();
        for key in [
            "bsf",
            "clientTls",
            "diameter.timeout",
            "identity",
            "maxBodySize",
            "media",
            "notifications.timeout",
            "overload",
            "policy",
            "tls",
            "tokens",
        ] {
            assert!(marked.iter().any(|marked| marked == key), "{key}");
        }
        for key in ["diameter", "listen", "notifications", "nfInstanceId", "store"] {
            assert!(!marked.iter().any(|marked| marked == key), "{key}");
        }
    }
}
