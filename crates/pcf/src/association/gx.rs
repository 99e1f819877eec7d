//! What the PCF keeps of a Gx session (TS 29.212) beside its context: how its PCEF is reached.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Association;

/// The room of an association that this is in.
const ROOM: &str = "gx";

/// How the PCEF of a session is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PcefSession {
    /// Session-Id.
    pub session_id: String,
    /// Whether its name in the index is [`name`]; sessions of before have the bare Session-Id, until they end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prefixed: bool,
    /// Origin-Host of the PCEF.
    pub host: String,
    /// Origin-Realm of the PCEF.
    pub realm: String,
    /// The peer that its requests come from: the PCEF, or an agent.
    pub peer: String,
    /// Highest CC-Request-Number of a CCR.
    #[serde(default)]
    pub number: u32,
    /// Which numbers below it have come, as bits from the lowest for `number` itself. Of sessions of before: all.
    #[serde(default = "all_seen")]
    pub seen: u64,
    /// Origin-State-Id of the PCEF when the session began or was updated last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin_state: Option<u32>,
    /// Whether the PCEF measures usage: it has negotiated feature `Rel9` (TS 29.212 §5.4.1).
    #[serde(default)]
    pub measures: bool,
    /// Whether the PCEF restores P-CSCFs: it has negotiated feature `PCSCF-Restoration-Enhancement`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restores: bool,
    /// Whether a RAR was not answered: the PCEF may or may not have what it was sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub doubt: bool,
    /// Number of such RARs: a whole decision settles the doubts of before it was sent.
    #[serde(default)]
    pub doubts: u32,
    /// Entries (`pccRules`, `umDecs`) that the PCEF may have then and shall not have.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub stale: Value,
}

fn all_seen() -> u64 {
    u64::MAX
}

impl PcefSession {
    /// That of an association.
    #[must_use]
    pub fn get(association: &Association) -> Option<Self> {
        serde_json::from_value(association.rooms.get(ROOM)?.clone()).ok()
    }

    /// Keeps it with an association.
    pub fn put(&self, association: &mut Association) {
        if let Ok(room) = serde_json::to_value(self) {
            association.rooms.insert(ROOM.to_owned(), room);
        }
    }
}

/// The name of a session in the index of names.
#[must_use]
pub fn name(session_id: &str) -> String {
    format!("gx:{session_id}")
}

/// The name that an association has as a Gx session.
#[must_use]
pub fn name_of(association: &Association) -> Option<Cow<'_, str>> {
    let room = association.rooms.get(ROOM)?;
    let session = room.get("sessionId")?.as_str()?;
    Some(match room.get("prefixed") {
        Some(Value::Bool(true)) => Cow::Owned(name(session)),
        _ => Cow::Borrowed(session),
    })
}

/// Whether it is open what the PCEF has of the decision.
#[must_use]
pub fn is_in_doubt(association: &Association) -> bool {
    PcefSession::get(association).is_some_and(|session| session.doubt)
}

/// What a PCEF may have where that is open, of what it shall not have: entries of earlier changes and of this one. `None`: it
/// has the decision of `before`.
#[must_use]
pub fn may_have(before: &Association, after: &Association) -> Option<Value> {
    let mut session = PcefSession::get(before).filter(|session| session.doubt)?;
    add(&mut session.stale, &removed(before, after));
    Some(session.stale)
}

/// Entries of rules and usage monitoring that a change removes.
#[must_use]
pub fn removed(before: &Association, after: &Association) -> Value {
    let (has, shall) = (before.decision(), after.decision());
    let mut sections = Map::new();
    for section in ["pccRules", "umDecs"] {
        let entries = has.get(section).and_then(Value::as_object);
        let stays = |id: &str| shall.get(section).is_some_and(|new| new.get(id).is_some());
        let gone = entries.into_iter().flatten().filter(|(id, _)| !stays(id));
        let gone: Map<String, Value> = gone
            .map(|(id, _)| (id.clone(), Value::Object(Map::new())))
            .collect();
        if !gone.is_empty() {
            sections.insert(section.to_owned(), Value::Object(gone));
        }
    }
    Value::Object(sections)
}

