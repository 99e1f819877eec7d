//! The numbers that are in effect.

use std::collections::BTreeSet;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use numbers::{Key, Map};

/// A map of numbers that gives way to another one without a reload: destination sets are never freed in one map.
pub(crate) struct Numbers(ArcSwap<View>);

/// A map, and what it does not have.
pub(crate) struct View {
    pub(crate) map: Arc<Map>,
    /// Numbers whose change could not be put into the map. What the map has of them is out of date.
    pub(crate) aside: BTreeSet<Key>,
}

impl Numbers {
    pub(crate) fn new(map: Map) -> Self {
        Self(ArcSwap::from_pointee(View {
            map: Arc::new(map),
            aside: BTreeSet::new(),
        }))
    }

    pub(crate) fn load(&self) -> Guard<Arc<View>> {
        self.0.load()
    }

    pub(crate) fn store(&self, view: View) {
        self.0.store(Arc::new(view));
    }
}
