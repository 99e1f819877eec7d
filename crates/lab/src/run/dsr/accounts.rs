//! The request numbers that OCSs have counted, of all their processes, and what is wrong with them.

use std::collections::HashMap;
use std::path::PathBuf;

use ::report::Check;
use callmodel::ocdra::fails_over;
use settings::Percent;
use simulators::diameter::journal::{self, Entry};
use workload::charging::{Kind, Refused, Seen};

/// Where the OCSs of a process write, and whether they die.
#[derive(Clone, Debug)]
pub(super) struct Books {
    pub(super) path: PathBuf,
    pub(super) die: bool,
}

/// An OCS: its process, and its number there.
type Place = (usize, u16);

/// Where a request number was counted.
#[derive(Clone, Copy, Debug)]
struct Counted {
    first: Place,
    /// The one that has counted it after the first, and whether the T flag said so.
    second: Option<(Place, bool)>,
}

/// What all OCSs have counted.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    numbers: HashMap<(u32, u32), Counted>,
    /// The OCS with the newest number of each session.
    sessions: HashMap<u32, Place>,
    /// Processes that have died.
    dead: Vec<bool>,
    /// Numbers that were counted twice, and nothing permits it.
    twice: u64,
    /// Sessions that have moved although they may not, or from an OCS that lives.
    strayed: u64,
    /// Those that have moved as they may.
    moved: u64,
}

impl Accounts {
    /// Reads the books of all processes; the share of the sessions that may move. Processes that die come first.
    ///
    /// # Errors
    /// Which books cannot be read.
    pub(super) fn read(books: &[Books], failover: Percent) -> Result<Self, String> {
        let mut accounts = Self::default();
        let mut ordered: Vec<&Books> = books.iter().collect();
        ordered.sort_by_key(|one| !one.die);
        for (process, one) in ordered.into_iter().enumerate() {
            accounts.dead.push(one.die);
            journal::read(&one.path, |entry| accounts.add(process, entry, failover))
                .map_err(|error| format!("{}: {error}", one.path.display()))?;
        }
        Ok(accounts)
    }

    fn is_dead(&self, (process, _): Place) -> bool {
        self.dead.get(process).copied().unwrap_or(false)
    }

    fn add(&mut self, process: usize, entry: Entry, failover: Percent) {
        let place = (process, entry.node);
        let may_move = |from: Place, accounts: &Self| {
            accounts.is_dead(from) && from.0 != process && fails_over(entry.session, failover)
        };
        match self.sessions.insert(entry.session, place) {
            Some(before) if before != place && may_move(before, self) => self.moved += 1,
            Some(before) if before != place => self.strayed += 1,
            _ => {}
        }
        let key = (entry.session, entry.number);
        let Some(counted) = self.numbers.get(&key).copied() else {
            let first = Counted {
                first: place,
                second: None,
            };
            self.numbers.insert(key, first);
            return;
        };
        let is_permitted = counted.second.is_none() && may_move(counted.first, self) && entry.is_again;
        if !is_permitted {
            self.twice += 1;
        }
        let second = Some((place, entry.is_again));
        self.numbers.insert(key, Counted { second, ..counted });
    }

    /// Numbers that a dead OCS has counted before another one got them with the T flag.
    fn doubtful(&self) -> usize {
        let seconds = self.numbers.values().filter_map(|one| one.second);
        seconds.filter(|(_, is_again)| *is_again).count()
    }

    /// Whether each number is counted once, and each session stays where it may. `seen` is what the gateways know.
    pub(super) fn judge(&self, seen: &Seen) -> Check {
        let count = self.numbers.len() as u64;
        let is_complete = (seen.answered..=seen.sent).contains(&count);
        Check::new(
            "each request number at one OCS",
            format!(
                "{} to {} numbers, none at two but with the T flag from a dead one, and no session elsewhere",
                seen.answered, seen.sent
            ),
            format!(
                "{count} numbers, {} of them again with the T flag after an OCS had died, {} counted twice; {} sessions \
                 moved, {} of which must not",
                self.doubtful(),
                self.twice,
                self.moved + self.strayed,
                self.strayed
            ),
            is_complete && count > 0 && self.twice == 0 && self.strayed == 0,
        )
    }