/// PCC rules that a change adds or modifies.
#[must_use]
pub fn provided(before: &Association, after: &Association) -> Vec<String> {
    let (has, shall) = (before.decision(), after.decision());
    let rules = shall.get("pccRules").and_then(Value::as_object);
    let is_new = |id: &str, rule: &Value| {
        let old = has.get("pccRules").and_then(|rules| rules.get(id));
        old != Some(rule)
    };
    let rules = rules.into_iter().flatten();
    rules
        .filter(|(id, rule)| is_new(id, rule))
        .map(|(id, _)| id.clone())
        .collect()
}

/// Adds the entries of sections to others.
fn add(held: &mut Value, more: &Value) {
    if !held.is_object() {
        *held = Value::Object(Map::new());
    }
    for (section, entries) in more.as_object().into_iter().flatten() {
        match (held.get_mut(section), entries) {
            (Some(Value::Object(held)), Value::Object(more)) => held.extend(more.clone()),
            _ => held[section] = entries.clone(),
        }
    }
}

/// A RAR was not answered, which may have removed these entries: the next message has the whole decision.
pub fn doubt(association: &mut Association, removed: &Value) {
    let Some(mut session) = PcefSession::get(association) else {
        return;
    };
    session.doubt = true;
    session.doubts = session.doubts.wrapping_add(1);
    add(&mut session.stale, removed);
    session.put(association);
}

/// The PCEF has the whole decision.
pub fn settle(association: &mut Association) {
    if let Some(session) = PcefSession::get(association).filter(|session| session.doubt) {
        let settled = PcefSession {
            doubt: false,
            stale: Value::Null,
            ..session
        };
        settled.put(association);
    }
}

/// Notes the number of a CCR; false: it was sent again, and the PCF has worked on it before (RFC 8506 §6.5), also where later ones
/// have come in between. One so old that nothing is known of it counts as sent again.
pub fn note_number(association: &mut Association, number: u32) -> bool {
    let Some(mut session) = PcefSession::get(association) else {
        return true;
    };
    if number > session.number {
        let ahead = number - session.number;
        session.seen = session.seen.checked_shl(ahead).unwrap_or(0) | 1;
        session.number = number;
    } else {
        let bit = 1_u64.checked_shl(session.number - number).unwrap_or(0);
        if bit == 0 || session.seen & bit != 0 {
            return false;
        }
        session.seen |= bit;
    }
    session.put(association);
    true
}

/// Notes the Origin-State-Id of a PCEF that still has the session.
pub fn note_origin_state(association: &mut Association, state: Option<u32>) {
    if let Some(session) = PcefSession::get(association).filter(|session| session.origin_state != state)
        && state.is_some()
    {
        PcefSession {
            origin_state: state,
            ..session
        }
        .put(association);
    }
}

/// Adds members of the context's `gx` that a report does not repeat.
pub fn keep_members(association: &Association, report: &mut Map<String, Value>) {
    let Some(Value::Object(held)) = association.context.get("gx") else {
        return;
    };
    if let Some(Value::Object(reported)) = report.get_mut("gx") {
        for (name, value) in held {
            reported.entry(name).or_insert_with(|| value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;
    use serde_json::json;

    #[test]
    fn each_number_counts_once_in_whichever_order_they_come() {
        let mut association = Association::new(Kind::Gx, Value::Null);
        let session =
            json!({"sessionId": "a;1", "host": "a", "realm": "r", "peer": "a", "number": 0, "seen": 1});
        association.rooms.insert(ROOM.to_owned(), session.clone());
        for (number, is_new) in [
            (1, true),
            (2, true),
            (1, false),
            (2, false),
            (5, true),
            (4, true),
            (3, true),
            (4, false),
            (0, false),
            (200, true),
            (190, true),
            (190, false),
            (100, false),
        ] {
            assert_eq!(note_number(&mut association, number), is_new, "{number}");
        }
        // Of a session of before only higher ones are new.
        let mut old = session;
        old["number"] = json!(7);
        old.as_object_mut().unwrap().remove("seen");
        association.rooms.insert(ROOM.to_owned(), old);
        for (number, is_new) in [(7, false), (6, false), (9, true), (8, true)] {
            assert_eq!(note_number(&mut association, number), is_new, "{number}");
        }
    }
}
