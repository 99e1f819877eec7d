//! What is wrong with a store that is open: whether writes can be made durable, reported when that ends and when it begins
//! again, not for each write, and damage that was found after the start.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::Serialize;

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Damage {
    /// The file.
    pub file: String,
    /// Where in it.
    pub byte: u64,
    /// What is wrong there.
    pub reason: String,
}

type Watcher = Arc<dyn Fn(Option<&str>) + Send + Sync>;
type DamageWatcher = Arc<dyn Fn(&[Damage]) + Send + Sync>;

/// Damage that is listed; what is found beyond it counts in the statistics.
const MAX_DAMAGE: usize = 100;

/// Whether an engine can write, what is damaged, and who wants to know.
#[derive(Default)]
pub(crate) struct Trouble(Mutex<State>);

#[derive(Default)]
struct State {
    /// Why no write can be made durable.
    reason: Option<String>,
    /// When that began.
    since: Option<Instant>,
    /// Batches refused for it.
    refused: u64,
    watchers: Vec<Watcher>,
    /// One for each damaged file.
    damage: Vec<Damage>,
    damage_watchers: Vec<DamageWatcher>,
}

impl fmt::Debug for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Trouble").field(&self.reason()).finish()
    }
}

impl Trouble {
    /// A file is damaged.
    pub(crate) fn found(&self, damage: Damage) {
        let (all, watchers) = {
            let mut state = self.0.lock();
            if state.damage.len() >= MAX_DAMAGE {
                return;
            }
            state.damage.push(damage);
            (state.damage.clone(), state.damage_watchers.clone())
        };
        watchers.iter().for_each(|watcher| watcher(&all));
    }

    /// Calls `watcher` with the damage found so far, and whenever more is found.
    pub(crate) fn watch_damage(&self, watcher: DamageWatcher) {
        let damage = {
            let mut state = self.0.lock();
            state.damage_watchers.push(watcher.clone());
            state.damage.clone()
        };
        watcher(&damage);
    }

    /// Writes fail from now on, because of this.
    pub(crate) fn begin(&self, reason: &str) {
        let watchers = {
            let mut state = self.0.lock();
            if state.reason.as_deref() == Some(reason) {
                return;
            }
            if state.reason.is_none() {
                tracing::error!(
                    reason,
                    "the store cannot write; what it is asked to keep is refused"
                );
            }
            state.reason = Some(reason.to_owned());
            state.since.get_or_insert_with(Instant::now);
            state.watchers.clone()
        };
        notify(&watchers, Some(reason));
    }

    /// Counts batches that were refused for it.
    pub(crate) fn refused(&self, batches: u64) {
        self.0.lock().refused += batches;
    }

    /// Writes succeed again.
    pub(crate) fn end(&self) {
        let watchers = {
            let mut state = self.0.lock();
            if state.reason.take().is_none() {
                return;
            }
            state.since = None;
            let refused = std::mem::take(&mut state.refused);
            tracing::info!(refused, "the store can write again");
            state.watchers.clone()
        };
        notify(&watchers, None);
    }

    /// Why no write can be made durable; `None` while they can.
    pub(crate) fn reason(&self) -> Option<String> {
        self.0.lock().reason.clone()
    }

    /// Whether no write could be made durable for this long.
    #[cfg_attr(
        not(any(feature = "mariadb", feature = "cql")),
        allow(dead_code, reason = "only databases are asked again")
    )]
    pub(crate) fn has_lasted(&self, period: Duration) -> bool {
        self.0.lock().since.is_some_and(|since| since.elapsed() >= period)
    }

    pub(crate) fn is_there(&self) -> bool {
        self.0.lock().reason.is_some()
    }

    /// Calls `watcher` with what is so now, and whenever it changes.
    pub(crate) fn watch(&self, watcher: Watcher) {
        let reason = {
            let mut state = self.0.lock();
            state.watchers.push(watcher.clone());
            state.reason.clone()
        };
        watcher(reason.as_deref());
    }
}

fn notify(watchers: &[Watcher], reason: Option<&str>) {
    watchers.iter().for_each(|watcher| watcher(reason));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_reported_once() {
        let (trouble, heard) = (Trouble::default(), Arc::new(Mutex::new(Vec::new())));
        let hearing = heard.clone();
        trouble.watch(Arc::new(move |reason| {
            hearing.lock().push(reason.map(str::to_owned));
        }));
        for _ in 0..3 {
            trouble.begin("no space");
            trouble.refused(2);
        }
        assert_eq!(trouble.reason().as_deref(), Some("no space"));
        trouble.end();
        trouble.end();
        assert_eq!(*heard.lock(), [None, Some("no space".to_owned()), None]);
        assert_eq!(trouble.reason(), None);
    }

    #[test]
    fn damage_is_listed_up_to_a_bound() {
        let (trouble, heard) = (Trouble::default(), Arc::new(Mutex::new(Vec::new())));
        let damage = |byte| Damage {
            file: "1-1-0.log".to_owned(),
            byte,
            reason: "no entry here".to_owned(),
        };
        trouble.found(damage(0));
        let hearing = heard.clone();
        trouble.watch_damage(Arc::new(move |all| hearing.lock().push(all.len())));
        for byte in 1..200 {
            trouble.found(damage(byte));
        }
        assert_eq!(*heard.lock(), (1..=MAX_DAMAGE).collect::<Vec<_>>());
        assert!(!trouble.is_there(), "it can write");
    }
}
