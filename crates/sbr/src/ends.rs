//! Ends that are owed, of an open repository: what a router does about them.

use std::time::Instant;

use crate::opened::{Contents, Opened};
use crate::owed::{Again, DueEnd, Owing};

/// What is to be done about ends at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// Those that are to be sent.
    pub ends: Vec<DueEnd>,
    /// Number of sessions that stay at their servers: nothing came of any attempt.
    pub left: u64,
}

impl<C: Contents + Owing> Opened<C> {
    /// Keeps the request that ends a session at its server, which is due at once. Whether it does: not when there are too
    /// many, or it is too long.
    pub fn owe(&self, session: &[u8], server: &str, request: &[u8], now: Instant) -> bool {
        let owed = self.repository().owed();
        let Some(id) = owed.add(session, server, request, (self.repository().now(), now)) else {
            return false;
        };
        self.start(owed.clone().write(id));
        true
    }

    /// What is due: each end is to be sent, and what came of it reported by [`Opened::owe_again`] or [`Opened::settle`].
    pub fn due(&self, now: Instant) -> Due {
        let owed = self.repository().owed();
        if owed.is_empty() {
            return Due::default();
        }
        let (ends, silent) = owed.due(now);
        let left = silent.into_iter().filter(|id| self.settle(*id)).count() as u64;
        Due { ends, left }
    }

    /// An end was not taken: it is sent again as this request, if there is one. Whether it is: not after too many attempts.
    pub fn owe_again(&self, id: u64, request: Option<&[u8]>, now: Instant) -> bool {
        let owed = self.repository().owed();
        let Some(request) = request else {
            return !self.settle(id);
        };
        match owed.again(id, request, now) {
            Again::Due { is_written: true } | Again::Settled => true,
            Again::Due { is_written: false } => {
                self.start(owed.clone().write(id));
                true
            }
            Again::Over => !self.settle(id),
        }
    }

    /// An end is not owed any more. Whether it was.
    pub fn settle(&self, id: u64) -> bool {
        let owed = self.repository().owed();
        let removed = owed.remove(id);
        if removed == Some(true) {
            self.start(owed.clone().delete(id));
        }
        removed.is_some()
    }

