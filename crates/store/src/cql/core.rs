//! Rows: reading them, and settling the transactions that are found on them.
//!
//! A row that a transaction is about to change carries its *intent*: the number of the transaction and the image to be.
//! Whether the transaction is committed is decided in one place, by the conditional insertion of its row in
//! `signalbox_transactions`: of "committed" by its owner and "aborted" by a process that has waited long enough, the first
//! counts. Every process that meets an intent can therefore settle it, also after the owner has crashed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use scylla::statement::prepared::PreparedStatement;

use super::Counters;
use super::client::{Client, Failure};
use super::image::{Columns, HeldKey, Image, Kind, Loaded, encode_keys, load, signed};
use super::tables::Tables;
use crate::config::CassandraConfig;
use crate::error::hex;
use crate::version::{Clock, Version};

/// What readers and writers share.
pub(super) struct Core {
    pub(super) client: Client,
    pub(super) tables: Tables,
    pub(super) config: CassandraConfig,
    pub(super) site: Arc<str>,
    pub(super) clock: Clock,
    pub(super) counters: Arc<Counters>,
    /// Names those among whom conditions are judged: the datacentre, or nothing for all of them.
    pub(super) domain: Vec<u8>,
    pub(super) shards: u16,
    /// Names of sites seen, so that each is kept once.
    pub(super) sites: Mutex<HashMap<String, Arc<str>>>,
}

/// What was decided on a transaction.
pub(super) struct Decision {
    pub(super) committed: bool,
    pub(super) participants: Vec<u8>,
}

pub(super) const COMMITTED: i8 = 1;
const ABORTED: i8 = 2;

/// Site names kept; a keyspace with more than this has been written by something else.
const MOST_SITES: usize = 1_000;
/// Pause before an undecided transaction is checked again.
const PAUSE: Duration = Duration::from_millis(10);
/// Longest lifetime that the cluster takes, in seconds: 20 years.
const LONGEST_TTL: u64 = 630_720_000;
/// Bytes of a transaction's number before the name of its domain: its time and a random number.
const NUMBER: usize = 16;

impl Core {
    pub(super) async fn load(&self, rows: usize, key: &[u8]) -> Result<Loaded, Failure> {
        self.load_by(&self.tables.rows[rows].get, key).await
    }

    /// As [`Core::load`], once every write in progress is either carried out or can never be.
    pub(super) async fn load_serial(&self, rows: usize, key: &[u8]) -> Result<Loaded, Failure> {
        self.load_by(&self.tables.rows[rows].get_serial, key).await
    }

    async fn load_by(&self, statement: &PreparedStatement, key: &[u8]) -> Result<Loaded, Failure> {
        let found: Vec<Columns> = self.client.rows(statement, (key,)).await?;
        match found.into_iter().next() {
            Some(columns) => self.loaded(columns),
            None => Ok(Loaded::absent(key)),
        }
    }

    pub(super) fn loaded(&self, columns: Columns) -> Result<Loaded, Failure> {
        let key = hex(&columns.0);
        load(columns, |site| self.intern(site))
            .map_err(|reason| Failure::Failed(format!("row {key}: {reason}")))
    }

    fn intern(&self, name: String) -> Arc<str> {
        let mut sites = self.sites.lock();
        if let Some(known) = sites.get(&name) {
            return known.clone();
        }
        let fresh: Arc<str> = Arc::from(name.as_str());
        if sites.len() < MOST_SITES {
            sites.insert(name, fresh.clone());
        }
        fresh
    }

    /// The committed image of a row.
    pub(super) async fn get(&self, rows: usize, key: &[u8]) -> Result<Option<Image>, Failure> {
        let loaded = self.load(rows, key).await?;
        self.settled(rows, loaded).await
    }

    /// The committed image of a row that was read. A transaction in progress is not waited for.
    pub(super) async fn settled(&self, rows: usize, mut loaded: Loaded) -> Result<Option<Image>, Failure> {
        while let Some(intent) = &loaded.intent {
            let transaction = &intent.transaction;
            let is_old = self.is_old(transaction);
            match self.decision(transaction, false).await? {
                Some(Decision {
                    committed: true,
                    participants,
                }) => {
                    if is_old {
                        self.complete(transaction, &participants).await;
                    }
                    return Ok(loaded.after());
                }
                Some(_) if is_old => {
                    // What fails here, the next reader does.
                    let _ = self.roll_back(rows, &loaded.key, transaction).await;
                    return Ok(loaded.image);
                }
                Some(_) => return Ok(loaded.image),
                None => {
                    let give_up = is_old && self.is_own(transaction);
                    if give_up {
                        self.decide(transaction, ABORTED, &[]).await?;
                    }
                    // A decision is forgotten once all rows are finished: without one the transaction is undecided only
                    // if the intent is still on the row.
                    let again = self.load(rows, &loaded.key).await?;
                    let same = again.intent.as_ref().map(|it| &it.transaction) == Some(transaction);
                    if same && !give_up {
                        return Ok(again.image);
                    }
                    loaded = again;
                }
            }
        }
        Ok(loaded.image)
    }

