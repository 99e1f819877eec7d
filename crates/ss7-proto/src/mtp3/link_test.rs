//! The test of a signalling link (Q.707 §2.2, T1.111.7).

use std::time::{Duration, Instant};

use crate::m3ua::ServiceIndicator;
use crate::point_code::Plan;

/// Heading codes of SLTM and SLTA (Q.707 §5.4).
const SLTM: u8 = 0x11;
const SLTA: u8 = 0x21;
/// The longest test pattern: its length has four bits.
const LONGEST: usize = 15;

/// The service indicator of link tests: 1, of ANSI 2, special messages (Q.704 §14.2.1, T1.111.4 §14.2.1).
#[must_use]
pub const fn test_indicator(plan: Plan) -> ServiceIndicator {
    match plan {
        Plan::Itu | Plan::China | Plan::Japan => ServiceIndicator::SNT,
        Plan::Ansi => ServiceIndicator::SNT_SPECIAL,
    }
}

/// A message of [`test_indicator`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TestMessage<'a> {
    /// Whether it is SLTA, the acknowledgement.
    pub acknowledges: bool,
    /// The test pattern.
    pub pattern: &'a [u8],
}

impl<'a> TestMessage<'a> {
    /// Reads user data; `None` for other messages and lengths that lie.
    #[must_use]
    pub fn read(user_data: &'a [u8]) -> Option<Self> {
        let ([heading, length], rest) = user_data.split_first_chunk::<2>()?;
        let acknowledges = match *heading {
            SLTM => false,
            SLTA => true,
            _ => return None,
        };
        let pattern = rest.get(..usize::from(length >> 4))?;
        Some(Self {
            acknowledges,
            pattern,
        })
    }

    /// Appends the user data of a test of the link with a code. ANSI has the code where ITU has spare bits (T1.111.7).
    pub fn write(&self, plan: Plan, code: u8, out: &mut Vec<u8>) {
        let pattern = self.pattern.get(..LONGEST).unwrap_or(self.pattern);
        out.push(if self.acknowledges { SLTA } else { SLTM });
        let code = if plan == Plan::Ansi { code & 0x0f } else { 0 };
        out.push((pattern.len() as u8) << 4 | code);
        out.extend_from_slice(pattern);
    }
}

/// Timers of the test (Q.707 §5.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkTestTimers {
    /// T1: the longest time until SLTA; 4 s to 12 s.
    pub acknowledgement: Duration,
    /// T2: interval of tests; 30 s to 90 s.
    pub interval: Duration,
}

impl Default for LinkTestTimers {
    fn default() -> Self {
        Self {
            acknowledgement: Duration::from_secs(8),
            interval: Duration::from_secs(60),
        }
    }
}

/// What a test has shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkTestOutcome {
    /// The first test since the link is in service: it may carry traffic.
    Passed,
    /// Neither the first SLTM nor its repetition was acknowledged.
    Failed,
}

/// The test of one link.
#[derive(Debug)]
pub struct LinkTest {
    timers: LinkTestTimers,
    pattern: [u8; 4],
    /// SLTM that were sent without an acknowledgement.
    attempts: u8,
    passed: bool,
    due: Option<Instant>,
}

impl LinkTest {
    /// Not running.
    #[must_use]
    pub const fn new(timers: LinkTestTimers) -> Self {
        Self {
            timers,
            pattern: [0; 4],
            attempts: 0,
            passed: false,
            due: None,
        }
    }

    /// The link is in service: the first test. Patterns differ from test to test.
    pub fn start(&mut self, now: Instant) -> [u8; 4] {
        self.passed = false;
        self.attempts = 0;
        self.send(now)
    }

    /// The link is out of service.
    pub const fn stop(&mut self) {
        self.due = None;
        self.passed = false;
    }

    /// Whether the link has passed a test since it is in service.
    #[must_use]
    pub const fn has_passed(&self) -> bool {
        self.passed
    }

    /// When [`Self::tick`] has something to do.
    #[must_use]
    pub const fn wake(&self) -> Option<Instant> {
        self.due
    }

    /// SLTA with a pattern; others than the last are ignored.
    pub fn acknowledged(&mut self, pattern: &[u8], now: Instant) -> Option<LinkTestOutcome> {
        if self.due.is_none() || self.attempts == 0 || pattern != self.pattern {
            return None;
        }
        self.attempts = 0;
        self.due = Some(now + self.timers.interval);
        (!std::mem::replace(&mut self.passed, true)).then_some(LinkTestOutcome::Passed)
    }

    /// Time passes: the pattern of an SLTM that is due, or that the test has failed.
    pub fn tick(&mut self, now: Instant) -> Option<Result<[u8; 4], LinkTestOutcome>> {
        if self.due.is_none_or(|due| due > now) {
            return None;
        }
        // A second test follows the first that fails (Q.707 §2.2).
        if self.attempts >= 2 {
            self.stop();
            return Some(Err(LinkTestOutcome::Failed));
        }
        Some(Ok(self.send(now)))
    }

    fn send(&mut self, now: Instant) -> [u8; 4] {
        self.attempts += 1;
        self.pattern = u32::from_be_bytes(self.pattern).wrapping_add(1).to_be_bytes();
        self.due = Some(now + self.timers.acknowledgement);
        self.pattern
    }
}
