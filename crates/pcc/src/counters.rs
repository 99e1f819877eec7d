//! Policy counters of a subscriber (TS 29.594 `PolicyCounterInfo`): pending statuses take effect at their time
//! (TS 29.594 §5.6.2.4, TS 29.219 §4.5.2).

use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::json::{self, Object};

/// The counters as they are now: a pending status whose time has come is the current one.
#[must_use]
pub fn effective(counters: &Object, now: OffsetDateTime) -> Object {
    let mut counters = counters.clone();
    for info in counters.values_mut() {
        let last = pending(info)
            .filter(|(at, _)| *at <= now)
            .max_by_key(|(at, _)| *at);
        let Some(status) = last.map(|(_, status)| status.to_owned()) else {
            continue;
        };
        let info = json::object(info);
        info.insert("currentStatus".to_owned(), status.into());
        if let Some(Value::Array(all)) = info.get_mut("penPolCounterStatuses") {
            all.retain(|one| activation(one).is_some_and(|at| at > now));
            if all.is_empty() {
                info.remove("penPolCounterStatuses");
            }
        }
    }
    counters
}

/// When the next pending status takes effect.
#[must_use]
pub fn next_change(counters: &Object, now: OffsetDateTime) -> Option<OffsetDateTime> {
    let times = counters.values().flat_map(pending).map(|(at, _)| at);
    times.filter(|at| *at > now).min()
}

fn pending(info: &Value) -> impl Iterator<Item = (OffsetDateTime, &str)> {
    let all = json::items(info, "penPolCounterStatuses").iter();
    all.filter_map(|one| Some((activation(one)?, json::text(one, "policyCounterStatus")?)))
}

fn activation(pending: &Value) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(json::text(pending, "activationTime")?, &Rfc3339).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use time::macros::datetime;

    #[test]
    fn a_pending_status_takes_effect_at_its_time() {
        let counters = json!({
            "day": {"policyCounterId": "day", "currentStatus": "low", "penPolCounterStatuses": [
                {"policyCounterStatus": "high", "activationTime": "2024-01-01T12:00:00Z"},
                {"policyCounterStatus": "low", "activationTime": "2024-01-02T00:00:00Z"}]},
            "month": {"policyCounterId": "month", "currentStatus": "low"},
        });
        let Value::Object(counters) = counters else {
            unreachable!()
        };
        let status = |now| effective(&counters, now)["day"]["currentStatus"].clone();
        let (before, noon, later) = (
            datetime!(2024-01-01 11:00 UTC),
            datetime!(2024-01-01 12:00 UTC),
            datetime!(2024-01-03 00:00 UTC),
        );
        assert_eq!(
            (status(before), status(noon), status(later)),
            (json!("low"), json!("high"), json!("low"))
        );
        assert_eq!(next_change(&counters, before), Some(noon));
        assert_eq!(
            next_change(&counters, noon),
            Some(datetime!(2024-01-02 00:00 UTC))
        );
        assert_eq!(next_change(&counters, later), None);
        assert!(
            effective(&counters, later)["day"]
                .get("penPolCounterStatuses")
                .is_none()
        );
    }
}
