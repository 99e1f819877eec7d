//! What is known of one function: its last answer, since when it does not answer, figures and journal.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;
use telemetry::journal::Entry;

use crate::client::Failure;
use crate::figures::{Counts, Figures, is_kind};

/// Time over which rates and latency are measured.
const WINDOW: Duration = Duration::from_secs(10);
/// Rounds without an answer in time after which a function that answered is lost: one alone is a busy machine. A connection
/// that is refused counts at once.
const SILENT_ROUNDS: u32 = 2;
/// Entries of a journal at most.
const MOST_ENTRIES: usize = 1_000;

/// Whether a function answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reach {
    /// It was not asked yet.
    Unasked,
    /// It answered the last time.
    Answers,
    /// Nothing listens there, or no answer comes in time, since this moment.
    Lost { since: SystemTime, why: Failure },
    /// Something else answers, or an earlier release.
    Foreign { since: SystemTime, why: String },
}

/// Peers that are down, and how many more there are.
#[derive(Debug, Default)]
pub(crate) struct Down {
    pub(crate) peers: Vec<Value>,
    pub(crate) more: usize,
}

/// One function.
#[derive(Debug)]
pub(crate) struct Observation {
    pub(crate) name: String,
    pub(crate) admin: SocketAddr,
    pub(crate) reach: Reach,
    /// What it said last of itself, and when.
    pub(crate) status: Value,
    pub(crate) answered: Option<(SystemTime, Instant)>,
    /// Its state, and since when; none where this console has seen no other state of it.
    pub(crate) state_since: Option<(String, Option<SystemTime>)>,
    /// Rounds in a row without an answer in time.
    misses: u32,
    pub(crate) entries: VecDeque<Entry>,
    /// The peers that it lists as down.
    pub(crate) down: Down,
    readings: VecDeque<(Instant, Counts)>,
    pub(crate) figures: Option<Figures>,
    /// The figures about an hour ago.
    hours: VecDeque<(Instant, Figures)>,
}

/// A reading of figures that is kept for an hour.
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

impl Observation {
    pub(crate) fn new(name: &str, admin: SocketAddr) -> Self {
        Self {
            name: name.to_owned(),
            admin,
            reach: Reach::Unasked,
            status: Value::Null,
            answered: None,
            state_since: None,
            misses: 0,
            entries: VecDeque::new(),
            down: Down::default(),
            readings: VecDeque::new(),
            figures: None,
            hours: VecDeque::new(),
        }
    }

    /// Its kind as it says itself, or its name where it has never answered.
    pub(crate) fn kind(&self) -> &str {
        self.status["function"].as_str().unwrap_or(&self.name)
    }

    /// It answered; returns whether it did not before.
    pub(crate) fn answers(&mut self, status: Value) -> bool {
        let now = SystemTime::now();
        let said = status["function"].as_str().unwrap_or_default();
        if is_kind(&self.name) && said != self.name {
            let why = format!("{} answers at {} in its place", cut(said, 64), self.admin);
            return self.is_foreign(why);
        }
        let was_lost = !matches!(self.reach, Reach::Answers | Reach::Unasked);
        let state = cut(status["state"].as_str().unwrap_or_default(), 64);
        let is_same = self
            .state_since
            .as_ref()
            .is_some_and(|(before, _)| *before == state);
        if was_lost || !is_same {
            let since = self.state_since.as_ref().map(|_| now).or(was_lost.then_some(now));
            self.state_since = Some((state, since));
        }
        // Its start is computed from its age each time, and differs by nanoseconds.
        if self.status["process"] != status["process"] {
            self.readings.clear();
            self.figures = None;
        }
        self.status = status;
        self.misses = 0;
        self.reach = Reach::Answers;
        self.answered = Some((now, Instant::now()));
        was_lost
    }

    /// It did not answer; returns whether it did before.
    pub(crate) fn is_lost(&mut self, why: Failure) -> bool {
        self.misses = self.misses.saturating_add(1);
        let may_be_busy = why == Failure::Silent && self.misses < SILENT_ROUNDS;
        if may_be_busy && self.reach == Reach::Answers {
            return false;
        }
        let since = match &self.reach {
            Reach::Lost { since, .. } | Reach::Foreign { since, .. } => *since,
            Reach::Unasked | Reach::Answers => SystemTime::now(),
        };
        let was_there = self.reach == Reach::Answers;
        self.reach = Reach::Lost { since, why };
        self.figures = None;
        self.readings.clear();
        was_there
    }

    /// What answers is not the function, or does not say how it is doing.
    pub(crate) fn is_foreign(&mut self, why: String) -> bool {
        let since = match &self.reach {
            Reach::Lost { since, .. } | Reach::Foreign { since, .. } => *since,
            Reach::Unasked | Reach::Answers => SystemTime::now(),
        };
        self.reach = Reach::Foreign { since, why };
        self.figures = None;
        self.readings.clear();
        false
    }

    /// Takes a reading of its metrics.
    pub(crate) fn counted(&mut self, counts: Counts) {
        let now = Instant::now();
        while self.readings.len() > 1 && self.readings.get(1).is_some_and(|(at, _)| now - *at >= WINDOW) {
            self.readings.pop_front();
        }
        if let Some((at, earlier)) = self.readings.front() {
            let figures = counts.since(earlier, (now - *at).as_secs_f64());
            if figures.is_none() {
                self.readings.clear();
            }
            self.figures = figures;
        }
        self.readings.push_back((now, counts));
        if let Some(figures) = &self.figures
            && self.hours.back().is_none_or(|(at, _)| now - *at >= MINUTE)
        {
            self.hours.push_back((now, figures.clone()));
            while self
                .hours
                .front()
                .is_some_and(|(at, _)| now - *at > HOUR + MINUTE)
            {
                self.hours.pop_front();
            }
        }
    }

