//! Messages of a capture, as if they came now: the measures of a configuration judge them, at the times of the capture.

use std::time::{Duration, Instant, SystemTime};

use dsr_app::{Answered, Application as _, Finding, Flow, Memo, On, Out, Request, Ticket};
use serde_json::Value;
use telemetry::events::Counters;

use crate::lines::Lines;
use crate::{Dsa, Event, Known, config};

/// Bound on the time of a capture: what says more has a wrong clock.
const MAX_TIME: Duration = Duration::from_secs(10 * 366 * 24 * 3600);

/// The application in a replay: it writes no file, and lines about all findings are returned.
#[derive(Debug)]
pub struct Replay {
    application: Dsa,
    known: Known,
    counters: Counters<Event>,
    start: Instant,
    /// Time of the first message.
    first: Option<SystemTime>,
    /// Since the first message; it does not go back.
    elapsed: Duration,
}

/// What became of a message.
#[derive(Debug)]
pub struct Judged {
    /// Whether a measure that is on could concern it: it comes from a partner, or goes to one.
    pub is_screened: bool,
    /// Whether a measure dropped or answered it.
    pub is_blocked: bool,
    /// A line for each finding, as the file of findings has them.
    pub lines: Vec<Value>,
}

impl Replay {
    /// Reads the tables of a configuration.
    ///
    /// # Errors
    /// Each mistake in them.
    pub fn load(config: &config::Dsa) -> Result<Self, String> {
        let config = config::Dsa {
            findings: None,
            samples: None,
            store: None,
            findings_per_second: u32::MAX,
            ..config.clone()
        };
        let application = Dsa {
            lines: Lines::for_replay(),
            ..Dsa::load(&config)?
        };
        let known = Known::default();
        let _ = application.states.set(known.states.clone());
        let start = known.states.start();
        Ok(Self {
            application,
            known,
            counters: Counters::default(),
            start,
            first: None,
            elapsed: Duration::ZERO,
        })
    }

    /// Shows it a request. The memo is for the answer.
    pub fn request(&mut self, at: SystemTime, request: &Request<'_>, memo: &mut Memo) -> Judged {
        self.show(at, memo, |application, on| application.request(on, request))
    }

    /// Shows it the answer to a request that went on.
    pub fn answer(&mut self, at: SystemTime, answered: &Answered<'_>, memo: &mut Memo) -> Judged {
        self.show(at, memo, |application, on| application.answer(on, answered))
    }

    /// What it has found.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        self.application.findings()
    }

    /// Subscribers that it knows now.
    #[must_use]
    pub fn subscribers(&self) -> usize {
        self.known.states.size().0
    }

    fn show(
        &mut self,
        at: SystemTime,
        memo: &mut Memo,
        show: impl for<'a> FnOnce(&'a Dsa, &mut On<'_, Dsa>) -> Flow<'a>,
    ) -> Judged {
        let first = *self.first.get_or_insert(at);
        let elapsed = at.duration_since(first).unwrap_or_default().min(MAX_TIME);
        self.elapsed = self.elapsed.max(elapsed);
        self.application.lines.take(at);
        let before = self.counters.get(Event::Screened);
        let mut on = On {
            worker: &mut self.known,
            memo,
            counters: &self.counters,
            out: &mut Out::default(),
            ticket: Ticket::default(),
            now: self.start + self.elapsed,
            is_congested: false,
        };
        let flow = show(&self.application, &mut on);
        let is_blocked = !matches!(flow, Flow::Next);
        Judged {
            is_screened: self.counters.get(Event::Screened) > before,
            is_blocked,
            lines: self.application.lines.take(at),
        }
    }
}
