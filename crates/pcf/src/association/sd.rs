//! The session of a TDF (TS 29.212 §4b.5): what an association keeps of it.
//!
//! A request of ours (TSR, RAR) is in flight by the record of the association itself, so that another process finds it when
//! this one ends. One is in flight at a time: what changes meanwhile goes into the next.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Association, Kind};

/// The room of an association that has it.
const ROOM: &str = "sd";
/// Requests are found by the minute in which they are due.
const BUCKET_MS: i64 = 60_000;

/// How far a session has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// There is none yet.
    #[default]
    Idle,
    /// The TSR is not answered.
    Opening,
    /// It is there.
    Open,
    /// No TDF took it, or the TDF has ended it.
    Failed,
    /// The IP-CAN session has ended, and the TDF is to end this one.
    Closing,
}

/// A request of ours that is in flight, or to be sent again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InFlight {
    /// Its number within the session.
    pub serial: u32,
    /// Attempts that have failed.
    pub attempts: u32,
    /// When it is sent again without an answer, in milliseconds since 1970.
    pub due: i64,
}

/// A session of a TDF.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TdfSession {
    /// How far it has come.
    pub state: State,
    /// Session-Id.
    pub session_id: String,
    /// Destination-Host.
    pub host: String,
    /// Destination-Realm.
    pub realm: String,
    /// CC-Request-Number of the last CCR.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// The part of the decision that the TDF shall have.
    pub shall: Value,
    /// The part that it was sent last.
    pub has: Value,
    /// Rules and usage monitoring that it may have, where an answer is missing, and shall not have.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub stale: Value,
    /// Whether it is open what it has.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_in_doubt: bool,
    /// Number of requests.
    pub serial: u32,
    /// The request in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<InFlight>,
}

impl TdfSession {
    /// That of an association.
    #[must_use]
    pub fn get(association: &Association) -> Option<Self> {
        Self::deserialize(association.rooms.get(ROOM)?).ok()
    }

    /// Keeps it with an association.
    pub fn put(&self, association: &mut Association) {
        if let Ok(room) = serde_json::to_value(self) {
            association.rooms.insert(ROOM.to_owned(), room);
        }
    }

    /// A request with all of the decision is to be sent, and to be answered by a time.
    pub fn expect(&mut self, due: i64) {
        self.serial = self.serial.wrapping_add(1);
        self.note_removed();
        self.has = self.shall.clone();
        self.in_flight = Some(InFlight {
            serial: self.serial,
            attempts: 0,
            due,
        });
    }

    /// The TDF has all that it was sent.
    pub fn settle(&mut self) {
        self.stale = Value::Null;
        self.is_in_doubt = false;
    }

    /// The TDF has lost the session.
    pub fn forget(&mut self) {
        *self = Self {
            shall: self.shall.take(),
            serial: self.serial,
            ..Self::default()
        };
    }

    /// Adds the entries that the next request removes to what the TDF may have.
    pub fn note_removed(&mut self) {
        for section in ["adcRules", "umDecs"] {
            let held = self.has.get(section).and_then(Value::as_object);
            let stays = |id: &str| self.shall.get(section).is_some_and(|new| new.get(id).is_some());
            let gone = held.into_iter().flatten().filter(|(id, _)| !stays(id));
            let gone: Map<String, Value> = gone.map(|(id, _)| (id.clone(), json!({}))).collect();
            if gone.is_empty() {
                continue;
            }
            if !self.stale.is_object() {
                self.stale = json!({});
            }
            match self.stale.get_mut(section) {
                Some(Value::Object(stale)) => stale.extend(gone),
                _ => self.stale[section] = Value::Object(gone),
            }
        }
    }
}

/// Keeps the part of a decision that a TDF shall have.
pub fn keep_part(association: &mut Association, part: Option<Value>) {
    let held = TdfSession::get(association);
    if held.is_none() && part.is_none() {
        return;
    }
    let mut session = held.unwrap_or_default();
    session.shall = part.unwrap_or_default();
    if session.state == State::Idle && session.shall.is_null() {
        association.rooms.shift_remove(ROOM);
        return;
    }
    session.put(association);
}

/// What is left of an association that ends while its TDF has a session: whom the session is about, and its quotas, so that
/// the last usage of the TDF counts. `None`: there is no such session.
#[must_use]
pub fn successor(association: &Association, due: i64) -> Option<Association> {
    let mut session = TdfSession::get(association)?;
    if !matches!(session.state, State::Open | State::Opening) {
        return None;
    }
    let members = ["supi", "gpsi", "dnn"];
    let context = members
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), association.context.get(*name)?.clone())));
    let mut left = Association::new(Kind::Tdf, Value::Object(context.collect()));
    if let Some(quotas) = association.rooms.get("quotas") {
        left.rooms.insert("quotas".to_owned(), quotas.clone());
    }
    session.state = State::Closing;
    (session.shall, session.has, session.stale) = (Value::Null, Value::Null, Value::Null);
    session.expect(due);
    session.put(&mut left);
    Some(left)
}

/// What policies read as `$session.tdf`.
#[must_use]
pub fn state_of(association: &Association) -> Option<&Value> {
    association.rooms.get(ROOM)?.get("state")
}

/// The name of a session in the index of names.
#[must_use]
pub fn name(session_id: &str) -> String {
    format!("sd:{session_id}")
}

/// The minute of a moment.
#[must_use]
pub fn bucket(moment: i64) -> i64 {
    moment.div_euclid(BUCKET_MS)
}

/// The name under which associations are found whose request is due in a minute.
#[must_use]
pub fn due_name(bucket: i64) -> String {
    format!("sd-due:{bucket}")
}

/// The names of an association's session in the index of names.
pub fn names(association: &Association) -> impl Iterator<Item = String> {
    let room = association.rooms.get(ROOM);
    let own = room
        .and_then(|room| room.get("sessionId")?.as_str())
        .filter(|id| !id.is_empty());
    let due = room.and_then(|room| room.get("inFlight")?.get("due")?.as_i64());
    let due = due.map(|due| due_name(bucket(due)));
    own.map(name).into_iter().chain(due)
}
