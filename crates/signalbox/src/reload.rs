//! Reading the configuration again while functions run.
//!
//! What can change, changes at once; what cannot is named, and stays as it is until a restart. A file with a
//! mistake changes nothing at all.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use settings::reload::is_within;
use telemetry::logging;

use crate::config::Config;
use crate::functions::Live;
use crate::wiring::Core;

/// How much is logged: changed at once, like the filter.
const LOG_BOUNDS: [&str; 2] = ["log.maxPerSecond", "log.maxValueLength"];

/// The configuration in effect, and how to change it.
pub(crate) struct Reloader {
    file: Option<PathBuf>,
    current: Mutex<Config>,
    /// What each running function can change.
    live: Vec<(&'static str, Live)>,
    /// What is made of a configuration before it takes effect.
    core: Arc<Core>,
}

impl Reloader {
    pub(crate) fn new(
        file: Option<PathBuf>,
        current: Config,
        live: Vec<(&'static str, Live)>,
        core: Arc<Core>,
    ) -> Arc<Self> {
        Arc::new(Self {
            file,
            current: Mutex::new(current),
            live,
            core,
        })
    }

    /// The configuration in effect, as one function sees it.
    pub(crate) fn current(&self, function: &str) -> Value {
        self.current.lock().of(function)
    }

    /// The realm of the PCF at its Rx end.
    pub(crate) fn realm_of_pcf(&self) -> String {
        self.current.lock().pcf.diameter.realm.clone()
    }

    /// Reads the file again. Answers what has changed and what would need a restart.
    pub(crate) fn reload(&self) -> Result<Value, String> {
        let file = self
            .file
            .as_deref()
            .ok_or("started without a file, so that no file can be read again")?;
        let mut wanted: Config = settings::from_file(file).map_err(|report| report.to_string())?;
        self.core.adapt(&mut wanted);
        // Two reloads at a time would undo one another.
        let mut current = self.current.lock();
        let to_json = |config: &Config| serde_json::to_value(config).map_err(|error| error.to_string());
        let (mut effective, new) = (to_json(&current)?, to_json(&wanted)?);
        let changes = changes(&effective, &new);
        let mut applied = Vec::new();
        let mut refused = Vec::new();
        let mut files = Vec::new();

        if changes.iter().any(|path| path == "log.filter") {
            logging::set_filter(&wanted.log.filter)?;
            applied.push("log.filter".to_owned());
        }
        let bounds = changes.iter().filter(|path| LOG_BOUNDS.contains(&path.as_str()));
        let bounds: Vec<String> = bounds.cloned().collect();
        if !bounds.is_empty() {
            logging::set_bounds(&wanted.log);
            applied.extend(bounds);
        }
        for (name, live) in &self.live {
            let mine: Vec<String> = changes
                .iter()
                .filter(|path| {
                    live.keys
                        .iter()
                        .any(|key| is_within(path, &format!("{name}.{key}")))
                })
                .cloned()
                .collect();
            if mine.is_empty() {
                // Files may be others under the names they had.
                match live.reread.as_ref().map(|reread| reread()) {
                    Some(Ok(true)) => files.push(format!("{name} (files)")),
                    Some(Err(reason)) => refused.push(format!("{name} ({reason})")),
                    Some(Ok(false)) | None => {}
                }
                continue;
            }
            match (live.apply)(&wanted) {
                Ok(()) => applied.extend(mine),
                Err(reason) => refused.extend(mine.into_iter().map(|path| format!("{path} ({reason})"))),
            }
        }
        refused.extend(
            changes
                .iter()
                .filter(|path| !applied.contains(path) && !refused.iter().any(|one| one.starts_with(*path)))
                .map(|path| format!("{path} (needs a restart)"))
                .collect::<Vec<_>>(),
        );
        for path in &applied {
            settings::reload::take(&mut effective, &new, path);
        }
        applied.extend(files);
        *current = serde_json::from_value(effective).map_err(|error| error.to_string())?;
        tracing::info!(?applied, ?refused, file = %file.display(), "configuration read again");
        Ok(json!({ "applied": applied, "refused": refused }))
    }
}

/// The paths at which two configurations differ. Lists are compared as a whole; so are groups that only one
/// of them has.
fn changes(old: &Value, new: &Value) -> Vec<String> {
    fn walk(old: &Value, new: &Value, path: &str, found: &mut Vec<String>) {
        match (old, new) {
            (Value::Object(before), Value::Object(after)) if before.keys().eq(after.keys()) => {
                for ((key, before), after) in before.iter().zip(after.values()) {
                    let inner = match path.is_empty() {
                        true => key.clone(),
                        false => format!("{path}.{key}"),
                    };
                    walk(before, after, &inner, found);
                }
            }
            _ if old == new => {}
            _ => found.push(path.to_owned()),
        }
    }
    let mut found = Vec::new();
    walk(old, new, "", &mut found);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_named_by_path() {
        let old = json!({"a": {"b": 1, "c": [1]}, "d": {"x": 1}});
        let new = json!({"a": {"b": 2, "c": [1, 2]}, "d": {"y": 1}});
        assert_eq!(changes(&old, &new), ["a.b", "a.c", "d"]);
        assert_eq!(changes(&old, &old), Vec::<String>::new());
    }
}
