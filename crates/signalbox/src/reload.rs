//! Reading the configuration again while functions run.
//!
//! What can change, changes at once; what cannot is named, and stays as it is until a restart. A file with a
//! mistake changes nothing at all, and a part that cannot be used (a policy project, TLS files) is refused by itself.
//! Whether the file is what runs is a metric; a refusal is an alarm.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use settings::Report;
use settings::reload::is_within;
use telemetry::journal::Kind;
use telemetry::{Alarms, Registry, logging};

use crate::config::{Config, SHARED};
use crate::functions::{ALL, Live};
use crate::metrics::DIFFERS;
use crate::supervisor::Supervisor;
use crate::wiring::Core;

/// How much is logged: changed at once, like the filter.
const LOG_BOUNDS: [&str; 2] = ["log.maxPerSecond", "log.maxValueLength"];

/// The configuration in effect, and how to change it.
pub(crate) struct Reloader {
    file: Option<PathBuf>,
    current: Mutex<Config>,
    /// What each running function can change.
    live: Vec<(&'static str, Live)>,
    /// The alarms of each running function.
    alarms: Vec<(&'static str, Alarms)>,
    /// What is made of a configuration before it takes effect.
    core: Arc<Core>,
    /// Waits while a reload lasts.
    supervisor: Arc<Supervisor>,
    last: Mutex<Last>,
}

/// What was read last.
#[derive(Default)]
struct Last {
    text: Option<String>,
    /// What the file had when it was taken last.
    taken: Option<String>,
    /// Whether something of it is not in effect.
    differs: bool,
    /// What is not, and why.
    detail: String,
}

/// Why a file is not in effect.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// For people: with the lines of the file.
    pub(crate) text: String,
    /// On one line, for logs and alarms.
    pub(crate) brief: String,
}

impl From<Report> for Refusal {
    fn from(report: Report) -> Self {
        Self {
            text: report.to_string(),
            brief: report.brief(),
        }
    }
}

impl From<String> for Refusal {
    fn from(text: String) -> Self {
        Self {
            brief: on_one_line(&text),
            text,
        }
    }
}

fn on_one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("; ")
}

