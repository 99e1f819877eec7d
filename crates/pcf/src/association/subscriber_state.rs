//! State variables that all associations of a subscriber share (`rememberSubscriber` of policy projects), which outlive them.
//! No IO.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::{DecodeError, Index, IndexKeys, IndexSchema, Key, Record, TableSchema, Version};
use time::{Duration, OffsetDateTime};

use super::address;

/// The state variables of a subscriber, as the store keeps them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriberState {
    /// SUPI, or GPSI where no SUPI is known; the key of the record.
    pub subscriber: String,
    /// Variables by name; none is null.
    pub variables: Map<String, Value>,
    /// When the record expires unless it is written again, in microseconds since 1970.
    pub expires: u64,
}

impl SubscriberState {
    /// The key of a subscriber's variables.
    #[must_use]
    pub fn key_of(subscriber: &str) -> Key {
        address::text_key(subscriber)
    }
}

impl Record for SubscriberState {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "pcf_subscriber_state",
        indexes: &[IndexSchema::many("expiry").ordered()],
        by_modified: false,
        sql: None,
    };
    const EXPIRY: Option<Index> = Some(Index(0));

    fn key(&self) -> Key {
        Self::key_of(&self.subscriber)
    }

    fn index(&self, _: &mut IndexKeys) {}

    fn expires(&self) -> Option<u64> {
        Some(self.expires)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        // Values of serde_json and texts: what cannot fail to be JSON.
        out.extend(serde_json::to_vec(self).unwrap_or_default());
    }

    fn decode(_: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        serde_json::from_slice(value).map_err(|error| DecodeError(error.to_string()))
    }
}

/// Bounds of the variables of a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Variables.
    pub variables: usize,
    /// Size of their names and of their values as JSON, in bytes.
    pub bytes: usize,
    /// How long they are kept after the last decision that set one.
    pub retention: std::time::Duration,
}

/// The variables of a subscriber that a request has read, and what it changes of them; written together with the association.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StateDraft {
    record: Option<SubscriberState>,
    version: Option<Version>,
    is_changed: bool,
    refused: Vec<String>,
}

impl StateDraft {
    /// Whether the request has read the variables.
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.record.is_some()
    }

    /// Takes what the store has of a subscriber.
    pub fn read(&mut self, subscriber: &str, stored: Option<store::Stored<SubscriberState>>) {
        let (variables, expires, version) = match stored {
            Some(stored) => (
                stored.record.variables,
                stored.record.expires,
                Some(stored.version),
            ),
            None => (Map::new(), 0, None),
        };
        *self = Self {
            record: Some(SubscriberState {
                subscriber: subscriber.to_owned(),
                variables,
                expires,
            }),
            version,
            ..Self::default()
        };
    }

    /// What policies read as `$subscriberState`.
    #[must_use]
    pub fn variables(&self) -> Value {
        match &self.record {
            Some(record) => Value::Object(record.variables.clone()),
            None => Value::Null,
        }
    }

    /// Sets variables that were read before; null removes one. A variable that exceeds the bounds is refused, and what it was
    /// before stays.
    pub fn set(&mut self, variables: Map<String, Value>, bounds: Bounds, now: OffsetDateTime) {
        let Some(record) = &mut self.record else {
            self.refused.extend(variables.into_iter().map(|(name, _)| name));
            return;
        };
        let (removed, set): (Vec<_>, Vec<_>) = variables.into_iter().partition(|(_, value)| value.is_null());
        for (name, _) in removed {
            self.is_changed |= record.variables.shift_remove(&name).is_some();
        }
        let mut total: usize = record
            .variables
            .iter()
            .map(|(name, value)| bytes_of(name, value))
            .sum();
        let mut is_kept = false;
        for (name, value) in set {
            let before = record.variables.get(&name);
            if before == Some(&value) {
                is_kept = true;
                continue;
            }
            let others = total - before.map_or(0, |before| bytes_of(&name, before));
            let with = others.saturating_add(bytes_of(&name, &value));
            let is_full = before.is_none() && record.variables.len() >= bounds.variables;
            if is_full || with > bounds.bytes {
                self.refused.push(name);
                continue;
            }
            total = with;
            record.variables.insert(name, value);
            self.is_changed = true;
        }
        // What is set again and again without a change is written again before half of its time is over, and not each time.
        let is_old = is_kept && record.expires < micros(now, bounds.retention / 2);
        self.is_changed |= is_old && !record.variables.is_empty();
        if self.is_changed {
            record.expires = micros(now, bounds.retention);
        }
    }

    /// The variables, where they are to be written; without any the record is to be deleted.
    #[must_use]
    pub fn to_write(&self) -> Option<&SubscriberState> {
        self.record.as_ref().filter(|_| self.is_changed)
    }

    /// The version that was read; `None`: there was no record.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.version
    }

    /// Variables that were refused.
    #[must_use]
    pub fn refused(&self) -> &[String] {
        &self.refused
    }
}

