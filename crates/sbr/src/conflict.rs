//! Several bindings of one subscriber in a pool: routers have begun them without knowledge of one another, at sites that were cut
//! off. The older one wins: new sessions follow it. Sessions of a younger one keep their server until they end, and bind no more.

use std::cmp::Reverse;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::session::Session;

/// What has happened in a repository since this was read last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// New sessions that found several bindings of their subscriber and follow the older one.
    pub older: u64,
    /// Sessions of younger bindings, which keep their server and bind no more.
    pub younger: u64,
    /// Reads that stopped at the bound on sessions under one key.
    pub crowded: u64,
}

/// [`Counts`] that workers share.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) older: AtomicU64,
    pub(crate) younger: AtomicU64,
    pub(crate) crowded: AtomicU64,
}

impl Tally {
    /// What has happened since this was called last.
    pub(crate) fn take(&self) -> Counts {
        Counts {
            older: self.older.swap(0, Relaxed),
            younger: self.younger.swap(0, Relaxed),
            crowded: self.crowded.swap(0, Relaxed),
        }
    }
}

/// The session whose server new ones of its subscriber get: of the oldest binding, and of that where it has moved last.
pub(crate) fn leading<'s>(sessions: impl Iterator<Item = &'s Session>) -> Option<&'s Session> {
    sessions.min_by(|one, other| rank(one).cmp(&rank(other)))
}

/// The smallest one leads.
fn rank(session: &Session) -> (u64, Reverse<u16>, u64, &[u8]) {
    let (since, moves) = line(session);
    (since, Reverse(moves), session.began, &session.id)
}

fn line(session: &Session) -> (u64, u16) {
    let binding = session.binding.as_ref();
    binding.map_or((0, 0), |binding| (binding.since, binding.moves))
}

impl Session {
    pub(crate) fn is_at(&self, other: &Self) -> bool {
        self.server.host.eq_ignore_ascii_case(&other.server.host)
    }

    /// Whether it is of another binding than the one that leads. A session from before a move of that one is not.
    pub(crate) fn contradicts(&self, leader: &Self) -> bool {
        let ((since, moves), (leading, last)) = (line(self), line(leader));
        let is_before = since == leading && moves < last;
        !self.is_at(leader) && !is_before
    }

    /// Whether it is of another binding than one that leads it.
    pub(crate) fn yields_to(&self, leader: &Self) -> bool {
        self.contradicts(leader) && rank(leader) < rank(self)
    }

