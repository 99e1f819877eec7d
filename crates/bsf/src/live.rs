//! What can change while the BSF runs. Whoever uses it looks whether it has changed before each piece of work.

use std::sync::Arc;

use bytes::Bytes;
use sbi::oauth::{AssertionAuthorities, Keys};

use crate::config::Config;

/// Settings in effect, and what is made of them. Immutable: a change makes another.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    pub(crate) config: Arc<Config>,
    /// Keys that access tokens are verified with.
    pub(crate) keys: Arc<Keys>,
    /// What assertions are checked by.
    pub(crate) authorities: Arc<AssertionAuthorities>,
    /// Key sets as they were fetched last.
    fetched: Arc<Vec<Bytes>>,
}

/// The keys of [`Config`] that take effect while running, each with all below it.
pub const KEYS: &[&str] = &[
    "audit",
    "clientTls",
    "identity",
    "maxBodySize",
    "maxCandidates",
    "notifications.alternates",
    "notifications.attempts",
    "notifications.rate",
    "notifications.retryPause",
    "notifications.timeout",
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
];

impl Live {
    pub(crate) fn new(config: Arc<Config>) -> Result<Self, String> {
        Self::of(config, Arc::default())
    }

    fn of(config: Arc<Config>, fetched: Arc<Vec<Bytes>>) -> Result<Self, String> {
        let mut keys = config.tokens.read()?;
        for set in fetched.iter() {
            // It was read once when it was fetched.
            let _ = keys.add_jwks(set);
        }
        let authorities = AssertionAuthorities::read(&config.identity.assertions)
            .map_err(|fault| format!("identity.{fault}"))?;
        Ok(Self {
            authorities: Arc::new(authorities),
            config,
            keys: Arc::new(keys),
            fetched,
        })
    }

    /// The same with those settings of another configuration that can change.
    pub(crate) fn with(&self, wanted: &Config) -> Result<Self, String> {
        let mut config = (*self.config).clone();
        config.audit = wanted.audit.clone();
        config.identity = wanted.identity.clone();
        config.max_body_size = wanted.max_body_size;
        config.max_candidates = wanted.max_candidates;
        let (own, other) = (&mut config.notifications, &wanted.notifications);
        own.alternates = other.alternates;
        own.attempts = other.attempts;
        own.rate = other.rate;
        own.retry_pause = other.retry_pause;
        own.timeout = other.timeout;
        config.overload = wanted.overload.clone();
        let (own, other) = (&mut config.rx, &wanted.rx);
        own.check_mandatory = other.check_mandatory;
        own.keep_sessions = other.keep_sessions;
        own.max_lookups = other.max_lookups;
        own.mode = other.mode;
        own.no_binding = other.no_binding;
        own.peer_rate = other.peer_rate;
        own.redirect_cache_time = other.redirect_cache_time;
        own.relays.clone_from(&other.relays);
        own.timeout = other.timeout;
        config.scoring = wanted.scoring.clone();
        config.tokens = wanted.tokens.clone();
        config.tls.clone_from(&wanted.tls);
        config.client_tls.clone_from(&wanted.client_tls);
        Self::of(Arc::new(config), self.fetched.clone())
    }

    /// The same with other key sets that were fetched.
    pub(crate) fn with_fetched(&self, fetched: Vec<Bytes>) -> Result<Self, String> {
        Self::of(self.config.clone(), Arc::new(fetched))
    }

    /// Key sets as they were fetched last.
    pub(crate) fn fetched(&self) -> &[Bytes] {
        &self.fetched
    }
}
