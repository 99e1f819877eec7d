//! What is said of a file.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use dsr_app::Finding;
use dsr_dsa::Judged;
use serde::Serialize;
use serde_json::Value;

use super::names::Shown;

/// What measures would find in a capture, and what of it could not be read.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The file.
    pub file: String,
    /// Times of the first and of the last message, in seconds since 1970.
    pub first: Option<f64>,
    /// As `first`.
    pub last: Option<f64>,
    /// Requests of applications.
    pub requests: u64,
    /// Answers of applications.
    pub answers: u64,
    /// Capabilities exchanges, watchdogs and disconnections.
    pub of_neighbours: u64,
    /// Requests that a node had received before, and sent on: they are judged once.
    pub copies: u64,
    /// Requests and answers from partners and to them.
    pub screened: u64,
    /// Requests and answers that a measure would drop or answer.
    pub blocked: u64,
    /// Requests that the router would refuse before the application, since an AVP is framed wrong.
    pub malformed: u64,
    /// Answers whose requests the capture has not.
    pub answers_without_request: u64,
    /// Requests of senders without a name.
    pub unnamed: u64,
    /// Subscribers whose place is known at the end.
    pub subscribers: usize,
    /// Findings by partner, measure and outcome.
    pub findings: Vec<Row>,
    /// Senders of requests.
    pub peers: Vec<Shown>,
    /// What the file had, and what could not be read.
    pub capture: capture::Summary,
    #[serde(skip)]
    examples: BTreeMap<Key, Vec<Value>>,
    #[serde(skip)]
    max_examples: usize,
}

/// Partner, measure and outcome.
type Key = (String, String, String);

/// Findings of one measure.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The partner.
    pub partner: String,
    /// The measure.
    pub measure: &'static str,
    /// What would become of the messages.
    pub outcome: &'static str,
    /// How many there were.
    pub count: u64,
    /// The first of them, as the file of findings has them.
    pub examples: Vec<Value>,
}

impl Report {
    pub(super) fn new(file: &Path, max_examples: usize) -> Self {
        Self {
            file: file.display().to_string(),
            max_examples,
            ..Self::default()
        }
    }

    /// Whether the file had a message of an application.
    #[must_use]
    pub const fn has_messages(&self) -> bool {
        self.requests + self.answers > 0
    }

    pub(super) fn message(&mut self, at: SystemTime) {
        let seconds = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        self.first.get_or_insert(seconds);
        self.last = Some(seconds);
    }

    pub(super) fn take(&mut self, judged: &Judged) {
        self.screened += u64::from(judged.is_screened);
        self.blocked += u64::from(judged.is_blocked);
        for line in &judged.lines {
            let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
            let key = (text("partner"), text("measure"), text("outcome"));
            let examples = self.examples.entry(key).or_default();
            if examples.len() < self.max_examples {
                examples.push(line.clone());
            }
        }
    }

    pub(super) fn rows(&mut self, findings: &[Finding]) {
        let examples = &mut self.examples;
        let row = |found: &Finding| {
            let key = (
                found.partner.clone(),
                found.measure.to_owned(),
                found.outcome.to_owned(),
            );
            Row {
                partner: found.partner.clone(),
                measure: found.measure,
                outcome: found.outcome,
                count: found.count,
                examples: examples.remove(&key).unwrap_or_default(),
            }
        };
        self.findings = findings.iter().map(row).collect();
    }
}
