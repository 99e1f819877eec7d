//! The thread that sends alarms.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use settings::Secret;

use super::Change;
use super::body::body;
use crate::alarms::WeakAlarms;
use crate::metrics::Counter;
use crate::outbound::{Server, Untaken};

/// The pause after a failure; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How long a loss that came while the queue became empty may stay.
const SETTLING: Duration = Duration::from_secs(5);
/// Answers about the content of a request, which no repetition mends (RFC 9110 §15.5.1, §15.5.14, §15.5.21). A token or an address may
/// be mended.
const REFUSED: [u16; 3] = [400, 413, 422];

/// An alarm: its function, its number and what it is about.
type Key = (&'static str, u32, String);

pub(super) struct Sender {
    pub(super) server: Server,
    pub(super) token: Option<Secret>,
    pub(super) watched: Vec<(&'static str, WeakAlarms)>,
    /// What the server takes for active.
    pub(super) known: BTreeMap<Key, Change>,
    pub(super) is_behind: Arc<AtomicBool>,
    pub(super) is_reachable: bool,
    pub(super) host: String,
    pub(super) sent: Counter,
    pub(super) failed: Counter,
    pub(super) refused: Counter,
}

impl Change {
    fn key(&self) -> Key {
        (self.function, self.alarm.number, self.alarm.instance.clone())
    }
}

impl Sender {
    /// Sends what comes until nothing can come any more.
    pub(super) fn run(mut self, changes: &Receiver<Change>) {
        loop {
            let mut next = match changes.try_recv() {
                Ok(change) => Some(change),
                Err(_) => {
                    self.catch_up();
                    match changes.recv_timeout(SETTLING) {
                        Ok(change) => Some(change),
                        Err(RecvTimeoutError::Timeout) => None,
                        Err(RecvTimeoutError::Disconnected) => return,
                    }
                }
            };
            while let Some(change) = next.take() {
                self.take(change);
                next = changes.try_recv().ok();
            }
        }
    }

    /// Brings the server up to date where something was lost.
    fn catch_up(&mut self) {
        if !self.is_behind.swap(false, Ordering::Relaxed) {
            return;
        }
        let mut active = BTreeMap::new();
        for (function, alarms) in &self.watched {
            let alarms = alarms.upgrade().map(|alarms| alarms.active());
            for alarm in alarms.unwrap_or_default() {
                let change = Change {
                    function,
                    alarm,
                    is_active: true,
                };
                active.insert(change.key(), change);
            }
        }
        let ended: Vec<Change> = self
            .known
            .iter()
            .filter(|(key, _)| !active.contains_key(*key))
            .map(|(_, change)| change.clone())
            .collect();
        for mut change in ended {
            // When it ended is not known here.
            change.alarm.cleared = Some(crate::rfc3339(std::time::SystemTime::now()));
            change.is_active = false;
            self.take(change);
        }
        for change in active.into_values() {
            self.take(change);
        }
    }

    /// Sends a change, unless the server knows it. The severity is a part of what an alert is known by: where it changes, one
    /// ends and another begins.
    fn take(&mut self, change: Change) {
        let key = change.key();
        let known = self.known.remove(&key);
        match (known, change.is_active) {
            (Some(known), true) if known.alarm.severity == change.alarm.severity => {
                self.known.insert(key, known);
            }
            (Some(mut known), true) => {
                known.alarm.cleared = Some(crate::rfc3339(std::time::SystemTime::now()));
                known.is_active = false;
                self.deliver(&known);
                self.deliver(&change);
                self.known.insert(key, change);
            }
            (None, true) => {
                self.deliver(&change);
                self.known.insert(key, change);
            }
            (Some(mut known), false) => {
                // The one that the server knows: a change of its severity may have been lost.
                known.alarm.detail = change.alarm.detail;
                known.alarm.cleared = change.alarm.cleared;
                known.is_active = false;
                self.deliver(&known);
            }
            (None, false) => {}
        }
    }

    /// Sends a change until the server has taken or refused it, or nothing is left whose alarms they are.
    fn deliver(&mut self, change: &Change) {
        let Ok(octets) = serde_json::to_vec(&body(change, &self.host)) else {
            return;
        };
        let mut pause = FIRST_PAUSE;
        loop {
            let untaken = match self.post(&octets) {
                Ok(()) => {
                    self.sent.inc();
                    if !std::mem::replace(&mut self.is_reachable, true) {
                        tracing::info!(server = self.server.url(), "the webhook takes alarms again");
                    }
                    return;
                }
                Err(untaken) => untaken,
            };
            let (server, reason) = (self.server.url(), untaken.reason.as_str());
            if untaken.status.is_some_and(|status| REFUSED.contains(&status)) {
                self.refused.inc();
                tracing::error!(
                    server,
                    reason,
                    number = change.alarm.number,
                    "the webhook refuses an alarm"
                );
                return;
            }
            self.failed.inc();
            // Once, not with each attempt.
            if std::mem::replace(&mut self.is_reachable, false) {
                tracing::error!(server, reason, "the webhook takes no alarms; they wait");
            }
            if self.watched.iter().all(|(_, alarms)| alarms.upgrade().is_none()) {
                return;
            }
            std::thread::sleep(pause);
            pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
        }
    }

    fn post(&mut self, octets: &[u8]) -> Result<(), Untaken> {
        let token = self.token.as_ref().map(Secret::read).transpose();
        let token = token.map_err(|error| error.to_string())?;
        let token = token.map(|token| format!("Bearer {token}"));
        let fields = token.as_deref().map(|token| ("authorization", token));
        self.server.post(fields, octets)
    }
}
