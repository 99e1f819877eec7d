//! Traces: which block decided what, from which data.

use std::{fmt, io};

use serde::Serialize;

/// The events of one evaluation.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Trace {
    /// Blocks in the order of their evaluation.
    pub events: Vec<TraceEvent>,
    /// Events above the limit, which the trace does not hold.
    pub dropped: u64,
}

/// One block that was evaluated.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceEvent {
    /// Its name, or its path in the project.
    pub block: String,
    /// Its kind: `if`, `lookup`, `pccRule` …
    pub kind: &'static str,
    /// Blocks around it.
    pub level: usize,
    /// Data that it read, each with the value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<Read>,
    /// What came of it.
    pub outcome: String,
    /// The part of the decision that it made, such as `pccRules.video`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided: Option<String>,
}

/// A datum that a block read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Read {
    /// Such as `$request.dnn`, `$row`, or the pattern, list or script that judged it.
    pub datum: String,
    /// Its value as JSON, its beginning where it is long.
    pub value: String,
}

/// Characters of a value in a trace.
const SHOWN: usize = 160;
/// Data of one block in a trace.
const READS: usize = 64;

/// The beginning of a value as JSON.
pub(crate) fn shown(value: &impl Serialize) -> String {
    let mut beginning = Beginning(Vec::new());
    // A value may be larger as JSON than any memory: the writer ends it.
    let whole = serde_json::to_writer(&mut beginning, value).is_ok();
    let text = String::from_utf8_lossy(&beginning.0);
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None if whole => text.into_owned(),
        None => format!("{text}…"),
    }
}

/// A writer that takes the first bytes.
struct Beginning(Vec<u8>);

impl io::Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = (4 * SHOWN + 4).saturating_sub(self.0.len());
        if left == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let taken = bytes.len().min(left);
        self.0.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Trace {
    /// An empty trace.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The events that made a part of the decision.
    pub fn decided(&self) -> impl Iterator<Item = &TraceEvent> {
        self.events.iter().filter(|event| event.decided.is_some())
    }

    pub(crate) fn begin(
        &mut self,
        limit: usize,
        block: &str,
        kind: &'static str,
        level: usize,
    ) -> Option<usize> {
        if self.events.len() >= limit {
            self.dropped += 1;
            return None;
        }
        self.events.push(TraceEvent {
            block: block.to_owned(),
            kind,
            level,
            ..TraceEvent::default()
        });
        Some(self.events.len() - 1)
    }

    pub(crate) fn read(&mut self, event: Option<usize>, datum: String, value: &impl Serialize) {
        let Some(event) = event.and_then(|event| self.events.get_mut(event)) else {
            return;
        };
        if event.reads.len() < READS {
            let value = shown(value);
            let read = Read { datum, value };
            if !event.reads.contains(&read) {
                event.reads.push(read);
            }
        }
    }

    pub(crate) fn outcome(&mut self, event: Option<usize>, outcome: String, decided: Option<String>) {
        if let Some(event) = event.and_then(|event| self.events.get_mut(event)) {
            event.outcome = outcome;
            event.decided = decided;
        }
    }
}

impl fmt::Display for Trace {
    /// A line for each block, indented by its level, and one for each datum.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for event in &self.events {
            let indent = "  ".repeat(event.level);
            writeln!(f, "{indent}{} {}: {}", event.kind, event.block, event.outcome)?;
            for read in &event.reads {
                writeln!(f, "{indent}    {} = {}", read.datum, read.value)?;
            }
        }
        match self.dropped {
            0 => Ok(()),
            dropped => writeln!(f, "({dropped} more blocks; raise `traceEvents` to see them)"),
        }
    }
}
