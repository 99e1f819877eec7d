use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Milliseconds since 1970 of a `DateTime` (TS 29.571 §5.2.2, RFC 3339); `None` when it is none.
#[must_use]
pub fn unix_millis(date_time: &str) -> Option<i64> {
    let moment = OffsetDateTime::parse(date_time, &Rfc3339).ok()?;
    i64::try_from(moment.unix_timestamp_nanos() / 1_000_000).ok()
}
