//! The audit log: who did what, a line of JSON each, only ever appended to. It is opened for each line, so that it may be renamed
//! at any time (logrotate).

use std::fs::OpenOptions;
use std::io::Write as _;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::json;

use super::present;
use crate::observation::cut;

/// Lines within [`WINDOW`]: a user cannot fill the disk.
const MOST_LINES: u32 = 600;
const WINDOW: Duration = Duration::from_secs(60);
/// Characters of each text.
const MOST_TEXT: usize = 500;

/// What was done or refused.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(super) what: &'static str,
    pub(super) about: String,
    pub(super) detail: String,
    /// Whether the journal of the console has it as well.
    pub(super) is_change: bool,
}

impl Entry {
    /// Something that changes nothing.
    pub(crate) fn new(what: &'static str, about: &str) -> Self {
        Self {
            what,
            about: about.to_owned(),
            detail: String::new(),
            is_change: false,
        }
    }

    /// Something that changes what functions do, or who may use the console.
    pub(crate) fn change(what: &'static str, about: &str) -> Self {
        Self {
            is_change: true,
            ..Self::new(what, about)
        }
    }

    pub(crate) fn detail(mut self, detail: &str) -> Self {
        self.detail = detail.to_owned();
        self
    }
}

/// The audit log of a console.
#[derive(Debug)]
pub(super) struct Audit {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    since: Option<Instant>,
    lines: u32,
    /// Lines that the bound has left out.
    left_out: u64,
}

impl Audit {
    pub(super) fn new(directory: &Path) -> Self {
        Self {
            path: directory.join("audit.jsonl"),
            state: Mutex::default(),
        }
    }

    /// Appends a line; it is on the disk when this returns.
    pub(super) async fn record(
        self: Arc<Self>,
        user: &str,
        from: IpAddr,
        entry: Entry,
    ) -> Result<(), String> {
        let left_out = self.take(Instant::now())?;
        let mut line = json!({
            "time": present(),
            "user": user,
            "from": from.to_string(),
            "what": entry.what,
            "about": cut(&entry.about, MOST_TEXT),
        });
        if !entry.detail.is_empty() {
            line["detail"] = cut(&entry.detail, MOST_TEXT).into();
        }
        if left_out > 0 {
            line["leftOutBefore"] = left_out.into();
        }
        let text = format!("{line}\n");
        let this = self.clone();
        let written = tokio::task::spawn_blocking(move || this.append(&text)).await;
        let written = written
            .map_err(|error| error.to_string())
            .and_then(|done| done.map_err(|error| error.to_string()));
        written.map_err(|error| {
            tracing::error!(path = %self.path.display(), error, "the audit log cannot be written");
            format!("the audit log cannot be written: {error}")
        })
    }

    /// Admits a line; returns how many were left out before it.
    fn take(&self, now: Instant) -> Result<u64, String> {
        let mut state = self.state.lock();
        if state
            .since
            .is_none_or(|since| now.saturating_duration_since(since) >= WINDOW)
        {
            (state.since, state.lines) = (Some(now), 0);
        }
        if state.lines >= MOST_LINES {
            state.left_out += 1;
            return Err(format!(
                "the audit log takes {MOST_LINES} lines a minute; try again in a minute"
            ));
        }
        state.lines += 1;
        Ok(std::mem::take(&mut state.left_out))
    }

    fn append(&self, text: &str) -> std::io::Result<()> {
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.path)?;
        // One write of a line: two processes do not mix theirs.
        file.write_all(text.as_bytes())?;
        file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_a_bound_in_time_and_what_it_leaves_out_is_counted() {
        let audit = Audit::new(Path::new("/nowhere"));
        let start = Instant::now();
        for _ in 0..MOST_LINES {
            assert_eq!(audit.take(start), Ok(0));
        }
        assert!(audit.take(start).is_err() && audit.take(start).is_err());
        assert_eq!(audit.take(start + WINDOW), Ok(2));
        assert_eq!(audit.take(start + WINDOW), Ok(0));
    }
}
