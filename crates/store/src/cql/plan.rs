//! What a batch does to the rows of the cluster: records, claims of unique keys, entries of indexes.

use std::collections::HashMap;

use super::client::Failure;
use super::core::Core;
use super::entries::partition;
use super::image::{HeldKey, Image, Kind, Loaded, keys_of};
use super::tables::CqlTable;
use super::together::{Request, all};
use crate::batch::{Batch, Change, Condition, Operation};
use crate::error::{Conflict, Error};
use crate::version::Version;

/// Why an attempt to carry out a batch has ended.
#[derive(Debug)]
pub(super) enum Fault {
    /// A condition does not hold.
    Conflict(Error),
    /// Nothing is written; another attempt may succeed.
    Again(String),
    /// It is not known whether the batch is written, and cannot be found out now.
    Doubt(String),
    /// Nothing is written, and another attempt is useless.
    Final(Failure),
}

/// Before anything is written, or where writing twice does no harm.
impl From<Failure> for Fault {
    fn from(failure: Failure) -> Fault {
        match failure {
            Failure::Unreachable(reason) | Failure::Doubt(reason) => Fault::Again(reason),
            other => Fault::Final(other),
        }
    }
}

/// A row that is changed, and the version that it must have.
#[derive(Debug)]
pub(super) struct Participant {
    pub(super) rows: usize,
    pub(super) key: Vec<u8>,
    pub(super) expected: Option<Version>,
    pub(super) kind: Kind,
    pub(super) image: Option<Image>,
}

/// Keys of records: position of the table, primary key, key.
pub(super) type Keys = Vec<(usize, Vec<u8>, HeldKey)>;

#[derive(Debug)]
pub(super) struct Plan {
    pub(super) version: Version,
    pub(super) participants: Vec<Participant>,
    pub(super) added: Keys,
    pub(super) removed: Keys,
}

/// A unique key that a batch gives to a record, or takes away.
#[derive(Default)]
struct Claim {
    /// The record and its operation.
    to: Option<(Vec<u8>, usize)>,
    from: Option<Vec<u8>>,
}

impl Core {
    pub(super) fn table(&self, operation: &Operation) -> &CqlTable {
        // Ids come from `Store::table`, which counted the same list.
        &self.tables.tables[usize::from(operation.table.0)]
    }

    /// Judges the conditions of a batch and says what it changes; `version` is the earliest that it may get.
    pub(super) async fn plan(&self, batch: &Batch, version: Version) -> Result<Plan, Fault> {
        let mut loads: Vec<Request<'_, _>> = Vec::with_capacity(batch.operations.len());
        for operation in &batch.operations {
            let rows = self.table(operation).rows;
            loads.push(Box::pin(self.unlocked(rows, &operation.key)));
        }
        let loaded: Vec<Loaded> = all(loads).await.into_iter().collect::<Result<_, _>>()?;
        for (position, (operation, loaded)) in batch.operations.iter().zip(&loaded).enumerate() {
            let expiry = self.tables.rows[self.table(operation).rows].expiry;
            let stored = loaded.image.as_ref();
            let stored = stored.map(|image| (image.version, image.expiry(expiry)));
            let checked = operation.check(stored, batch.now);
            checked.map_err(|conflict| {
                Fault::Conflict(Error::Conflict {
                    operation: position,
                    table: self.table(operation).name,
                    conflict,
                })
            })?;
        }
        let stored = loaded.iter().filter_map(Loaded::version);
        let version = stored.fold(version, Version::beyond);
        let mut plan = Plan {
            version,
            participants: Vec::new(),
            added: Keys::new(),
            removed: Keys::new(),
        };
        let mut claims: HashMap<(usize, Vec<u8>), Claim> = HashMap::new();
        for (position, (operation, loaded)) in batch.operations.iter().zip(loaded).enumerate() {
            self.plan_operation(&mut plan, &mut claims, position, operation, loaded)?;
        }
        for ((rows, key), claim) in claims {
            let planned = self.plan_claim(batch, &plan, rows, key, claim).await?;
            plan.participants.extend(planned);
        }
        // In one order everywhere, so that transactions wait for one another and not in a circle.
        plan.participants
            .sort_unstable_by(|a, b| (a.rows, &a.key).cmp(&(b.rows, &b.key)));
        Ok(plan)
    }