/// A time from now, in microseconds since 1970.
fn micros(now: OffsetDateTime, later: std::time::Duration) -> u64 {
    let at = now.saturating_add(Duration::try_from(later).unwrap_or(Duration::MAX));
    u64::try_from(at.unix_timestamp_nanos() / 1_000).unwrap_or(u64::MAX)
}

/// The size of a variable.
fn bytes_of(name: &str, value: &Value) -> usize {
    name.len() + value.to_string().len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use store::Stored;

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;
    const BOUNDS: Bounds = Bounds {
        variables: 2,
        bytes: 20,
        retention: std::time::Duration::from_secs(100),
    };

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(members) => members,
            other => panic!("{other}"),
        }
    }

    fn read(variables: Value, expires: u64) -> StateDraft {
        let mut draft = StateDraft::default();
        let record = SubscriberState {
            subscriber: "imsi-1".to_owned(),
            variables: object(variables),
            expires,
        };
        let stored = Stored {
            record,
            version: Version::default(),
            created: 0,
            site: "".into(),
        };
        draft.read("imsi-1", Some(stored));
        draft
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let mut draft = StateDraft::default();
        draft.read("imsi-1", None);
        draft.set(object(json!({"roaming": true, "n": 1.5})), BOUNDS, NOW);
        let record = draft.to_write().unwrap();
        assert_eq!(record.expires, 100_000_000);
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        assert_eq!(SubscriberState::decode(&record.key(), &bytes), Ok(record.clone()));
        assert!(SubscriberState::decode(&record.key(), b"[]").is_err());
    }

    #[test]
    fn variables_are_bounded_in_number_and_size() {
        let mut draft = read(json!({"a": 1}), u64::MAX);
        // Removed ones make room, a refused one stays as it was.
        draft.set(object(json!({"b": "0123456789", "c": 2, "a": null})), BOUNDS, NOW);
        assert_eq!(draft.variables(), json!({"b": "0123456789", "c": 2}));
        draft.set(object(json!({"d": 1, "c": "012345", "b": 1})), BOUNDS, NOW);
        assert_eq!(draft.variables(), json!({"b": 1, "c": 2}));
        assert_eq!(draft.refused(), ["d", "c"]);
        draft.set(object(json!({"c": "012345"})), BOUNDS, NOW);
        assert_eq!(draft.variables(), json!({"b": 1, "c": "012345"}));
    }

    #[test]
    fn only_a_change_or_half_of_the_time_causes_a_write() {
        let second = 1_000_000;
        for (set, expires, is_written) in [
            (json!({}), 0, false),
            (json!({"a": 1}), 51 * second, false),
            (json!({"a": 1}), 49 * second, true),
            (json!({"a": 2}), 99 * second, true),
            (json!({"b": null}), 99 * second, false),
            (json!({"a": null}), 99 * second, true),
        ] {
            let mut draft = read(json!({"a": 1}), expires);
            draft.set(object(set.clone()), BOUNDS, NOW);
            assert_eq!(draft.to_write().is_some(), is_written, "{set}");
        }
    }

    #[test]
    fn without_a_subscriber_no_variable_is_kept() {
        let mut draft = StateDraft::default();
        draft.set(object(json!({"a": 1})), BOUNDS, NOW);
        assert_eq!((draft.to_write(), draft.variables()), (None, Value::Null));
        assert_eq!(draft.refused(), ["a"]);
    }
}
