//! Who has signed in, until when. In memory alone: a restart of the console ends all sessions.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Digest, Secret, digest_of, hex, present};

/// How long a session lasts at most.
pub(super) const LONGEST: Duration = Duration::from_secs(12 * 3_600);
/// Sessions of all users.
const MOST: usize = 1_024;
/// Sessions of one user; a further one ends the oldest.
const MOST_OF_A_USER: usize = 16;
/// Characters of what a browser calls itself.
const AGENT: usize = 100;

/// A session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) user: String,
    /// The digest of the hash of the password it began with.
    pub(super) password: Digest,
    /// What changes need.
    pub(super) token: Secret,
    since: Instant,
    began: String,
    from: IpAddr,
    agent: String,
    /// The followed subscriber that was read last, and when the audit log says so.
    read: Option<(String, Instant)>,
}

/// What begins a session.
pub(super) struct Beginning<'a> {
    pub(super) user: &'a str,
    pub(super) password: Digest,
    pub(super) token: Secret,
    pub(super) from: IpAddr,
    pub(super) agent: &'a str,
}

/// All sessions, by the digest of their secret: the secrets themselves are not kept.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    all: HashMap<Digest, Session>,
}

impl Sessions {
    /// Begins the session with this secret.
    pub(super) fn begin(&mut self, secret: &str, beginning: Beginning<'_>, now: Instant) {
        self.all.retain(|_, session| session.lasts(now));
        let of_user = |session: &&Session| session.user == beginning.user;
        if self.all.values().filter(of_user).count() >= MOST_OF_A_USER {
            self.end_oldest(|session| session.user == beginning.user);
        }
        if self.all.len() >= MOST {
            self.end_oldest(|_| true);
        }
        let session = Session {
            user: beginning.user.to_owned(),
            password: beginning.password,
            token: beginning.token,
            since: now,
            began: present(),
            from: beginning.from,
            agent: beginning
                .agent
                .chars()
                .filter(|c| !c.is_control())
                .take(AGENT)
                .collect(),
            read: None,
        };
        self.all.insert(digest_of(secret), session);
    }

    fn end_oldest(&mut self, wanted: impl Fn(&Session) -> bool) {
        let candidates = self.all.iter().filter(|(_, session)| wanted(session));
        let oldest = candidates
            .min_by_key(|(_, session)| session.since)
            .map(|(digest, _)| *digest);
        if let Some(digest) = oldest {
            self.all.remove(&digest);
        }
    }

    /// The session of this digest, while it lasts.
    pub(super) fn find(&mut self, digest: &Digest, now: Instant) -> Option<&Session> {
        if !self.all.get(digest)?.lasts(now) {
            self.all.remove(digest);
        }
        self.all.get(digest)
    }

    /// Ends the session of this digest.
    pub(super) fn end(&mut self, digest: &Digest) {
        self.all.remove(digest);
    }

    /// Ends the session of this number, of this user or of anyone; returns whose it was.
    pub(super) fn revoke(&mut self, number: &str, of: Option<&str>) -> Option<String> {
        let is_wanted = |digest: &Digest, session: &Session| {
            number_of(digest) == number && of.is_none_or(|user| user == session.user)
        };
        let digest = *self
            .all
            .iter()
            .find(|(digest, session)| is_wanted(digest, session))?
            .0;
        self.all.remove(&digest).map(|session| session.user)
    }

    /// The sessions of this user, or of all, the newest first.
    pub(super) fn list(&self, of: Option<&str>, own: Option<&Digest>, now: Instant) -> Vec<Value> {
        let mut shown: Vec<(&Digest, &Session)> = self
            .all
            .iter()
            .filter(|(_, session)| session.lasts(now) && of.is_none_or(|user| user == session.user))
            .collect();
        shown.sort_by_key(|(_, session)| std::cmp::Reverse(session.since));
        let row = |(digest, session): (&Digest, &Session)| {
            json!({
                "number": number_of(digest),
                "user": session.user,
                "began": session.began,
                "from": session.from.to_string(),
                "browser": session.agent,
                "own": own == Some(digest),
            })
        };
        shown.into_iter().map(row).collect()
    }

