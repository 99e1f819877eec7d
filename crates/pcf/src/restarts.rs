//! Origin-State-Ids of PCEFs: a higher one means that the PCEF has restarted (RFC 6733 §8.16).

use ahash::AHashMap;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// PCEFs whose Origin-State-Id is known at most; those beyond are as those that send none.
const MOST_HOSTS: usize = 4_096;

/// What is known of PCEFs, by Origin-Host in lower case; shared by all workers.
#[derive(Debug, Default)]
pub(crate) struct Restarts {
    inner: Mutex<Inner>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    /// The highest Origin-State-Id.
    states: AHashMap<String, u32>,
    /// Those whose older sessions are still to be ended.
    pending: AHashMap<String, u32>,
}

impl Restarts {
    pub(crate) fn note(&self, host: &str, state: u32) {
        let host = host.to_ascii_lowercase();
        let mut inner = self.inner.lock();
        let known = inner.states.get(&host).copied();
        // A lower one is of a message that was late.
        if known.is_some_and(|known| known >= state) || known.is_none() && inner.states.len() >= MOST_HOSTS {
            return;
        }
        inner.states.insert(host.clone(), state);
        inner.pending.insert(host, state);
        drop(inner);
        self.wake.notify_one();
    }

    /// Waits until a PCEF has restarted.
    pub(crate) async fn noted(&self) {
        self.wake.notified().await;
    }

    /// The PCEFs whose older sessions are to be ended, with their present states; they are the caller's from now on.
    pub(crate) fn take(&self) -> AHashMap<String, u32> {
        std::mem::take(&mut self.inner.lock().pending)
    }

    /// Gives back what could not be done.
    pub(crate) fn put_back(&self, pending: AHashMap<String, u32>) {
        self.inner.lock().pending.extend(pending);
        self.wake.notify_one();
    }
}
