//! Lines about findings: one JSON object each, without authentication information.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use diameter_proto::Dictionary;
use serde_json::{Map, Value, json};

use crate::facts::Facts;
use crate::measure::Measure;
use crate::network::Network;

/// Bound on lines that wait for the disk.
const MAX_QUEUED: usize = 1024;
/// Bound on a value of a message in a line.
const MAX_VALUE: usize = 128;

/// Where lines go.
#[derive(Debug)]
pub(crate) struct Lines(Option<SyncSender<String>>);

impl Lines {
    /// Lines in a file, or without one in the log. A thread of its own writes the file: workers wait for no disk.
    pub(crate) fn new(file: Option<&Path>, max_bytes: u64) -> Result<Self, String> {
        let Some(path) = file else { return Ok(Self(None)) };
        let opened = open(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let (sender, receiver) = sync_channel(MAX_QUEUED);
        let path = path.to_owned();
        let write = move || write_all(&receiver, &path, opened, max_bytes);
        thread::Builder::new()
            .name("dsa-findings".to_owned())
            .spawn(write)
            .map_err(|error| error.to_string())?;
        Ok(Self(Some(sender)))
    }

    /// Takes a line; returns whether it is written.
    pub(crate) fn put(&self, line: String) -> bool {
        match &self.0 {
            Some(sender) => sender.try_send(line).is_ok(),
            None => {
                tracing::warn!(target: "dsa", finding = line, "message found to be wrong");
                true
            }
        }
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn write_all(lines: &Receiver<String>, path: &Path, opened: File, max_bytes: u64) {
    let mut file = Some(opened);
    for mut line in lines {
        line.push('\n');
        let length = file
            .as_ref()
            .and_then(|file| file.metadata().ok())
            .map_or(0, |data| data.len());
        if length > 0 && length + line.len() as u64 > max_bytes {
            let mut old = path.as_os_str().to_owned();
            old.push(".1");
            file = None;
            if let Err(error) = std::fs::rename(path, PathBuf::from(old)) {
                tracing::warn!(%error, path = %path.display(), "file of findings not renamed");
            }
        }
        if file.is_none() {
            file = open(path).ok();
        }
        let written = file.as_mut().map(|file| file.write_all(line.as_bytes()));
        if !matches!(written, Some(Ok(()))) {
            tracing::warn!(path = %path.display(), "finding not written");
            file = None;
        }
    }
}

/// A finding.
pub(crate) struct About<'a> {
    pub(crate) facts: &'a Facts<'a>,
    pub(crate) measure: Measure,
    pub(crate) partner: &'a str,
    pub(crate) peer: &'a str,
    pub(crate) direction: &'static str,
    pub(crate) outcome: &'static str,
    pub(crate) reason: &'a str,
}

impl About<'_> {
    /// The line.
    pub(crate) fn line(&self) -> String {
        let facts = self.facts;
        let command = Dictionary::standard().command(facts.command, facts.application);
        let command = command.map(|known| known.short_name(facts.is_request));
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut line = Map::new();
        let mut put = |name: &str, value: Value| {
            if !value.is_null() {
                line.insert(name.to_owned(), value);
            }
        };
        put("time", json!(time.as_secs_f64()));
        put("measure", json!(self.measure.as_str()));
        put("category", json!(self.measure.category()));
        put("outcome", json!(self.outcome));
        put("reason", json!(self.reason));
        put("partner", json!(self.partner));
        put("peer", json!(self.peer));
        put("direction", json!(self.direction));
        put("applicationId", json!(facts.application));
        put("commandCode", json!(facts.command));
        put("command", json!(command));
        put("isRequest", json!(facts.is_request));
        for (name, value) in [
            ("sessionId", facts.session_id.shown()),
            ("originHost", facts.origin_host.shown()),
            ("originRealm", facts.origin_realm.shown()),
            ("destinationHost", facts.destination_host.shown()),
            ("destinationRealm", facts.destination_realm.shown()),
            ("userName", facts.user_name.shown()),
        ] {
            put(name, value.map_or(Value::Null, text));
        }
        put(
            "imsi",
            facts
                .imsi
                .as_ref()
                .map_or(Value::Null, |imsi| text(imsi.as_bytes())),
        );
        let visited = facts.visited.shown().and_then(Network::of_visited);
        put(
            "visitedNetwork",
            visited.map_or(Value::Null, |network| json!(network.to_string())),
        );
        Value::Object(line).to_string()
    }
}

/// A value of a message: what is not text is replaced, what is long is cut.
fn text(value: &[u8]) -> Value {
    let shown = value.get(..MAX_VALUE).unwrap_or(value);
    let mut text = String::from_utf8_lossy(shown).into_owned();
    if shown.len() < value.len() {
        text.push('…');
    }
    Value::String(text)
}
