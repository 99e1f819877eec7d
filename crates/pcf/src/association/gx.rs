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
    /// Whether a RAR was not answered: the PCEF may or may not have what it was sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub doubt: bool,
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

/// A RAR was not answered: the next answer has the whole decision.
pub fn doubt(association: &mut Association) {
    set_doubt(association, true);
}

/// The PCEF gets the whole decision.
pub fn settle(association: &mut Association) {
    set_doubt(association, false);
}

fn set_doubt(association: &mut Association, doubt: bool) {
    if let Some(session) = PcefSession::get(association).filter(|session| session.doubt != doubt) {
        PcefSession { doubt, ..session }.put(association);
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
