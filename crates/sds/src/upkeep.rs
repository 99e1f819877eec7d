//! Work beside requests: the records are written to the directory, and the journal is trimmed.

use std::sync::Arc;

use store::{Clock, Error, Stored};

use crate::config::JournalSettings;
use crate::data::{Files, FilesError};
use crate::events::{Counters, Event};
use crate::record::Entry;
use crate::repository::PAGE;
use crate::shared::Sds;

/// Runs as long as the server.
pub(crate) async fn run(sds: Arc<Sds>, files: Files, counters: Arc<Counters>) {
    let mut saved = None;
    loop {
        let settings = sds.live.load_full().config.journal.clone();
        tokio::select! {
            () = tokio::time::sleep(settings.checkpoint.duration()) => {}
            () = sds.shutdown.fired() => return,
        }
        // Records that are not the state of the journal are not written.
        if sds.known.borrow().stopped.is_some() {
            continue;
        }
        if saved != Some(sds.data.offset()) {
            match save(&sds, &files).await {
                Ok(offset) => {
                    saved = Some(offset);
                    counters.count(Event::Saved);
                    free_sets(&sds, &files, &counters).await;
                }
                Err(error) => {
                    counters.count(Event::SaveFailed);
                    tracing::error!(%error, "the records cannot be written");
                    continue;
                }
            }
        }
        if let Err(error) = trim(&sds, saved.unwrap_or_default(), &settings).await {
            // Another server may have written meanwhile: the next time will do.
            if !matches!(error, Error::Conflict { .. }) {
                counters.count(Event::SaveFailed);
                tracing::warn!(%error, "the journal cannot be trimmed");
            }
        }
    }
}

/// Writes the records; the offset that a start needs the journal from.
async fn save(sds: &Arc<Sds>, files: &Files) -> Result<u64, FilesError> {
    let (data, files) = (sds.data.clone(), files.clone());
    let id = sds.known.borrow().head.id.clone();
    let written = tokio::task::spawn_blocking(move || files.checkpoint(&data, &id)).await;
    // A panic in there has been logged by the thread that had it.
    written.unwrap_or_else(|_| Err(FilesError::interrupted()))
}

/// Frees destination sets that no number has any more, where there is little room for others.
async fn free_sets(sds: &Arc<Sds>, files: &Files, counters: &Counters) {
    let (data, files) = (sds.data.clone(), files.clone());
    let freed = tokio::task::spawn_blocking(move || files.free_sets(&data)).await;
    if let Err(error) = freed.unwrap_or_else(|_| Err(FilesError::interrupted())) {
        counters.count(Event::SaveFailed);
        tracing::error!(%error, "destination sets cannot be freed");
    }
}

/// Removes transactions that the directory has, beyond those that are kept, or older than the time for which they are.
async fn trim(sds: &Sds, saved: u64, settings: &JournalSettings) -> Result<(), Error> {
    let beyond = sds.data.offset().saturating_sub(settings.keep);
    let keep_for = u64::try_from(settings.keep_for.duration().as_micros()).unwrap_or(u64::MAX);
    let before = Clock::default().micros().saturating_sub(keep_for);
    let is_old = |entry: &&Stored<Entry>| {
        entry.offset <= saved && (entry.offset <= beyond || entry.modified() < before)
    };
    loop {
        let first = sds.known.borrow().head.first;
        if first > saved {
            return Ok(());
        }
        let page = sds.repository.entries(first, PAGE).await?;
        let Some(last) = page.iter().take_while(is_old).last() else {
            return Ok(());
        };
        sds.journal.trim(last.offset).await?;
    }
}