    /// A session begins again at this server, or at any (none): its end is not owed any more.
    pub fn begins_again(&self, session: &[u8], server: Option<&[u8]>) {
        let owed = self.repository().owed();
        if owed.is_empty() {
            return;
        }
        for id in owed.of_session(session, server) {
            self.settle(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{Charging, Sbr};
    use crate::owed::{ATTEMPTS, MOST, MOST_BYTES, MOST_DUE, PAUSE, SILENCE};
    use crate::{ChargingSessions, Kept, Party, Repository, Session};

    fn policy(folder: &Path) -> Opened<Repository> {
        let mut settings = Sbr::default();
        settings.store.embedded.directory = folder.to_owned();
        Opened::open(&settings).unwrap()
    }

    fn charging(folder: &Path) -> Opened<ChargingSessions> {
        let mut settings = Charging::default();
        settings.store.embedded.directory = folder.to_owned();
        Opened::open(&settings).unwrap()
    }

    /// Waits until what was begun is on the disk.
    fn is_quiet<C: Contents>(opened: &Opened<C>) {
        while opened.pending() > 0 {
            std::thread::yield_now();
        }
    }

    fn requests(due: &Due) -> Vec<&[u8]> {
        due.ends.iter().map(|end| &*end.request).collect()
    }

    #[test]
    fn an_end_outlives_the_router_until_it_is_settled() {
        let folder = tempfile::tempdir().unwrap();
        let now = Instant::now();
        let first = policy(folder.path());
        assert!(first.owe(b"pgw;1", "pcrf1", b"end", now));
        let due = first.due(now);
        assert_eq!(requests(&due), [b"end"]);
        assert!(!due.ends[0].is_inherited);
        // It is sent: nothing else is due until something comes of it.
        assert_eq!(first.due(now), Due::default());
        is_quiet(&first);
        drop(first);

        let second = policy(folder.path());
        let now = Instant::now();
        let due = second.due(now);
        assert_eq!(requests(&due), [b"end"]);
        assert!(due.ends[0].is_inherited);
        let id = due.ends[0].id;
        assert!(second.owe_again(id, Some(b"again"), now));
        assert_eq!(second.due(now), Due::default());
        assert_eq!(requests(&second.due(now + PAUSE)), [b"again"]);
        assert!(second.settle(id) && !second.settle(id));
        is_quiet(&second);
        drop(second);
        assert_eq!(policy(folder.path()).due(Instant::now()), Due::default());
    }

    #[test]
    fn ends_are_bounded_in_number_and_attempts() {
        let folder = tempfile::tempdir().unwrap();
        let (opened, mut now) = (policy(folder.path()), Instant::now());
        assert!(opened.owe(b"first", "pcrf1", b"end", now));
        for attempt in 1..=ATTEMPTS {
            let due = opened.due(now);
            assert_eq!(due.ends.len(), 1, "{attempt}");
            assert_eq!(
                opened.owe_again(due.ends[0].id, Some(b"end"), now),
                attempt < ATTEMPTS
            );
            now += PAUSE;
        }
        assert_eq!(opened.due(now + SILENCE), Due::default());
        // One of which nothing comes.
        opened.owe(b"silent", "pcrf1", b"end", now);
        for _ in 0..ATTEMPTS {
            assert_eq!(opened.due(now).ends.len(), 1);
            now += SILENCE;
        }
        assert_eq!(
            opened.due(now),
            Due {
                ends: Vec::new(),
                left: 1
            }
        );
        assert!(!opened.owe(b"long", "pcrf1", &[0; MOST_BYTES + 1], now));
        for number in 0..=MOST {
            assert_eq!(opened.owe(b"pgw", "pcrf1", b"end", now), number < MOST);
        }
        assert_eq!(opened.due(now).ends.len(), MOST_DUE);
    }

    #[test]
    fn a_session_that_begins_again_is_not_ended() {
        let folder = tempfile::tempdir().unwrap();
        let (opened, now) = (policy(folder.path()), Instant::now());
        for server in ["pcrf1", "pcrf2", "pcrf3"] {
            opened.owe(b"pgw;1", server, server.as_bytes(), now);
        }
        // Also one that is sent.
        assert_eq!(opened.due(now).ends.len(), 3);
        opened.begins_again(b"pgw;1", Some(b"PCRF2"));
        opened.begins_again(b"pgw;2", None);
        assert_eq!(requests(&opened.due(now + SILENCE)), [&b"pcrf1"[..], b"pcrf3"]);
        opened.begins_again(b"pgw;1", None);
        assert_eq!(opened.due(now + SILENCE + SILENCE), Due::default());
    }

    #[test]
    fn after_a_start_a_session_that_has_begun_again_since_is_not_ended() {
        let folder = tempfile::tempdir().unwrap();
        let opened = policy(folder.path());
        let now = Instant::now();
        for id in [&b"pgw;1"[..], b"pgw;2"] {
            opened.owe(id, "pcrf1", id, now);
        }
        is_quiet(&opened);
        // Its client has begun it at another router, which knows nothing of the end.
        let repository = opened.repository().clone();
        let session = Session {
            id: b"pgw;1".to_vec(),
            server: Party {
                host: "pcrf1".to_owned(),
                realm: String::new(),
            },
            began: repository.now(),
            ..Session::default()
        };
        let kept = opened.ask(async move { repository.keep(session).await }).unwrap();
        assert_eq!(kept, Ok(Kept::New));
        drop(opened);
        for _ in 0..2 {
            let again = policy(folder.path());
            assert_eq!(requests(&again.due(Instant::now())), [b"pgw;2"]);
        }
    }

    #[test]
    fn sessions_of_charging_have_ends_as_well() {
        let folder = tempfile::tempdir().unwrap();
        let first = charging(folder.path());
        assert!(first.owe(b"ctf;1", "ocs1", b"end", Instant::now()));
        is_quiet(&first);
        drop(first);
        let second = charging(folder.path());
        assert_eq!(requests(&second.due(Instant::now())), [b"end"]);
    }
}
