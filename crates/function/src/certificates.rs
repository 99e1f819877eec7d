//! Expiry of own certificates: a gauge, and an alarm before a certificate expires.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use telemetry::{AlarmKind, Alarms, Registry, Severity};
use time::OffsetDateTime;
use tls::Watched;

telemetry::declare! {
    /// Metrics of own certificates.
    pub METRICS;
    gauge EXPIRY = "signalbox_tls_certificate_expiry_seconds" ["tls"]: "Time at which the own certificate of this setting expires, or the first of its chain, in seconds since 1970.";
}

/// Every alarm about certificates.
pub const ALARMS: &[AlarmKind] = &[EXPIRES, REFUSED];

/// Files have changed and cannot be used. The number is ours.
pub(crate) const REFUSED: AlarmKind = AlarmKind {
    number: 10526,
    name: "TLS Files Refused",
    severity: Severity::Major,
    text: "Certificate, key or authorities have changed and cannot be used; handshakes use those loaded before, until they expire.",
    advice: "Replace the files that the detail names: certificate and key of one pair, the own certificate first. They are read again at `tls.checkInterval`.",
};

const EXPIRES: AlarmKind = AlarmKind {
    number: 10521,
    name: "Certificate Expiry",
    severity: Severity::Minor,
    text: "A certificate of this function expires within 30 days; major within 7 days, critical when it has expired.",
    advice: "Replace certificate and key; the files are read again at `tls.checkInterval`, without a restart.",
};

/// Interval of the checks.
const INTERVAL: Duration = Duration::from_secs(10);
const MINOR_DAYS: i64 = 30;
const MAJOR_DAYS: i64 = 7;

/// Shows when certificates expire.
pub(crate) fn observe(registry: &Registry, watched: &Arc<Watched>) {
    let seen = Arc::downgrade(watched);
    registry.observe_all(&EXPIRY, move || {
        let times = expiries(&seen).into_iter();
        times
            .map(|(key, not_after)| (vec![key], not_after.unix_timestamp() as f64))
            .collect()
    });
}

/// Raises and clears the alarm. Never ends; belongs on a control thread.
pub(crate) async fn watch(alarms: Alarms, watched: Weak<Watched>) {
    let (mut known, mut refused): (Vec<String>, Vec<String>) = Default::default();
    loop {
        let found = expiries(&watched);
        check(&alarms, &found, OffsetDateTime::now_utc());
        for gone in known.iter().filter(|key| !found.contains_key(*key)) {
            alarms.clear(&EXPIRES, gone);
        }
        known = found.into_keys().collect();
        let faults = watched
            .upgrade()
            .map(|watched| watched.faults())
            .unwrap_or_default();
        for gone in refused.iter().filter(|key| !faults.contains_key(*key)) {
            alarms.clear(&REFUSED, gone);
        }
        for (key, fault) in &faults {
            alarms.raise(&REFUSED, key, fault.clone());
        }
        refused = faults.into_keys().collect();
        tokio::time::sleep(INTERVAL).await;
    }
}

/// What the journal says of files that are in use from now on.
pub(crate) fn in_words(watched: Option<&Arc<Watched>>) -> String {
    let found = watched.map(|watched| expiries(&Arc::downgrade(watched)));
    let each = found.into_iter().flatten();
    let each = each.map(|(key, not_after)| format!("; {key} expires at {not_after}"));
    format!("files have changed and are in use{}", each.collect::<String>())
}

/// The first expiry of each setting.
fn expiries(watched: &Weak<Watched>) -> BTreeMap<String, OffsetDateTime> {
    let certificates = watched.upgrade().map(|watched| watched.certificates());
    let mut first = BTreeMap::new();
    for certificate in certificates.into_iter().flatten() {
        let known = first.entry(certificate.key).or_insert(certificate.not_after);
        *known = certificate.not_after.min(*known);
    }
    first
}

fn check(alarms: &Alarms, expiries: &BTreeMap<String, OffsetDateTime>, now: OffsetDateTime) {
    for (key, not_after) in expiries {
        let left = *not_after - now;
        let severity = match left.whole_days() {
            _ if left.is_negative() => Severity::Critical,
            ..MAJOR_DAYS => Severity::Major,
            MAJOR_DAYS..MINOR_DAYS => Severity::Minor,
            _ => {
                alarms.clear(&EXPIRES, key);
                continue;
            }
        };
        let detail = format!("expires at {not_after}");
        alarms.raise_as(&EXPIRES, severity, key, detail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alarm_becomes_more_severe_and_is_cleared_by_a_new_certificate() {
        let alarms = Alarms::new(&Registry::new());
        let not_after = OffsetDateTime::from_unix_timestamp(2_000_000_000).unwrap();
        let expiries = |time| BTreeMap::from([("tls".to_owned(), time)]);
        let severity = |days: i64, time| {
            check(&alarms, &expiries(time), not_after - time::Duration::days(days));
            alarms.active().first().map(|alarm| alarm.severity.as_str())
        };
        assert_eq!(severity(31, not_after), None);
        assert_eq!(severity(29, not_after), Some("minor"));
        assert_eq!(severity(6, not_after), Some("major"));
        assert_eq!(severity(-1, not_after), Some("critical"));
        assert_eq!(severity(-1, not_after + time::Duration::days(90)), None);
    }
}
