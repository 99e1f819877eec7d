//! Changes of records, and their JSON.

use std::fmt;

use numbers::DestinationSet;
use sbi::Body;
use serde::Deserializer as _;
use serde::de::{Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::subject::Subject;

/// Changes of one transaction, at most.
pub(crate) const MOST_CHANGES: usize = 1_000;
/// Bytes of a record or of a group as JSON, at most.
pub(crate) const MOST_RECORD: usize = 64 * 1_024;

/// A record that is set or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) subject: Subject,
    /// None: the record is removed.
    pub(crate) destinations: Option<DestinationSet>,
    /// What the record has to be before: these destinations, or absent. None: whatever it is.
    pub(crate) expected: Option<Option<DestinationSet>>,
}

impl Change {
    pub(crate) const fn new(subject: Subject, destinations: Option<DestinationSet>) -> Self {
        Self {
            subject,
            destinations,
            expected: None,
        }
    }

    /// A change as an object: a member that names the subject, `destinations`, perhaps `expected`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn from_json(value: &Value) -> Result<Self, String> {
        let members = value.as_object().ok_or("expected an object")?;
        let mut subject = None;
        for (name, value) in members {
            if name == "destinations" || name == "expected" {
                continue;
            }
            let value = value
                .as_str()
                .ok_or_else(|| format!("{name}: expected a string"))?;
            let parsed = Subject::parse(name, value).map_err(|error| format!("{name}: {error}"))?;
            if subject.replace(parsed).is_some() {
                return Err(format!("{name}: the change has another subject already"));
            }
        }
        let subject = subject.ok_or("no subject; expected imsi, msisdn, imei or name")?;
        let destinations = destinations(members, "destinations")?;
        Ok(Self {
            subject,
            destinations: destinations
                .ok_or("destinations: missing; expected a string, or null to remove")?,
            expected: self::destinations(members, "expected")?,
        })
    }

    /// About how many bytes it takes in the journal.
    pub(crate) fn weight(&self) -> usize {
        let name = match &self.subject {
            Subject::Number(_) => 15,
            Subject::Name(name) => name.len(),
        };
        40 + name + self.destinations.as_ref().map_or(4, |set| set.as_str().len())
    }

    /// Appends the change as the journal has it.
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"");
        out.extend_from_slice(self.subject.kind().as_bytes());
        out.extend_from_slice(b"\":");
        match &self.subject {
            Subject::Number(_) => {
                out.push(b'"');
                out.extend_from_slice(self.subject.value().as_bytes());
                out.push(b'"');
            }
            Subject::Name(name) => write_text(name, out),
        }
        out.extend_from_slice(b",\"destinations\":");
        match &self.destinations {
            Some(set) => write_text(set.as_str(), out),
            None => out.extend_from_slice(b"null"),
        }
        out.push(b'}');
    }
}

/// The member of this name: none where it is absent, `Some(None)` where it is `null`.
fn destinations(members: &Map<String, Value>, name: &str) -> Result<Option<Option<DestinationSet>>, String> {
    match members.get(name) {
        None => Ok(None),
        Some(Value::Null) => Ok(Some(None)),
        Some(Value::String(text)) => DestinationSet::parse(text)
            .map(|set| Some(Some(set)))
            .map_err(|error| format!("{name}: {error}")),
        Some(_) => Err(format!("{name}: expected a string or null")),
    }
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    // A string always has a form in JSON, and a vector takes it.
    let _ = serde_json::to_writer(out, text);
}

/// The changes of a transaction, a JSON array. What is wrong takes little memory: each change is parsed by itself, and nothing
/// behind the last one that may be there.
///
/// # Errors
/// The first one that is wrong, from 1, and why; 0 for the whole.
pub(crate) fn transaction(text: &[u8]) -> Result<Vec<Change>, (usize, String)> {
    read(text, |change| {
        if change.len() > MOST_RECORD {
            return Err(format!("more than {MOST_RECORD} bytes"));
        }
        let parsed = sbi::json::parse_unique(&Body::from(change.to_owned()));
        parsed.map_err(|problem| problem.details().detail.clone().unwrap_or_default())
    })
}

/// Reads an array of changes, each of which `parse` parses.
fn read(text: &[u8], parse: impl Fn(&str) -> Result<Value, String>) -> Result<Vec<Change>, (usize, String)> {
    let mut array = Array {
        parse,
        changes: Vec::new(),
        wrong: None,
    };
    let mut json = serde_json::Deserializer::from_slice(text);
    let read = json.deserialize_seq(&mut array).and_then(|()| json.end());
    if let Some(wrong) = array.wrong {
        return Err(wrong);
    }
    read.map_err(|error| (0, error.to_string()))?;
    check(&array.changes)?;
    Ok(array.changes)
}

/// An array of changes that is being read.
struct Array<P> {
    parse: P,
    changes: Vec<Change>,
    /// The first one that is wrong.
    wrong: Option<(usize, String)>,
}

