//! State derived from settings, rebuilt with them. Each request checks first whether it has changed.

use std::sync::Arc;

use function::sbi::{Completion, Destinations};
use sbi::oauth::AssertionAuthorities;

use crate::config::Config;
use crate::screening::Screening;
use crate::tokens::Issuer;

/// What is derived from settings.
#[derive(Clone, Debug)]
pub struct Derived {
    pub(crate) screening: Arc<Screening>,
    pub(crate) issuer: Arc<Issuer>,
    /// The keys and authorities that verify client credentials assertions.
    pub(crate) authorities: Arc<AssertionAuthorities>,
    /// Where the NRF sends because others say so.
    pub(crate) destinations: Arc<Destinations>,
    /// What answers have in common.
    pub(crate) completion: Completion,
}

/// The settings in effect, and what is derived from them.
pub(crate) type Effective = function::live::Effective<Config, Derived>;
/// Holds what is in effect.
pub(crate) type Live = function::live::Live<Config, Derived>;
/// Sees what is in effect.
pub(crate) type Follower = function::live::Follower<Config, Derived>;

impl Derived {
    pub(crate) fn new(config: &Config, before: Option<&Effective>) -> Result<Self, String> {
        let issuer = issuer(config)?;
        // An issuer with the same keys and rules stays, and with it what workers have cached of its tokens.
        let same = before.filter(|before| *before.issuer == issuer);
        let authorities = AssertionAuthorities::read(&config.identity.assertions)
            .map_err(|fault| format!("identity.{fault}"))?;
        let completion = Completion::new(
            "NRF",
            &config.nf_instance_id,
            &config.overload.convey,
            worker::count(config.workers),
            before.map(|before| &before.completion),
        );
        Ok(Self {
            completion,
            destinations: Arc::new(config.destinations().naming(config)),
            screening: Arc::new(Screening::new(&config.screening)?),
            issuer: same.map_or_else(|| Arc::new(issuer), |before| before.issuer.clone()),
            authorities: Arc::new(authorities),
        })
    }

    /// The same with keys that are read again.
    pub(crate) fn with_keys(before: &Effective) -> Result<Self, String> {
        Ok(Self {
            issuer: Arc::new(issuer(&before.config)?),
            ..before.derived.clone()
        })
    }
}

fn issuer(config: &Config) -> Result<Issuer, String> {
    Issuer::open(
        &config.tokens,
        &config.nf_instance_id,
        &config.store.embedded.directory,
    )
}

#[cfg(test)]
mod tests {
    /// The settings that could change while running before the marks were introduced.
    const KEYS: &[&str] = &[
        "clientTls",
        "discovery",
        "forwarding",
        "heartBeat.default",
        "heartBeat.max",
        "heartBeat.min",
        "heartBeat.missed",
        "heartBeat.removeAfter",
        "identity",
        "maxProfileSize",
        "maxProfiles",
        "maxWaitingBytes",
        "outgoing",
        "overload",
        "patches",
        "patterns",
        "screening",
        "slf",
        "subscriptions.attempts",
        "subscriptions.loadThreshold",
        "subscriptions.max",
        "subscriptions.maxPerSource",
        "subscriptions.maxPerSubscriber",
        "subscriptions.maxRetryPause",
        "subscriptions.maxSize",
        "subscriptions.maxValidity",
        "subscriptions.notifyChanges",
        "subscriptions.parallel",
        "subscriptions.queueBytes",
        "subscriptions.queueBytesPerSubscriber",
        "subscriptions.queuePerSubscriber",
        "subscriptions.queueTotal",
        "subscriptions.rate",
        "subscriptions.redirects",
        "subscriptions.retryPause",
        "subscriptions.timeout",
        "subscriptions.unregisteredValidity",
        "tls",
        "tokens",
        "tolerance",
    ];

    #[test]
    fn marked_settings_are_those_that_can_change() {
        let mut marked = settings::reload::keys::<crate::Config>();
        marked.sort();
        assert_eq!(marked, KEYS);
    }
}
