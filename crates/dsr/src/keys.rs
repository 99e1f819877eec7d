//! The TLS files of local nodes and peers: read once for all workers, and again when they change.

use std::time::{Duration, Instant};

use diameter::Security;
use diameter::tls::{ChangedTls, FollowedTls};
use parking_lot::{Mutex, MutexGuard};

use crate::config::{Config, TlsFiles};

/// Keys and trust of every file that the configuration names.
#[derive(Debug, Default)]
pub(crate) struct Keys(Mutex<Vec<Held>>);

#[derive(Debug)]
struct Held {
    files: TlsFiles,
    followed: FollowedTls,
    looked: Instant,
}

/// Where the configuration names files.
fn named(config: &Config) -> impl Iterator<Item = &TlsFiles> {
    let nodes = config.local_nodes.iter().filter_map(|node| node.tls.as_ref());
    nodes.chain(config.peers.iter().filter_map(|peer| peer.tls.as_ref()))
}

impl Keys {
    /// How connections are secured by these files; all who name them alike share them.
    ///
    /// # Errors
    /// When they cannot be used.
    pub(crate) fn security(&self, files: Option<&TlsFiles>) -> Result<Security, String> {
        let Some(files) = files else {
            return Ok(Security::None);
        };
        let mut all = self.0.lock();
        if let Some(held) = all.iter().find(|held| held.files == *files) {
            return Ok(Security::Tls(held.followed.config().clone()));
        }
        let followed = FollowedTls::open(files.driver()).map_err(|error| error.to_string())?;
        let security = Security::Tls(followed.config().clone());
        all.push(Held {
            files: files.clone(),
            followed,
            looked: Instant::now(),
        });
        Ok(security)
    }

    /// Reads the files again whose time has come, and forgets those that nobody names any more.
    pub(crate) fn follow(&self, config: &Config, now: Instant) {
        let mut all = self.0.lock();
        all.retain(|held| named(config).any(|files| *files == held.files));
        for held in &mut *all {
            let wished = named(config).filter(|files| **files == held.files);
            let interval: Option<Duration> = wished
                .map(|files| files.check_interval.duration())
                .filter(|interval| !interval.is_zero())
                .min();
            if interval.is_some_and(|interval| now.saturating_duration_since(held.looked) >= interval) {
                held.looked = now;
                held.followed.check();
            }
        }
    }

    /// What has changed in any of the files by now.
    ///
    /// # Errors
    /// When any of them cannot be used: all go on as they were then.
    pub(crate) fn look(&self) -> Result<Changes<'_>, String> {
        let all = self.0.lock();
        let mut changed = Vec::new();
        for (position, held) in all.iter().enumerate() {
            let found = held.followed.look().map_err(|error| error.to_string())?;
            changed.extend(found.map(|found| (position, found)));
        }
        Ok(Changes { all, changed })
    }
}

/// What was found and is not in use yet. Nobody else changes anything meanwhile.
pub(crate) struct Changes<'k> {
    all: MutexGuard<'k, Vec<Held>>,
    changed: Vec<(usize, ChangedTls)>,
}

impl Changes<'_> {
    /// Uses it from now on. Answers whether there was anything.
    pub(crate) fn take(self) -> bool {
        let any = !self.changed.is_empty();
        for (position, changed) in self.changed {
            if let Some(held) = self.all.get(position) {
                held.followed.take(changed);
            }
        }
        any
    }
}