    /// Joins the binding of its subscriber, of which these sessions are: the one that leads, moved to the server of this one
    /// (`is_moved`); or that of its server; or it begins one, which yields to an older one at another server.
    pub(crate) fn join<'s>(&mut self, others: impl Iterator<Item = &'s Session> + Clone, is_moved: bool) {
        let leader = leading(others.clone());
        let at_server = leading(others.filter(|other| self.is_at(other)));
        let (since, moves) = match (leader, at_server) {
            (Some(leader), _) if is_moved && !self.is_at(leader) => {
                let (since, moves) = line(leader);
                (since, moves.saturating_add(1))
            }
            (_, Some(own)) => line(own),
            (_, None) => (self.began, 0),
        };
        let Some(binding) = &mut self.binding else { return };
        (binding.since, binding.moves) = (since, moves);
        let yields = leader.is_some_and(|leader| self.yields_to(leader));
        if let Some(binding) = &mut self.binding {
            binding.has_yielded = yields;
        }
    }

    /// Whether an older binding has won.
    #[must_use]
    pub fn has_yielded(&self) -> bool {
        self.binding.as_ref().is_some_and(|binding| binding.has_yielded)
    }

    /// Binds its subscriber no more.
    pub(crate) fn yielded(mut self) -> Self {
        if let Some(binding) = &mut self.binding {
            binding.has_yielded = true;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::session::{Binding, Party};

    fn session(began: u64, host: &str) -> Session {
        Session {
            id: began.to_be_bytes().to_vec(),
            server: Party {
                host: host.to_owned(),
                realm: String::new(),
            },
            binding: Some(Binding::default()),
            began,
            ..Session::default()
        }
    }

    /// A session that has joined these.
    fn joined(began: u64, host: &str, others: &[&Session], is_moved: bool) -> Session {
        let mut session = session(began, host);
        session.join(others.iter().copied(), is_moved);
        session
    }

    fn leader<'s>(sessions: &[&'s Session]) -> &'s Session {
        leading(sessions.iter().copied()).unwrap()
    }

    #[test]
    fn a_binding_that_moves_is_one_and_leads_where_it_is_now() {
        let first = joined(1, "a", &[], false);
        let second = joined(2, "A", &[&first], false);
        assert_eq!((line(&first), line(&second)), ((1, 0), (1, 0)));
        let third = joined(3, "b", &[&first, &second], true);
        assert_eq!((line(&third), third.has_yielded()), ((1, 1), false));
        assert_eq!(leader(&[&first, &third, &second]).began, 3);
        assert!(!first.contradicts(&third));
        // Back to the server of a session from before.
        let fourth = joined(4, "a", &[&first, &third], true);
        assert_eq!((line(&fourth), fourth.has_yielded()), ((1, 2), false));
        assert_eq!(leader(&[&first, &third, &fourth]).began, 4);
        // What had moved in the meantime ends; what comes follows where it is.
        assert_eq!(line(&joined(5, "b", &[&first, &third], false)), (1, 1));
    }

    #[test]
    fn of_two_bindings_the_older_one_leads_and_the_younger_one_yields() {
        let older = joined(1, "a", &[], false);
        let younger = joined(2, "b", &[], false);
        assert_eq!(leader(&[&younger, &older]).began, 1);
        assert!(younger.contradicts(&older));
        // One that is written beside an older one yields at once, and so does what joins a younger one.
        let late = joined(3, "b", &[&older], false);
        assert!(late.has_yielded() && line(&late) == (3, 0));
        let with_younger = joined(4, "b", &[&older, &younger], false);
        assert!(with_younger.has_yielded() && line(&with_younger) == (2, 0));
        // A younger one that has moved is the younger one.
        let moved = joined(5, "c", &[&younger], true);
        assert_eq!(leader(&[&moved, &older, &younger]).began, 1);
        assert!(moved.contradicts(&older));
    }

    #[test]
    fn a_binding_that_two_sites_have_moved_is_where_it_was_moved_first() {
        let first = joined(1, "a", &[], false);
        let (one, other) = (joined(2, "b", &[&first], true), joined(3, "c", &[&first], true));
        assert_eq!(leader(&[&first, &other, &one]).began, 2);
        assert!(other.contradicts(&one) && !first.contradicts(&one));
    }

    /// What a site does, or what reaches it.
    #[derive(Clone, Debug)]
    enum Step {
        /// A session begins at a site, at this host. `is_moved`: the one of its subscriber has failed.
        Begins {
            site: usize,
            host: usize,
            began: u64,
            is_moved: bool,
        },
        /// A site compares its own sessions with those of the other.
        Checks { site: usize },
        /// One of the records that are on their way arrives.
        Arrives { which: usize },
    }

    /// A record with its version and the site that has written it.
    type Row = (u64, usize, Session);

    /// Two sites that are cut off: what has been written arrives in any order, also before the sites have ended to write.
    #[derive(Default)]
    struct Sites {
        rows: [std::collections::BTreeMap<Vec<u8>, Row>; 2],
        /// With the site to which they go.
        on_their_way: Vec<(usize, Row)>,
        version: u64,
        marked: u64,
    }

    impl Sites {
        fn write(&mut self, site: usize, session: Session) {
            self.version += 1;
            let row = (self.version, site, session);
            self.on_their_way.push((1 - site, row.clone()));
            self.rows[site].insert(row.2.id.clone(), row);
        }

        /// As `of_subscriber`.
        fn binding(&self, site: usize) -> Vec<Row> {
            let rows = self.rows[site].values();
            rows.filter(|(_, _, session)| !session.has_yielded())
                .cloned()
                .collect()
        }

        /// As `keep`.
        fn begins(&mut self, site: usize, mut session: Session, is_moved: bool) {
            session.id = self.version.to_be_bytes().to_vec();
            let others = self.binding(site);
            session.join(others.iter().map(|(_, _, other)| other), is_moved);
            self.marked += u64::from(session.has_yielded());
            for (_, by, other) in others {
                if by == site && !session.has_yielded() && other.yields_to(&session) {
                    self.mark(site, other);
                }
            }
            self.write(site, session);
        }

        fn mark(&mut self, site: usize, session: Session) {
            self.marked += 1;
            self.write(site, session.yielded());
        }

        /// As a round of `look_for_conflicts`.
        fn checks(&mut self, site: usize) {
            for (_, by, session) in self.binding(site) {
                let found = self.binding(site);
                let leader = leading(found.iter().map(|(_, _, other)| other)).cloned();
                if by == site && leader.is_some_and(|leader| session.contradicts(&leader)) {
                    self.mark(site, session);
                }
            }
        }

        /// Of two versions of a record the later one stays.
        fn arrives(&mut self, which: usize) {
            if self.on_their_way.is_empty() {
                return;
            }
            let (to, row) = self.on_their_way.remove(which % self.on_their_way.len());
            let stands = self.rows[to].get(&row.2.id);
            if stands.is_none_or(|stands| stands.0 < row.0) {
                self.rows[to].insert(row.2.id.clone(), row);
            }
        }

        fn does(&mut self, step: Step) {
            match step {
                Step::Begins {
                    site,
                    host,
                    began,
                    is_moved,
                } => self.begins(site, session(began, ["a", "b", "c"][host]), is_moved),
                Step::Checks { site } => self.checks(site),
                Step::Arrives { which } => self.arrives(which),
            }
        }
    }

    fn step() -> impl Strategy<Value = Step> {
        let begins = (0..2_usize, 0..3_usize, 1..9_u64, any::<bool>());
        prop_oneof![
            3 => begins.prop_map(|(site, host, began, is_moved)| Step::Begins { site, host, began, is_moved }),
            1 => (0..2_usize).prop_map(|site| Step::Checks { site }),
            2 => any::<usize>().prop_map(|which| Step::Arrives { which }),
        ]
    }

    proptest! {
        #[test]
        fn sites_agree_in_whatever_order_they_learn_of_one_another(
            steps in proptest::collection::vec(step(), 0..24),
            order in proptest::collection::vec(any::<usize>(), 1..9),
        ) {
            let mut sites = Sites::default();
            for step in steps {
                sites.does(step);
            }
            let all: Vec<Session> = sites.rows.iter().flat_map(|rows| rows.values().map(|row| row.2.clone())).collect();
            // All arrives, each site checks once, and its marks arrive.
            for site in [None, Some(0), Some(1)] {
                if let Some(site) = site {
                    sites.checks(site);
                }
                for which in order.iter().cycle() {
                    if sites.on_their_way.is_empty() {
                        break;
                    }
                    sites.arrives(*which);
                }
            }
            let [one, other] = [0, 1].map(|site| sites.binding(site));
            prop_assert_eq!(&one, &other);
            // The binding that leads is the first by rank of all that were ever written: no order of events changes it.
            let sessions = || one.iter().map(|(_, _, session)| session);
            let leader = leading(sessions());
            let first = leading(all.iter());
            prop_assert_eq!(leader.map(|one| &one.id), first.map(|one| &one.id));
            if let Some(leader) = leader {
                prop_assert!(!sessions().any(|session| session.contradicts(leader)), "a conflict is left: {:?}", one);
            }
            // Each session of a binding that has lost counts once.
            let marked = sites.rows[0].values().filter(|(_, _, session)| session.has_yielded()).count();
            prop_assert_eq!(marked as u64, sites.marked);
        }
    }
}
