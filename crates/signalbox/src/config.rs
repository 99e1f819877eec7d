//! One YAML file, a section per function. The sections come from the table in [`crate::functions`].

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use serde_json::Value;
use settings::Faults;

use crate::failure::Failure;
pub(crate) use crate::functions::Config;
use crate::functions::{ALL, CONSOLE};

/// Sections that are of no function, and of each.
pub(crate) const SHARED: [&str; 5] = ["log", "admin", "alarms", "traces", "changes"];

impl Config {
    /// Reads the configuration; without a file the defaults.
    pub(crate) fn load(file: Option<&Path>) -> Result<Self, Failure> {
        Self::load_with_text(file).map(|(config, _)| config)
    }

    /// As [`Config::load`], with what the file has.
    pub(crate) fn load_with_text(file: Option<&Path>) -> Result<(Self, Option<String>), Failure> {
        let Some(file) = file else {
            return Ok((Self::default(), None));
        };
        let mistakes = |report| Failure::Mistakes(Box::new(report));
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file)
            .map_err(|error| mistakes(settings::Report::unreadable(&name, &error)))?;
        Ok((Self::read(&text, &name).map_err(mistakes)?, Some(text)))
    }

    /// Reads a text. An empty one is refused: it is what a full disk leaves.
    pub(crate) fn read(text: &str, name: &str) -> Result<Self, settings::Report> {
        let mut config: Self = settings::from_str_and(text, name, |_, _| {})?;
        config.place_projects(Path::new(name));
        Ok(config)
    }

    /// Has the paths of policy projects begin at the folder of the file that names them, wherever the process was started:
    /// a project belongs to its configuration.
    pub(crate) fn place_projects(&mut self, file: &Path) {
        // A folder that was removed meanwhile has no absolute path.
        let folder = file.parent().unwrap_or(Path::new(""));
        let Ok(folder) = std::path::absolute(folder.join(".")) else {
            return;
        };
        let policy = &mut self.pcf.policy;
        for project in [&mut policy.sm, &mut policy.am, &mut policy.ue] {
            // An absolute path stays as it is.
            *project = project.take().map(|path| folder.join(path));
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
            sections.retain(|name, _| name == function || SHARED.contains(&name.as_str()));
        }
        value
    }

    /// No two functions can have the same directory for their embedded stores. A section `store` without a directory has
    /// `data`, whatever the function.
    pub(crate) fn validate_directories(&self, faults: &mut Faults) {
        let config = serde_json::to_value(self).unwrap_or_default();
        let mut taken: BTreeMap<&str, &str> = BTreeMap::new();
        for function in ALL {
            let store = &config[function.name]["store"];
            let Some(directory) = store["embedded"]["directory"].as_str() else {
                continue;
            };
            if store["engine"] != "embedded" {
                continue;
            }
            if let Some(other) = taken.insert(directory, function.name) {
                let (name, path) = (
                    function.name,
                    format!("{}.store.embedded.directory", function.name),
                );
                faults.at(path).say(
                    format!("`{directory}` is the directory of {other}.store as well"),
                    format!(
                        "a directory of its own: `run/{name}`, or the one that has the data of this function"
                    ),
                );
            }
        }
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
                // A file that is older than the console may have given its ports to others: `up` finds free ones then.
                let is_default = || (function.addresses)(&Self::default()).contains(&(key.clone(), address));
                if function.name == CONSOLE && taken.contains_key(&address) && is_default() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_functions_do_not_share_a_directory() {
        let read = |text: &str| settings::from_str::<Config>(text, "c.yaml").map(drop);
        let both = "nrf: {store: {queueLength: 9}}\nbsf: {store: {queueLength: 9}}\n";
        let refused = read(both).unwrap_err().to_string();
        for part in ["bsf.store.embedded.directory", "`data`", "nrf.store"] {
            assert!(refused.contains(part), "{refused}");
        }
        let database = "nrf: {store: {queueLength: 9}}\nbsf: {store: {engine: mariadb}}\n";
        if let Err(other) = read(database) {
            assert!(!other.to_string().contains("embedded.directory"), "{other}");
        }
        read("nrf: {store: {queueLength: 9}}\n").unwrap();
    }
}
