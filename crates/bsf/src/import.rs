//! Bindings from a file into the store of a BSF that does not run: for moving in from another system, and for
//! measurements with as many bindings as an operator has.

use std::collections::VecDeque;
use std::io::BufRead;
use std::pin::Pin;
use std::time::Instant;

use serde_json::Value;

use crate::binding::{BindingId, PcfBinding, shape};
use crate::repository::Repository;

/// Bindings written together, and such groups on their way at the same time.
const GROUP: usize = 256;
const AHEAD: usize = 16;
/// Bindings between two progress lines in the log.
const TELL: u64 = 1_000_000;

/// Bindings could not be imported; those of earlier lines are in the store.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A line is not a binding.
    #[error("line {line}: {reason}")]
    Line {
        /// Counted from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// The input could not be read.
    #[error("reading bindings: {0}")]
    Input(#[from] std::io::Error),
    /// The store could not be opened or written.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// Writes bindings of PDU sessions, one a line, each as `PcfBinding` (TS 29.521 §5.6.2.2) has it and with a
/// `bindingId` where it is to keep one; a binding of the same identity is replaced. Returns how many when all are
/// durable.
///
/// # Errors
/// With the first line that is not a binding, or when the store fails.
pub async fn import(config: &store::Config, input: impl BufRead) -> Result<u64, ImportError> {
    let repository = Repository::open(config, 2).await?;
    let written = write(&repository, input).await;
    repository.store().clone().close().await;
    written
}

/// Resolves when its bindings are durable.
type Group = Pin<Box<dyn Future<Output = Result<(), store::Error>>>>;

async fn write(repository: &Repository, input: impl BufRead) -> Result<u64, ImportError> {
    let begun = Instant::now();
    let mut waiting: VecDeque<Group> = VecDeque::new();
    let mut group: Vec<PcfBinding> = Vec::with_capacity(GROUP);
    let mut line = 0;
    for text in input.lines() {
        line += 1;
        let binding = parse(repository, &text?).map_err(|reason| ImportError::Line { line, reason })?;
        group.push(binding);
        if group.len() == GROUP {
            waiting.push_back(Box::pin(repository.put_sessions(&group)));
            group.clear();
        }
        if waiting.len() > AHEAD
            && let Some(written) = waiting.pop_front()
        {
            written.await?;
        }
        if line % TELL == 0 {
            let each_second = line as f64 / begun.elapsed().as_secs_f64();
            tracing::info!(bindings = line, each_second = each_second as u64, "importing");
        }
    }
    if !group.is_empty() {
        waiting.push_back(Box::pin(repository.put_sessions(&group)));
    }
    for written in waiting {
        written.await?;
    }
    Ok(line)
}

fn parse(repository: &Repository, text: &str) -> Result<PcfBinding, String> {
    let mut value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let given = value
        .as_object_mut()
        .and_then(|members| members.shift_remove("bindingId"));
    let id = match given {
        None => BindingId::random(),
        Some(given) => {
            let id = given.as_str().and_then(BindingId::parse);
            id.ok_or_else(|| format!("bindingId {given}: expected a UUID"))?
        }
    };
    shape::check(&shape::PCF_BINDING, &value).map_err(|fault| fault.to_string())?;
    Ok(PcfBinding(repository.document(id, value)))
}
