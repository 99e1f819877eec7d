//! AF sessions that are bound to an association, over N5 (TS 29.514) or Rx (TS 29.214): what each asks for, and the part
//! of the decision that it causes.

use std::borrow::Cow;

use model::SupportedFeatures;
use pcc::{Cause, Mapping, Refusal, RuleId, event, media};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Association, Kind};

/// The room of an association that AF sessions are in.
const ROOM: &str = "af";

/// Where an AF is reached over Rx.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RxPeer {
    /// Session-Id.
    pub session: String,
    /// Origin-Host of the AF.
    pub host: String,
    /// Origin-Realm of the AF.
    pub realm: String,
    /// DiameterIdentity of the peer that its requests come from: the AF, or an agent.
    pub peer: String,
    /// Whether no other session may have its Session-Id; sessions of before may.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub claimed: bool,
}

/// An AF session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AfSession {
    /// Its identity within the association.
    #[serde(skip)]
    pub id: String,
    /// `AppSessionContextReqData` with what updates have changed.
    pub request: Value,
    /// Where the AF is reached over Rx; none: over N5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rx: Option<RxPeer>,
    /// Events that it wanted to be notified of once, and has been.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notified: Vec<String>,
    /// Its AF has been asked to end it, and has not yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ending: bool,
    /// The `appSessionId` of N5: random, so that it says nothing of the association. None in a session of an earlier release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The NF instance that has created it over N5, where it has proved its identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer: Option<String>,
}

impl AfSession {
    /// A new session; `number` makes its identity.
    #[must_use]
    pub fn new(number: u64, request: Value, rx: Option<RxPeer>) -> Self {
        Self {
            id: format!("{number:016x}"),
            request,
            rx,
            notified: Vec::new(),
            ending: false,
            name: None,
            consumer: None,
        }
    }

    /// A new session over N5, of an NF instance where it has proved its identity.
    #[must_use]
    pub fn of_n5(number: u64, request: Value, consumer: Option<&str>) -> Self {
        Self {
            name: Some(uuid::Uuid::new_v4().simple().to_string()),
            consumer: consumer.map(str::to_owned),
            ..Self::new(number, request, None)
        }
    }

    /// What it asks for, without the events that it wanted to be notified of once, and has been.
    #[must_use]
    pub fn pending(&self) -> Cow<'_, Value> {
        match self.notified.is_empty() {
            true => Cow::Borrowed(&self.request),
            false => Cow::Owned(event::without(&self.request, &self.notified)),
        }
    }

    /// It is notified of events.
    pub fn note(&mut self, notification: &Value) {
        let once = event::once(&self.request, notification).map(str::to_owned);
        let new: Vec<String> = once.filter(|event| !self.notified.contains(event)).collect();
        self.notified.extend(new);
    }

    /// The owner of its part of the decision.
    fn part(&self) -> String {
        let protocol = if self.rx.is_some() { "rx" } else { "n5" };
        format!("{protocol}:{}", self.id)
    }
}

/// What the AF calls its session: the Session-Id of Rx, or the `appSessionId` of N5.
#[must_use]
pub fn name(association: &Association, session: &AfSession) -> String {
    match (&session.rx, &session.name) {
        (Some(rx), _) => rx.session.clone(),
        (None, Some(name)) => name.clone(),
        (None, None) => format!("{}.{}", association.id, session.id),
    }
}

/// The AF session of an association that N5 knows by this `appSessionId`.
#[must_use]
pub fn of_app_session(association: &Association, app_session: &str) -> Option<AfSession> {
    let mut own = sessions(association).filter(|session| session.rx.is_none());
    own.find(|session| name(association, session) == app_session)
}

/// The name of an `appSessionId` in the index of names.
#[must_use]
pub(crate) fn n5_name(app_session: &str) -> String {
    format!("n5:{app_session}")
}

/// The AF sessions of an association.
pub fn sessions(association: &Association) -> impl Iterator<Item = AfSession> + '_ {
    let room = association.rooms.get(ROOM).and_then(Value::as_object);
    room.into_iter().flatten().filter_map(|(id, value)| {
        let session: AfSession = serde_json::from_value(value.clone()).ok()?;
        Some(AfSession {
            id: id.clone(),
            ..session
        })
    })
}

