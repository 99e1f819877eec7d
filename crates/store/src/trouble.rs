//! Whether writes can be made durable: told when that ends and when it begins again, not for each write.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

type Watcher = Arc<dyn Fn(Option<&str>) + Send + Sync>;

/// Whether an engine can write, and who wants to know.
#[derive(Default)]
pub(crate) struct Trouble(Mutex<State>);

#[derive(Default)]
struct State {
    /// Why no write can be made durable.
    reason: Option<String>,
    /// Batches refused for it.
    refused: u64,
    watchers: Vec<Watcher>,
}

impl fmt::Debug for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Trouble").field(&self.reason()).finish()
    }
}

impl Trouble {
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
            state.watchers.clone()
        };
        tell(&watchers, Some(reason));
    }

    /// So many batches were refused for it.
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
            let refused = std::mem::take(&mut state.refused);
            tracing::info!(refused, "the store can write again");
            state.watchers.clone()
        };
        tell(&watchers, None);
    }

    /// Why no write can be made durable; `None` while they can.
    pub(crate) fn reason(&self) -> Option<String> {
        self.0.lock().reason.clone()
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

fn tell(watchers: &[Watcher], reason: Option<&str>) {
    watchers.iter().for_each(|watcher| watcher(reason));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_told_once() {
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
}
