//! `Date` of answers (RFC 9110 §6.6.1): made once for a second, not for each answer.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use http::HeaderValue;
use http2::Fields;
use http2::name::DATE;
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

/// `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 §5.6.7).
const IMF_FIXDATE: &[BorrowedFormatItem<'_>] =
    format_description!("[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT");

/// The date as text, of a worker.
#[derive(Debug, Default)]
pub(super) struct Date(RefCell<Option<Current>>);

#[derive(Debug)]
struct Current {
    text: HeaderValue,
    /// When the next second begins.
    until: Instant,
}

impl Date {
    /// Adds `Date` to an answer that has none; `now` is the time of the turn.
    pub(super) fn stamp(&self, fields: &mut Fields, now: Instant) {
        if fields.contains(DATE) {
            return;
        }
        let mut current = self.0.borrow_mut();
        if current.as_ref().is_none_or(|current| current.until <= now) {
            *current = Current::of(OffsetDateTime::now_utc(), now);
        }
        if let Some(current) = &*current {
            fields.append(DATE, &current.text);
        }
    }
}

impl Current {
    /// `None` for a year beyond 9999.
    fn of(date: OffsetDateTime, now: Instant) -> Option<Self> {
        let rest = Duration::from_secs(1).saturating_sub(Duration::from_nanos(u64::from(date.nanosecond())));
        Some(Self {
            text: HeaderValue::try_from(date.format(IMF_FIXDATE).ok()?).ok()?,
            until: now + rest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    #[test]
    fn a_date_holds_for_its_second() {
        let now = Instant::now();
        let current = Current::of(datetime!(1994-11-06 08:49:37.750 UTC), now).unwrap();
        assert_eq!(current.text, "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(current.until, now + Duration::from_millis(250));
    }

    #[test]
    fn an_answer_keeps_the_date_that_it_has() {
        let (date, now) = (Date::default(), Instant::now());
        let mut fields = Fields::new();
        date.stamp(&mut fields, now);
        date.stamp(&mut fields, now);
        assert_eq!(fields.get_all(DATE).count(), 1);
        let text = fields.get(DATE).and_then(|value| value.to_str().ok()).unwrap();
        assert!(text.len() == 29 && text.ends_with(" GMT"), "{text}");
    }
}