impl<'de, P: Fn(&str) -> Result<Value, String>> Visitor<'de> for &mut Array<P> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an array of changes")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<(), A::Error> {
        while let Some(text) = array.next_element::<&RawValue>()? {
            let taken = match self.changes.len() {
                MOST_CHANGES => Err(too_many()),
                count => (self.parse)(text.get())
                    .and_then(|value| Change::from_json(&value))
                    .map_err(|reason| (count + 1, reason)),
            };
            match taken {
                Ok(change) => self.changes.push(change),
                Err(wrong) => {
                    self.wrong = Some(wrong);
                    return Err(A::Error::custom("a change is wrong"));
                }
            }
        }
        Ok(())
    }
}

fn too_many() -> (usize, String) {
    let reason = format!("a transaction has at most {MOST_CHANGES} changes");
    (MOST_CHANGES + 1, reason)
}

/// Checks the changes of a transaction against one another.
///
/// # Errors
/// As [`transaction`].
pub(crate) fn check(changes: &[Change]) -> Result<(), (usize, String)> {
    if changes.is_empty() {
        return Err((0, "no change".to_owned()));
    }
    if changes.len() > MOST_CHANGES {
        return Err(too_many());
    }
    let mut seen = std::collections::HashSet::with_capacity(changes.len());
    for (at, change) in changes.iter().enumerate() {
        if !seen.insert(&change.subject) {
            return Err((at + 1, format!("{} is in the transaction twice", change.subject)));
        }
    }
    Ok(())
}

/// Changes as the journal has them: a JSON array.
pub(crate) fn encode(changes: &[Change]) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 * changes.len());
    out.push(b'[');
    for (at, change) in changes.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        change.write(&mut out);
    }
    out.push(b']');
    out
}

/// Changes of the journal.
///
/// # Errors
/// What is wrong with them.
pub(crate) fn decode(bytes: &[u8]) -> Result<Vec<Change>, String> {
    let changes = read(bytes, |change| {
        serde_json::from_str(change).map_err(|error| error.to_string())
    });
    changes.map_err(|(at, reason)| format!("change {at}: {reason}"))
}

/// The member that names a subject, beside others.
pub(crate) fn named(subject: &Subject, more: Value) -> Value {
    let mut shown = Map::new();
    shown.insert(subject.kind().to_owned(), subject.value().into());
    if let Value::Object(more) = more {
        shown.extend(more);
    }
    Value::Object(shown)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changes_read_back() {
        let sent = json!([
            {"imsi": "001010000000001", "destinations": "hss1.example,pcrf=pcrf7.example"},
            {"name": "a\"b@c", "destinations": null},
        ]);
        let changes = transaction(sent.to_string().as_bytes()).unwrap();
        let encoded = encode(&changes);
        assert_eq!(serde_json::from_slice::<Value>(&encoded).unwrap(), sent);
        assert_eq!(decode(&encoded).unwrap(), changes);
    }

    #[test]
    fn what_is_not_a_transaction_is_refused_with_position_and_reason() {
        let one = json!({"imsi": "1", "destinations": "a"});
        for (sent, at, reason) in [
            (json!({}), 0, "array"),
            (json!([]), 0, "no change"),
            (json!([one, 7]), 2, "object"),
            (json!([one, one]), 2, "twice"),
            (json!([{"destinations": "a"}]), 1, "no subject"),
            (json!([{"imsi": "1"}]), 1, "missing"),
            (
                json!([{"imsi": "1", "msisdn": "2", "destinations": null}]),
                1,
                "another subject",
            ),
            (
                json!([{"imsi": "1", "color": "2", "destinations": null}]),
                1,
                "unknown kind",
            ),
            (json!([{"imsi": 1, "destinations": null}]), 1, "string"),
            (json!([{"imsi": "1", "destinations": "a b"}]), 1, "destinations"),
            (
                json!([{"imsi": "1", "destinations": null, "expected": 4}]),
                1,
                "expected",
            ),
            (json!(vec![&one; 1_001]), 1_001, "at most"),
        ] {
            let (found, why) = transaction(sent.to_string().as_bytes()).unwrap_err();
            assert_eq!(found, at, "{why}");
            assert!(why.contains(reason), "{why}");
        }
    }

    #[test]
    fn what_follows_the_first_wrong_change_is_not_parsed() {
        let one = r#"{"imsi": "1", "destinations": null}"#;
        let long = format!(r#"{{"imsi": "{}"}}"#, "1".repeat(MOST_RECORD));
        for (sent, at, reason) in [
            (
                format!("[{}]]", format!("{one}, ").repeat(1_001)),
                1_001,
                "at most",
            ),
            (format!("[{one}, 7, }}"), 2, "object"),
            (format!("[{one}, {long}, }}"), 2, "more than 65536"),
            (r#"[{"imsi": "1", "imsi": "2"}, }"#.to_owned(), 1, "twice"),
            (format!("[{one}"), 0, "EOF"),
            (format!("[{one}] 7"), 0, "trailing"),
        ] {
            let (found, why) = transaction(sent.as_bytes()).unwrap_err();
            assert_eq!(found, at, "{why}");
            assert!(why.contains(reason), "{why}");
        }
    }
}
