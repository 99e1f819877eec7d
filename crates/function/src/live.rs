//! The configuration in effect, and the one lock under which it changes.
//!
//! A reload, a key rotation and a fetched key set each build on what the last change left. Without a lock two of them
//! load the same state, and the one that stores last undoes the other. So every change is a closure that [`Live`] runs
//! under its lock, with the state of that moment.

use std::ops::Deref;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;
use telemetry::{AlarmKind, Severity};
use tokio::sync::watch;

/// A reload was refused. The number is ours.
pub const REFUSED: AlarmKind = AlarmKind {
    number: 10525,
    name: "Configuration Refused",
    severity: Severity::Minor,
    text: "A reload refused the configuration file, or files that it names: the function runs with what it had before.",
    advice: "Correct what the detail names, check it with `signalbox check`, and reload; a reload without a mistake clears the alarm.",
};

/// The configuration in effect, and what is derived from it. Immutable: a change makes another.
#[derive(Debug)]
pub struct Effective<C, D> {
    /// The settings.
    pub config: Arc<C>,
    /// What is derived from them: compiled rules, keys, tables.
    pub derived: D,
}

impl<C, D> Deref for Effective<C, D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.derived
    }
}

type Swap<C, D> = Arc<ArcSwap<Effective<C, D>>>;

/// The configuration in effect; readers never wait for a lock.
#[derive(Debug)]
pub struct Live<C, D> {
    current: Swap<C, D>,
    /// One change at a time.
    changing: Mutex<()>,
    version: watch::Sender<u64>,
}

impl<C, D> Live<C, D> {
    pub(crate) fn new(config: Arc<C>, derived: D) -> Self {
        Self {
            current: Arc::new(ArcSwap::from_pointee(Effective { config, derived })),
            changing: Mutex::default(),
            version: watch::Sender::new(0),
        }
    }

    /// What is in effect, for a short look.
    #[must_use]
    pub fn load(&self) -> Guard<Arc<Effective<C, D>>> {
        self.current.load()
    }

    /// What is in effect.
    #[must_use]
    pub fn load_full(&self) -> Arc<Effective<C, D>> {
        self.current.load_full()
    }

    /// Derives another state from the same settings: after a key rotation, or when key sets were fetched.
    ///
    /// # Errors
    /// Those of `change`; nothing has changed then.
    pub fn rederive<E>(&self, change: impl FnOnce(&Effective<C, D>) -> Result<D, E>) -> Result<(), E> {
        let derive = |before: &Effective<C, D>| {
            Ok(Effective {
                config: before.config.clone(),
                derived: change(before)?,
            })
        };
        self.change(derive, |_, _| ())
    }

    /// Runs `change` with what is in effect, puts its outcome into effect, and then runs `after`; all under the lock.
    pub(crate) fn change<E>(
        &self,
        change: impl FnOnce(&Effective<C, D>) -> Result<Effective<C, D>, E>,
        after: impl FnOnce(&Arc<Effective<C, D>>, &Arc<Effective<C, D>>),
    ) -> Result<(), E> {
        let _one = self.changing.lock();
        let before = self.current.load_full();
        let now = Arc::new(change(&before)?);
        self.current.store(now.clone());
        self.version.send_modify(|version| *version += 1);
        after(&before, &now);
        Ok(())
    }

    /// Runs `work` with what is in effect while nothing can change it.
    pub(crate) fn hold<T>(&self, work: impl FnOnce(&Effective<C, D>) -> T) -> T {
        let _one = self.changing.lock();
        work(&self.current.load())
    }

    /// Sees each change without a lock.
    #[must_use]
    pub fn follower(&self) -> Follower<C, D> {
        Follower(arc_swap::Cache::new(self.current.clone()))
    }

    /// Waits for changes.
    #[must_use]
    pub fn changes(&self) -> Changes {
        Changes(self.version.subscribe())
    }
}

/// Follows what is in effect; a look costs one comparison as long as nothing has changed.
#[derive(Debug)]
pub struct Follower<C, D>(arc_swap::Cache<Swap<C, D>, Arc<Effective<C, D>>>);

impl<C, D> Follower<C, D> {
    /// What is in effect.
    #[inline]
    pub fn load(&mut self) -> &Arc<Effective<C, D>> {
        self.0.load()
    }
}

/// Waits for changes of what is in effect.
#[derive(Debug)]
pub struct Changes(watch::Receiver<u64>);

impl Changes {
    /// Resolves after the next change; false when no change can follow, because [`Live`] was dropped.
    pub async fn next(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two kinds of changes, as a reload and a key rotation are, from two threads: each has to build on the other.
    #[test]
    fn no_change_undoes_another() {
        const TIMES: u64 = 10_000;
        let live = Live::new(Arc::new(0_u64), 0_u64);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                for _ in 0..TIMES {
                    let reload = |before: &Effective<u64, u64>| {
                        Ok::<_, ()>(Effective {
                            config: Arc::new(*before.config + 1),
                            derived: before.derived,
                        })
                    };
                    live.change(reload, |_, _| ()).unwrap();
                }
            });
            threads.spawn(|| {
                for _ in 0..TIMES {
                    live.rederive(|before| Ok::<_, ()>(before.derived + 1)).unwrap();
                }
            });
        });
        let now = live.load();
        assert_eq!((*now.config, now.derived), (TIMES, TIMES));
    }

    #[test]
    fn a_refused_change_changes_nothing() {
        let live = Live::new(Arc::new(1), 2);
        let changes = live.changes();
        assert_eq!(live.rederive(|_| Err("no")), Err("no"));
        assert_eq!(live.load().derived, 2);
        assert!(!changes.0.has_changed().unwrap());
        live.rederive(|_| Ok::<_, ()>(3)).unwrap();
        assert!(changes.0.has_changed().unwrap());
    }
}
