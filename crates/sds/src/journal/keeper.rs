//! The task of the journal.
//!
//! Servers on one database decide by the version of the journal's head who has written first; the other one reads what it has
//! missed, checks its transactions again, and tries with the next offset.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use numbers::DestinationSet;
use store::{Conflict, Error, Record as _, Stored, Table};
use tokio::sync::{mpsc, oneshot, watch};

use super::{Known, Order, Refused, Transaction};
use crate::change::{Change, decode, encode};
use crate::data::{Data, NewSets, Unchangeable};
use crate::record::{Entry, Group, Head};
use crate::repository::{PAGE, Repository};
use crate::subject::Subject;
use crate::tail::{Tail, line};

/// Bytes of the changes that are made durable together, at most.
const BYTES_TOGETHER: usize = 4 * 1_024 * 1_024;
/// Attempts to write before other servers.
const ATTEMPTS: usize = 100;

/// The journal's task.
pub(crate) struct Keeper {
    pub(crate) repository: Repository,
    pub(crate) data: Arc<Data>,
    pub(crate) tail: Arc<Tail>,
    pub(crate) head: Stored<Head>,
    pub(crate) known: watch::Sender<Known>,
    /// Whether writes may have happened that this server has not seen.
    pub(crate) stale: bool,
    /// Transactions that are made durable or removed together, at most.
    pub(crate) together: usize,
}

type Pending = (Transaction, oneshot::Sender<Result<u64, Refused>>);

impl Keeper {
    /// Carries out orders, and reads what other servers write at this interval; zero: there are none.
    pub(crate) async fn run(mut self, mut orders: mpsc::Receiver<Order>, poll: Duration) {
        let mut ticks = (!poll.is_zero()).then(|| {
            let mut ticks = tokio::time::interval(poll);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            ticks
        });
        let mut received = Vec::new();
        loop {
            tokio::select! {
                count = orders.recv_many(&mut received, self.together) => {
                    if count == 0 {
                        return;
                    }
                    self.carry_out(std::mem::take(&mut received)).await;
                }
                () = tick(&mut ticks) => self.follow().await,
            }
        }
    }

    /// Reads what other servers have written; what fails is tried again with the next order or tick.
    async fn follow(&mut self) {
        if let Err(refused) = self.catch_up().await
            && !matches!(refused, Refused::Stopped(_))
        {
            tracing::debug!(%refused, "the journal cannot be read");
        }
    }

    async fn carry_out(&mut self, orders: Vec<Order>) {
        let mut group: Vec<Pending> = Vec::new();
        let mut bytes = 0;
        for order in orders {
            match order {
                Order::Write(transaction, answer) => {
                    bytes += transaction.changes.iter().map(Change::weight).sum::<usize>();
                    let alone = transaction.group.is_some();
                    if alone || bytes > BYTES_TOGETHER {
                        self.write(std::mem::take(&mut group)).await;
                        bytes = 0;
                    }
                    group.push((transaction, answer));
                    if alone {
                        self.write(std::mem::take(&mut group)).await;
                    }
                }
                Order::Refresh(answer) => {
                    self.follow().await;
                    let _ = answer.send(());
                }
                Order::Trim(to, answer) => {
                    let _ = answer.send(self.trim(to).await);
                }
            }
        }
        self.write(group).await;
    }

    /// Writes transactions together, as far as each can be written.
    async fn write(&mut self, mut group: Vec<Pending>) {
        for _ in 0..ATTEMPTS {
            if group.is_empty() {
                return;
            }
            if self.stale
                && let Err(refused) = self.catch_up().await
            {
                return refuse(group, &refused);
            }
            let entries = self.plan(&mut group);
            let Some(last) = entries.last() else { return };
            let head = Head {
                offset: last.offset,
                ..self.head.record.clone()
            };
            let write = group
                .first()
                .and_then(|(transaction, _)| transaction.group.as_ref());
            let appended = self.repository.append(&head, self.head.version, &entries, write);
            match appended.await {
                Ok(version) => {
                    self.head.record = head;
                    self.head.version = version;
                    return self.written(group, &entries);
                }
                Err(Error::Conflict { table, conflict, .. }) => {
                    if let (Conflict::Unique { .. }, Some(write)) = (conflict, write) {
                        // Up to a thousand reads, which the writes behind it do not wait for.
                        let (groups, own) = (self.repository.groups.clone(), write.group.clone());
                        let search = async move { refuse(group, &taken(&groups, &own).await) };
                        tokio::task::spawn_local(search);
                        return;
                    }
                    if table == Group::TABLE.name {
                        return refuse(group, &Refused::Group);
                    }
                    // Another server has written.
                    self.stale = true;
                }
                Err(error) => {
                    self.stale = true;
                    return refuse(group, &error.into());
                }
            }
        }
        refuse(group, &Refused::Overtaken);
    }

    /// The entries of those transactions that can be written; the others are answered and removed.
    fn plan(&self, group: &mut Vec<Pending>) -> Vec<Entry> {
        let mut entries = Vec::with_capacity(group.len());
        let (mut planned, mut sets) = (HashMap::new(), NewSets::default());
        let mut offset = self.head.offset;
        let checked = std::mem::take(group)
            .into_iter()
            .filter_map(|(transaction, answer)| {
                match check(&self.data, &transaction.changes, &planned, &sets) {
                    Ok(new) => {
                        sets.extend(new);
                        offset += 1;
                        entries.push(Entry {
                            offset,
                            changes: encode(&transaction.changes).into(),
                        });
                        for change in &transaction.changes {
                            planned.insert(change.subject.clone(), change.destinations.clone());
                        }
                        Some((transaction, answer))
                    }
                    Err(refused) => {
                        let _ = answer.send(Err(refused));
                        None
                    }
                }
            });
        *group = checked.collect();
        entries
    }

