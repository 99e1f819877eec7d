//! Policies of background data transfers in the store, and what they reserve.

use store::{Batch, Condition, Error, Scan, Stored, Table, Version};

use super::{Repository, readable, written};
use crate::association::AssociationId;
use crate::association::bdt::{BdtLoad, BdtPolicy};
use crate::association::unconfirmed::Unconfirmed;

/// What is written together with a policy.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    /// What occurrences of windows have reserved then, each over the version that was read.
    pub(crate) loads: Vec<(BdtLoad, Option<Version>)>,
    /// The warning that its provider is sent.
    pub(crate) warning: Option<Unconfirmed>,
}

impl Repository {
    /// The table of policies of background data transfers.
    pub(crate) fn bdt_policies(&self) -> &Table<BdtPolicy> {
        &self.bdt
    }

    /// The table of what is reserved for them.
    pub(crate) fn bdt_loads(&self) -> &Table<BdtLoad> {
        &self.bdt_loads
    }

    /// The policy of an identity.
    pub(crate) async fn bdt_policy(&self, id: AssociationId) -> Result<Option<Stored<BdtPolicy>>, Error> {
        self.bdt.get(&id.0).await
    }

    /// Policies that were asked for by requests of this key.
    pub(crate) async fn bdt_of_request(&self, key: [u8; 8]) -> Result<Vec<Stored<BdtPolicy>>, Error> {
        let found = self
            .bdt
            .find_readable(BdtPolicy::REQUEST, &key, self.most)
            .await?;
        Ok(found.records)
    }

    /// Policies that are due, some at a time.
    pub(crate) async fn bdt_due(&self, now: u64, most: usize) -> Result<Vec<Stored<BdtPolicy>>, Error> {
        let scan = Scan::by_index(BdtPolicy::DUE, most).to_key(&now.to_be_bytes());
        Ok(self.bdt.scan(&scan).await?.records)
    }

    /// What an occurrence of a window has reserved.
    pub(crate) async fn bdt_load(&self, slot: &str) -> Result<Option<Stored<BdtLoad>>, Error> {
        let stored = self.bdt_loads.get(&BdtLoad::key_of(slot)).await?;
        Ok(stored.filter(|stored| stored.record.slot == slot))
    }

    /// Writes a policy over the version that it was made of, or as a new one, with what belongs to it, durably and together; false:
    /// another writer was faster.
    pub(crate) async fn put_bdt(
        &self,
        policy: &BdtPolicy,
        version: Option<Version>,
        beside: &Beside,
    ) -> Result<bool, Error> {
        let condition = |version: Option<Version>| version.map_or(Condition::Absent, Condition::Version);
        let mut batch = Batch::default();
        batch.put_judged(&self.bdt, policy, condition(version), readable)?;
        for (load, version) in &beside.loads {
            batch.put(&self.bdt_loads, load, condition(*version));
        }
        if let Some(warning) = &beside.warning {
            batch.insert(&self.unconfirmed, warning);
        }
        written(self.store.commit(batch).await)
    }
}
