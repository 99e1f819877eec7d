//! What the PCF keeps of a Gx session (TS 29.212) beside its context: how its PCEF is reached.

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
    /// Origin-Host of the PCEF.
    pub host: String,
    /// Origin-Realm of the PCEF.
    pub realm: String,
    /// The peer that its requests come from: the PCEF, or an agent.
    pub peer: String,
    /// CC-Request-Number of the last CCR.
    #[serde(default)]
    pub number: u32,
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

/// Notes the number of a CCR; false: it was sent again, and the PCF has worked on it before (RFC 8506 §6.5).
pub fn note_number(association: &mut Association, number: u32) -> bool {
    match PcefSession::get(association) {
        Some(session) if session.number == number => false,
        Some(session) => {
            PcefSession { number, ..session }.put(association);
            true
        }
        None => true,
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