    /// Applies what is durable, and acknowledges it.
    fn written(&mut self, group: Vec<Pending>, entries: &[Entry]) {
        let mut applied = Vec::with_capacity(entries.len());
        for ((transaction, answer), entry) in group.into_iter().zip(entries) {
            let outcome = self.apply(entry, &transaction.changes);
            applied.push((answer, outcome.map(|()| entry.offset)));
        }
        // Before it is acknowledged: who then asks for the journal finds the transaction behind its head.
        self.publish();
        for (answer, outcome) in applied {
            let _ = answer.send(outcome);
        }
    }

    fn apply(&mut self, entry: &Entry, changes: &[Change]) -> Result<(), Refused> {
        if let Err(error) = self.data.apply(changes, entry.offset) {
            let reason = format!("transaction {} cannot be applied here: {error}", entry.offset);
            return Err(self.stop(reason));
        }
        self.tail.push(entry.offset, line(entry.offset, &entry.changes));
        Ok(())
    }

    /// Reads and applies what this server does not have of the journal.
    pub(crate) async fn catch_up(&mut self) -> Result<(), Refused> {
        if let Some(reason) = self.known.borrow().stopped.clone() {
            return Err(Refused::Stopped(reason));
        }
        let Some(head) = self.repository.head().await? else {
            return Err(self.stop("the journal is not in the store any more".to_owned()));
        };
        if head.id != self.head.id {
            return Err(self.stop(format!("the store has another journal, {}", head.id)));
        }
        let own = self.data.offset();
        if head.offset < own {
            let store = head.offset;
            tracing::warn!(store, own, "the store is older than the records of this server");
            return Err(Refused::Older { store, own });
        }
        if head.first > own + 1 {
            let (first, last) = (head.first, head.offset);
            let reason = format!(
                "the journal has transactions {first} to {last}, and this server has those up to {own}; restart it with a \
                 checkpoint of another server as load.csv"
            );
            return Err(self.stop(reason));
        }
        while self.data.offset() < head.offset {
            let next = self.data.offset() + 1;
            let page = self.repository.entries(next, PAGE).await?;
            if page.first().map(|entry| entry.offset) != Some(next) {
                // It was removed while it was read, or a replica is late: the next attempt shows.
                return Err(Refused::Overtaken);
            }
            for entry in page {
                let follows = entry.offset == self.data.offset() + 1 && entry.offset <= head.offset;
                if !follows {
                    break;
                }
                let changes = decode(&entry.changes).map_err(|reason| {
                    let reason = format!("transaction {} of the journal: {reason}", entry.offset);
                    self.stop(reason)
                })?;
                self.apply(&entry, &changes)?;
            }
            tokio::task::yield_now().await;
        }
        self.head = head;
        self.stale = false;
        self.publish();
        Ok(())
    }

    async fn trim(&mut self, to: u64) -> Result<(), Error> {
        while self.head.first <= to {
            let last = to
                .min(self.head.first + self.together as u64 - 1)
                .min(self.head.offset);
            if last < self.head.first {
                break;
            }
            let head = Head {
                first: last + 1,
                ..self.head.record.clone()
            };
            let offsets = self.head.first..=last;
            match self.repository.trim(&head, self.head.version, offsets).await {
                Ok(version) => {
                    self.head.record = head;
                    self.head.version = version;
                    self.publish();
                }
                Err(error) => {
                    self.stale = true;
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn publish(&self) {
        let head = self.head.record.clone();
        self.known.send_if_modified(|known| {
            let changed = known.head != head;
            known.head = head;
            changed
        });
    }

    /// Ends the service of this server: what it has is not the state of the journal.
    fn stop(&mut self, reason: String) -> Refused {
        self.stale = true;
        tracing::error!(reason, "this server does not follow the journal any more");
        self.known
            .send_modify(|known| known.stopped = Some(reason.clone()));
        Refused::Stopped(reason)
    }
}

async fn tick(ticks: &mut Option<tokio::time::Interval>) {
    match ticks {
        Some(ticks) => drop(ticks.tick().await),
        None => std::future::pending().await,
    }
}

fn refuse(group: Vec<Pending>, refused: &Refused) {
    for (_, answer) in group {
        let _ = answer.send(Err(refused.clone()));
    }
}

/// Why a group was not written: the first of its numbers that another one has.
async fn taken(groups: &Table<Group>, group: &Group) -> Refused {
    for number in &group.numbers {
        match groups.find(Group::NUMBER, number.as_bytes(), 1).await {
            Ok(holders) => {
                if let Some(holder) = holders.into_iter().find(|holder| holder.id != group.id) {
                    return Refused::Taken {
                        number: number.clone(),
                        group: holder.record.id,
                    };
                }
            }
            Err(error) => return error.into(),
        }
    }
    Refused::Group
}

/// Whether a transaction can be written behind those that are planned; the sets that it brings besides theirs.
fn check(
    data: &Data,
    changes: &[Change],
    planned: &HashMap<Subject, Option<DestinationSet>>,
    sets: &NewSets,
) -> Result<NewSets, Refused> {
    let new = data.check(changes, sets)?;
    for (at, change) in changes.iter().enumerate() {
        let Some(expected) = &change.expected else {
            continue;
        };
        let found = match planned.get(&change.subject) {
            Some(destinations) => destinations.clone(),
            None => data.find(&change.subject).map_err(Unchangeable::from)?,
        };
        if found != *expected {
            return Err(Refused::Expected {
                position: at + 1,
                subject: change.subject.clone(),
                found,
            });
        }
    }
    Ok(new)
}
