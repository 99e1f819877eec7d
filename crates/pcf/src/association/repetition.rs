//! Updates that a consumer, or an SCP in its place, sends again: each report counts once, and the answer is whole.
//!
//! A body says nothing: two portions of a quota that are used up give the same report twice. What distinguishes a request that is
//! sent again from the next one is in its headers (TS 29.500 §5.2.3): the `idempotency-key` of `3gpp-Sbi-Request-Info`; its
//! `retrans`, with the body of an earlier update; or the `3gpp-Sbi-Sender-Timestamp` of an earlier update with the same body,
//! which an SCP leaves as it is when it tries another PCF of the set. A request without any of these is a new one.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Association, decision};

/// The room of an association that has its last updates with a report of usage or a changed decision.
const ROOM: &str = "reports";
/// Updates that an association has at most; the oldest is evicted.
const MOST: usize = 8;

/// What distinguishes a request from others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    /// Hash of the body.
    pub body: u64,
    /// Hash of the idempotency key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<u64>,
    /// When it was sent, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<i64>,
    /// Whether its sender says that it was sent before.
    #[serde(skip)]
    pub is_retransmitted: bool,
}

impl Mark {
    /// Whether a request is `earlier` that was sent again.
    fn repeats(&self, earlier: &Self) -> bool {
        if self.key.is_some() && earlier.key.is_some() {
            return self.key == earlier.key;
        }
        let same_moment = self.sent.is_some() && self.sent == earlier.sent;
        self.body == earlier.body && (same_moment || self.is_retransmitted)
    }
}

/// An update, and what its answer has removed.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Report {
    #[serde(flatten)]
    mark: Mark,
    /// Entries by section, and members, that the answer has the consumer remove.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    removed: Map<String, Value>,
}

/// What the answer to an earlier copy of this request has removed; `None`: the request is new.
#[must_use]
pub fn earlier(association: &Association, mark: &Mark) -> Option<Map<String, Value>> {
    // Most requests have no header that could name an earlier one: nothing is parsed for them.
    if mark.key.is_none() && mark.sent.is_none() && !mark.is_retransmitted {
        return None;
    }
    // The newest one: of several with the same body it is the one whose answer may have been lost.
    let mut reports = reports(association).into_iter().rev();
    let found = reports.find(|report| mark.repeats(&report.mark));
    found.map(|report| report.removed)
}

/// Notes an update, and what it removes of the decision `before`.
pub fn note(association: &mut Association, mark: &Mark, before: &Map<String, Value>) {
    let removed = removed(before, &association.decision());
    let mut all = reports(association);
    if all.len() >= MOST {
        all.drain(..=all.len() - MOST);
    }
    all.push(Report {
        mark: mark.clone(),
        removed,
    });
    if let Ok(room) = serde_json::to_value(all) {
        association.rooms.insert(ROOM.to_owned(), room);
    }
}

fn reports(association: &Association) -> Vec<Report> {
    let room = association.rooms.get(ROOM);
    room.and_then(|room| Vec::deserialize(room).ok())
        .unwrap_or_default()
}

/// Entries of sections, and members, that were removed.
fn removed(before: &Map<String, Value>, after: &Map<String, Value>) -> Map<String, Value> {
    let mut sections = Map::new();
    for (section, entries) in before {
        let stays = |id: &str| after.get(section).is_some_and(|new| new.get(id).is_some());
        if decision::REMOVABLE.contains(&section.as_str()) && !after.contains_key(section) {
            sections.insert(section.clone(), entries.clone());
            continue;
        }
        let entries = entries.as_object().into_iter().flatten();
        let gone = entries.filter(|(id, _)| !stays(id));
        let gone: Map<String, Value> = gone
            .map(|(id, _)| (id.clone(), Value::Object(Map::new())))
            .collect();
        if !gone.is_empty() {
            sections.insert(section.clone(), Value::Object(gone));
        }
    }
    sections
}

/// FNV-1a, which is the same in each version of the PCF.
#[must_use]
pub fn hash(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;
    use serde_json::json;

    fn mark(body: u64, key: Option<u64>, sent: Option<i64>) -> Mark {
        Mark {
            body,
            key,
            sent,
            is_retransmitted: false,
        }
    }

    #[test]
    fn headers_tell_a_repetition_from_the_next_report() {
        let mut one = Association::new(Kind::Sm, json!({}));
        note(&mut one, &mark(1, Some(7), Some(1_000)), &Map::new());
        let known = |mark: &Mark| earlier(&one, mark).is_some();
        assert!(known(&mark(2, Some(7), None)), "the key counts");
        assert!(!known(&mark(1, Some(8), Some(1_000))), "another key");
        assert!(known(&mark(1, None, Some(1_000))));
        assert!(!known(&mark(1, None, Some(1_001))), "the next portion");
        assert!(!known(&mark(2, None, Some(1_000))));
        assert!(!known(&mark(1, None, None)), "no header");
        let again = Mark {
            is_retransmitted: true,
            ..mark(1, None, Some(9_000))
        };
        assert!(known(&again));
    }

    #[test]
    fn reports_are_bounded_and_have_what_was_removed() {
        let mut one = Association::new(Kind::Sm, json!({}));
        let before = json!({"umDecs": {"month": {}}, "online": true, "triggers": ["LOC_CH"]});
        for number in 0..20 {
            note(
                &mut one,
                &mark(number, Some(number), None),
                before.as_object().unwrap(),
            );
        }
        assert_eq!(reports(&one).len(), MOST);
        assert!(earlier(&one, &mark(0, Some(0), None)).is_none());
        let removed = earlier(&one, &mark(0, Some(19), None)).unwrap();
        let expected = json!({"umDecs": {"month": {}}, "triggers": ["LOC_CH"]});
        assert_eq!(Value::Object(removed), expected);
    }
}
