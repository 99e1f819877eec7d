//! Logs through `tracing`: for people or machines, the level changeable while running.
//!
//! Logs contain bytes from the network, in our own lines and in those of libraries. So all values are escaped and
//! cut ([`clean`]), each call site writes a bounded number of lines per second ([`rate`]), and libraries that log a
//! line for each bad frame of a peer are logged at `error` only ([`QUIET`]).

pub mod clean;
pub mod lines;
pub mod rate;

use std::io::IsTerminal as _;
use std::sync::{Arc, LazyLock, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, Validate};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry, fmt, reload};

use lines::{Bounds, Lines};

crate::declare! {
    /// What is said of the log.
    pub METRICS;
    counter SUPPRESSED = "signalbox_log_suppressed_lines_total" []: "Log lines that were not written: beyond log.maxPerSecond of one place in the program.";
    counter CUT = "signalbox_log_cut_values_total" []: "Values and messages that were cut in the log: longer than log.maxValueLength.";
}

/// Libraries that are heard at `error` only, unless the filter names them: a peer decides how many lines they write.
pub const QUIET: &[&str] = &["h2", "hyper", "rustls", "hickory"];

/// The least length at which a value may be cut: enough for a name or an address.
const LEAST_LENGTH: u64 = 64;

/// Logs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Config {
    /// What is logged: a level (`error`, `warn`, `info`, `debug`, `trace`), perhaps by module
    /// (`info,nrf=debug`). The libraries `h2`, `hyper`, `rustls` and `hickory` are heard at `error` only, unless
    /// it names them (`info,h2=debug`): peers decide how much they say. The environment variable `RUST_LOG` goes
    /// before it.
    #[schemars(extend("x-reload" = true))]
    pub filter: String,
    /// One JSON object per line.
    pub json: bool,
    /// How many lines per second one place in the program may write; what is beyond is suppressed, counted in
    /// `signalbox_log_suppressed_lines_total` and reported by one line a second. 0: not bounded.
    #[schemars(extend("x-reload" = true))]
    pub max_per_second: u32,
    /// How many bytes of a value or message are logged; what is beyond is cut, marked by `…` and counted in
    /// `signalbox_log_cut_values_total`. At least 64 B.
    #[schemars(extend("x-reload" = true))]
    pub max_value_length: ByteSize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            filter: "info".to_owned(),
            json: false,
            max_per_second: 100,
            max_value_length: ByteSize(1024),
        }
    }
}

impl Validate for Config {
    fn validate(&self, faults: &mut Faults) {
        if self.max_value_length.0 < LEAST_LENGTH {
            faults
                .at("maxValueLength")
                .say("leaves nothing to read", "at least 64 B");
        }
        if is_blank(&self.filter) || EnvFilter::try_new(&self.filter).is_err() {
            faults.at("filter").say(
                "invalid log filter",
                "a level, or levels by module: info,nrf=debug",
            );
        }
    }
}

/// The filter in effect and the way to change it; set by the first [`init`].
static CURRENT: OnceLock<Mutex<Current>> = OnceLock::new();

struct Current {
    filter: String,
    handle: reload::Handle<EnvFilter, Registry>,
}

/// The bounds of this process's log.
static BOUNDS: LazyLock<Arc<Bounds>> = LazyLock::new(|| Arc::new(Bounds::new(&Config::default())));

/// The thread that reports what was suppressed.
static REPORTER: OnceLock<Thread> = OnceLock::new();

/// Whether a filter has no level at all. The library takes it for errors alone, which is hardly what a caller means whose
/// argument was lost.
fn is_blank(text: &str) -> bool {
    text.split(',').all(|part| part.trim().is_empty())
}

/// The filter of that text, with [`QUIET`] before it; `off` is off for them too.
fn parse(text: &str) -> Result<EnvFilter, tracing_subscriber::filter::ParseError> {
    EnvFilter::try_new(text)?;
    let is_off = |part: &str| matches!(part.trim().to_ascii_lowercase().as_str(), "off" | "0");
    if text.split(',').any(is_off) {
        return EnvFilter::try_new(text);
    }
    let mut all: String = QUIET.iter().map(|library| format!("{library}=error,")).collect();
    all.push_str(text);
    EnvFilter::try_new(all)
}