    /// Whether what was refused was at an OCS that had died, and had no other place.
    pub(super) fn judge_refused(&self, refused: &[Refused], failover: Percent) -> Check {
        let had_to_be = |one: &&Refused| match one.kind {
            // A dead OCS has counted it and its answer is lost, or it was not read any more.
            Kind::Initial | Kind::Event => self
                .numbers
                .get(&(one.session, one.number))
                .is_none_or(|counted| self.is_dead(counted.first)),
            Kind::Update | Kind::Termination => {
                let place = self.sessions.get(&one.session);
                !fails_over(one.session, failover) && place.is_some_and(|place| self.is_dead(*place))
            }
        };
        let explained = refused.iter().filter(had_to_be).count();
        let other = refused.iter().find(|one| !had_to_be(one));
        Check::new(
            "refused are those of the dead",
            "requests of sessions that must stay there, and of new ones that no other OCS has counted",
            other.map_or_else(
                || format!("{explained} refused"),
                |one| format!("{explained} of {}, but not {one:?}", refused.len()),
            ),
            other.is_none(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accounts of a process that has died, and of one that lives: session, number, OCS, T flag. Half of the sessions may move.
    fn accounts(dead: &[(u32, u32, u16, bool)], live: &[(u32, u32, u16, bool)]) -> Accounts {
        let mut accounts = Accounts {
            dead: vec![true, false],
            ..Accounts::default()
        };
        for (process, entries) in [dead, live].into_iter().enumerate() {
            for (session, number, node, is_again) in entries.iter().copied() {
                let entry = Entry {
                    session,
                    number,
                    node,
                    is_again,
                };
                accounts.add(process, entry, HALF);
            }
        }
        accounts
    }

    const HALF: Percent = Percent::new(50.0);

    fn passes(accounts: &Accounts, count: u64) -> bool {
        let seen = Seen {
            sent: count,
            answered: count,
            ..Seen::default()
        };
        accounts.judge(&seen).pass
    }

    #[test]
    fn a_number_at_two_is_seen_unless_the_first_had_died() {
        let again = true;
        for (dead, live, count, expected) in [
            (&[(1, 0, 0, false), (1, 1, 0, false)][..], &[][..], 2, true),
            // It moves with what was in doubt, and with the next.
            (&[(1, 0, 0, false)], &[(1, 0, 0, again)], 1, true),
            (&[(1, 0, 0, false)], &[(1, 1, 0, false)], 2, true),
            // Without the T flag, one that must stay, and at two that live.
            (&[(1, 0, 0, false)], &[(1, 0, 0, false)], 1, false),
            (&[(99, 0, 0, false)], &[(99, 1, 0, again)], 2, false),
            (&[], &[(1, 0, 0, false), (1, 0, 1, again)], 1, false),
            (&[], &[(1, 0, 0, false), (1, 1, 1, false)], 2, false),
            // Twice at one.
            (&[], &[(1, 0, 0, false), (1, 0, 0, again)], 1, false),
            // Fewer than were answered.
            (&[], &[(1, 0, 0, false)], 2, false),
        ] {
            assert_eq!(
                passes(&accounts(dead, live), count),
                expected,
                "{dead:?} {live:?}"
            );
        }
    }

    #[test]
    fn a_refusal_has_to_be_of_a_dead_one() {
        let accounts = accounts(
            &[(1, 0, 0, false), (99, 0, 0, false)],
            &[(2, 0, 0, false), (98, 0, 1, false)],
        );
        for (kind, session, number, expected) in [
            (Kind::Initial, 1, 0, true),
            (Kind::Event, 99, 0, true),
            (Kind::Update, 99, 1, true),
            (Kind::Termination, 99, 1, true),
            // It may move.
            (Kind::Update, 1, 1, false),
            (Kind::Update, 98, 1, false),
            (Kind::Initial, 2, 0, false),
            (Kind::Initial, 3, 0, true),
        ] {
            let refused = Refused {
                kind,
                session,
                number,
                code: 3002,
            };
            let check = accounts.judge_refused(&[refused], HALF);
            assert_eq!(check.pass, expected, "{check:?}");
        }
    }
}
