//! Which OCS, since when, by which rule: for pages.

use std::time::Instant;

use dsr_app::session::moment;
use dsr_app::{Explained, Flow, Request};
use sbr::pool::Suspects;
use sbr::{Begun, ChargingSession};
use serde_json::{Value, json};

use crate::facts::Facts;
use crate::{Kind, Ocdra};

impl Ocdra {
    /// What would become of a request, as of now: nothing is suspect, and a database is not asked.
    pub(crate) fn rehearse<'a>(&'a self, request: &Request<'_>) -> Explained<'a> {
        let facts = Facts::read(request.message).unwrap_or_default();
        let (flow, reason) = match Kind::of(request.message) {
            Kind::Other => (Flow::Next, "is left to the routes".to_owned()),
            Kind::Faulty => (
                Flow::Next,
                "is refused: its CC-Request-Type is missing or unknown".to_owned(),
            ),
            Kind::Event => self.rehearse_choice(&facts, request, "a one-time event"),
            kind => match (self.known(&facts.session), kind) {
                (None, _) => (
                    Flow::Next,
                    "belongs to a session, for which the database is asked".to_owned(),
                ),
                (
                    Some(Some(session)),
                    Kind::Within {
                        is_of_server: true, ..
                    },
                ) => {
                    let party = session.client;
                    let reason = format!("its session is that of the client {}", party.host);
                    (Flow::to(party.realm, party.host), reason)
                }
                (Some(Some(session)), _) => {
                    let (party, rule) = (session.server, session.rule);
                    let reason = format!("its session is at {}: {rule}", party.host);
                    (Flow::to(party.realm, party.host), reason)
                }
                (Some(None), Kind::Begins) => self.rehearse_choice(&facts, request, "begins a session"),
                (Some(None), _) => (
                    Flow::Next,
                    "its session is not known: `unknownSession` decides".to_owned(),
                ),
            },
        };
        Explained {
            flow,
            reasons: vec![reason],
        }
    }

    fn rehearse_choice<'a>(&'a self, facts: &Facts, request: &Request<'_>, what: &str) -> (Flow<'a>, String) {
        match self.choice(facts, request.view.routing, &Suspects::new(), Instant::now()) {
            Ok(choice) => {
                let (host, rule) = (&choice.server.host, choice.rule.as_str());
                let reason = format!("{what}: {host} of pool {}, {rule}", choice.pool.1.name);
                (Flow::to(choice.server.realm.as_str(), host.as_str()), reason)
            }
            Err(why) => (Flow::Next, format!("is refused: {why}")),
        }
    }

    /// The session of this Session-Id; none: that takes longer than a page may wait.
    fn known(&self, id: &[u8]) -> Option<Option<ChargingSession>> {
        let (sessions, id) = (self.sessions(), id.to_vec());
        let read = self
            .shared
            .opened
            .begin(async move { sessions.session(&id).await }, |_| ());
        match read {
            Begun::Done(found) => found.ok(),
            Begun::GoesOn | Begun::Refused => None,
        }
    }

    /// What is known of `session:ID`. None: it is asked about something else.
    pub(crate) fn look_up_session(&self, subject: &str) -> Option<Value> {
        let (sessions, id) = (self.sessions(), subject.strip_prefix("session:")?.to_owned());
        let found = self
            .shared
            .opened
            .ask(async move { sessions.session(id.as_bytes()).await });
        Some(match found {
            Some(Ok(session)) => json!({"sessions": session.iter().map(row).collect::<Vec<_>>()}),
            Some(Err(error)) => json!({"error": error.to_string()}),
            None => json!({"error": "the repository does not answer in time"}),
        })
    }
}

fn row(session: &ChargingSession) -> Value {
    json!({
        "session": String::from_utf8_lossy(&session.id),
        "ocs": session.server.host,
        "since": moment(session.began),
        "rule": session.rule,
        "pool": session.pool,
        "failover": session.has_failover,
        "client": session.client.host,
        "expires": moment(session.expires),
    })
}
