//! The watchdog algorithm of RFC 3539 §3.4.1, without socket and clock.

use std::fmt;
use std::time::{Duration, Instant};

/// The status of a connection as RFC 3539 §3.4 calls it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Health {
    /// There was no connection yet.
    Initial,
    /// The peer answers.
    Okay,
    /// A watchdog went unanswered: new requests should go elsewhere.
    Suspect,
    /// The connection is down.
    Down,
    /// The connection is up again; three answered watchdogs must follow before it carries requests.
    Reopen,
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Initial => "INITIAL",
            Self::Okay => "OKAY",
            Self::Suspect => "SUSPECT",
            Self::Down => "DOWN",
            Self::Reopen => "REOPEN",
        })
    }
}

/// The losses after which a new connection is in state REOPEN, which takes two watchdog intervals during which it
/// carries no requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reopen {
    /// After none.
    Never,
    /// After the watchdog closed the last connection. One that was closed in order or reset by the peer's kernel shows
    /// nothing about the path, so it does not count.
    #[default]
    AfterSilence,
    /// The same, and every connection that broke without a DPR.
    AfterLoss,
    /// After every one, to the letter of RFC 3539.
    Always,
}

/// What the driver of the watchdog has to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// `SendWatchdog()`: send a DWR.
    SendWatchdog,
    /// `Failover()`: new requests go elsewhere.
    Failover,
    /// `Failback()`: the connection may be used (again).
    Failback,
    /// `CloseConnection()`: the peer is unreachable.
    CloseConnection,
}

/// The watchdog of one peer.
#[derive(Clone, Debug)]
pub struct Watchdog {
    health: Health,
    interval: Duration,
    reopen: Reopen,
    pending: bool,
    /// `NumDWA` of RFC 3539; −1 once REOPEN saw a watchdog go unanswered.
    answered: i32,
    due: Option<Instant>,
    /// When the last message arrived. While OKAY the timer is not moved for each message; when it expires, this value
    /// shows whether it should have been.
    heard: Option<Instant>,
    /// When the timer was set last.
    moved: Option<Instant>,
    /// The connection was closed for silence.
    silent: bool,
    /// The connection broke without a DPR.
    lost: bool,
    random: u64,
}

/// Silence of a connection after which a request without an answer is a reason to send a DWR. RFC 3539 §3.4.1 wants the
/// intervals of idle connections long; this one is not idle, and no more than one DWR in this time follows.
const DOUBT: Duration = Duration::from_secs(1);
/// RFC 3539 §3.4.1: the interval is never the same twice.
const JITTER: Duration = Duration::from_secs(2);

impl Watchdog {
    /// A watchdog with this interval (`Twinit`; the RFC asks for at least 6 s and proposes 30 s).
    #[must_use]
    pub const fn new(interval: Duration, reopen: Reopen, seed: u64) -> Self {
        Self {
            health: Health::Initial,
            interval,
            reopen,
            pending: false,
            answered: 0,
            due: None,
            heard: None,
            moved: None,
            silent: false,
            lost: false,
            random: seed | 1,
        }
    }

    /// Changes interval and policy, from the next interval on.
    pub const fn configure(&mut self, interval: Duration, reopen: Reopen) {
        self.interval = interval;
        self.reopen = reopen;
    }

    /// The status.
    #[must_use]
    pub const fn health(&self) -> Health {
        self.health
    }

    /// When [`Watchdog::timer`] wants to be called.
    #[must_use]
    pub const fn deadline(&self) -> Option<Instant> {
        self.due
    }

    /// `SetWatchdog()`: the interval with a jitter of ±2 s (less for the short intervals of tests).
    fn set(&mut self, now: Instant) {
        let jitter = JITTER.min(self.interval / 3);
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let spread = (jitter.as_micros() as u64).saturating_mul(2) + 1;
        let offset = Duration::from_micros(self.random % spread);
        self.due = Some(now + self.interval - jitter + offset);
        self.moved = Some(now);
    }

    /// The connection is up. `Failback` when it may be used at once.
    pub fn connection_up(&mut self, now: Instant) -> Command {
        let prove = match self.reopen {
            Reopen::Never => false,
            Reopen::AfterSilence => self.silent,
            Reopen::AfterLoss => self.silent || self.lost,
            Reopen::Always => self.health == Health::Down,
        };
        self.set(now);
        self.heard = None;
        self.answered = 0;
        if prove {
            self.health = Health::Reopen;
            self.pending = true;
            Command::SendWatchdog
        } else {
            self.health = Health::Okay;
            self.pending = false;
            self.lost = false;
            Command::Failback
        }
    }

