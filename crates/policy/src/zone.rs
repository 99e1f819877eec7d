//! The local time of a project: a fixed offset from UTC, or a time zone with its rules of summer time.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use time::{Duration, OffsetDateTime, UtcOffset};

/// Minutes of a day.
const DAY: u16 = 1_440;

/// The local time of a project.
#[derive(Clone, Debug)]
pub(crate) enum Zone {
    /// Seconds east of UTC, at most 14 hours.
    Fixed(i32),
    /// A zone of the IANA database.
    Named(TimeZone),
}

impl Default for Zone {
    fn default() -> Self {
        Self::Fixed(0)
    }
}

impl Zone {
    /// The zone of a name (`Europe/Berlin`), from the database that this program carries.
    pub(crate) fn named(name: &str) -> Option<Self> {
        TimeZone::get(name).ok().map(Self::Named)
    }

    /// The local time of a moment.
    pub(crate) fn local(&self, now: OffsetDateTime) -> OffsetDateTime {
        let seconds = match self {
            Self::Fixed(seconds) => *seconds,
            Self::Named(zone) => match Timestamp::from_second(now.unix_timestamp()) {
                Ok(moment) => zone.to_offset(moment).seconds(),
                Err(_) => 0,
            },
        };
        let offset = UtcOffset::from_whole_seconds(seconds).unwrap_or(UtcOffset::UTC);
        now.checked_to_offset(offset).unwrap_or(now)
    }

    /// When a minute of the day begins next, after a moment. One that a day does not have, because clocks are put forward, begins
    /// when they are.
    pub(crate) fn next(&self, now: OffsetDateTime, minute: u16) -> Option<OffsetDateTime> {
        let minute = minute % DAY;
        let today = self.local(now).date();
        // Clocks that are put back have a minute twice.
        let days = [today.previous_day(), Some(today), today.next_day()];
        let moments = days
            .into_iter()
            .flatten()
            .filter_map(|day| self.begins(day, minute));
        moments.filter(|moment| *moment > now).min()
    }

    fn begins(&self, day: time::Date, minute: u16) -> Option<OffsetDateTime> {
        let (hour, minute) = (u8::try_from(minute / 60).ok()?, u8::try_from(minute % 60).ok()?);
        match self {
            Self::Fixed(seconds) => {
                let local = day.with_hms(hour, minute, 0).ok()?.assume_utc();
                local.checked_sub(Duration::seconds((*seconds).into()))
            }
            Self::Named(zone) => {
                let year = i16::try_from(day.year()).ok()?;
                let month = i8::try_from(u8::from(day.month())).ok()?;
                let (number, hour, minute) = (
                    i8::try_from(day.day()).ok()?,
                    i8::try_from(hour).ok()?,
                    i8::try_from(minute).ok()?,
                );
                let civil = DateTime::new(year, month, number, hour, minute, 0, 0).ok()?;
                let moment = zone.to_ambiguous_timestamp(civil).compatible().ok()?;
                OffsetDateTime::from_unix_timestamp(moment.as_second()).ok()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    #[test]
    fn summer_time_moves_the_times_of_day() {
        let berlin = Zone::named("Europe/Berlin").unwrap();
        for (now, local) in [
            (datetime!(2026-01-05 12:00 UTC), datetime!(2026-01-05 13:00 +1)),
            (datetime!(2026-07-05 12:00 UTC), datetime!(2026-07-05 14:00 +2)),
            (datetime!(2026-03-29 00:59 UTC), datetime!(2026-03-29 01:59 +1)),
            (datetime!(2026-03-29 01:00 UTC), datetime!(2026-03-29 03:00 +2)),
        ] {
            assert_eq!(berlin.local(now).to_string(), local.to_string());
        }
        for (now, minute, next) in [
            (
                datetime!(2026-01-05 12:00 UTC),
                22 * 60,
                datetime!(2026-01-05 21:00 UTC),
            ),
            (
                datetime!(2026-07-05 12:00 UTC),
                22 * 60,
                datetime!(2026-07-05 20:00 UTC),
            ),
            // The night in which it begins, that in which it ends, and the hour that is not there.
            (
                datetime!(2026-03-28 22:00 UTC),
                6 * 60,
                datetime!(2026-03-29 04:00 UTC),
            ),
            (
                datetime!(2026-10-24 22:00 UTC),
                6 * 60,
                datetime!(2026-10-25 05:00 UTC),
            ),
            (
                datetime!(2026-03-29 00:00 UTC),
                2 * 60 + 30,
                datetime!(2026-03-29 01:30 UTC),
            ),
        ] {
            assert_eq!(berlin.next(now, minute), Some(next), "{now}");
        }
        let fixed = Zone::Fixed(-9_000);
        assert_eq!(
            fixed.next(datetime!(2026-01-05 01:00 UTC), 0),
            Some(datetime!(2026-01-05 02:30 UTC))
        );
        assert!(Zone::named("Europe/Atlantis").is_none());
    }
}
