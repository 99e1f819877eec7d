//! Diameter requests of followed subscribers, to which their answers belong.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use ahash::AHashMap;
use parking_lot::Mutex;

use crate::finder::Hit;

/// Requests whose answers are awaited, at most.
const MAX_AWAITED: usize = 4_096;

/// Sender, receiver and Hop-by-Hop Identifier of a request.
type Key = (SocketAddr, SocketAddr, u64);

#[derive(Default)]
pub(super) struct Awaited {
    /// Number of requests. While it is 0, answers take no lock, which all workers share.
    count: AtomicUsize,
    /// The followed subscriber of a request, and its exchange.
    requests: Mutex<AHashMap<Key, (Hit, u64)>>,
}

impl Awaited {
    pub(super) fn insert(&self, key: Key, request: (Hit, u64)) {
        let mut requests = self.requests.lock();
        if requests.len() >= MAX_AWAITED {
            // Most of them will never be answered.
            requests.clear();
        }
        requests.insert(key, request);
        self.count.store(requests.len(), Ordering::Release);
    }

    pub(super) fn remove(&self, key: &Key) -> Option<(Hit, u64)> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut requests = self.requests.lock();
        let found = requests.remove(key);
        self.count.store(requests.len(), Ordering::Release);
        found
    }

    pub(super) fn clear(&self) {
        let mut requests = self.requests.lock();
        *requests = AHashMap::default();
        self.count.store(0, Ordering::Release);
    }
}