    /// The row once no transaction is about to change it: one that is decided is finished, one that stays undecided for
    /// too long is rolled back.
    pub(super) async fn unlocked(&self, rows: usize, key: &[u8]) -> Result<Loaded, Failure> {
        let begun = Instant::now();
        let lifetime = self.config.transaction_lifetime.duration();
        loop {
            let loaded = self.load(rows, key).await?;
            let Some(intent) = &loaded.intent else {
                return Ok(loaded);
            };
            let transaction = &intent.transaction;
            let waited = begun.elapsed();
            match self.decision(transaction, false).await? {
                Some(decision) if decision.committed => {
                    self.finish(rows, &loaded).await?;
                }
                Some(_) => {
                    self.roll_back(rows, key, transaction).await?;
                }
                // Only its own datacentre can decide. That one is cut off, or has given the transaction up: what this site
                // writes now is later.
                None if !self.is_own(transaction) && waited > 4 * lifetime => {
                    self.roll_back(rows, key, transaction).await?;
                }
                None if !self.is_own(transaction) => {}
                None if waited > lifetime || self.is_old(transaction) => {
                    self.decide(transaction, ABORTED, &[]).await?;
                }
                None => {}
            }
            if waited > 8 * lifetime {
                return Err(Failure::Unreachable(format!(
                    "record {}: a transaction of another process does not end",
                    hex(key)
                )));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// A number for a transaction.
    pub(super) fn transaction(&self) -> Vec<u8> {
        let mut number = Vec::with_capacity(NUMBER + self.domain.len());
        number.extend_from_slice(&self.clock.micros().to_be_bytes());
        number.extend_from_slice(&rand::random::<[u8; 8]>());
        number.extend_from_slice(&self.domain);
        number
    }

    fn is_own(&self, transaction: &[u8]) -> bool {
        transaction.get(NUMBER..) == Some(&self.domain)
    }

    /// Whether the owner of a transaction has had its time. A wrong answer costs a retry of the owner.
    fn is_old(&self, transaction: &[u8]) -> bool {
        let begun = transaction
            .first_chunk()
            .map_or(0, |bytes| u64::from_be_bytes(*bytes));
        let lifetime = self.config.transaction_lifetime.duration().as_micros() as u64;
        self.clock.micros() > begun.saturating_add(2 * lifetime)
    }

    pub(super) async fn decision(
        &self,
        transaction: &[u8],
        serial: bool,
    ) -> Result<Option<Decision>, Failure> {
        let decisions = &self.tables.decisions;
        let statement = if serial {
            &decisions.get_serial
        } else {
            &decisions.get
        };
        let found: Vec<(Option<i8>, Option<Vec<u8>>)> = self.client.rows(statement, (transaction,)).await?;
        let decided = found.into_iter().next();
        Ok(decided.and_then(|(state, participants)| {
            Some(Decision {
                committed: state? == COMMITTED,
                participants: participants.unwrap_or_default(),
            })
        }))
    }

    /// Decides on a transaction; whether nothing had been decided before.
    pub(super) async fn decide(
        &self,
        transaction: &[u8],
        state: i8,
        participants: &[u8],
    ) -> Result<bool, Failure> {
        let decide = &self.tables.decisions.decide;
        self.client
            .applied(decide, (transaction, state, participants))
            .await
    }

    /// Writes what a committed transaction has intended for this row.
    pub(super) async fn finish(&self, rows: usize, loaded: &Loaded) -> Result<(), Failure> {
        let Some(intent) = &loaded.intent else {
            return Ok(());
        };
        let (statements, key) = (&self.tables.rows[rows], &loaded.key);
        let transaction = &intent.transaction;
        let finished = match (intent.kind, &intent.image) {
            (Kind::Put, Some(image)) => {
                let values = (
                    self.lifetime(rows, &image.keys),
                    signed(image.version.0),
                    signed(image.created),
                    &*image.site,
                    &image.value,
                    encode_keys(&image.keys),
                    loaded.version().map(|version| signed(version.0)),
                    key,
                    transaction,
                );
                self.client.applied(&statements.finish_put, values).await
            }
            (Kind::Delete, _) => {
                let values = (key, transaction);
                self.client.applied(&statements.finish_delete, values).await
            }
            (Kind::Put | Kind::Keep, _) => return self.roll_back(rows, key, transaction).await,
        };
        // Where it was not applied, another process has been faster.
        finished.map(drop)
    }

    /// Removes the intent of a transaction from a row, and nothing else.
    pub(super) async fn roll_back(&self, rows: usize, key: &[u8], transaction: &[u8]) -> Result<(), Failure> {
        let keep = &self.tables.rows[rows].finish_keep;
        self.client.applied(keep, (key, transaction)).await.map(drop)
    }

    /// Finishes a committed transaction whose owner has not: all its rows, then its own.
    async fn complete(&self, transaction: &[u8], participants: &[u8]) {
        let Some(participants) = decode_participants(participants) else {
            tracing::warn!(
                transaction = hex(transaction),
                "the participants of a transaction cannot be read"
            );
            return;
        };
        for (name, key) in participants {
            let Some(rows) = self.tables.rows_named(&name) else {
                // A table of another function or release, which finishes it.
                return;
            };
            let finished = match self.load(rows, &key).await {
                Ok(loaded)
                    if loaded
                        .intent
                        .as_ref()
                        .is_some_and(|it| it.transaction == transaction) =>
                {
                    self.finish(rows, &loaded).await
                }
                Ok(_) => Ok(()),
                Err(failure) => Err(failure),
            };
            if finished.is_err() {
                return;
            }
        }
        self.forget(transaction).await;
    }

    /// Removes the row of a transaction. All its rows must be finished: without it they would be rolled back.
    pub(super) async fn forget(&self, transaction: &[u8]) {
        // A row that stays is never read again.
        let _ = self
            .client
            .run(&self.tables.decisions.forget, (transaction,))
            .await;
    }

    /// The time to live of a row of these index keys, in seconds; 0: without end.
    pub(super) fn lifetime(&self, rows: usize, keys: &[HeldKey]) -> i32 {
        let Some(expiry) = self.tables.rows[rows].expiry else {
            return 0;
        };
        let at = keys.iter().find(|held| held.tag == expiry);
        let Some(at) = at.and_then(|held| held.key.first_chunk()) else {
            return 0;
        };
        let rest = u64::from_be_bytes(*at).saturating_sub(self.clock.micros()) / 1_000_000;
        let seconds = rest.saturating_add(self.config.expiry_margin.duration().as_secs());
        i32::try_from(seconds.clamp(1, LONGEST_TTL)).unwrap_or(0)
    }

    /// Whether what was written with this version belongs to no batch that is still being written.
    pub(super) fn is_leftover(&self, entry: u64) -> bool {
        let age = self.clock.micros().saturating_sub(Version(entry).micros());
        u128::from(age) > self.config.leftover_after.duration().as_micros()
    }
}

/// Rows of a transaction as one value: names of tables and keys, each behind its length.
pub(super) fn encode_participants<'a>(rows: impl Iterator<Item = (&'a str, &'a [u8])>) -> Vec<u8> {
    let mut out = Vec::new();
    for part in rows.flat_map(|(name, key)| [name.as_bytes(), key]) {
        // Names have some dozen bytes, keys at most `MAX_KEY`.
        out.extend_from_slice(&(part.len() as u16).to_be_bytes());
        out.extend_from_slice(part);
    }
    out
}

fn decode_participants(mut bytes: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
    fn part<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
        let (length, rest) = bytes.split_first_chunk::<2>()?;
        let (part, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        *bytes = rest;
        Some(part)
    }
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let name = String::from_utf8(part(&mut bytes)?.to_vec()).ok()?;
        all.push((name, part(&mut bytes)?.to_vec()));
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn participants_survive_their_encoding_and_cut_ones_are_refused() {
        let rows = [("signalbox.session", &[1, 2, 3][..]), ("signalbox.other", &[])];
        let bytes = encode_participants(rows.into_iter());
        let read: Vec<(String, Vec<u8>)> = rows
            .iter()
            .map(|(name, key)| ((*name).to_owned(), key.to_vec()))
            .collect();
        assert_eq!(decode_participants(&bytes), Some(read));
        assert_eq!(decode_participants(&bytes[..bytes.len() - 1]), None);
    }
}
