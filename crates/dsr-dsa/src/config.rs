//! The settings of a security application.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, Period, Validate};

/// Security application: screens what foreign peers send, and what is sent to foreign realms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Dsa {
    /// The directory of its tables (docs/dsa.md): `Security_Countermeasure_Config.csv` and others. Reloaded when one of them
    /// changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tables: Option<PathBuf>,
    /// A file that gets a line of JSON for each finding; absent: they are logged with the target `dsa`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub findings: Option<PathBuf>,
    /// Size at which the file of findings is renamed to `NAME.1`, in place of the one before.
    pub findings_bytes: ByteSize,
    /// Bound on lines about findings; more are counted only.
    pub findings_per_second: u32,
    /// Samples of the messages that were found, for Wireshark and `signalbox dsa replay`; absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<Samples>,
    /// For this time after a start, with a `store` after the first one or one that follows a stop of more than a 24th of it, measures that need to know a subscriber only detect, and do not count it against a
    /// subscriber that it is not known.
    pub learning: Period,
    /// Time after which a subscriber that has not registered again is not known any more.
    pub lifetime: Period,
    /// Bound on known subscribers, of at most 64 bytes each.
    pub max_subscribers: usize,
    /// Where what is known of subscribers survives the process, written within seconds after the messages; absent: in memory
    /// alone. A change takes effect when the router starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<Store>,
    /// The speed of a subscriber that is still plausible, in km/h.
    pub max_speed: u32,
}

/// Samples of messages that were found, without keys and authentication vectors. They name subscribers: only the owner may read them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Samples {
    /// Directory of the files `findings.pcapng`, `findings.1.pcapng` and so on; created when absent.
    pub directory: PathBuf,
    /// Samples in a minute of one partner and measure; further messages are only counted.
    pub per_minute: u32,
    /// Bound on a file. A full one, and that of an earlier start, becomes `findings.1.pcapng`, that one `findings.2.pcapng`, and the
    /// earliest is deleted.
    pub file_bytes: ByteSize,
    /// Number of files, that which is written included.
    pub files: usize,
}

impl Default for Samples {
    fn default() -> Self {
        Self {
            directory: "data/dsa-samples".into(),
            per_minute: 6,
            file_bytes: ByteSize::mib(16),
            files: 4,
        }
    }
}

/// A store of subscribers: the embedded engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Store {
    /// Directory of the data, of its own for each router and application; created when absent.
    pub directory: PathBuf,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            directory: "data/dsa".into(),
        }
    }
}

impl Default for Dsa {
    fn default() -> Self {
        Self {
            tables: None,
            findings: None,
            findings_bytes: ByteSize::mib(64),
            findings_per_second: 100,
            samples: None,
            learning: Period::from_secs(24 * 3600),
            lifetime: Period::from_secs(7 * 24 * 3600),
            max_subscribers: 5_000_000,
            store: None,
            max_speed: 1000,
        }
    }
}

impl Dsa {
    /// The directory of its store.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        self.store.as_ref().map(|store| store.directory.as_path())
    }
}

impl Validate for Dsa {
    fn validate(&self, faults: &mut Faults) {
        if self.tables.is_none() {
            faults
                .at("tables")
                .say("is absent", "the path of a directory with the tables");
        }
        if let Some(samples) = &self.samples {
            for (name, value) in [
                ("perMinute", u64::from(samples.per_minute)),
                ("fileBytes", samples.file_bytes.bytes()),
                ("files", samples.files as u64),
            ] {
                if value == 0 {
                    faults.at(format!("samples.{name}")).say("is 0", "at least 1");
                }
            }
        }
        if self.max_speed == 0 {
            faults.at("maxSpeed").say("is 0", "a speed in km/h, such as 1000");
        }
        if self.max_subscribers == 0 {
            faults.at("maxSubscribers").say("is 0", "at least 1");
        }
    }
}