    /// The connection is down, whichever side closed it; `lost`: without a DPR.
    pub const fn connection_down(&mut self, lost: bool) {
        self.lost |= lost;
        self.health = Health::Down;
        self.pending = false;
        self.due = None;
        self.heard = None;
    }

    /// A message other than a DWA arrived.
    #[inline]
    pub fn traffic(&mut self, now: Instant) -> Option<Command> {
        match self.health {
            Health::Okay => {
                self.heard = Some(now);
                None
            }
            Health::Suspect => self.back(now),
            // In REOPEN the watchdog ignores it.
            Health::Initial | Health::Down | Health::Reopen => None,
        }
    }

    /// A DWA arrived.
    pub fn answer(&mut self, now: Instant) -> Option<Command> {
        self.pending = false;
        match self.health {
            Health::Okay => {
                self.set(now);
                self.heard = None;
                None
            }
            Health::Suspect => self.back(now),
            Health::Reopen if self.answered >= 2 => self.back(now),
            Health::Reopen => {
                self.answered += 1;
                None
            }
            Health::Initial | Health::Down => None,
        }
    }

    fn back(&mut self, now: Instant) -> Option<Command> {
        self.health = Health::Okay;
        (self.silent, self.lost) = (false, false);
        self.set(now);
        Some(Command::Failback)
    }

    /// Sends a DWR now, whatever the timer says. Only while OKAY with none pending.
    pub fn probe(&mut self, now: Instant) -> Option<Command> {
        if self.health != Health::Okay || self.pending {
            return None;
        }
        self.pending = true;
        self.set(now);
        Some(Command::SendWatchdog)
    }

    /// A request went unanswered: a DWR goes out at once if nothing has arrived for [`DOUBT`], so that a peer that hangs is
    /// noticed an interval later, and not after two.
    pub fn unanswered(&mut self, now: Instant) -> Option<Command> {
        let last = self.heard.max(self.moved);
        let is_silent = last.is_none_or(|last| now.saturating_duration_since(last) >= DOUBT);
        if is_silent { self.probe(now) } else { None }
    }

