//! What is derived from the settings, and what outlives a change of them.

use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Instant;

use diameter::Security;
use function::live;
use sbi::dns::Dns;
use telemetry::Alarms;
use telemetry::journal::Kind;
use tls::Watched;

use crate::config::Config;
use crate::listen::security;
use crate::registry::Registry;
use crate::snapshot::{Loader, Snapshot};

/// What the alarm and the journal are about when files change.
const FILES: &str = "files of applications";

/// The configuration in effect.
pub(crate) type Effective = live::Effective<Config, Derived>;
/// Holds the configuration in effect.
pub(crate) type Live = live::Live<Config, Derived>;

/// What is derived from the settings.
#[derive(Debug)]
pub struct Derived {
    /// What workers read.
    pub(crate) snapshot: Arc<Snapshot>,
    /// The neighbours. They outlive configurations.
    pub(crate) registry: Arc<Registry>,
    /// The TLS files of local nodes and peers.
    watched: OnceLock<Arc<Watched>>,
    /// Holds the TLS of configured peers, so that it is watched before a worker uses it.
    peers: Vec<Security>,
    loader: Loader,
    /// Resolves names of peers, where there are any.
    dns: Option<Dns>,
}

impl Derived {
    /// Compiles a configuration and reads its TLS files again. What has not changed since `before` is kept.
    ///
    /// # Errors
    /// When a file that it names cannot be used.
    pub(crate) fn new(config: &Arc<Config>, before: Option<&Effective>) -> Result<Self, String> {
        // At the start, the TLS files of one peer do not keep the router from starting: its worker logs the fault.
        let Some(known) = before else {
            return Self::compile(config, None, Vec::new());
        };
        let peers = config.peers.iter().map(|peer| {
            let security = security(known.watched(), peer.tls.as_ref(), peer.inband_security);
            security.map_err(|reason| format!("peer {}: {reason}", peer.host))
        });
        let peers = peers.collect::<Result<_, String>>()?;
        let files = known.watched().prepare(&[])?;
        let derived = Self::compile(config, before, peers)?;
        files.apply();
        Ok(derived)
    }

    /// Reads the files of applications that have changed; none: no file has.
    ///
    /// # Errors
    /// When one of them cannot be used.
    pub(crate) fn reread(before: &Effective) -> Result<Option<Self>, String> {
        if !before.loader.has_changed() {
            return Ok(None);
        }
        Self::compile(&before.config, Some(before), before.peers.clone()).map(Some)
    }

    fn compile(
        config: &Arc<Config>,
        before: Option<&Effective>,
        peers: Vec<Security>,
    ) -> Result<Self, String> {
        let loader = Loader::load(config, before.map(|before| &before.loader))?;
        let has_names = config.peers.iter().any(|peer| !peer.names.is_empty());
        let dns = match before.and_then(|before| before.dns.clone()) {
            None if has_names => {
                let started = Dns::start(&config.dns);
                Some(started.map_err(|error| format!("names cannot be resolved: {error}"))?)
            }
            known => known,
        };
        let registry = before.map_or_else(Arc::default, |before| before.registry.clone());
        let version = before.map_or(1, |before| before.snapshot.version.wrapping_add(1));
        let workers = worker::count(config.workers);
        let snapshot = Snapshot::compile(config.clone(), version, &registry, workers, loader.installed())?;
        Ok(Self {
            snapshot: Arc::new(snapshot),
            registry,
            watched: before.map_or_else(OnceLock::new, |before| before.watched.clone()),
            peers,
            loader,
            dns,
        })
    }

    /// Resolves names of peers.
    pub(crate) const fn dns(&self) -> Option<&Dns> {
        self.dns.as_ref()
    }

    /// The TLS files of local nodes and peers.
    pub(crate) fn watched(&self) -> &Arc<Watched> {
        self.watched.get_or_init(Arc::default)
    }

    /// Takes those of the local nodes, once, before anything else asks for them.
    pub(crate) fn watch(&self, watched: &Arc<Watched>) {
        self.watched.get_or_init(|| watched.clone());
    }
}

/// Reloads files that have changed: certificates at once, those of applications by a thread of their own, as they may
/// take long. Those that cannot be used raise an alarm.
pub(crate) fn follow_files(
    live: &Arc<Live>,
    alarms: &Alarms,
    now: Instant,
    loading: &mut Option<JoinHandle<()>>,
) {
    let current = live.load_full();
    current.watched().poll(now);
    if loading.as_ref().is_some_and(|thread| !thread.is_finished()) {
        return;
    }
    let is_stale = current.loader.is_stale(now);
    alarms.set(&live::REFUSED, FILES, current.loader.refusal());
    if !is_stale {
        return;
    }
    let (live, alarms) = (live.clone(), alarms.clone());
    let thread = std::thread::Builder::new().name("dsr-files".to_owned());
    match thread.spawn(move || reload_applications(&live, &alarms)) {
        Ok(thread) => *loading = Some(thread),
        Err(error) => tracing::error!(%error, "a changed file cannot be reloaded: no thread"),
    }
}

fn reload_applications(live: &Live, alarms: &Alarms) {
    let reloaded = live.rederive(|before| {
        let derived = Derived::compile(&before.config, Some(before), before.peers.clone());
        derived.inspect_err(|reason| before.loader.refuse(reason))
    });
    let journal = alarms.journal();
    match reloaded {
        Ok(()) => {
            journal.record(Kind::ReloadApplied, FILES, "a changed file was read again");
            tracing::info!("reloaded a changed file of an application");
        }
        Err(reason) => {
            journal.record(Kind::ReloadRefused, FILES, &reason);
            tracing::error!(
                reason,
                "a changed file of an application cannot be used; what it had before stays"
            );
        }
    }
}