/// What a reload has done, by the path of a setting.
#[derive(Default)]
struct Outcome {
    applied: Vec<String>,
    /// With the reason in parentheses.
    refused: Vec<String>,
    /// Those refused because they cannot be used, with function and reason; others need a restart.
    invalid: Vec<(&'static str, String, String)>,
    /// Functions whose files were read again.
    files: Vec<String>,
}

impl Outcome {
    /// What it has done to a function, and whether a part was refused; none: nothing.
    fn in_words(&self, function: &str) -> Option<(Kind, String)> {
        let is_mine = |path: &&String| {
            let section = path.split(['.', ' ']).next().unwrap_or_default();
            section == function || SHARED.contains(&section)
        };
        let mine = |all: &[String]| {
            let mine: Vec<String> = all.iter().filter(is_mine).map(|one| on_one_line(one)).collect();
            mine.join(", ")
        };
        let (applied, refused) = (mine(&self.applied), mine(&self.refused));
        let kind = match self.invalid.iter().any(|(name, ..)| *name == function) {
            true => Kind::ReloadRefused,
            false => Kind::ReloadApplied,
        };
        match (applied.is_empty(), refused.is_empty()) {
            (true, true) => None,
            (false, true) => Some((kind, format!("applied: {applied}"))),
            (true, false) => Some((kind, format!("left out: {refused}"))),
            (false, false) => Some((kind, format!("applied: {applied}; left out: {refused}"))),
        }
    }
}

impl Reloader {
    /// `text`: what the file had when `current` was made of it.
    pub(crate) fn new(
        (file, text): (Option<PathBuf>, Option<String>),
        current: Config,
        live: Vec<(&'static str, Live)>,
        alarms: Vec<(&'static str, Alarms)>,
        core: Arc<Core>,
        supervisor: Arc<Supervisor>,
    ) -> Arc<Self> {
        Arc::new(Self {
            file,
            current: Mutex::new(current),
            live,
            alarms,
            core,
            supervisor,
            last: Mutex::new(Last {
                taken: text.clone(),
                text,
                differs: false,
                detail: String::new(),
            }),
        })
    }

    /// Shows whether the file is what runs.
    pub(crate) fn observe(self: &Arc<Self>, registry: &Registry) {
        let reloader = Arc::downgrade(self);
        registry.observe(&DIFFERS, move || {
            let differs = reloader.upgrade().is_some_and(|reloader| reloader.differs());
            f64::from(u8::from(differs))
        });
    }

    fn differs(&self) -> bool {
        let Some(file) = &self.file else {
            return false;
        };
        let text = std::fs::read_to_string(file).ok();
        let last = self.last.lock();
        last.differs || text != last.text
    }

    /// Whether the file is in effect, in words, for `/status`.
    pub(crate) fn standing(&self) -> Value {
        let Some(file) = &self.file else {
            return json!({ "file": null, "inEffect": true, "detail": "started without a file" });
        };
        let text = std::fs::read_to_string(file).ok();
        let last = self.last.lock();
        let detail = match () {
            () if text.is_none() => format!("{} cannot be read", file.display()),
            () if text != last.text => format!("{} has changed and was not reloaded", file.display()),
            () if last.differs => format!("the last reload left out: {}", last.detail),
            () => String::new(),
        };
        json!({ "file": file, "inEffect": detail.is_empty(), "detail": detail })
    }

    /// The configuration in effect, as one function sees it.
    pub(crate) fn current(&self, function: &str) -> Value {
        self.current.lock().of(function)
    }

    /// The realm of the PCF at its Rx end.
    pub(crate) fn realm_of_pcf(&self) -> String {
        self.current.lock().pcf.diameter.realm.clone()
    }

    /// Reads the file again, as `by` wants it. Returns what has changed, what would need a restart, and what cannot be used
    /// (`invalid`).
    pub(crate) fn reload(&self, by: &str) -> Result<Value, Refusal> {
        self.reload_as(None, by)
    }

    /// As [`Reloader::reload`], with the text that the file is to have once it is in effect.
    pub(crate) fn reload_to(&self, text: &str, by: &str) -> Result<Value, Refusal> {
        self.reload_as(Some(text), by)
    }

    fn reload_as(&self, text: Option<&str>, by: &str) -> Result<Value, Refusal> {
        let file = self
            .file
            .as_deref()
            .ok_or_else(|| "started without a file, so that no file can be read again".to_owned())?;
        // Two reloads at a time would undo one another.
        let mut current = self.current.lock();
        let _reloading = self.supervisor.reloading();
        let outcome = self.take(file, text, &mut current);
        {
            let mut last = self.last.lock();
            (last.differs, last.detail) = match &outcome {
                Ok(outcome) => (
                    !outcome.refused.is_empty(),
                    on_one_line(&outcome.refused.join("; ")),
                ),
                Err(refusal) => (true, refusal.brief.clone()),
            };
        }
        drop(current);
        self.record(&outcome, by);
        for (name, alarms) in &self.alarms {
            let detail = match &outcome {
                Err(refusal) => Some(refusal.brief.clone()),
                Ok(outcome) => {
                    let mine = outcome.invalid.iter().filter(|(function, ..)| function == name);
                    let words: Vec<String> = mine
                        .map(|(_, what, reason)| format!("{what}: {}", on_one_line(reason)))
                        .collect();
                    (!words.is_empty()).then(|| words.join("; "))
                }
            };
            alarms.set(&function::live::REFUSED, "configuration", detail);
        }
        let Outcome {
            applied,
            refused,
            invalid,
            ..
        } = outcome.inspect_err(|refusal| {
            tracing::error!(
                file = %file.display(),
                reason = refusal.brief,
                "reload failed; configuration unchanged"
            );
        })?;
        let mut answer = json!({ "applied": applied, "refused": refused });
        if invalid.is_empty() {
            tracing::info!(?applied, ?refused, file = %file.display(), "configuration read again");
        } else {
            let invalid = invalid
                .iter()
                .map(|(_, what, reason)| json!({ "what": what, "reason": reason }));
            answer["invalid"] = invalid.collect();
            let refused: Vec<String> = refused.iter().map(|one| on_one_line(one)).collect();
            tracing::error!(?applied, ?refused, file = %file.display(), "reload refused in part");
        }
        Ok(answer)
    }

    /// Records a reload in the journals of the functions that it changes, or in all where it changes none.
    fn record(&self, outcome: &Result<Outcome, Refusal>, by: &str) {
        let file = self.file.as_deref().unwrap_or(Path::new(""));
        let file = file.display().to_string();
        let mut words: Vec<(&Alarms, Kind, String)> = Vec::new();
        for (name, alarms) in &self.alarms {
            let said = match outcome {
                Ok(outcome) => outcome.in_words(name),
                Err(refusal) => Some((Kind::ReloadRefused, refusal.brief.clone())),
            };
            words.extend(said.map(|(kind, text)| (alarms, kind, text)));
        }
        if words.is_empty() {
            let nothing = || "nothing has changed".to_owned();
            let each = self.alarms.iter();
            words = each
                .map(|(_, alarms)| (alarms, Kind::ReloadApplied, nothing()))
                .collect();
        }
        for (alarms, kind, text) in words {
            alarms.journal().record_by(kind, &file, &text, by);
        }
    }

    /// Reads the file, unless it is to have this text, and puts into effect what can be.
    fn take(&self, file: &Path, text: Option<&str>, current: &mut Config) -> Result<Outcome, Refusal> {
        let text = match text {
            Some(text) => Ok(text.to_owned()),
            None => std::fs::read_to_string(file),
        };
        let text = text.map_err(|error| Report::unreadable(&file.display().to_string(), &error))?;
        self.last.lock().text = Some(text.clone());
        let name = file.display().to_string();
        let mut wanted: Config = Config::read(&text, &name)?;
        let taken = self.last.lock().taken.clone().unwrap_or_default();
        let running = self.live.iter().map(|(name, _)| *name);
        if let Some(report) = settings::reload::emptied(&taken, &text, &name, running) {
            return Err(report.into());
        }
        self.core.adapt(&mut wanted);
        let to_json = |config: &Config| serde_json::to_value(config).map_err(|error| error.to_string());
        let (mut effective, new) = (to_json(current)?, to_json(&wanted)?);
        // Sections of functions of other processes that have the same file.
        let runs = |name: &str| self.live.iter().any(|(running, _)| *running == name);
        for other in ALL.iter().filter(|function| !runs(function.name)) {
            effective[other.name] = new[other.name].clone();
        }
        let changes = changes(&effective, &new);
        let mut outcome = Outcome::default();
        self.take_log(&wanted, &changes, &mut outcome)?;
        for (name, live) in &self.live {
            take_function(name, live, &wanted, &changes, &mut outcome);
        }
        let Outcome {
            applied,
            refused,
            files,
            ..
        } = &mut outcome;
        let restarts = changes
            .iter()
            .filter(|path| !applied.contains(path) && !refused.iter().any(|one| one.starts_with(*path)))
            .map(|path| format!("{path} (needs a restart)"));
        let restarts: Vec<String> = restarts.collect();
        refused.extend(restarts);
        for path in applied.iter() {
            settings::reload::take(&mut effective, &new, path);
        }
        applied.append(files);
        *current = serde_json::from_value(effective).map_err(|error| error.to_string())?;
        self.last.lock().taken = Some(text);
        Ok(outcome)
    }

    fn take_log(&self, wanted: &Config, changes: &[String], outcome: &mut Outcome) -> Result<(), String> {
        if changes.iter().any(|path| path == "log.filter") {
            logging::set_filter(&wanted.log.filter)?;
            outcome.applied.push("log.filter".to_owned());
        }
        let bounds = changes.iter().filter(|path| LOG_BOUNDS.contains(&path.as_str()));
        let bounds: Vec<String> = bounds.cloned().collect();
        if !bounds.is_empty() {
            logging::set_bounds(&wanted.log);
            outcome.applied.extend(bounds);
        }
        Ok(())
    }
}

/// Has a function take the changes of its own settings, or read its files again where there is none.
fn take_function(
    name: &'static str,
    live: &Live,
    wanted: &Config,
    changes: &[String],
    outcome: &mut Outcome,
) {
    let is_mine = |path: &&String| {
        let mut keys = live.keys.iter();
        keys.any(|key| is_within(path, &format!("{name}.{key}")))
    };
    let mine: Vec<String> = changes.iter().filter(is_mine).cloned().collect();
    if mine.is_empty() {
        // Files may be others under the names they had.
        match live.reread.as_ref().map(|reread| reread()) {
            Some(Ok(true)) => outcome.files.push(format!("{name} (files)")),
            Some(Err(reason)) => {
                outcome.refused.push(format!("{name} ({reason})"));
                outcome.invalid.push((name, name.to_owned(), reason));
            }
            Some(Ok(false)) | None => {}
        }
        return;
    }
    match (live.apply)(wanted) {
        Ok(()) => outcome.applied.extend(mine),
        Err(reason) => refuse((name, &live.keys), mine, reason, outcome),
    }
}

/// Refuses the changes of a function, which takes all of them or none: the one that the reason is about with the reason, the
/// others because of that one. What is wrong may have been so before: files that a setting names, which has not changed.
fn refuse((name, keys): (&'static str, &[String]), mine: Vec<String>, reason: String, outcome: &mut Outcome) {
    let about = reason.split_once(':').map(|(path, _)| path);
    let about = about.filter(|path| {
        keys.iter()
            .any(|key| is_within(path, key) || is_within(key, path))
    });
    let Some(about) = about.map(|path| format!("{name}.{path}")) else {
        outcome.invalid.push((name, mine.join(", "), reason.clone()));
        let refused = mine.into_iter().map(|path| format!("{path} ({reason})"));
        outcome.refused.extend(refused);
        return;
    };
    let is_about = |path: &String| is_within(&about, path) || is_within(path, &about);
    if !mine.iter().any(is_about) {
        outcome.refused.push(format!("{about} ({reason})"));
    }
    for path in mine {
        outcome.refused.push(match is_about(&path) {
            true => format!("{path} ({reason})"),
            false => format!("{path} (not taken before {about} can be used)"),
        });
    }
    outcome.invalid.push((name, about, reason));
}

/// The paths at which two configurations differ. Lists are compared as a whole; so are groups without a common key, which are of
/// different kinds, and groups whose keys are names with a dot, which no path can have.
fn changes(old: &Value, new: &Value) -> Vec<String> {
    fn walk(old: &Value, new: &Value, path: &str, found: &mut Vec<String>) {
        match (old, new) {
            _ if old == new => {}
            (Value::Object(before), Value::Object(after))
                if before.keys().any(|key| after.contains_key(key))
                    && !before.keys().chain(after.keys()).any(|key| key.contains('.')) =>
            {
                let added = after.keys().filter(|key| !before.contains_key(*key));
                for key in before.keys().chain(added) {
                    let inner = match path.is_empty() {
                        true => key.clone(),
                        false => format!("{path}.{key}"),
                    };
                    let of = |group: &Map<String, Value>| group.get(key).cloned().unwrap_or_default();
                    walk(&of(before), &of(after), &inner, found);
                }
            }
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
    fn a_refusal_names_the_setting_that_it_is_about() {
        let refused = |mine: &[&str], reason: &str| {
            let mut outcome = Outcome::default();
            let mine = mine.iter().map(|path| (*path).to_owned()).collect();
            let keys = ["policy".to_owned(), "media".to_owned()];
            refuse(("pcf", &keys), mine, reason.to_owned(), &mut outcome);
            let what = outcome.invalid[0].1.clone();
            (what, outcome.refused)
        };
        let project = "policy.sm: error: blocks[1]: unknown key";
        let (what, all) = refused(&["pcf.media.references"], project);
        assert_eq!(what, "pcf.policy.sm");
        assert_eq!(all[0], format!("pcf.policy.sm ({project})"));
        assert_eq!(
            all[1],
            "pcf.media.references (not taken before pcf.policy.sm can be used)"
        );
        let (what, all) = refused(&["pcf.policy.sm", "pcf.maxBodySize"], project);
        assert_eq!((what.as_str(), all.len()), ("pcf.policy.sm", 2));
        assert!(
            all[0].contains("unknown key") && !all[1].contains("unknown key"),
            "{all:?}"
        );
        let (what, all) = refused(&["pcf.maxBodySize"], "the clock: stands still");
        assert_eq!((what.as_str(), all.len()), ("pcf.maxBodySize", 1));
    }

    #[test]
    fn differences_are_named_by_path() {
        let old = json!({"a": {"b": 1, "c": [1]}, "d": {"x": 1}});
        let new = json!({"a": {"b": 2, "c": [1, 2]}, "d": {"y": 1}});
        assert_eq!(changes(&old, &new), ["a.b", "a.c", "d"]);
        assert_eq!(changes(&old, &old), Vec::<String>::new());
        // An optional key more or less.
        let old = json!({"a": {"b": 1, "c": 2, "e": {"f": 1}}, "n": {"x.y": 1, "z": 1}});
        let new = json!({"a": {"b": 1, "d": 3, "e": {"f": 1}}, "n": {"x.y": 2, "z": 1}});
        assert_eq!(changes(&old, &new), ["a.c", "a.d", "n"]);
    }
}
