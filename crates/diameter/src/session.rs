//! Session-Ids (RFC 6733 §8.8) and a client's state of a session between its requests.

use std::cell::Cell;

use diameter_proto::{Fault, Message, MessageBuilder, Origin, known};

/// Makes Session-Ids: `host;high;low[;more]`, unique over restarts when `high` comes from the time.
#[derive(Debug)]
pub struct SessionIds {
    host: String,
    high: u32,
    low: Cell<u32>,
}

impl SessionIds {
    /// Ids of a node. `start` should be the start time of the node in seconds, or any number that the last run did not
    /// use. Workers of one host must differ in it.
    #[must_use]
    pub fn new(host: impl Into<String>, start: u32) -> Self {
        Self {
            host: host.into(),
            high: start,
            low: Cell::new(0),
        }
    }

    /// The next id; `more` may be any text that helps the reader of a log.
    #[must_use]
    pub fn next(&self, more: &str) -> String {
        let low = self.low.get();
        self.low.set(low.wrapping_add(1));
        let (host, high) = (&self.host, self.high);
        if more.is_empty() {
            format!("{host};{high};{low}")
        } else {
            format!("{host};{high};{low};{more}")
        }
    }
}

/// A client's session: its id, and the server that holds it once an answer has shown it.
#[derive(Clone, Debug)]
pub struct Session {
    /// Session-Id.
    pub id: String,
    /// Application of its requests.
    pub application: u32,
    /// Destination-Realm of its requests.
    pub realm: String,
    /// Destination-Host of its requests: the Origin-Host of the first successful answer, as RFC 6733 §6.1
    /// has it for sessions that a server keeps state of.
    pub host: Option<String>,
}

impl Session {
    /// A session that begins.
    #[must_use]
    pub fn new(id: String, application: u32, realm: impl Into<String>) -> Self {
        Self {
            id,
            application,
            realm: realm.into(),
            host: None,
        }
    }

    /// A request of this session, begun: Session-Id, Origin, Destination.
    #[must_use]
    pub fn request(&self, command: u32, origin: &Origin) -> MessageBuilder {
        let mut builder = MessageBuilder::request(command, self.application);
        builder
            .put(known::SESSION_ID, &self.id)
            .put(known::ORIGIN_HOST, &origin.host)
            .put(known::ORIGIN_REALM, &origin.realm)
            .put(known::DESTINATION_REALM, &self.realm)
            .maybe(known::DESTINATION_HOST, self.host.as_deref());
        builder
    }

    /// Takes from an answer the server that holds the session.
    ///
    /// # Errors
    /// When the answer is broken.
    pub fn learn(&mut self, answer: &Message) -> Result<(), Fault> {
        let success = answer
            .get(known::RESULT_CODE)?
            .is_some_and(|code| code / 1000 == 2);
        if success && self.host.is_none() {
            self.host = answer.get(known::ORIGIN_HOST)?.map(str::to_owned);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diameter_proto::ResultCode;

    #[test]
    fn a_session_learns_its_server() {
        let ids = SessionIds::new("pgw.example", 7);
        assert_eq!(ids.next(""), "pgw.example;7;0");
        let mut session = Session::new(ids.next("gx"), 16_777_238, "home");
        assert_eq!(session.id, "pgw.example;7;1;gx");
        let first = session
            .request(272, &Origin::new("pgw.example", "r"))
            .finish()
            .unwrap();
        assert!(first.get(known::DESTINATION_HOST).unwrap().is_none());
        let mut answer = MessageBuilder::answer(&first);
        answer.result(ResultCode::SUCCESS, &Origin::new("pcrf1", "home"));
        session.learn(&answer.finish().unwrap().freeze()).unwrap();
        let second = session
            .request(272, &Origin::new("pgw.example", "r"))
            .finish()
            .unwrap();
        assert_eq!(second.get(known::DESTINATION_HOST).unwrap(), Some("pcrf1"));
    }
}
