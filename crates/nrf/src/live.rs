//! What can change while the NRF runs. Whoever uses it looks whether it has changed before each piece of work.

use std::sync::Arc;

use sbi::oauth::AssertionAuthorities;

use crate::config::Config;
use crate::screening::Screening;
use crate::tokens::Issuer;

/// Settings in effect, and what is made of them. Immutable: a change makes another.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    pub(crate) config: Arc<Config>,
    pub(crate) screening: Arc<Screening>,
    pub(crate) issuer: Arc<Issuer>,
    /// What assertions are checked by.
    pub(crate) authorities: Arc<AssertionAuthorities>,
}

/// The keys of [`Config`] that take effect while running, each with all below it.
pub const KEYS: &[&str] = &[
    "clientTls",
    "discovery",
    "forwarding",
    "heartBeat.default",
    "heartBeat.min",
    "heartBeat.max",
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
    "subscriptions.loadThreshold",
    "subscriptions.max",
    "subscriptions.maxPerSource",
    "subscriptions.maxPerSubscriber",
    "subscriptions.maxSize",
    "subscriptions.maxValidity",
    "subscriptions.notifyChanges",
    "subscriptions.unregisteredValidity",
    "tls",
    "tokens",
];

impl Live {
    pub(crate) fn new(config: Arc<Config>) -> Result<Self, String> {
        let directory = &config.store.embedded.directory;
        Ok(Self {
            screening: Arc::new(Screening::new(&config.screening)?),
            issuer: Arc::new(Issuer::open(&config.tokens, &config.nf_instance_id, directory)?),
            authorities: Arc::new(
                AssertionAuthorities::read(&config.identity.assertions)
                    .map_err(|fault| format!("identity.{fault}"))?,
            ),
            config,
        })
    }
}
