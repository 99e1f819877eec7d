//! Which of two reports of load or overload about one scope is the newer one (TS 29.500 §6.3.3.3, §6.4.3.3).
//!
//! The timestamps are those of the reporting producers, and their clocks can be wrong. A timestamp ahead of this SCP's
//! clock must not block the correct ones after it until its moment has come.

use time::{Duration, OffsetDateTime};

/// A timestamp at most this far ahead of this SCP's clock is a usual difference between synchronised clocks.
const TOLERANCE: Duration = Duration::seconds(5);

/// The stored report about a scope.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored {
    pub(super) made: OffsetDateTime,
    /// Whether its period of validity lasts.
    pub(super) valid: bool,
}

/// Whether the timestamp is further ahead of this SCP's clock than `TOLERANCE`.
pub(super) fn is_ahead(made: OffsetDateTime, clock: OffsetDateTime) -> bool {
    made - clock > TOLERANCE
}

/// Whether a report with the timestamp `made` replaces the stored one. A repeated report does not, nor does one that a
/// newer one has overtaken. Of two timestamps of which one is ahead of the clock, the other one is believed.
pub(super) fn replaces(made: OffsetDateTime, stored: Option<Stored>, clock: OffsetDateTime) -> bool {
    let Some(stored) = stored else { return true };
    match (is_ahead(stored.made, clock), is_ahead(made, clock)) {
        _ if made == stored.made => false,
        (false, false) => made > stored.made,
        (true, false) => true,
        (false, true) => !stored.valid,
        (true, true) => made > stored.made || !stored.valid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_ahead_of_the_clock_does_not_block_correct_ones() {
        let clock = OffsetDateTime::UNIX_EPOCH + Duration::days(20_000);
        let stored = |ahead: i64, valid| {
            let made = clock + Duration::seconds(ahead);
            Some(Stored { made, valid })
        };
        let replaced = |ahead: i64, stored| replaces(clock + Duration::seconds(ahead), stored, clock);
        assert!(replaced(-100, None) && replaced(3_600, None));
        // Of correct clocks, the newer one counts.
        assert!(replaced(-1, stored(-2, true)) && replaced(4, stored(3, true)));
        assert!(!replaced(-2, stored(-1, true)) && !replaced(-2, stored(-2, false)));
        // The clock of the producer was an hour ahead, and is correct now.
        assert!(replaced(0, stored(3_600, true)));
        // One member of a set is ahead: it replaces no report that is valid.
        assert!(!replaced(3_600, stored(0, true)) && replaced(3_600, stored(0, false)));
        // Of clocks ahead, the newer one counts, and none blocks for longer than its validity.
        assert!(replaced(3_601, stored(3_600, true)) && !replaced(3_599, stored(3_600, true)));
        assert!(replaced(3_599, stored(3_600, false)) && !replaced(3_600, stored(3_600, false)));
    }
}
