//! The metrics of one function.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;

use super::declaration::{Buckets, Kind};
use super::shard::Arena;
use super::{Counter, Declaration, Family, Gauge, Histogram, Level};

/// Default bound of the series of a family.
const SERIES: usize = 1024;

/// The metrics of one function (or process); cheap to clone. A declaration registered twice is the same
/// metric.
#[derive(Clone, Debug)]
pub struct Registry {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    arena: Arc<Arena>,
    metrics: Mutex<BTreeMap<&'static str, Registered>>,
    series: usize,
}

/// A registered metric with its values.
#[derive(Clone, Debug)]
pub(super) struct Registered {
    pub(super) declaration: Declaration,
    pub(super) values: Values,
}

#[derive(Clone)]
pub(super) enum Values {
    Counters(Family<Counter>),
    Levels(Family<Level>),
    Gauges(Family<Gauge>),
    Histograms(Family<Histogram>),
    /// Asked when somebody looks: label values and value of each series.
    Observed(Arc<dyn Fn() -> Vec<(Vec<String>, f64)> + Send + Sync>),
}

impl std::fmt::Debug for Values {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Counters(_) => "Counters",
            Self::Levels(_) => "Levels",
            Self::Gauges(_) => "Gauges",
            Self::Histograms(_) => "Histograms",
            Self::Observed(_) => "Observed",
        })
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

/// The arena holds a million slots; a registry that has used them up counts further metrics in one slot
/// that no page shows.
const FULL: u32 = u32::MAX;

impl Registry {
    /// A registry without metrics.
    #[must_use]
    pub fn new() -> Self {
        Self::with_series(SERIES)
    }

    /// A registry whose families hold at most `series` series each.
    #[must_use]
    pub fn with_series(series: usize) -> Self {
        Self {
            inner: Arc::new(Inner {
                arena: Arc::new(Arena::new()),
                metrics: Mutex::default(),
                series: series.max(1),
            }),
        }
    }

    fn register(&self, declaration: &Declaration, make: impl FnOnce() -> Values) -> Values {
        let mut metrics = self.inner.metrics.lock();
        let registered = metrics.entry(declaration.name).or_insert_with(|| Registered {
            declaration: *declaration,
            values: make(),
        });
        registered.values.clone()
    }

    fn family<M: Clone>(
        &self,
        declaration: &Declaration,
        make: impl Fn() -> M + Send + Sync + 'static,
    ) -> Family<M> {
        Family::new(declaration.labels, self.inner.series, make)
    }

    /// The counters of a declaration with labels.
    #[must_use]
    pub fn counters(&self, declaration: &Declaration) -> Family<Counter> {
        let arena = self.inner.arena.clone();
        let new = self.family(declaration, move || Counter {
            arena: arena.clone(),
            slot: arena.reserve(1).unwrap_or(FULL),
        });
        match self.register(declaration, || Values::Counters(new.clone())) {
            Values::Counters(family) => family,
            _ => new,
        }
    }

    /// The counter of a declaration without labels.
    #[must_use]
    pub fn counter(&self, declaration: &Declaration) -> Counter {
        self.counters(declaration).get(&[])
    }

    /// The levels of a gauge declaration with labels: raised and lowered on the data path.
    #[must_use]
    pub fn levels(&self, declaration: &Declaration) -> Family<Level> {
        let arena = self.inner.arena.clone();
        let new = self.family(declaration, move || Level {
            arena: arena.clone(),
            slot: arena.reserve(1).unwrap_or(FULL),
        });
        match self.register(declaration, || Values::Levels(new.clone())) {
            Values::Levels(family) => family,
            _ => new,
        }
    }

    /// The level of a gauge declaration without labels.
    #[must_use]
    pub fn level(&self, declaration: &Declaration) -> Level {
        self.levels(declaration).get(&[])
    }

    /// The gauges of a declaration with labels: set off the data path.
    #[must_use]
    pub fn gauges(&self, declaration: &Declaration) -> Family<Gauge> {
        let new = self.family(declaration, || Gauge {
            bits: Arc::new(AtomicU64::new(0)),
        });
        match self.register(declaration, || Values::Gauges(new.clone())) {
            Values::Gauges(family) => family,
            _ => new,
        }
    }

    /// The gauge of a declaration without labels.
    #[must_use]
    pub fn gauge(&self, declaration: &Declaration) -> Gauge {
        self.gauges(declaration).get(&[])
    }

    /// A gauge or counter whose value is asked for when somebody looks.
    pub fn observe(&self, declaration: &Declaration, value: impl Fn() -> f64 + Send + Sync + 'static) {
        self.observe_all(declaration, move || vec![(Vec::new(), value())]);
    }

    /// As [`Registry::observe`], with label values; the caller bounds how many.
    pub fn observe_all(
        &self,
        declaration: &Declaration,
        values: impl Fn() -> Vec<(Vec<String>, f64)> + Send + Sync + 'static,
    ) {
        self.register(declaration, || Values::Observed(Arc::new(values)));
    }

    /// The histograms of a declaration with labels.
    #[must_use]
    pub fn histograms(&self, declaration: &Declaration) -> Family<Histogram> {
        let arena = self.inner.arena.clone();
        let buckets = match declaration.kind {
            Kind::Histogram(buckets) => buckets,
            Kind::Counter | Kind::Gauge => Buckets::SECONDS,
        };
        let new = self.family(declaration, move || Histogram {
            arena: arena.clone(),
            slot: arena.reserve(buckets.bounds.len() + 2).unwrap_or(FULL - 1024),
            bounds: buckets.bounds,
            exemplars: Arc::default(),
        });
        match self.register(declaration, || Values::Histograms(new.clone())) {
            Values::Histograms(family) => family,
            _ => new,
        }
    }

    /// The histogram of a declaration without labels.
    #[must_use]
    pub fn histogram(&self, declaration: &Declaration) -> Histogram {
        self.histograms(declaration).get(&[])
    }

    /// What has been registered.
    #[must_use]
    pub fn declarations(&self) -> Vec<Declaration> {
        let metrics = self.inner.metrics.lock();
        metrics.values().map(|metric| metric.declaration).collect()
    }

    pub(super) fn metrics(&self) -> Vec<Registered> {
        self.inner.metrics.lock().values().cloned().collect()
    }
}
