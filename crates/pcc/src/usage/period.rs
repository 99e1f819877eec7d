//! Periods of quotas (TS 29.519 `TimePeriod`).

use time::{Date, Duration, Month, OffsetDateTime};

/// How long a quota lasts before it is whole again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Period {
    Yearly,
    Monthly,
    Weekly,
    Daily,
    Hourly,
}

impl Period {
    const NAMES: [(Self, &'static str); 5] = [
        (Self::Yearly, "YEARLY"),
        (Self::Monthly, "MONTHLY"),
        (Self::Weekly, "WEEKLY"),
        (Self::Daily, "DAILY"),
        (Self::Hourly, "HOURLY"),
    ];

    pub(super) fn read(name: &str) -> Option<Self> {
        let known = Self::NAMES.iter().find(|(_, known)| *known == name);
        known.map(|(period, _)| *period)
    }

    pub(super) fn name(self) -> &'static str {
        let known = Self::NAMES.iter().find(|(period, _)| *period == self);
        known.map_or("", |(_, name)| name)
    }

    /// The first end of a period after `now`, of periods that begin at `start`.
    pub(super) fn next_reset(self, start: OffsetDateTime, now: OffsetDateTime) -> Option<OffsetDateTime> {
        if now < start {
            return self.after(start, 1);
        }
        let passed = match self {
            Self::Yearly => i64::from(now.year()) - i64::from(start.year()),
            Self::Monthly => months(now) - months(start),
            Self::Weekly => (now - start).whole_weeks(),
            Self::Daily => (now - start).whole_days(),
            Self::Hourly => (now - start).whole_hours(),
        };
        let candidates = [passed, passed + 1, passed + 2];
        let ends = candidates.into_iter().filter(|count| *count > 0);
        ends.filter_map(|count| self.after(start, count))
            .find(|end| *end > now)
    }

    /// Whether a period ends at a moment, of periods that begin at `start`.
    pub(super) fn ends_at(self, start: OffsetDateTime, end: OffsetDateTime) -> bool {
        let before = end.checked_sub(Duration::NANOSECOND);
        end > start && before.and_then(|before| self.next_reset(start, before)) == Some(end)
    }

    /// The moment this many periods after `start`; of a month that lacks the day, its last.
    fn after(self, start: OffsetDateTime, count: i64) -> Option<OffsetDateTime> {
        let span = match self {
            Self::Yearly => return later_months(start, count.checked_mul(12)?),
            Self::Monthly => return later_months(start, count),
            Self::Weekly => Duration::weeks(count),
            Self::Daily => Duration::days(count),
            Self::Hourly => Duration::hours(count),
        };
        start.checked_add(span)
    }
}

fn months(date: OffsetDateTime) -> i64 {
    i64::from(date.year()) * 12 + i64::from(u8::from(date.month())) - 1
}

fn later_months(start: OffsetDateTime, count: i64) -> Option<OffsetDateTime> {
    let month = months(start).checked_add(count)?;
    let year = i32::try_from(month.div_euclid(12)).ok()?;
    let month = Month::try_from(u8::try_from(month.rem_euclid(12)).ok()? + 1).ok()?;
    let day = start.day().min(month.length(year));
    Some(start.replace_date(Date::from_calendar_date(year, month, day).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    #[test]
    fn periods_end_after_now() {
        let start = datetime!(2024-01-31 12:00 UTC);
        let next = |period: Period, now| period.next_reset(start, now).unwrap();
        let now = datetime!(2024-02-10 00:00 UTC);
        assert_eq!(next(Period::Monthly, now), datetime!(2024-02-29 12:00 UTC));
        assert_eq!(
            next(Period::Monthly, datetime!(2024-02-29 12:00 UTC)),
            datetime!(2024-03-31 12:00 UTC)
        );
        assert_eq!(next(Period::Yearly, now), datetime!(2025-01-31 12:00 UTC));
        assert_eq!(next(Period::Weekly, now), datetime!(2024-02-14 12:00 UTC));
        assert_eq!(next(Period::Daily, now), datetime!(2024-02-10 12:00 UTC));
        assert_eq!(next(Period::Hourly, now), datetime!(2024-02-10 01:00 UTC));
        assert_eq!(
            next(Period::Daily, datetime!(2020-01-01 00:00 UTC)),
            datetime!(2024-02-01 12:00 UTC)
        );
        for (period, name) in Period::NAMES {
            assert_eq!((Period::read(name), period.name()), (Some(period), name));
        }
    }
}
