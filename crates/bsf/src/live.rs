//! What is derived from settings and changes with them.

use std::sync::Arc;

use function::sbi::{Completion, Destinations, Verification};

use crate::config::Config;

/// What is derived from settings.
#[derive(Clone, Debug)]
pub struct Derived {
    /// What completes answers.
    pub(crate) completion: Completion,
    /// Where the BSF sends because others say so.
    pub(crate) destinations: Arc<Destinations>,
    /// What verifies the senders of requests.
    pub(crate) verification: Verification,
}

/// The settings in effect, and what is derived from them.
pub(crate) type Effective = function::live::Effective<Config, Derived>;
/// Holds what is in effect.
pub(crate) type Live = function::live::Live<Config, Derived>;

impl Derived {
    /// What settings ask for; key sets that were fetched stay.
    pub(crate) fn new(config: &Config, before: Option<&Effective>) -> Result<Self, String> {
        let completion = Completion::new(
            "BSF",
            &config.nf_instance_id,
            &config.overload.convey,
            worker::count(config.workers),
            before.map(|before| &before.completion),
        );
        let before = before.map(|before| &before.verification);
        let verification = Verification::new(&config.tokens, &config.identity.assertions, before)?;
        Ok(Self {
            completion,
            destinations: Arc::new(config.destinations().naming(config)),
            verification,
        })
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
            "audit",
            "bindingLifetime",
            "clientTls",
            "identity",
            "maxBodySize",
            "maxCandidates",
            "notifications.queue",
            "notifications.timeout",
            "outgoing",
            "overload",
            "rx.checkMandatory",
            "rx.keepSessions",
            "rx.maxLookups",
            "rx.mode",
            "rx.noBinding",
            "rx.peerRate",
            "rx.redirectCacheTime",
            "rx.relays",
            "rx.timeout",
            "scoring",
            "tls",
            "tokens",
            "tolerance",
        ] {
            assert!(marked.iter().any(|marked| marked == key), "{key}");
        }
        for key in [
            "listen",
            "rx",
            "rx.host",
            "notifications",
            "notifications.dnsSrv",
            "store",
        ] {
            assert!(!marked.iter().any(|marked| marked == key), "{key}");
        }
    }
}