/// An AF session of an association.
#[must_use]
pub fn session(association: &Association, id: &str) -> Option<AfSession> {
    let value = association.rooms.get(ROOM)?.get(id)?;
    let session: AfSession = serde_json::from_value(value.clone()).ok()?;
    Some(AfSession {
        id: id.to_owned(),
        ..session
    })
}

/// The AF session over Rx of this Session-Id.
#[must_use]
pub fn rx_session(association: &Association, session_id: &str) -> Option<AfSession> {
    let is_own = |session: &AfSession| session.rx.as_ref().is_some_and(|rx| rx.session == session_id);
    sessions(association).find(is_own)
}

/// Adds or replaces an AF session with the rules that it asks for.
///
/// # Errors
/// When the service information is wrong or not allowed, or the association has as many AF sessions as it may have; then
/// nothing has changed.
pub fn put(association: &mut Association, session: &AfSession, mapping: &Mapping) -> Result<(), Refusal> {
    let room = association.rooms.get(ROOM).and_then(Value::as_object);
    let is_full = room.is_some_and(|room| room.len() >= mapping.sessions && !room.contains_key(&session.id));
    if is_full {
        return Err(Refusal {
            cause: Cause::RequestedServiceTemporarilyNotAuthorized,
            at: String::new(),
            detail: format!(
                "the session of the UE has {} AF sessions (media.sessions)",
                mapping.sessions
            ),
        });
    }
    let mut part = media::derive(&session.id, &session.request, mapping)?;
    if association.kind == Kind::Sm {
        let features = association.text_of("suppFeat");
        let features = features.and_then(|features| SupportedFeatures::parse(features).ok());
        media::fit(&mut part, |feature| {
            features.as_ref().is_some_and(|features| features.has(feature))
        });
    }
    let is_empty = part.as_object().is_none_or(Map::is_empty);
    match is_empty {
        true => drop(association.parts.shift_remove(&session.part())),
        false => drop(association.parts.insert(session.part(), part)),
    }
    association
        .rooms
        .entry(ROOM)
        .or_insert_with(|| Value::Object(Map::new()));
    // An AF that asks for something new has its session go on.
    let session = AfSession {
        ending: false,
        ..session.clone()
    };
    keep(association, &session);
    Ok(())
}

fn keep(association: &mut Association, session: &AfSession) {
    if let (Some(Value::Object(room)), Ok(value)) =
        (association.rooms.get_mut(ROOM), serde_json::to_value(session))
    {
        room.insert(session.id.clone(), value);
    }
}

/// Keeps that the AFs of sessions of which a report says that no rule is enforced are asked to end them: they are asked once.
pub fn note_lost(association: &mut Association, report: &Value) {
    for session in lost(association, report) {
        keep(
            association,
            &AfSession {
                ending: true,
                ..session
            },
        );
    }
}

/// Keeps what AF sessions are notified of because of a report, where they want to be notified of it once.
pub fn note_events(association: &mut Association, report: &Value) {
    let notified: Vec<AfSession> = sessions(association)
        .filter_map(|mut session| {
            let before = session.notified.len();
            let notification = event::notification(&session.id, &session.pending(), report)?;
            session.note(&notification);
            (session.notified.len() > before).then_some(session)
        })
        .collect();
    for session in notified {
        keep(association, &session);
    }
}

/// Removes an AF session and its rules.
pub fn remove(association: &mut Association, id: &str) -> Option<AfSession> {
    let removed = session(association, id)?;
    association.parts.shift_remove(&removed.part());
    if let Some(Value::Object(room)) = association.rooms.get_mut(ROOM) {
        room.shift_remove(id);
        if room.is_empty() {
            association.rooms.shift_remove(ROOM);
        }
    }
    Some(removed)
}

