//! One YAML file, a section per function. The sections come from the table in [`crate::functions`].

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use serde_json::Value;
use settings::Faults;

use crate::failure::Failure;
use crate::functions::ALL;
pub(crate) use crate::functions::Config;

impl Config {
    /// Reads the configuration; without a file the defaults.
    pub(crate) fn load(file: Option<&Path>) -> Result<Self, Failure> {
        match file {
            None => Ok(Self::default()),
            Some(file) => settings::from_file(file).map_err(|report| Failure::Mistakes(Box::new(report))),
        }
    }

    /// As YAML or JSON, passwords in addresses redacted.
    pub(crate) fn show(&self, json: bool) -> Result<String, Failure> {
        let value = settings::redacted(serde_json::to_value(self)?);
        Ok(if json {
            serde_json::to_string_pretty(&value)? + "\n"
        } else {
            settings::to_yaml(&value)
        })
    }

    /// The section of one function and what all share, as a configuration of its own.
    pub(crate) fn of(&self, function: &str) -> Value {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Value::Object(sections) = &mut value {
            sections
                .retain(|name, _| name == function || ["log", "admin", "traces"].contains(&name.as_str()));
        }
        value
    }

    /// No two functions can listen at the same place.
    pub(crate) fn validate_addresses(&self, faults: &mut Faults) {
        let mut taken: BTreeMap<SocketAddr, String> = BTreeMap::new();
        for function in ALL {
            for (key, address) in (function.addresses)(self) {
                // Port 0 stands for a free port.
                if address.port() == 0 {
                    continue;
                }
                let path = format!("{}.{key}", function.name);
                if let Some(other) = taken.get(&address) {
                    faults.at(&path).say(
                        format!("{address} is the address of {other} as well"),
                        "an address of its own",
                    );
                } else {
                    taken.insert(address, path);
                }
            }
        }
    }
}
