//! On which worker each peer lives that requests may go to. Written when peers come and go, never per message.

use std::cell::RefCell;
use std::sync::Arc;

use ahash::AHashMap;
use arc_swap::{ArcSwap, Cache};

/// Worker by name of the peer, in lower case.
type Homes = AHashMap<Box<str>, usize>;

/// The list, shared by all workers.
#[derive(Clone, Debug, Default)]
pub(super) struct Published(Arc<ArcSwap<Homes>>);

/// A worker's view of it.
pub(super) struct Places {
    published: Published,
    cache: RefCell<Cache<Arc<ArcSwap<Homes>>, Arc<Homes>>>,
    worker: usize,
}

impl Places {
    pub(super) fn new(published: Published, worker: usize) -> Self {
        Self {
            cache: RefCell::new(Cache::new(published.0.clone())),
            published,
            worker,
        }
    }

    /// The worker where a peer is connected and well.
    pub(super) fn home(&self, host: &str) -> Option<usize> {
        let mut cache = self.cache.borrow_mut();
        let homes = cache.load();
        match host.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => homes.get(host.to_ascii_lowercase().as_str()).copied(),
            false => homes.get(host).copied(),
        }
    }

    /// A peer is well here, or is not any more.
    pub(super) fn set(&self, host: &str, here: bool) {
        let host: Box<str> = host.to_ascii_lowercase().into();
        self.published.0.rcu(|homes| {
            let mut homes = Homes::clone(homes);
            if here {
                homes.insert(host.clone(), self.worker);
            } else if homes.get(&host) == Some(&self.worker) {
                homes.remove(&host);
            }
            homes
        });
    }
}

/// The worker that a peer of this name lives on, the same in every run.
pub(super) fn home_of(host: &str, workers: usize) -> usize {
    crc32fast::hash(host.to_ascii_lowercase().as_bytes()) as usize % workers.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_left_here_may_be_there() {
        let published = Published::default();
        let (one, two) = (Places::new(published.clone(), 0), Places::new(published, 1));
        one.set("PCF.example", true);
        assert_eq!(two.home("pcf.example"), Some(0));
        two.set("pcf.example", true);
        one.set("pcf.example", false);
        assert_eq!(one.home("PCF.EXAMPLE"), Some(1));
        two.set("pcf.example", false);
        assert_eq!(one.home("pcf.example"), None);
        assert_eq!(home_of("PCF.example", 4), home_of("pcf.example", 4));
    }
}
