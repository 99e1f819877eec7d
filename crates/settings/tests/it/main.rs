//! Configurations as users write them, with the mistakes that users make.

mod bounds;
mod mistakes;
mod renamed;
mod round_trip;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, HostPort, Listen, Percent, Period, Secret, Validate};

/// A configuration with one of everything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct Config {
    /// Addresses on which requests are taken.
    listen: Listen,
    /// How long a request may take.
    timeout: Period,
    /// Largest body that is accepted.
    max_body: ByteSize,
    /// Share of requests discarded.
    discard: Percent,
    /// Requests at the same time.
    #[schemars(range(min = 1, max = 1000))]
    streams: u32,
    /// Name in logs.
    name: Option<String>,
    /// What is written to the log.
    format: Format,
    /// Network codes.
    plmns: Vec<Plmn>,
    /// Where sessions are kept.
    store: Store,
    /// Validity by type.
    validity: BTreeMap<String, Period>,
    /// Token keys.
    key: Option<Secret>,
    /// Nothing more than a switch.
    enabled: bool,
    /// Weight of the newest sample.
    weight: f64,
    /// Port range.
    ports: Ports,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: Listen::local(8010),
            timeout: Period::from_secs(5),
            max_body: ByteSize::mib(1),
            discard: Percent::new(10.0),
            streams: 100,
            name: None,
            format: Format::Human,
            plmns: Vec::new(),
            store: Store::Memory,
            validity: BTreeMap::new(),
            key: None,
            enabled: true,
            weight: 0.25,
            ports: Ports::default(),
        }
    }
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Format {
    /// For people.
    Human,
    /// JSON.
    Json,
}

/// A network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Plmn {
    /// Mobile country code.
    #[schemars(regex(pattern = "^[0-9]{3}$"))]
    mcc: String,
    /// Mobile network code.
    #[schemars(regex(pattern = "^[0-9]{2,3}$"))]
    mnc: String,
}

/// Where sessions are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "engine", rename_all = "camelCase", deny_unknown_fields)]
enum Store {
    /// Nowhere but in memory.
    Memory,
    /// In a directory of this machine.
    Embedded {
        /// The directory.
        path: String,
    },
    /// In a database.
    Mariadb {
        /// Where it is.
        address: HostPort,
        /// Its password.
        password: Option<Secret>,
    },
}

/// First and last port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Ports {
    /// The first.
    first: u16,
    /// The last.
    last: u16,
}

impl Default for Ports {
    fn default() -> Self {
        Self { first: 10, last: 20 }
    }
}

impl Validate for Ports {
    fn validate(&self, faults: &mut Faults) {
        if self.last < self.first {
            faults.at("last").say(
                format!("{} is before first", self.last),
                format!("at least {}", self.first),
            );
        }
    }
}

impl Validate for Config {
    fn validate(&self, faults: &mut Faults) {
        faults.within("ports", &self.ports);
        if self.timeout.is_zero() {
            faults
                .at("timeout")
                .say("no request can be answered in no time", "more than 0s");
        }
    }
}

fn read(text: &str) -> Result<Config, settings::Report> {
    settings::from_str(text, "test.yaml")
}

/// The report on a text that must be refused.
fn refused(text: &str) -> String {
    match read(text) {
        Ok(config) => panic!("accepted as {config:?}"),
        Err(report) => report.to_string(),
    }
}
