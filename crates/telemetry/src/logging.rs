//! Logs through `tracing`: for people or machines, the level changeable while running.

use std::io::IsTerminal as _;
use std::sync::OnceLock;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Validate};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry, fmt, reload};

/// Logs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Config {
    /// What is logged: a level (`error`, `warn`, `info`, `debug`, `trace`), perhaps by module
    /// (`info,nrf=debug`). The environment variable `RUST_LOG` goes before it.
    pub filter: String,
    /// One JSON object per line, for machines.
    pub json: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            filter: "info".to_owned(),
            json: false,
        }
    }
}

impl Validate for Config {
    fn validate(&self, faults: &mut Faults) {
        if EnvFilter::try_new(&self.filter).is_err() {
            faults.at("filter").say(
                "this is no log filter",
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

/// Starts logging to stderr; the first call of a process decides about the format, a later one only changes
/// the filter.
pub fn init(config: &Config) {
    let from_environment = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let wanted = from_environment.unwrap_or_else(|| config.filter.clone());
    if CURRENT.get().is_some() {
        let _ = set_filter(&wanted);
        return;
    }
    // A filter in the environment that is none leaves that of the configuration, which was validated.
    let (wanted, filter) = match EnvFilter::try_new(&wanted) {
        Ok(filter) => (wanted, filter),
        Err(_) => (config.filter.clone(), EnvFilter::new(&config.filter)),
    };
    let (filter, handle) = reload::Layer::new(filter);
    let lines = fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let lines = if config.json {
        lines.json().flatten_event(true).boxed()
    } else {
        lines.boxed()
    };
    let started = tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .try_init();
    if started.is_ok() {
        let _ = CURRENT.set(Mutex::new(Current {
            filter: wanted,
            handle,
        }));
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
/// When the text is no filter, or logging has not been started; says which.
pub fn set_filter(text: &str) -> Result<(), String> {
    let text = text.trim();
    let filter = EnvFilter::try_new(text)
        .map_err(|error| format!("\"{text}\" is no log filter ({error}); such as info or info,nrf=debug"))?;
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
            json: false,
        }
        .validate(&mut faults);
        assert_eq!(faults.into_vec()[0].path, "filter");
        // Quiet: the other tests of this process log as well.
        let quiet = Config {
            filter: "off".to_owned(),
            json: false,
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
