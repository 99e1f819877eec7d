//! Sections of our configuration as they are made, and what every function has alike.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::source::Part;

/// Sections by function, and the level of the logs of each.
#[derive(Debug, Default)]
pub(crate) struct Sections {
    sections: BTreeMap<&'static str, Map<String, Value>>,
    levels: BTreeMap<&'static str, &'static str>,
}

impl Sections {
    pub(crate) fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }

    pub(crate) fn has(&self, function: &str) -> bool {
        self.sections.contains_key(function)
    }

    /// Sets a setting of a function, `nrf.apiRoots` as `["nrf", "apiRoots"]`.
    pub(crate) fn set(&mut self, function: &'static str, path: &[&str], value: impl Into<Value>) {
        let mut section = self.sections.entry(function).or_default();
        let Some((last, around)) = path.split_last() else {
            return;
        };
        for key in around {
            let inner = section.entry(*key).or_insert_with(|| json!({}));
            let Value::Object(members) = inner else {
                return;
            };
            section = members;
        }
        section.insert((*last).to_owned(), value.into());
    }

    /// What a setting has been set to.
    pub(crate) fn get(&self, function: &str, path: &[&str]) -> Value {
        let section = self.sections.get(function).cloned().unwrap_or_default();
        path.iter()
            .fold(Value::Object(section), |value, key| value[*key].clone())
    }

    /// Carries the level of logs, by the names of either core.
    pub(crate) fn set_level(&mut self, function: &'static str, level: &Part<'_>) {
        let ours = match level.text().map(str::to_lowercase).as_deref() {
            None => return,
            Some("fatal" | "panic" | "error") => "error",
            Some("warn" | "warning") => "warn",
            Some("info") => "info",
            Some("debug") => "debug",
            Some("trace") => "trace",
            Some(_) => return level.refuse("no level of logs: error, warn, info, debug or trace"),
        };
        self.levels.insert(function, ours);
    }

    /// Has the functions that know no NRF use `root`; the PCF finds BSFs there.
    pub(crate) fn use_nrf(&mut self, root: Option<&str>) {
        let Some(root) = root else {
            return;
        };
        for (function, path) in [
            ("scp", ["nrf", "roots"]),
            ("bsf", ["nrf", "apiRoots"]),
            ("pcf", ["nrf", "apiRoots"]),
        ] {
            if self.has(function) && self.get(function, &path).is_null() {
                self.set(function, &path, json!([root]));
            }
        }
    }

    /// A configuration for each function.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&'static str, Value)> + '_ {
        self.sections.iter().map(|(function, section)| {
            let mut config = json!({ *function: section });
            if let Some(level) = self.levels.get(function) {
                config["log"] = json!({ "filter": level });
            }
            (*function, config)
        })
    }
}

/// `host:port`, an IPv6 address in brackets.
pub(crate) fn address(host: &str, port: u64) -> String {
    if host.contains(':') && !host.starts_with('[') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}
