//! Records of an input, one a line, into a store that its function does not use: moves from another system, and stores as
//! full as an operator's.

use std::collections::VecDeque;
use std::io::BufRead;
use std::pin::Pin;
use std::time::Instant;

use crate::error::Error;

/// Records that are written together, and such groups in flight.
const GROUP: usize = 256;
const IN_FLIGHT: usize = 16;
/// Records between two progress lines in the log.
const REPORT: u64 = 1_000_000;

/// Records could not be imported; those of earlier lines are in the store.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A line is not a record.
    #[error("line {line}: {reason}")]
    Line {
        /// Counted from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// The input could not be read.
    #[error("reading records: {0}")]
    Input(#[from] std::io::Error),
    /// The store could not be opened or written.
    #[error(transparent)]
    Store(#[from] Error),
}

/// Resolves when its records are durable.
type Group = Pin<Box<dyn Future<Output = Result<(), Error>>>>;

/// Reads records, one a line, and writes them in groups. Returns their number when all are durable.
///
/// # Errors
/// With the first line that is not a record, or when the store fails.
pub async fn import<R, W>(
    input: impl BufRead,
    parse: impl Fn(&str) -> Result<R, String>,
    put: impl Fn(&[R]) -> W,
) -> Result<u64, ImportError>
where
    W: Future<Output = Result<(), Error>> + 'static,
{
    let begun = Instant::now();
    let mut pending: VecDeque<Group> = VecDeque::new();
    let mut group: Vec<R> = Vec::with_capacity(GROUP);
    let mut line = 0;
    for text in input.lines() {
        line += 1;
        group.push(parse(&text?).map_err(|reason| ImportError::Line { line, reason })?);
        if group.len() == GROUP {
            pending.push_back(Box::pin(put(&group)));
            group.clear();
        }
        if pending.len() > IN_FLIGHT
            && let Some(written) = pending.pop_front()
        {
            written.await?;
        }
        if line % REPORT == 0 {
            let each_second = line as f64 / begun.elapsed().as_secs_f64();
            tracing::info!(records = line, each_second = each_second as u64, "importing");
        }
    }
    if !group.is_empty() {
        pending.push_back(Box::pin(put(&group)));
    }
    for written in pending {
        written.await?;
    }
    Ok(line)
}
