//! Whether a function is alive, and ready to serve; with the reason when not.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::dependency::{Dependency, DependencyRow, Standing};

/// What a function needs, and whether it has it; cheap to clone. Without components it is ready.
#[derive(Clone, Debug)]
pub struct Health {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    started: Instant,
    stopping: AtomicBool,
    /// Why each component is not ready; `None` when it is.
    components: Mutex<BTreeMap<String, Option<String>>>,
    /// What is wrong with components that are ready.
    remarks: Mutex<BTreeMap<String, String>>,
    dependencies: Mutex<BTreeMap<String, Dependency>>,
    pulses: Mutex<Vec<Watched>>,
}

#[derive(Debug)]
struct Watched {
    name: String,
    longest: Duration,
    /// Milliseconds since `started` of the last beat.
    last: Arc<AtomicU64>,
}

impl Default for Health {
    fn default() -> Self {
        Self::new()
    }
}

impl Health {
    /// Alive and ready.
    #[must_use]
    pub fn new() -> Self {
        Self {
            inner: Arc::new(Inner {
                started: Instant::now(),
                stopping: AtomicBool::new(false),
                components: Mutex::default(),
                remarks: Mutex::default(),
                dependencies: Mutex::default(),
                pulses: Mutex::default(),
            }),
        }
    }

    /// Something the function needs before it is ready; it is not, until [`Component::ready`].
    #[must_use]
    pub fn component(&self, name: &str) -> Component {
        self.inner
            .components
            .lock()
            .insert(name.to_owned(), Some("starting".to_owned()));
        Component {
            health: self.clone(),
            name: name.to_owned(),
        }
    }

    /// A thread that must beat at least every `longest`, or the process is not alive: a worker that hangs
    /// serves no request, and only a restart helps.
    #[must_use]
    pub fn pulse(&self, name: &str, longest: Duration) -> Pulse {
        let last = Arc::new(AtomicU64::new(self.millis()));
        self.inner.pulses.lock().push(Watched {
            name: name.to_owned(),
            longest,
            last: last.clone(),
        });
        Pulse {
            started: self.inner.started,
            last,
        }
    }

    /// From now on not ready: new requests should go elsewhere while those in flight finish.
    pub fn stop(&self) {
        self.inner.stopping.store(true, Ordering::Relaxed);
    }

    /// Whether [`Health::stop`] was called.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.inner.stopping.load(Ordering::Relaxed)
    }

    /// Why the function is not ready; empty when it is.
    #[must_use]
    pub fn not_ready(&self) -> BTreeMap<String, String> {
        let mut reasons: BTreeMap<String, String> = self
            .inner
            .components
            .lock()
            .iter()
            .filter_map(|(name, reason)| Some((name.clone(), reason.clone()?)))
            .collect();
        if self.inner.stopping.load(Ordering::Relaxed) {
            reasons.insert("process".to_owned(), "stopping".to_owned());
        }
        reasons
    }

    /// What is wrong although the function can serve: remarks of components, and dependencies that fail.
    #[must_use]
    pub fn remarks(&self) -> BTreeMap<String, String> {
        let mut remarks = self.inner.remarks.lock().clone();
        for one in self.dependencies() {
            if one.state == Standing::Failing {
                remarks.entry(one.name.clone()).or_insert_with(|| one.in_words());
            }
        }
        remarks
    }

    /// What the function needs of others: the one of this name, which is listed from now on. Names are few and fixed.
    #[must_use]
    pub fn dependency(&self, name: &str) -> Dependency {
        let mut all = self.inner.dependencies.lock();
        let known = all.entry(name.to_owned());
        known.or_insert_with(|| Dependency::new(name)).clone()
    }

    /// A dependency is not needed any more.
    pub fn without(&self, name: &str) {
        self.inner.dependencies.lock().remove(name);
    }

    /// All dependencies, by name.
    #[must_use]
    pub fn dependencies(&self) -> Vec<DependencyRow> {
        let known = self.inner.dependencies.lock();
        known.values().map(Dependency::row).collect()
    }

    /// Why the function is not alive; empty when it is.
    #[must_use]
    pub fn not_alive(&self) -> BTreeMap<String, String> {
        let now = self.millis();
        let mut pulses = self.inner.pulses.lock();
        // A pulse whose thread has ended is not missed.
        pulses.retain(|pulse| Arc::strong_count(&pulse.last) > 1);
        pulses
            .iter()
            .filter_map(|pulse| {
                let silent = Duration::from_millis(now.saturating_sub(pulse.last.load(Ordering::Relaxed)));
                (silent > pulse.longest).then(|| (pulse.name.clone(), format!("silent for {silent:?}")))
            })
            .collect()
    }

    /// How long ago this was made: the age of the function.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.inner.started.elapsed()
    }

    fn millis(&self) -> u64 {
        u64::try_from(self.inner.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Says for one component whether it is ready.
#[derive(Clone, Debug)]
pub struct Component {
    health: Health,
    name: String,
}

impl Component {
    /// It is.
    pub fn ready(&self) {
        self.set(None);
    }

    /// It is not, because of this.
    pub fn not_ready(&self, reason: impl Into<String>) {
        self.set(Some(reason.into()));
    }

    /// What is wrong with it although it can serve; `None`: nothing.
    pub fn remark(&self, remark: Option<String>) {
        let mut remarks = self.health.inner.remarks.lock();
        match remark {
            Some(remark) => remarks.insert(self.name.clone(), remark),
            None => remarks.remove(&self.name),
        };
    }

    fn set(&self, reason: Option<String>) {
        self.health
            .inner
            .components
            .lock()
            .insert(self.name.clone(), reason);
    }
}

/// The pulse of one thread.
#[derive(Debug)]
pub struct Pulse {
    started: Instant,
    last: Arc<AtomicU64>,
}

impl Pulse {
    /// The thread is alive at `now`.
    pub fn beat(&self, now: Instant) {
        let millis = now.saturating_duration_since(self.started).as_millis();
        self.last
            .store(u64::try_from(millis).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_make_ready() {
        let health = Health::new();
        assert!(health.not_ready().is_empty());
        let store = health.component("store");
        assert_eq!(health.not_ready()["store"], "starting");
        store.not_ready("no disk");
        assert_eq!(health.not_ready()["store"], "no disk");
        store.ready();
        assert!(health.not_ready().is_empty());
        store.remark(Some("damaged".to_owned()));
        assert!(health.not_ready().is_empty());
        assert_eq!(health.remarks()["store"], "damaged");
        store.remark(None);
        assert!(health.remarks().is_empty());
        health.stop();
        assert_eq!(health.not_ready()["process"], "stopping");
    }

    #[test]
    fn a_silent_thread_is_told_and_an_ended_one_is_not() {
        let health = Health::new();
        let pulse = health.pulse("worker-0", Duration::ZERO);
        pulse.beat(Instant::now() + Duration::from_secs(3600));
        assert!(health.not_alive().is_empty());
        // Back to the start, which is before now by more than nothing.
        pulse.beat(pulse.started);
        while health.age() < Duration::from_millis(2) {
            std::hint::spin_loop();
        }
        assert!(health.not_alive()["worker-0"].starts_with("silent for"));
        drop(pulse);
        assert!(health.not_alive().is_empty());
    }
}
