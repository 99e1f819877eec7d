//! Files of measurements: a CSV for each interval, as operators' performance management collects them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::config::Measurements;
use crate::events::Event;
use crate::shared::Dsr;

/// A measurement: id, name and subject.
type Key = (String, String, String);

/// Writes the files.
#[derive(Debug, Default)]
pub(crate) struct Exporter {
    /// When the interval began, and the counters at that time.
    began: Option<(SystemTime, BTreeMap<Key, u64>)>,
}

impl Exporter {
    /// Writes a file when an interval is over. Called every second.
    pub(crate) fn follow(&mut self, dsr: &Dsr, now: SystemTime) {
        let config = dsr.live.load().config.clone();
        let Some(directory) = &config.measurements.directory else {
            self.began = None;
            return;
        };
        let interval = config.measurements.interval.duration();
        let Some((began, before)) = &self.began else {
            self.began = Some((now, counters(dsr)));
            return;
        };
        // Intervals end where the clock says so: at minutes 0, 5, 10 … for five minutes.
        let slot = |at: SystemTime| seconds(at) / interval.as_secs().max(1);
        if slot(*began) == slot(now) {
            return;
        }
        let after = counters(dsr);
        let text = csv(*began, now, before, &after, &gauges(dsr));
        match write(directory, now, &text, &config.measurements) {
            Ok(path) => tracing::debug!(path = %path.display(), "measurements written"),
            Err(error) => {
                tracing::error!(directory = %directory.display(), %error, "measurements cannot be written");
            }
        }
        self.began = Some((now, after));
    }
}

fn seconds(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

/// Everything that only grows.
fn counters(dsr: &Dsr) -> BTreeMap<Key, u64> {
    let mut all = BTreeMap::new();
    let mut add = |name: &str, subject: String, count: u64| {
        *all.entry((String::new(), name.to_owned(), subject)).or_insert(0) += count;
    };
    for event in Event::ALL {
        add(event.metric(), String::new(), dsr.count(*event));
    }
    let measures = dsr.measures();
    for ((subject, name), count) in measures.named {
        add(subject.as_str(), name.into(), count);
    }
    for (transaction, count) in measures.transactions {
        let subject = format!(
            "application={} command={} vendor={} result={}",
            transaction.application, transaction.command, transaction.vendor, transaction.result
        );
        add("transactions", subject, count);
    }
    for row in dsr.peers() {
        let subject = format!("{} at {}", row.host, row.local_node);
        for (name, count) in [
            ("peer_messages_in", row.messages_in),
            ("peer_messages_out", row.messages_out),
            ("peer_requests_in", row.requests_in),
            ("peer_requests_out", row.requests_out),
            ("peer_bytes_in", row.bytes_in),
            ("peer_bytes_out", row.bytes_out),
            ("peer_timeouts", row.timeouts),
            ("peer_connections", row.connections),
        ] {
            add(name, subject.clone(), count);
        }
    }
    all
}

/// The indicators, by the numbers of the guide.
fn gauges(dsr: &Dsr) -> Vec<(Key, f64)> {
    let rows = dsr.indicators().into_iter();
    rows.map(|row| ((row.id.to_string(), row.name.to_owned(), row.instance), row.value))
        .collect()
}

/// One line for each measurement that is not 0: what a counter grew by, what an indicator is.
fn csv(
    from: SystemTime,
    to: SystemTime,
    before: &BTreeMap<Key, u64>,
    after: &BTreeMap<Key, u64>,
    gauges: &[(Key, f64)],
) -> String {
    let mut text = String::from("start,end,id,name,subject,value\n");
    let (from, to) = (stamp(from), stamp(to));
    let mut line = |(id, name, subject): &Key, value: String| {
        let subject = quoted(subject);
        // Writing to a string does not fail.
        let _ = writeln!(text, "{from},{to},{id},{name},{subject},{value}");
    };
    for (key, value) in gauges {
        line(key, format!("{value:.3}"));
    }
    for (key, count) in after {
        // A peer that was forgotten and came back begins at 0.
        let grown = match before.get(key) {
            Some(known) if known <= count => count - known,
            _ => *count,
        };
        if grown > 0 {
            line(key, grown.to_string());
        }
    }
    text
}

/// A field of RFC 4180.
fn quoted(field: &str) -> String {
    match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}

/// `2026-11-22T23:05:00Z`, in UTC.
fn stamp(at: SystemTime) -> String {
    let all = seconds(at);
    let (days, of_day) = (all / 86_400, all % 86_400);
    // Days to a date of the Gregorian calendar, by eras of 400 years that begin on 1 March.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

const PREFIX: &str = "dsr-";
const ENDING: &str = ".csv";

/// Writes a file that is whole as soon as it has its name, and removes the oldest beyond `keep`.
fn write(directory: &Path, at: SystemTime, text: &str, settings: &Measurements) -> io::Result<PathBuf> {
    fs::create_dir_all(directory)?;
    let path = directory.join(format!("{PREFIX}{}{ENDING}", stamp(at).replace(['-', ':'], "")));
    let part = path.with_extension("part");
    fs::write(&part, text)?;
    fs::rename(&part, &path)?;
    let mut files: Vec<PathBuf> = fs::read_dir(directory)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            name.starts_with(PREFIX) && name.ends_with(ENDING)
        })
        .collect();
    files.sort();
    let surplus = files.len().saturating_sub(settings.keep);
    for old in files.iter().take(surplus) {
        fs::remove_file(old)?;
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(stamp(at(0)), "1970-01-01T00:00:00Z");
        assert_eq!(stamp(at(951_782_400)), "2000-02-29T00:00:00Z");
        assert_eq!(stamp(at(1_795_391_999)), "2026-11-22T23:59:59Z");
    }

    #[test]
    fn a_file_has_what_counters_grew_by_and_the_oldest_go() {
        let key = |name: &str, subject: &str| (String::new(), name.to_owned(), subject.to_owned());
        let before = BTreeMap::from([(key("a", ""), 5), (key("b", ""), 5), (key("c", ""), 9)]);
        let after = BTreeMap::from([
            (key("a", ""), 7),
            (key("b", ""), 5),
            (key("c", ""), 2),
            (key("d", "x, y"), 1),
        ]);
        let indicator = ("10500".to_owned(), "RxConnAvgMPS".to_owned(), "hss".to_owned());
        let (from, to) = (UNIX_EPOCH, UNIX_EPOCH + Duration::from_secs(300));
        let text = csv(from, to, &before, &after, &[(indicator, 1.5)]);
        let interval = "1970-01-01T00:00:00Z,1970-01-01T00:05:00Z";
        let expected = ["10500,RxConnAvgMPS,hss,1.500", ",a,,2", ",c,,2", ",d,\"x, y\",1"];
        let lines: Vec<String> = expected.iter().map(|line| format!("{interval},{line}")).collect();
        assert_eq!(
            text,
            format!("start,end,id,name,subject,value\n{}\n", lines.join("\n"))
        );
        let directory = tempfile::tempdir().unwrap();
        let settings = Measurements {
            keep: 2,
            ..Measurements::default()
        };
        for n in 1..=4 {
            let at = UNIX_EPOCH + Duration::from_secs(n * 300);
            write(directory.path(), at, &text, &settings).unwrap();
        }
        let mut left: Vec<String> = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["dsr-19700101T001500Z.csv", "dsr-19700101T002000Z.csv"]);
    }
}
