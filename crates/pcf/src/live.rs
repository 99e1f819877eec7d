//! What is derived from settings and changes with them.

use std::sync::Arc;

use function::sbi::{Completion, Destinations, Verification};

use crate::config::Config;
use crate::projects::Projects;
use crate::sources::ldap::Access;
use crate::targets::Targets;

/// What is derived from settings.
#[derive(Clone, Debug)]
pub struct Derived {
    /// What completes answers.
    pub(crate) completion: Completion,
    /// Where the PCF sends because others say so.
    pub(crate) destinations: Arc<Destinations>,
    /// The policy projects.
    pub(crate) projects: Projects,
    /// What verifies the senders of requests.
    pub(crate) verification: Verification,
    /// How the directory of profiles is reached; none: there is none.
    pub(crate) directory: Option<Access>,
    /// The servers that projects notify.
    pub(crate) targets: Arc<Targets>,
}

/// The settings in effect, and what is derived from them.
pub(crate) type Effective = function::live::Effective<Config, Derived>;
/// Holds what is in effect.
pub(crate) type Live = function::live::Live<Config, Derived>;

impl Derived {
    /// What settings ask for; key sets that were fetched stay.
    pub(crate) fn new(config: &Config, before: Option<&Effective>) -> Result<Self, String> {
        let completion = Completion::new(
            "PCF",
            &config.nf_instance_id,
            &config.overload.convey,
            worker::count(config.workers),
            before.map(|before| &before.completion),
        );
        let before = before.map(|before| &before.verification);
        let verification = Verification::new(&config.tokens, &config.identity.assertions, before)?;
        Ok(Self {
            projects: Projects::read(config).map_err(|mistakes| mistakes.to_string())?,
            completion,
            destinations: Arc::new(config.destinations().naming(config)),
            verification,
            directory: Access::read(&config.pds.ldap)?,
            targets: Arc::new(Targets::read(&config.notifier, &config.client.user_agent)?),
        })
    }

    /// The same with projects whose files have changed; none: they have not.
    pub(crate) fn with_changed_projects(before: &Effective) -> Result<Option<Self>, String> {
        let projects = Projects::read(&before.config).map_err(|mistakes| mistakes.to_string())?;
        if projects.is_same(&before.projects) {
            return Ok(None);
        }
        Ok(Some(Self {
            projects,
            ..before.derived.clone()
        }))
    }
}

impl AsRef<Verification> for Derived {
    fn as_ref(&self) -> &Verification {
        &self.verification
    }
}

impl AsMut<Verification> for Derived {
    fn as_mut(&mut self) -> &mut Verification {
        &mut self.verification
    }
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
            "notifier.enabled",
            "notifier.servers",
            "outgoing",
            "overload",
            "policy",
            "tls",
            "tokens",
            "usage",
            "uePolicy",
        ] {
            assert!(marked.iter().any(|marked| marked == key), "{key}");
        }
        for key in [
            "diameter",
            "listen",
            "notifications",
            "notifier",
            "nfInstanceId",
            "store",
        ] {
            assert!(!marked.iter().any(|marked| marked == key), "{key}");
        }
    }
}