/// Removes the rules of AF sessions that a report says are not enforced: they would be provided again otherwise.
pub fn drop_inactive(association: &mut Association, report: &Value) {
    let inactive: Vec<&str> = event::inactive_rules(report)
        .filter(|id| RuleId::parse(id).is_some())
        .collect();
    if inactive.is_empty() {
        return;
    }
    for part in association.parts.values_mut().filter_map(Value::as_object_mut) {
        for entries in part.values_mut().filter_map(Value::as_object_mut) {
            entries.retain(|id, _| !inactive.contains(&id.as_str()));
        }
        drop_requests(part, &inactive);
    }
}

/// Removes rules from what the SMF is to report of rules (`lastReqRuleData`): what it names exists.
fn drop_requests(part: &mut Map<String, Value>, rules: &[&str]) {
    let Some(Value::Array(requests)) = part.get_mut("lastReqRuleData") else {
        return;
    };
    requests.retain_mut(|request| {
        let Some(Value::Array(names)) = request.get_mut("refPccRuleIds") else {
            return true;
        };
        names.retain(|name| name.as_str().is_none_or(|name| !rules.contains(&name)));
        !names.is_empty()
    });
    if requests.is_empty() {
        part.shift_remove("lastReqRuleData");
    }
}

/// AF sessions of which a report says that none of their rules is enforced: they end.
#[must_use]
pub fn lost(association: &Association, report: &Value) -> Vec<AfSession> {
    let inactive: Vec<&str> = event::inactive_rules(report).collect();
    let is_lost = |session: &AfSession| {
        let rules = association
            .parts
            .get(&session.part())
            .and_then(|part| part.get("pccRules"));
        let mut rules = rules.and_then(Value::as_object).into_iter().flatten().peekable();
        rules.peek().is_some() && rules.all(|(id, _)| inactive.contains(&id.as_str()))
    };
    let named = |session: &AfSession| {
        let ids = inactive.iter().filter_map(|id| RuleId::parse(id));
        ids.into_iter().any(|id| id.session == session.id)
    };
    sessions(association)
        .filter(|session| named(session) && is_lost(session))
        .collect()
}

/// What an AF session is known by after its end: an `appSessionId`, or the Session-Id of an AF over Rx with its Origin-Host.
#[must_use]
pub fn ended_name(association: &Association, session: &AfSession) -> String {
    match &session.rx {
        Some(rx) => ended_rx_name(&rx.host, &rx.session),
        None => name(association, session),
    }
}

/// As [`ended_name`], over Rx.
#[must_use]
pub fn ended_rx_name(host: &str, session_id: &str) -> String {
    format!("rx:{} {session_id}", host.to_ascii_lowercase())
}

/// The name of an Rx session in the index of names.
#[must_use]
pub fn rx_name(session_id: &str) -> String {
    format!("rx:{session_id}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call() -> Value {
        json!({"medComponents": {"1": {"medCompN": 1, "medType": "AUDIO", "medSubComps": {"1": {
            "fNum": 1, "fDescs": ["permit out 17 from any to assigned 5000"]}}}}})
    }

    #[test]
    fn a_session_has_its_part_of_the_decision_until_it_ends() {
        let mut association = Association::new(Kind::Sm, json!({}));
        let session = AfSession::new(7, call(), None);
        put(&mut association, &session, &Mapping::default()).unwrap();
        let rule = format!("af-{}-1-1", session.id);
        assert!(association.decision()["pccRules"].get(&rule).is_some());
        assert_eq!(
            sessions(&association).collect::<Vec<_>>(),
            std::slice::from_ref(&session)
        );

        let report = json!({"ruleReports": [{"pccRuleIds": [rule], "ruleStatus": "INACTIVE"}]});
        assert_eq!(lost(&association, &report), std::slice::from_ref(&session));
        let mut failed = association.clone();
        drop_inactive(&mut failed, &report);
        assert!(failed.decision().get("pccRules").is_none());
        assert!(lost(&association, &json!({})).is_empty());

        assert_eq!(remove(&mut association, &session.id), Some(session.clone()));
        assert_eq!(remove(&mut association, &session.id), None);
        assert_eq!(
            association,
            Association {
                id: association.id,
                ..Association::new(Kind::Sm, json!({}))
            }
        );
    }
}