    /// Handles the timer, if it has expired at `now`.
    pub fn timer(&mut self, now: Instant) -> Option<Command> {
        if self.due.is_none_or(|due| now < due) {
            return None;
        }
        if self.health == Health::Okay
            && let Some(heard) = self.heard.take()
        {
            // A message since the timer was set moves it.
            self.set(heard);
            if self.due.is_some_and(|due| now < due) {
                return None;
            }
        }
        self.set(now);
        match self.health {
            Health::Okay if self.pending => {
                self.health = Health::Suspect;
                Some(Command::Failover)
            }
            Health::Reopen if self.pending && self.answered >= 0 => {
                self.answered = -1;
                None
            }
            Health::Suspect | Health::Reopen if self.pending || self.health == Health::Suspect => {
                self.silent = true;
                self.connection_down(false);
                Some(Command::CloseConnection)
            }
            Health::Okay | Health::Reopen => {
                self.pending = true;
                Some(Command::SendWatchdog)
            }
            Health::Suspect | Health::Initial | Health::Down => {
                self.due = None;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TW: Duration = Duration::from_secs(30);
    /// Past the interval with the largest jitter.
    const LATE: Duration = Duration::from_secs(33);

    fn up(reopen: Reopen) -> (Watchdog, Instant) {
        let now = Instant::now();
        let mut watchdog = Watchdog::new(TW, reopen, 42);
        assert_eq!(watchdog.connection_up(now), Command::Failback);
        (watchdog, now)
    }

    #[test]
    fn silence_leads_to_a_watchdog_then_suspect_then_down() {
        let (mut dog, now) = up(Reopen::default());
        assert_eq!(
            dog.timer(now + TW - Duration::from_secs(3)),
            None,
            "not before the shortest interval"
        );
        assert_eq!(dog.timer(now + LATE), Some(Command::SendWatchdog));
        assert_eq!(dog.timer(now + 2 * LATE), Some(Command::Failover));
        assert_eq!(dog.health(), Health::Suspect);
        assert_eq!(dog.timer(now + 3 * LATE), Some(Command::CloseConnection));
        assert_eq!((dog.health(), dog.deadline()), (Health::Down, None));
    }

    #[test]
    fn an_unanswered_request_doubts_a_silent_peer_at_once() {
        let mut dog = Watchdog::new(TW, Reopen::Never, 1);
        let now = Instant::now();
        dog.connection_up(now);
        let later = now + Duration::from_secs(4);
        // Others have answered a moment ago.
        dog.traffic(later - Duration::from_millis(10));
        assert_eq!(dog.unanswered(later), None);
        let later = later + DOUBT;
        assert_eq!(dog.unanswered(later), Some(Command::SendWatchdog));
        assert_eq!(dog.unanswered(later + DOUBT), None, "one is pending");
        assert_eq!(dog.timer(later + LATE), Some(Command::Failover));
        // An answer ends the doubt for as long.
        dog.answer(later + LATE);
        assert_eq!(dog.unanswered(later + LATE), None);
    }

    #[test]
    fn a_suspect_that_speaks_is_okay() {
        for dwa in [true, false] {
            let (mut dog, now) = up(Reopen::default());
            dog.timer(now + LATE);
            dog.timer(now + 2 * LATE);
            let at = now + 2 * LATE + Duration::from_secs(1);
            let command = if dwa { dog.answer(at) } else { dog.traffic(at) };
            assert_eq!(command, Some(Command::Failback));
            assert_eq!(dog.health(), Health::Okay);
        }
    }

    #[test]
    fn traffic_puts_the_watchdog_off() {
        let (mut dog, now) = up(Reopen::default());
        assert_eq!(dog.traffic(now + Duration::from_secs(20)), None);
        assert_eq!(dog.timer(now + LATE), None);
        assert_eq!(
            dog.timer(now + Duration::from_secs(20) + LATE),
            Some(Command::SendWatchdog)
        );
    }

    #[test]
    fn after_silence_three_answers_are_needed() {
        let (mut dog, mut now) = up(Reopen::AfterSilence);
        for _ in 0..3 {
            now += LATE;
            dog.timer(now);
        }
        assert_eq!(dog.health(), Health::Down);
        assert_eq!(dog.connection_up(now), Command::SendWatchdog);
        for _ in 0..2 {
            assert_eq!(dog.answer(now), None);
            now += LATE;
            assert_eq!(dog.timer(now), Some(Command::SendWatchdog));
        }
        assert_eq!(dog.answer(now), Some(Command::Failback));
        assert_eq!(dog.health(), Health::Okay);
    }

    #[test]
    fn reopen_follows_a_broken_connection_but_not_a_dpr() {
        let (mut dog, mut now) = up(Reopen::AfterLoss);
        dog.connection_down(false);
        assert_eq!(dog.connection_up(now), Command::Failback);
        dog.connection_down(true);
        assert_eq!(dog.connection_up(now), Command::SendWatchdog);
        // It breaks again in state REOPEN, and the next one ends with a DPR.
        dog.connection_down(true);
        dog.connection_down(false);
        assert_eq!(dog.connection_up(now), Command::SendWatchdog);
        for _ in 0..2 {
            assert_eq!(dog.answer(now), None);
            now += LATE;
            assert_eq!(dog.timer(now), Some(Command::SendWatchdog));
        }
        assert_eq!(dog.answer(now), Some(Command::Failback));
        dog.connection_down(false);
        assert_eq!(dog.connection_up(now), Command::Failback);
    }

    #[test]
    fn a_reopened_connection_that_stays_silent_is_closed_at_the_second_timer() {
        let (mut dog, mut now) = up(Reopen::Always);
        dog.connection_down(false);
        assert_eq!(dog.connection_up(now), Command::SendWatchdog);
        now += LATE;
        assert_eq!(dog.timer(now), None);
        now += LATE;
        assert_eq!(dog.timer(now), Some(Command::CloseConnection));
    }

    #[test]
    fn intervals_differ_but_stay_within_two_seconds() {
        let (mut dog, now) = up(Reopen::Never);
        let mut seen = std::collections::HashSet::new();
        for _ in 0..100 {
            dog.answer(now);
            let interval = dog.deadline().unwrap() - now;
            assert!(interval >= TW - JITTER && interval <= TW + JITTER);
            seen.insert(interval);
        }
        assert!(seen.len() > 90);
    }
}