/// Starts logging to stderr; the first call of a process decides about the format, a later one only changes
/// the filter and the bounds.
pub fn init(config: &Config) {
    set_bounds(config);
    let from_environment = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let wanted = from_environment.unwrap_or_else(|| config.filter.clone());
    if CURRENT.get().is_some() {
        let _ = set_filter(&wanted);
        return;
    }
    // A filter in the environment that is none leaves that of the configuration, which was validated.
    let (wanted, filter) = match parse(&wanted) {
        Ok(filter) => (wanted, filter),
        Err(_) => (config.filter.clone(), parse(&config.filter).unwrap_or_default()),
    };
    let (filter, handle) = reload::Layer::new(filter);
    let form = Lines::new(BOUNDS.clone(), config.json, wake_reporter);
    let lines = fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && !config.json)
        .fmt_fields(form.clone())
        .event_format(form);
    let started = tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .try_init();
    if started.is_ok() {
        let _ = CURRENT.set(Mutex::new(Current {
            filter: wanted,
            handle,
        }));
        start_reporter();
    }
}

/// Changes how much is logged of a value and of a place, at once.
pub fn set_bounds(config: &Config) {
    BOUNDS.set(config);
}

/// Shows what the log leaves out.
pub fn register(registry: &crate::Registry) {
    registry.observe(&SUPPRESSED, || BOUNDS.rate().suppressed() as f64);
    registry.observe(&CUT, || BOUNDS.cut() as f64);
}

fn wake_reporter() {
    if let Some(thread) = REPORTER.get() {
        thread.unpark();
    }
}

/// Sleeps until a line is suppressed, then reports once a second.
fn start_reporter() {
    let report = || loop {
        std::thread::park();
        std::thread::sleep(Duration::from_secs(1));
        BOUNDS.rate().report();
    };
    // Without this thread the metric still says what was suppressed.
    if let Ok(handle) = std::thread::Builder::new().name("log".to_owned()).spawn(report) {
        let _ = REPORTER.set(handle.thread().clone());
    }
}

/// The filter in effect; `None` before [`init`].
#[must_use]
pub fn filter() -> Option<String> {
    Some(CURRENT.get()?.lock().filter.clone())
}

/// Changes what is logged, at once.
///
/// # Errors
/// When the filter is invalid, or logging has not been started; the message says which.
pub fn set_filter(text: &str) -> Result<(), String> {
    let text = text.trim();
    if is_blank(text) {
        return Err("the log filter is missing; write for example info or info,nrf=debug".to_owned());
    }
    let filter = parse(text).map_err(|error| {
        format!("\"{text}\" is not a valid log filter ({error}); write for example info or info,nrf=debug")
    })?;
    let current = CURRENT.get().ok_or("logging has not been started")?;
    let mut current = current.lock();
    current.handle.reload(filter).map_err(|error| error.to_string())?;
    current.filter = text.to_owned();
    tracing::info!(filter = text, "log filter changed");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_validated_and_changed_while_running() {
        let mut faults = Faults::default();
        Config {
            filter: "nrf=loud".to_owned(),
            ..Config::default()
        }
        .validate(&mut faults);
        assert_eq!(faults.into_vec()[0].path, "filter");
        for nothing in ["", " ", ",", " , "] {
            let mut faults = Faults::default();
            Config {
                filter: nothing.to_owned(),
                ..Config::default()
            }
            .validate(&mut faults);
            assert_eq!(faults.into_vec()[0].path, "filter", "{nothing:?}");
            assert!(
                set_filter(nothing).unwrap_err().contains("missing"),
                "{nothing:?}"
            );
        }
        // Quiet: the other tests of this process log as well.
        let quiet = Config {
            filter: "off".to_owned(),
            ..Config::default()
        };
        init(&quiet);
        init(&quiet);
        assert!(
            set_filter("info,nrf=loud")
                .unwrap_err()
                .contains("info,nrf=debug")
        );
        set_filter("off,nrf=debug").unwrap();
        assert_eq!(filter().as_deref(), Some("off,nrf=debug"));
    }
}
