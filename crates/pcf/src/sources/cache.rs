//! Policy data of subscribers, as a worker has read them last.

use std::rc::Rc;
use std::time::{Duration, Instant};

use ::policy::Service;
use bounded::{Cache, Limits};
use serde_json::Value;

use super::now_ms;
use crate::config::PdsCache;

/// Bytes of an entry beside its document.
const ENTRY_BYTES: usize = 200;

/// Which document of which subscriber.
type Key = (Box<str>, Service);

/// A document, and of when and which version it is.
#[derive(Clone, Debug)]
struct Held {
    document: Rc<Value>,
    read: Instant,
    /// The same, in milliseconds since 1970.
    read_ms: u64,
    version: u64,
}

/// Cached documents.
#[derive(Debug)]
pub(crate) struct PolicyDataCache {
    held: Cache<Key, Held>,
    age: Duration,
}

impl PolicyDataCache {
    pub(crate) fn new(settings: &PdsCache) -> Self {
        Self {
            held: Cache::new(limits(settings)),
            age: settings.age.duration(),
        }
    }

    /// Takes other settings.
    pub(crate) fn reconfigure(&mut self, settings: &PdsCache) {
        self.held.set_limits(limits(settings));
        self.age = settings.age.duration();
    }

    /// A document that is of this version and not too old, and when it was read, in milliseconds since 1970.
    pub(crate) fn fresh(
        &self,
        supi: &str,
        service: Service,
        version: u64,
        now: Instant,
    ) -> Option<(Rc<Value>, u64)> {
        let is_fresh =
            |held: &Held| held.version == version && now.saturating_duration_since(held.read) < self.age;
        let held = self.held.get_if(&(Box::from(supi), service), is_fresh)?;
        Some((held.document.clone(), held.read_ms))
    }

    /// A document of whatever version and age.
    pub(crate) fn any(&self, supi: &str, service: Service) -> Option<Rc<Value>> {
        Some(self.held.peek(&(Box::from(supi), service))?.document.clone())
    }

    /// Holds a document that was read at a version.
    pub(crate) fn hold(
        &mut self,
        supi: &str,
        service: Service,
        document: Rc<Value>,
        (version, now): (u64, Instant),
    ) {
        let bytes = size(&document) + supi.len() + ENTRY_BYTES;
        let held = Held {
            document,
            read: now,
            read_ms: now_ms(),
            version,
        };
        self.held.insert_sized((Box::from(supi), service), held, bytes);
    }

    /// The UDR does not have it any more.
    pub(crate) fn remove(&mut self, supi: &str, service: Service) {
        self.held.remove(&(Box::from(supi), service));
    }
}

fn limits(settings: &PdsCache) -> Limits {
    Limits {
        entries: settings.entries,
        bytes: settings.bytes.as_usize(),
    }
}

/// What a document takes in memory, roughly.
fn size(value: &Value) -> usize {
    let own = size_of::<Value>();
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => own,
        Value::String(text) => own + text.len(),
        Value::Array(items) => own + items.iter().map(size).sum::<usize>(),
        Value::Object(members) => {
            own + members
                .iter()
                .map(|(name, value)| name.len() + 2 * size_of::<usize>() + size(value))
                .sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use settings::{ByteSize, Period};

    #[test]
    fn a_document_is_fresh_until_it_is_old_or_another_version() {
        let settings = PdsCache {
            entries: 2,
            bytes: ByteSize::kib(64),
            age: Period::from_secs(10),
        };
        let mut cache = PolicyDataCache::new(&settings);
        let start = Instant::now();
        cache.hold("a", Service::Sm, Rc::new(json!({"x": 1})), (7, start));
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(
            *cache.fresh("a", Service::Sm, 7, at(9)).unwrap().0,
            json!({"x": 1})
        );
        assert!(cache.fresh("a", Service::Am, 7, at(9)).is_none());
        assert!(cache.fresh("a", Service::Sm, 8, at(9)).is_none());
        assert!(cache.fresh("a", Service::Sm, 7, at(10)).is_none());
        assert!(cache.any("a", Service::Sm).is_some());
        for other in ["b", "c", "d"] {
            cache.hold(other, Service::Sm, Rc::new(json!({})), (0, start));
        }
        assert!(cache.held.len() <= 2);
        let large = Rc::new(json!("x".repeat(100_000)));
        cache.hold("e", Service::Sm, large, (0, start));
        assert!(cache.held.bytes() <= 64 * 1024, "{} bytes", cache.held.bytes());
    }
}
