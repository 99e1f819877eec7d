//! Paths of sessions in the store: bounded in number and age.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use store::{Clock, DecodeError, Index, IndexKeys, IndexSchema, Key, MAX_KEY, Record, Scan, TableSchema};

use crate::events::{Counters, Event};
use crate::live::Live;
use crate::repository::Repository;

/// The path of a session by its Session-Id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptPath {
    id: Key,
    /// The peer that the session's requests come from.
    pub(super) af: String,
    /// The PCF.
    pub(super) pcf: String,
    /// When the session began, in microseconds since 1970.
    began: u64,
}

impl KeptPath {
    /// By the time at which sessions began. The order of modification would be that of the whole log, in which
    /// paths are few among bindings.
    const BEGAN: Index = Index(0);

    /// A session that begins at this time. `None` when the Session-Id is longer than a key may be, or a name than
    /// names are.
    pub(super) fn new(id: &[u8], af: &str, pcf: &str, began: u64) -> Option<Self> {
        let fits = (1..=MAX_KEY).contains(&id.len()) && af.len() <= 255 && pcf.len() <= 255;
        fits.then(|| Self {
            began,
            id: Key::from_slice(id),
            af: af.to_owned(),
            pcf: pcf.to_owned(),
        })
    }
}

impl Record for KeptPath {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "rx_session",
        indexes: &[IndexSchema::many("began").ordered()],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        self.id.clone()
    }

    fn index(&self, keys: &mut IndexKeys) {
        keys.add(Self::BEGAN, &self.began.to_be_bytes());
    }

    /// When it began, length of the AF's name, its name, the PCF's name.
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.began.to_be_bytes());
        // `KeptPath::new` has seen to the length.
        out.push(u8::try_from(self.af.len()).unwrap_or(u8::MAX));
        out.extend_from_slice(self.af.as_bytes());
        out.extend_from_slice(self.pcf.as_bytes());
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        let wrong = || DecodeError("not the path of a session".to_owned());
        let (began, value) = value.split_first_chunk::<8>().ok_or_else(wrong)?;
        let (length, names) = value.split_first().ok_or_else(wrong)?;
        let (af, pcf) = names.split_at_checked(usize::from(*length)).ok_or_else(wrong)?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| wrong());
        Ok(Self {
            id: Key::from_slice(key),
            af: text(af)?,
            pcf: text(pcf)?,
            began: u64::from_be_bytes(*began),
        })
    }
}

/// How often it is looked whether paths are to be forgotten.
const INTERVAL: Duration = Duration::from_secs(1);
/// Paths read or forgotten at a time, and the pause after each such page.
const PAGE: usize = 200;
const PAUSE: Duration = Duration::from_millis(10);

/// Forgets paths that are too old, and the oldest when there are too many, until dropped.
pub(crate) async fn tidy(repository: Repository, live: Arc<ArcSwap<Live>>, counters: Arc<Counters>) {
    let mut counted = false;
    loop {
        let done = async {
            if !counted {
                count(&repository).await?;
                counted = true;
            }
            forget(&repository, &live, &counters).await
        };
        if let Err(error) = done.await {
            tracing::warn!(%error, "paths of Rx sessions could not be tidied up");
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Counts what an earlier run has left.
async fn count(repository: &Repository) -> Result<(), store::Error> {
    let mut next = Some(Scan::all(PAGE));
    while let Some(scan) = next {
        let page = repository.paths.scan(&scan).await?;
        repository.paths_held.add(page.records.len());
        next = page.next;
        tokio::task::yield_now().await;
    }
    Ok(())
}

async fn forget(
    repository: &Repository,
    live: &ArcSwap<Live>,
    counters: &Counters,
) -> Result<(), store::Error> {
    let settings = live.load().config.rx.clone();
    let age = u64::try_from(settings.session_lifetime.duration().as_micros()).unwrap_or(u64::MAX);
    let mut limit = 1;
    loop {
        let oldest = Clock::default().micros().saturating_sub(age);
        let excess = repository.paths_held.get().saturating_sub(settings.max_sessions);
        if excess > 0 {
            limit = PAGE;
        }
        let scan = Scan::by_index(KeptPath::BEGAN, limit);
        let page = repository.paths.scan(&scan).await?;
        let dropped: Vec<_> = page
            .records
            .iter()
            .enumerate()
            .filter(|(place, path)| *place < excess || path.record.began < oldest)
            .collect();
        limit = PAGE;
        if dropped.is_empty() {
            return Ok(());
        }
        let mut batch = store::Batch::default();
        for (_, path) in &dropped {
            batch.delete(&repository.paths, &path.record.key(), store::Condition::Always);
        }
        repository.store().commit(batch).await?;
        repository.paths_held.sub(dropped.len());
        dropped
            .iter()
            .for_each(|_| counters.count(Event::RxSessionExpired));
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_wrote() {
        let path = KeptPath::new(b"af;1;2", "af.example", "pcf.example", 7).unwrap();
        let mut bytes = Vec::new();
        path.encode(&mut bytes);
        assert_eq!(KeptPath::decode(b"af;1;2", &bytes), Ok(path));
        for wrong in [&b""[..], &[0; 8], b"12345678\x09a", b"12345678\x01\xffp"] {
            assert!(KeptPath::decode(b"x", wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(KeptPath::new(&[b'x'; MAX_KEY + 1], "a", "p", 7), None);
        assert_eq!(KeptPath::new(b"x", &"a".repeat(300), "p", 7), None);
    }
}
