//! A running function: its state, its admin pages, reload and stop.

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;

use axum::Router;
use telemetry::{Alarms, Health, Registry};
use worker::Threads;

use crate::contract::{Listeners, Live, NetworkFunction};
use crate::live::Effective;

/// A running function. Dropping it stops it as [`Running::stop`] does, without waiting. It dereferences to what its
/// threads share.
#[derive(Debug)]
pub struct Running<F: NetworkFunction> {
    handle: Handle<F>,
    threads: Threads,
}

/// A handle of a running function; it does not keep its threads running.
pub struct Handle<F: NetworkFunction> {
    pub(crate) function: Arc<F>,
    pub(crate) live: Arc<Live<F>>,
    pub(crate) listeners: Arc<F::Listeners>,
    pub(crate) registry: Registry,
    pub(crate) health: Health,
    pub(crate) alarms: Alarms,
    pub(crate) follow: follow::Room,
}

impl<F: NetworkFunction> Clone for Handle<F> {
    fn clone(&self) -> Self {
        Self {
            function: self.function.clone(),
            live: self.live.clone(),
            listeners: self.listeners.clone(),
            registry: self.registry.clone(),
            health: self.health.clone(),
            alarms: self.alarms.clone(),
            follow: self.follow.clone(),
        }
    }
}

impl<F: NetworkFunction> std::fmt::Debug for Handle<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple(F::TITLE).finish_non_exhaustive()
    }
}

impl<F: NetworkFunction> Handle<F> {
    /// Where it listens.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        self.listeners.addresses()
    }

    /// The name of each of its interfaces with its URI.
    #[must_use]
    pub fn interfaces(&self) -> Vec<(&'static str, String)> {
        self.listeners.interfaces()
    }

    /// What is in effect.
    #[must_use]
    pub fn live(&self) -> &Arc<Live<F>> {
        &self.live
    }

    /// Its metrics.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Whether it is ready.
    #[must_use]
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// Its alarms.
    #[must_use]
    pub fn alarms(&self) -> &Alarms {
        &self.alarms
    }

    /// Its own admin pages, and those about followed subscribers.
    pub fn routes(&self) -> Router {
        crate::following::routes(&self.follow).merge(self.function.routes())
    }

    /// Takes the settings that may change while it runs from another configuration; the rest stays. Requests in flight
    /// finish with the former settings. Files that settings name are reloaded.
    ///
    /// # Errors
    /// What cannot be used; nothing has changed then.
    pub fn reload(&self, wanted: &F::Config) -> Result<(), String> {
        let change = |before: &_| {
            let before: &crate::contract::Effective<F> = before;
            let config = Arc::new(settings::reload::merge(&*before.config, wanted)?);
            let derived = F::derive(&config, Some(before))?;
            self.listeners.reload_files(&F::common(&config))?;
            Ok(Effective { config, derived })
        };
        self.live
            .change(change, |before, now| self.function.reloaded(before, now))
    }

    /// Reads certificates, keys and trust again, and other files that settings name; handshakes and requests from now on use
    /// them. Answers whether something has changed.
    ///
    /// # Errors
    /// What cannot be used; that goes on as before.
    pub fn reread(&self) -> Result<bool, String> {
        let tls = self
            .live
            .hold(|now| self.listeners.reload_files(&F::common(&now.config)))?;
        // Nothing is put into effect where nothing has changed.
        let derive = |now: &crate::contract::Effective<F>| match F::rederive(now) {
            Ok(Some(derived)) => Ok(derived),
            Ok(None) => Err(None),
            Err(reason) => Err(Some(reason)),
        };
        match self.live.rederive(derive) {
            Ok(()) => Ok(true),
            Err(None) => Ok(tls),
            Err(Some(reason)) => Err(reason),
        }
    }
}

impl<F: NetworkFunction> Running<F> {
    pub(crate) fn new(handle: Handle<F>, threads: Threads) -> Self {
        Self { handle, threads }
    }

    /// A handle for pages and reloads.
    #[must_use]
    pub fn handle(&self) -> &Handle<F> {
        &self.handle
    }

    /// Where it listens.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        self.handle.addresses()
    }

    /// As [`Handle::reload`].
    ///
    /// # Errors
    /// As [`Handle::reload`].
    pub fn reload(&self, wanted: &F::Config) -> Result<(), String> {
        self.handle.reload(wanted)
    }

    /// As [`Handle::reread`].
    ///
    /// # Errors
    /// As [`Handle::reread`].
    pub fn reread(&self) -> Result<bool, String> {
        self.handle.reread()
    }

    /// Finishes the requests in flight and stops. Blocks.
    ///
    /// # Errors
    /// The first error a thread ended with.
    pub fn stop(self) -> std::io::Result<()> {
        self.threads.stop()
    }
}

impl<F: NetworkFunction> Deref for Running<F> {
    type Target = F;

    fn deref(&self) -> &F {
        &self.handle.function
    }
}