    fn plan_operation(
        &self,
        plan: &mut Plan,
        claims: &mut HashMap<(usize, Vec<u8>), Claim>,
        position: usize,
        operation: &Operation,
        loaded: Loaded,
    ) -> Result<(), Fault> {
        let (table, id) = (self.table(operation), operation.key.to_vec());
        let number = usize::from(operation.table.0);
        let expected = loaded.version();
        let before = loaded.image;
        let (kind, image) = match &operation.change {
            Change::Put(row) => {
                let image = Image {
                    version: plan.version,
                    created: before
                        .as_ref()
                        .map_or(plan.version.micros(), |image| image.created),
                    site: self.site.clone(),
                    keys: keys_of(&table.def, &row.keys, plan.version, before.as_ref()),
                    value: row.value.clone(),
                };
                (Kind::Put, Some(image))
            }
            Change::Delete if before.is_some() => (Kind::Delete, None),
            // Nothing is there, and nothing is required to be so.
            Change::Delete | Change::Nothing if operation.condition == Condition::Always => return Ok(()),
            Change::Delete | Change::Nothing => (Kind::Keep, None),
        };
        if kind != Kind::Keep {
            let (old, new) = (
                before.as_ref().map(|it| &it.keys[..]).unwrap_or_default(),
                image.as_ref().map(|it| &it.keys[..]).unwrap_or_default(),
            );
            for held in new.iter().filter(|held| !old.contains(held)) {
                plan.added.push((number, id.clone(), held.clone()));
                let index = table.by_tag(held.tag);
                if let Some((index, rows)) = index.and_then(|index| Some((index, index.claims?))) {
                    let claim = claims.entry((rows, partition(&held.key))).or_default();
                    if let Some((holder, _)) = claim.to.take() {
                        let conflict = Conflict::Unique {
                            index: index.name,
                            holder: Some(holder),
                        };
                        return Err(Fault::Conflict(Error::Conflict {
                            operation: position,
                            table: table.name,
                            conflict,
                        }));
                    }
                    claim.to = Some((id.clone(), position));
                }
            }
            for held in old.iter().filter(|held| !new.contains(held)) {
                plan.removed.push((number, id.clone(), held.clone()));
                if let Some(rows) = table.by_tag(held.tag).and_then(|index| index.claims) {
                    claims.entry((rows, partition(&held.key))).or_default().from = Some(id.clone());
                }
            }
        }
        plan.participants.push(Participant {
            rows: table.rows,
            key: id,
            expected,
            kind,
            image,
        });
        Ok(())
    }

    /// What becomes of the row of a unique key.
    async fn plan_claim(
        &self,
        batch: &Batch,
        plan: &Plan,
        rows: usize,
        key: Vec<u8>,
        claim: Claim,
    ) -> Result<Option<Participant>, Fault> {
        let stored = self.unlocked(rows, &key).await?;
        let expected = stored.version();
        let holder = stored.image.map(|image| image.value);
        let Some((id, position)) = claim.to else {
            // One that another record has by now is not ours to remove.
            let participant = Participant {
                rows,
                key,
                expected,
                kind: Kind::Delete,
                image: None,
            };
            return Ok((holder.is_some() && holder == claim.from).then_some(participant));
        };
        if let Some(holder) = holder
            && holder != id
            && Some(&holder) != claim.from.as_ref()
        {
            let operation = &batch.operations[position];
            let table = self.table(operation);
            let index = table.indexes.iter().find(|index| index.claims == Some(rows));
            let (name, tag) = index.map_or(("", 0), |index| (index.name, index.tag));
            // A holder that is gone without giving the key back (its time was over) holds nothing.
            let record = self.get(table.rows, &holder).await?;
            if record.is_some_and(|record| record.holds(tag, &key[1..], None)) {
                let conflict = Conflict::Unique {
                    index: name,
                    holder: Some(holder),
                };
                return Err(Fault::Conflict(Error::Conflict {
                    operation: position,
                    table: table.name,
                    conflict,
                }));
            }
        }
        let version = expected.map_or(plan.version, |stored| plan.version.beyond(stored));
        Ok(Some(Participant {
            rows,
            key,
            expected,
            kind: Kind::Put,
            image: Some(Image {
                version,
                created: version.micros(),
                site: self.site.clone(),
                value: id,
                keys: Vec::new(),
            }),
        }))
    }
}