    /// Whether the audit log says that this session reads of this subscriber, within that time.
    pub(super) fn has_read(&self, digest: &Digest, identity: &str, now: Instant, within: Duration) -> bool {
        let read = self.all.get(digest).and_then(|session| session.read.as_ref());
        read.is_some_and(|(known, at)| known == identity && now.saturating_duration_since(*at) < within)
    }

    /// The audit log says so from now on.
    pub(super) fn set_read(&mut self, digest: &Digest, identity: &str, now: Instant) {
        if let Some(session) = self.all.get_mut(digest) {
            session.read = Some((identity.to_owned(), now));
        }
    }
}

impl Session {
    fn lasts(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) < LONGEST
    }
}

/// What a session is named by where its secret must not be.
fn number_of(digest: &Digest) -> String {
    hex(digest.get(..8).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn begin(sessions: &mut Sessions, secret: &str, user: &str, now: Instant) {
        let beginning = Beginning {
            user,
            password: [0; 32],
            token: String::new(),
            from: Ipv4Addr::LOCALHOST.into(),
            agent: "a\u{1b}[31m",
        };
        sessions.begin(secret, beginning, now);
    }

    #[test]
    fn a_session_ends_after_twelve_hours_at_most() {
        let (mut sessions, start) = (Sessions::default(), Instant::now());
        begin(&mut sessions, "s", "ada", start);
        let digest = digest_of("s");
        assert!(
            sessions
                .find(&digest, start + LONGEST - Duration::from_secs(1))
                .is_some()
        );
        assert!(sessions.find(&digest_of("t"), start).is_none());
        assert!(sessions.find(&digest, start + LONGEST).is_none());
        assert!(sessions.find(&digest, start).is_none(), "ended for good");
    }

    #[test]
    fn a_user_has_a_bounded_number_and_takes_none_from_others() {
        let (mut sessions, start) = (Sessions::default(), Instant::now());
        begin(&mut sessions, "other", "bob", start);
        for n in 0..100 {
            begin(
                &mut sessions,
                &n.to_string(),
                "ada",
                start + Duration::from_secs(n),
            );
        }
        let now = start + Duration::from_secs(100);
        assert_eq!(sessions.list(Some("ada"), None, now).len(), MOST_OF_A_USER);
        assert!(sessions.find(&digest_of("83"), now).is_none());
        assert!(sessions.find(&digest_of("84"), now).is_some());
        assert!(sessions.find(&digest_of("other"), now).is_some());
        for n in 0..2_000 {
            begin(&mut sessions, &format!("x{n}"), &format!("u{n}"), now);
        }
        assert_eq!(sessions.all.len(), MOST);
    }

    #[test]
    fn sessions_are_listed_without_secrets_and_revoked_by_number() {
        let (mut sessions, now) = (Sessions::default(), Instant::now());
        begin(&mut sessions, "secret-of-ada", "ada", now);
        begin(&mut sessions, "secret-of-bob", "bob", now);
        let listed = sessions.list(None, Some(&digest_of("secret-of-ada")), now);
        assert!(!listed.iter().any(|row| row.to_string().contains("secret")));
        assert!(!listed.iter().any(|row| row.to_string().contains('\u{1b}')));
        let own: Vec<&Value> = listed.iter().filter(|row| row["own"] == true).collect();
        assert_eq!((own.len(), &own[0]["user"]), (1, &json!("ada")));
        let of_bob = sessions.list(Some("bob"), None, now);
        let number = of_bob[0]["number"].as_str().unwrap();
        assert_eq!(sessions.revoke(number, Some("ada")), None, "not its own");
        assert_eq!(sessions.revoke(number, None).as_deref(), Some("bob"));
        assert!(sessions.find(&digest_of("secret-of-bob"), now).is_none());
    }
}
