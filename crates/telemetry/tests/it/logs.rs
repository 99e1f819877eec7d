//! What a stranger can do to the log.

use std::io;
use std::sync::{Arc, Mutex};

use settings::ByteSize;
use telemetry::logging::lines::{Bounds, Lines};
use telemetry::logging::{Config, METRICS};
use tracing::subscriber::with_default;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;

/// A log in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// What is logged within `config` while `work` runs.
pub(crate) fn logged(config: &Config, work: impl FnOnce(&Bounds)) -> String {
    let (log, bounds) = (Log::default(), Arc::new(Bounds::new(config)));
    let form = Lines::new(bounds.clone(), config.json, || {});
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(log.clone())
        .with_ansi(false)
        .fmt_fields(form.clone())
        .event_format(form);
    with_default(tracing_subscriber::registry().with(lines), || work(&bounds));
    log.text()
}

const HOSTILE: &str = "AMF\n2026-11-22T00:00:00Z  INFO nrf: forged\u{1b}[2J\u{202e}\u{9b}";

#[test]
fn a_value_forges_no_line_and_commands_no_terminal() {
    let text = logged(&Config::default(), |_| {
        tracing::info!(shown = %HOSTILE, debugged = ?HOSTILE, plain = HOSTILE, "registered {HOSTILE}");
        let error = io::Error::other(HOSTILE);
        let error: &(dyn std::error::Error + 'static) = &error;
        tracing::warn!(error, "{HOSTILE}");
    });
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(
        !text
            .chars()
            .any(|char| char != '\n' && telemetry::logging::clean::is_treacherous(char)),
        "{text:?}"
    );
    assert!(text.contains("registered AMF\\n2026"), "{text}");
}

#[test]
fn lines_for_machines_are_one_object_each() {
    let config = Config {
        json: true,
        max_value_length: ByteSize(80),
        ..Config::default()
    };
    let text = logged(&config, |bounds| {
        tracing::info!(shown = %HOSTILE, many = 3, right = true, "registered");
        tracing::info!(shown = %"x".repeat(60_000), "long");
        assert_eq!(bounds.cut(), 1);
    });
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["shown"], HOSTILE);
    assert_eq!(
        (
            &lines[0]["many"],
            &lines[0]["right"],
            &lines[0]["message"],
            &lines[0]["level"]
        ),
        (&3.into(), &true.into(), &"registered".into(), &"INFO".into())
    );
    assert!(lines[0]["timestamp"].is_string() && lines[0]["target"] == "it::logs");
    assert_eq!(lines[1]["shown"].as_str().unwrap(), "x".repeat(80) + "…");
}

#[test]
fn long_values_are_cut_wherever_they_are() {
    let long = "\u{1b}".repeat(100_000);
    let text = logged(&Config::default(), |bounds| {
        tracing::info!(shown = %long, debugged = ?long, plain = long.as_str(), "registered {long}");
        assert_eq!(bounds.cut(), 4);
    });
    assert!(text.len() < 4 * 1024 + 200, "{} bytes", text.len());
}

fn flood(lines: usize) {
    for number in 0..lines {
        tracing::warn!(
            number,
            "received PING ack that was not expected {}",
            "x".repeat(2000)
        );
    }
}

#[test]
fn a_flood_writes_a_bounded_log_and_hides_nothing_else() {
    let config = Config {
        max_per_second: 20,
        ..Config::default()
    };
    let text = logged(&config, |bounds| {
        flood(100_000);
        tracing::error!("the store cannot be reached");
        assert!(bounds.rate().suppressed() > 90_000);
        bounds.rate().report();
        bounds.rate().report();
    });
    // A bound a second, and as many more as it took seconds; 100,000 lines of 1 KiB would be 100 MB.
    assert!(text.len() < 10_000_000, "{} bytes", text.len());
    assert!(text.contains("the store cannot be reached"));
    let reports: Vec<&str> = text.lines().filter(|line| line.contains("suppressed")).collect();
    assert_eq!(reports.len(), 1, "{reports:?}");
    assert!(
        reports[0].contains("WARN") && reports[0].contains("logs.rs:") && reports[0].contains("lines="),
        "{reports:?}"
    );
}

#[test]
fn without_a_bound_every_line_is_written() {
    let config = Config {
        max_per_second: 0,
        ..Config::default()
    };
    let text = logged(&config, |_| flood(2_000));
    assert_eq!(text.lines().count(), 2_000);
}

#[test]
fn a_length_that_leaves_nothing_is_a_mistake() {
    let mut faults = settings::Faults::default();
    settings::Validate::validate(
        &Config {
            max_value_length: ByteSize(3),
            ..Config::default()
        },
        &mut faults,
    );
    assert_eq!(faults.into_vec()[0].path, "maxValueLength");
    assert_eq!(telemetry::metrics::lint(METRICS), Vec::<String>::new());
}