    /// The figures an hour ago, where it is known that long.
    pub(crate) fn hour_ago(&self) -> Option<&Figures> {
        let (at, figures) = self.hours.front()?;
        (at.elapsed() >= HOUR).then_some(figures)
    }

    /// The number of the last entry of its journal that is known.
    pub(crate) fn last_entry(&self) -> u64 {
        self.entries.back().map_or(0, |entry| entry.sequence)
    }

    /// Whether a journal was begun again: from the last entry that is known on, it has another one of that number, or none.
    pub(crate) fn is_another_journal(&self, from_last: &[Entry]) -> bool {
        let same =
            |known: &Entry, first: &Entry| known.sequence == first.sequence && known.time == first.time;
        match (self.entries.back(), from_last.first()) {
            (Some(known), Some(first)) => !same(known, first),
            (Some(_), None) => true,
            (None, _) => false,
        }
    }

    /// Takes entries of its journal; those that are known stay as they are.
    pub(crate) fn journal(&mut self, entries: Vec<Entry>) {
        let entries = entries.into_iter().take(MOST_ENTRIES).map(|entry| Entry {
            about: cut(&entry.about, 500),
            detail: cut(&entry.detail, 500),
            by: cut(&entry.by, 200),
            time: cut(&entry.time, 40),
            ..entry
        });
        for entry in entries {
            if !self.entries.iter().rev().any(|known| *known == entry) {
                self.entries.push_back(entry);
            }
        }
        while self.entries.len() > MOST_ENTRIES {
            self.entries.pop_front();
        }
    }
}

/// A text without control characters, of bounded length.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut cut: String = plain.take(most).collect();
    if cut.len() < text.len() && text.chars().nth(most).is_some() {
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use telemetry::journal::Kind;

    use super::*;

    fn known() -> Observation {
        Observation::new("nrf", SocketAddr::from(([127, 0, 0, 1], 9)))
    }

    #[test]
    fn an_outage_has_one_beginning_whatever_the_reasons() {
        let mut nrf = known();
        assert!(!nrf.answers(json!({"function": "nrf", "state": "serves"})));
        assert!(nrf.is_lost(Failure::Refused));
        let Reach::Lost { since, .. } = nrf.reach else {
            panic!()
        };
        assert!(!nrf.is_lost(Failure::Silent));
        assert_eq!(
            nrf.reach,
            Reach::Lost {
                since,
                why: Failure::Silent
            }
        );
        nrf.answers(json!({"function": "scp", "state": "serves"}));
        assert!(
            matches!(&nrf.reach, Reach::Foreign { since: at, why } if *at == since && why.contains("scp"))
        );
        assert!(nrf.answers(json!({"function": "nrf", "state": "serves"})));
        assert!(
            nrf.state_since
                .is_some_and(|(_, at)| at.is_some_and(|at| at >= since))
        );
    }

    #[test]
    fn one_late_answer_is_not_an_outage() {
        let mut nrf = known();
        nrf.answers(json!({"function": "nrf", "state": "serves"}));
        for _ in 0..3 {
            assert!(!nrf.is_lost(Failure::Silent));
            assert_eq!(nrf.reach, Reach::Answers);
            assert!(!nrf.answers(json!({"function": "nrf", "state": "serves"})));
        }
        assert!(!nrf.is_lost(Failure::Silent));
        assert!(nrf.is_lost(Failure::Silent));
    }

    #[test]
    fn figures_outlast_a_start_that_is_computed_again() {
        let mut nrf = known();
        let says = |start: &str, process: u32| json!({"function": "nrf", "state": "serves", "process": process, "upSince": start});
        let counts = || Counts::read("nrf", "signalbox_nrf_responses_total 1\n").unwrap();
        nrf.answers(says("2026-11-28T01:02:03.000000001Z", 1));
        nrf.counted(counts());
        nrf.counted(counts());
        nrf.answers(says("2026-11-28T01:02:03.000000002Z", 1));
        assert!(nrf.figures.is_some());
        nrf.answers(says("2026-11-28T01:02:03.000000002Z", 2));
        assert!(nrf.figures.is_none());
    }

    #[test]
    fn a_state_that_was_there_before_the_console_has_no_beginning() {
        let mut nrf = known();
        let says = |state: &str| json!({"function": "nrf", "state": state});
        nrf.answers(says("serves"));
        nrf.answers(says("serves"));
        assert_eq!(nrf.state_since, Some(("serves".to_owned(), None)));
        nrf.answers(says("NOT READY"));
        assert!(nrf.state_since.is_some_and(|(_, at)| at.is_some()));
    }

    #[test]
    fn a_journal_that_was_begun_again_is_read_from_its_beginning() {
        let entry = |sequence, time: &str| Entry {
            sequence,
            time: time.to_owned(),
            kind: Kind::Started,
            about: "nrf".to_owned(),
            detail: "x".repeat(9_000),
            by: String::new(),
        };
        let mut nrf = known();
        nrf.journal(vec![entry(1, "a"), entry(2, "b")]);
        nrf.journal(vec![entry(2, "b"), entry(3, "c")]);
        nrf.journal(vec![entry(1, "d")]);
        let times: Vec<&str> = nrf.entries.iter().map(|one| one.time.as_str()).collect();
        assert_eq!(times, ["a", "b", "c", "d"]);
        assert_eq!(nrf.last_entry(), 1);
        assert!(!nrf.is_another_journal(&[entry(1, "d"), entry(2, "e")]));
        for other in [&[][..], &[entry(1, "x")], &[entry(2, "d")]] {
            assert!(nrf.is_another_journal(other));
        }
        assert!(nrf.entries.iter().all(|one| one.detail.chars().count() <= 501));
    }
}
