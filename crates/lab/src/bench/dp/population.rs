//! The numbers of a processor, what routers ask about them, and how they change.

use std::io::{self, Write};

use dp_proto::{Answer, Kind, Outcome};
use rand::Rng as _;
use rand::rngs::SmallRng;

use crate::run::database::Record;
use loadgen::lookups::{Lookups, Question};
use loadgen::{Fault, Ticket};

/// Destinations that the numbers lead to.
const DESTINATIONS: u64 = 300;
/// Distance of neighbouring numbers.
const DISTANCE: u64 = 20;
/// From a number to the one behind it that a change makes known, and to one that is never known.
const CHANGED: u64 = 10;
const UNKNOWN: u64 = 1;
/// The first number, as the digits of an IMSI.
const FIRST: u64 = 1_010_000_000_000;
/// A prime: changes are spread over all numbers.
const STEP: u64 = 7_368_787;

/// Numbers at equal distances, with destinations at random.
#[derive(Clone, Copy, Debug)]
pub(super) struct Population {
    count: u64,
}

impl Population {
    pub(super) const fn new(count: u64) -> Self {
        Self {
            count: if count == 0 { 1 } else { count },
        }
    }

    /// Writes the numbers as a subscriber database server loads them.
    pub(super) fn write(self, out: &mut impl Write) -> io::Result<()> {
        for number in (0..self.count).map(|at| FIRST + at * DISTANCE) {
            writeln!(out, "imsi,{number:015},{}", destination(number))?;
        }
        out.flush()
    }

    /// The record of each change: a number that was not known, in another block than that of the change before.
    pub(super) fn changes(self) -> impl Fn(u64) -> Record + Send + Sync {
        move |change| {
            let at = u128::from(change) * u128::from(STEP) % u128::from(self.count);
            let number = FIRST + at as u64 * DISTANCE + CHANGED;
            Record {
                kind: Kind::Imsi,
                value: format!("{number:015}"),
                destination: destination(number),
            }
        }
    }

    /// Look-ups of numbers at random, of which every second one is not known.
    pub(super) const fn lookups(self) -> impl Lookups {
        Numbers { population: self }
    }
}

/// The destination of a number that is known.
fn destination(number: u64) -> String {
    format!(
        "hss{:03}.epc.mnc001.mcc001.3gppnetwork.org",
        mixed(number) % DESTINATIONS
    )
}

/// A number that looks random (SplitMix64).
const fn mixed(seed: u64) -> u64 {
    let seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let seed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let seed = (seed ^ (seed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    seed ^ (seed >> 31)
}

struct Numbers {
    population: Population,
}

impl Lookups for Numbers {
    fn operations(&self) -> Vec<String> {
        ["known", "unknown"].map(str::to_owned).to_vec()
    }

    fn next(&mut self, random: &mut SmallRng, value: &mut Vec<u8>) -> Question {
        let at = random.random_range(0..self.population.count);
        let operation = random.random_range(0..2_u16);
        let number = FIRST + at * DISTANCE + u64::from(operation) * UNKNOWN;
        // Writing to a vector cannot fail.
        let _ = write!(value, "{number:015}");
        Question {
            ticket: Ticket {
                operation,
                first: (mixed(number) % DESTINATIONS) as u32,
                second: 0,
            },
            kind: Kind::Imsi,
            service: b"lte-hss",
        }
    }

    fn judge(&mut self, ticket: &Ticket, answer: &Answer<'_>) -> Result<(), Fault> {
        let is_right = match (ticket.operation, answer.outcome) {
            (0, Outcome::Exact) => number_of(answer.destination) == Some(ticket.first),
            (1, Outcome::Unknown) => true,
            (_, Outcome::Congested) => return Err(Fault::Status),
            _ => false,
        };
        if is_right {
            return Ok(());
        }
        let destination = String::from_utf8_lossy(answer.destination);
        Err(Fault::Body(format!("{} {destination}", answer.outcome.as_str())))
    }
}

/// The number in the name of an HSS.
fn number_of(destination: &[u8]) -> Option<u32> {
    let digits = destination.strip_prefix(b"hss")?.get(..3)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use rand::SeedableRng as _;

    #[test]
    fn changes_are_new_numbers_that_no_look_up_takes_for_unknown() {
        let population = Population::new(1_000);
        let mut text = Vec::new();
        population.write(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let known: Vec<&str> = text.lines().map(|line| line.split(',').nth(1).unwrap()).collect();
        assert!(known.is_sorted() && known.len() == 1_000);
        let change = population.changes();
        let changed: HashSet<String> = (0..1_000).map(|number| change(number).value).collect();
        assert_eq!(changed.len(), 1_000);
        assert!(known.iter().all(|one| !changed.contains(*one)));
        let (mut lookups, mut random) = (population.lookups(), SmallRng::seed_from_u64(1));
        for _ in 0..1_000 {
            let mut value = Vec::new();
            let question = lookups.next(&mut random, &mut value);
            let value = String::from_utf8(value).unwrap();
            assert!(!changed.contains(&value));
            assert_eq!(
                known.binary_search(&value.as_str()).is_ok(),
                question.ticket.operation == 0
            );
        }
    }

    #[test]
    fn an_answer_is_right_with_the_destination_of_its_number_alone() {
        let (mut lookups, number) = (Population::new(1).lookups(), FIRST);
        let ticket = |operation| Ticket {
            operation,
            first: (mixed(number) % DESTINATIONS) as u32,
            second: 0,
        };
        let right = destination(number);
        let mut is_right = |operation, outcome, destination: &str| {
            let answer = Answer {
                id: 0,
                outcome,
                destination: destination.as_bytes(),
            };
            lookups.judge(&ticket(operation), &answer).is_ok()
        };
        assert!(is_right(0, Outcome::Exact, &right));
        assert!(is_right(1, Outcome::Unknown, ""));
        for (operation, outcome, destination) in [
            (0, Outcome::Unknown, ""),
            (0, Outcome::Exact, "hss999.example"),
            (0, Outcome::Exact, ""),
            (1, Outcome::Exact, &*right),
            (1, Outcome::Damaged, ""),
            (0, Outcome::Congested, ""),
        ] {
            assert!(
                !is_right(operation, outcome, destination),
                "{outcome:?} {destination}"
            );
        }
    }
}
