//! One YAML file, a section per function.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Validate};

/// A function that can be started. Adding one is a line here, a section in [`Config`] and an arm in
/// [`crate::run`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Function {
    /// Network repository function.
    Nrf,
}

/// Every function there is, in the order in which they start.
pub(crate) const ALL: &[Function] = &[Function::Nrf];

/// The configuration of a process.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub(crate) struct Config {
    /// Logs.
    pub(crate) log: Log,
    /// The network repository function.
    pub(crate) nrf: nrf::Config,
}

/// Logs.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub(crate) struct Log {
    /// What is logged: a level (`error`, `warn`, `info`, `debug`, `trace`), perhaps by module
    /// (`info,nrf=debug`). `RUST_LOG` goes before it.
    pub(crate) filter: String,
    /// One JSON object per line, for machines.
    pub(crate) json: bool,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            filter: "warn".to_owned(),
            json: false,
        }
    }
}

impl Validate for Config {
    fn validate(&self, faults: &mut Faults) {
        if self.log.filter.parse::<tracing_subscriber::EnvFilter>().is_err() {
            faults.at("log.filter").say(
                "is not a log filter",
                "a level, or levels by module: info,nrf=debug",
            );
        }
        faults.within("nrf", &self.nrf);
    }
}

impl Config {
    /// As YAML. JSON is YAML, and this JSON is printed to be read.
    pub(crate) fn to_yaml(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

/// The reference page.
pub(crate) fn reference() -> String {
    settings::reference::<Config>("Configuration")
}
