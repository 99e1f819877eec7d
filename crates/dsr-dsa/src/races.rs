//! What records had until a moment ago. Messages of two nodes may overtake each other: those of the earlier node are honest for as
//! long as they may be in flight.

use std::collections::VecDeque;

use crate::network::Network;
use crate::record::{Node, Record};

/// How long messages may be in flight, with those that routers send again.
pub(crate) const RACE_SECONDS: u32 = 30;
/// Bound on what a part of the table has; the earliest gives way.
const MAX: usize = 1_024;

/// A fact of a record that changes when its subscriber moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fact {
    At(Node),
    Authenticated,
}

impl Fact {
    const ALL: [Self; 3] = [Self::At(Node::Mme), Self::At(Node::Sgsn), Self::Authenticated];

    /// Its value in a record; 0: none.
    fn of(self, record: &Record) -> u64 {
        match self {
            Self::At(node) => record.name(node),
            Self::Authenticated => record.authenticated().map_or(0, Network::to_bits),
        }
    }
}

#[derive(Debug)]
struct Earlier {
    /// The subscriber.
    key: u64,
    /// When it ended, by the clock of the table.
    seconds: u32,
    fact: Fact,
    value: u64,
}

/// What the records of a part of the table had, in the order of its end.
#[derive(Debug, Default)]
pub(crate) struct Races(VecDeque<Earlier>);

impl Races {
    /// Notes what a change has ended.
    pub(crate) fn note(&mut self, key: u64, seconds: u32, before: &Record, after: &Record) {
        for fact in Fact::ALL {
            let value = fact.of(before);
            if value == 0 || value == fact.of(after) {
                continue;
            }
            while self.0.len() >= MAX || self.0.front().is_some_and(|one| !one.is_recent(seconds)) {
                self.0.pop_front();
            }
            self.0.push_back(Earlier {
                key,
                seconds,
                fact,
                value,
            });
        }
    }

    /// Entries, and the memory that they take.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.0.len(), self.0.capacity() * size_of::<Earlier>())
    }

    /// Whether the record of a subscriber had this a moment ago.
    pub(crate) fn had(&self, key: u64, seconds: u32, fact: Fact, value: u64) -> bool {
        self.of(key, seconds, fact).any(|one| one == value)
    }

    /// What it had last, other than `now`.
    pub(crate) fn last(&self, key: u64, seconds: u32, fact: Fact, now: u64) -> Option<u64> {
        self.of(key, seconds, fact).find(|one| *one != now)
    }

    /// What the record of a subscriber had a moment ago, the newest first.
    fn of(&self, key: u64, seconds: u32, fact: Fact) -> impl Iterator<Item = u64> {
        let recent = self.0.iter().rev().take_while(move |one| one.is_recent(seconds));
        let own = recent.filter(move |one| one.key == key && one.fact == fact);
        own.map(|one| one.value)
    }
}

impl Earlier {
    fn is_recent(&self, seconds: u32) -> bool {
        seconds.saturating_sub(self.seconds) <= RACE_SECONDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(name: u32) -> Record {
        let mut record = Record::default();
        record.set(Node::Mme, name);
        record
    }

    #[test]
    fn the_earlier_place_counts_for_a_moment_and_the_number_of_places_is_bounded() {
        let mut races = Races::default();
        let place = Fact::At(Node::Mme);
        races.note(1, 100, &at(7), &at(8));
        races.note(2, 100, &at(9), &Record::default());
        let seven = at(7).name(Node::Mme);
        assert!(races.had(1, 130, place, seven) && !races.had(1, 131, place, seven));
        assert!(!races.had(2, 100, place, seven) && !races.had(1, 100, Fact::At(Node::Sgsn), seven));
        assert_eq!(races.last(1, 100, place, at(8).name(Node::Mme)), Some(seven));
        assert_eq!(races.last(1, 100, place, seven), None);
        for key in 10..10_000 {
            races.note(key, 101, &at(7), &at(8));
        }
        assert_eq!(races.0.len(), MAX);
        races.note(3, 1_000, &at(7), &at(8));
        assert_eq!(races.0.len(), 1, "what is over makes room");
    }
}
