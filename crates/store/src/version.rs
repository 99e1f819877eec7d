//! Versions of records, which are also their times of modification.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Names one write: microseconds since 1970 in the upper 52 bits, the writer's number in the lower 12.
///
/// Two writes never share a version, so a writer that lost its connection in the middle of a commit recognises
/// its own write; and the later of two versions is the later write, which is how two sites settle a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Version(pub u64);

const WRITER_BITS: u32 = 12;

impl Version {
    /// The time of the write, in microseconds since 1970.
    #[must_use]
    pub fn micros(self) -> u64 {
        self.0 >> WRITER_BITS
    }

    /// This version, or one of the same writer that is later than `stored`, if a clock that is ahead has stamped
    /// that one: what is written later has the later version, whichever site writes it.
    #[cfg_attr(
        not(any(feature = "cql", feature = "mariadb")),
        allow(dead_code, reason = "one engine has several writers")
    )]
    pub(crate) fn beyond(self, stored: Version) -> Version {
        if self.micros() > stored.micros() {
            return self;
        }
        let writer = self.0 & ((1 << WRITER_BITS) - 1);
        Version(stored.micros().saturating_add(1) << WRITER_BITS | writer)
    }

    /// The earliest version of a time.
    #[must_use]
    pub fn at(micros: u64) -> Version {
        Version(micros << WRITER_BITS)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Where the store takes the time from: the system's clock, or a test's.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Clock {
    /// A clock that gives microseconds since 1970.
    pub fn new(micros: impl Fn() -> u64 + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(micros))
    }

    /// Microseconds since 1970.
    #[must_use]
    pub fn micros(&self) -> u64 {
        (self.0)()
    }
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::new(|| {
            // A clock before 1970 is a broken clock; versions still grow, see `Stamper`.
            let age = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(age.as_micros()).unwrap_or(u64::MAX)
        })
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.micros())
    }
}

/// Gives out versions that only grow, whatever the clock does.
#[derive(Debug)]
pub(crate) struct Stamper {
    clock: Clock,
    writer: u64,
    last: u64,
}

impl Stamper {
    pub(crate) fn new(clock: Clock, writer: u16) -> Stamper {
        Stamper {
            clock,
            writer: u64::from(writer) & ((1 << WRITER_BITS) - 1),
            last: 0,
        }
    }

    /// Versions that are later than `last`.
    pub(crate) fn after(clock: Clock, writer: u16, last: Version) -> Stamper {
        Stamper {
            last: last.micros(),
            ..Stamper::new(clock, writer)
        }
    }

    pub(crate) fn next(&mut self) -> Version {
        let micros = self.clock.micros().max(self.last + 1);
        self.last = micros;
        Version(micros << WRITER_BITS | self.writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_write_has_a_later_version_than_that_of_a_clock_that_is_ahead() {
        let own = Version(Version::at(1_000).0 | 7);
        assert_eq!(own.beyond(Version::at(999)), own);
        for stored in [
            Version::at(1_000),
            Version(Version::at(1_000).0 | 9),
            Version::at(5_000),
        ] {
            let later = own.beyond(stored);
            assert!(later > stored, "{later} after {stored}");
            assert_eq!(later.0 & 0xfff, 7);
        }
    }

    #[test]
    fn versions_grow_while_the_clock_stands_or_runs_back() {
        let mut stamper = Stamper::new(Clock::new(|| 1_000), 7);
        let versions: Vec<Version> = (0..3).map(|_| stamper.next()).collect();
        assert_eq!(
            versions.iter().map(|v| v.micros()).collect::<Vec<_>>(),
            [1_000, 1_001, 1_002]
        );
        assert!(versions.iter().all(|v| v.0 & 0xfff == 7));
    }
}
