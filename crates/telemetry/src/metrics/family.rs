//! Metrics with labels: handles by label values, within a bound.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;

/// What every label says in the series that takes what exceeds the bound.
pub const OTHER: &str = "other";

/// The handles of one declaration, by the values of its labels. Resolve a handle once and keep it: `get`
/// takes a lock.
///
/// A family holds a bounded number of series. Labels may come from strangers (peer names, NF types); what
/// exceeds the bound is counted in the series whose labels all say `other`.
pub struct Family<M> {
    inner: Arc<Inner<M>>,
}

struct Inner<M> {
    labels: &'static [&'static str],
    most: usize,
    series: RwLock<HashMap<Vec<String>, M>>,
    make: Box<dyn Fn() -> M + Send + Sync>,
}

impl<M> Clone for Family<M> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
        }
    }
}

impl<M> std::fmt::Debug for Family<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Family")
            .field("labels", &self.inner.labels)
            .field("series", &self.inner.series.read().len())
            .finish()
    }
}

impl<M: Clone> Family<M> {
    pub(super) fn new(
        labels: &'static [&'static str],
        most: usize,
        make: impl Fn() -> M + Send + Sync + 'static,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                labels,
                most,
                series: RwLock::default(),
                make: Box::new(make),
            }),
        }
    }

    /// The handle of these label values, in the order of the declaration. Values too few are empty, values
    /// too many are dropped.
    pub fn get(&self, values: &[&str]) -> M {
        let mut key: Vec<String> = values
            .iter()
            .take(self.inner.labels.len())
            .map(|value| (*value).to_owned())
            .collect();
        key.resize(self.inner.labels.len(), String::new());
        if let Some(known) = self.inner.series.read().get(&key) {
            return known.clone();
        }
        let mut series = self.inner.series.write();
        if series.len() >= self.inner.most && !series.contains_key(&key) {
            key.fill(OTHER.to_owned());
        }
        series.entry(key).or_insert_with(&self.inner.make).clone()
    }

    /// Forgets a series, when what it counted is gone for good (a peer taken out of the configuration).
    /// Handles that were resolved before go on counting, unseen.
    pub fn remove(&self, values: &[&str]) {
        let key: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        self.inner.series.write().remove(&key);
    }

    /// Every series with its label values, sorted by them.
    #[must_use]
    pub fn series(&self) -> Vec<(Vec<String>, M)> {
        let mut all: Vec<_> = self
            .inner
            .series
            .read()
            .iter()
            .map(|(key, handle)| (key.clone(), handle.clone()))
            .collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }
}
