//! Device triggers that an SMS-SC has accepted, or may have.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{Index, IndexKeys, IndexSchema, Key, Record, TableSchema};

use super::{Id, PENDING, Scs, as_json};

/// A device trigger whose delivery is not reported yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Trigger {
    pub(crate) id: Id,
    /// The SCS/AS.
    pub(crate) scs: String,
    /// The resource, without `self` and `deliveryResult`.
    pub(crate) document: Value,
    /// IMSI of the device, from the HSS.
    pub(crate) imsi: String,
    /// Origin-Host of the SMS-SC that has accepted it last; empty: none has answered yet.
    #[serde(default)]
    pub(crate) sms_sc: String,
    /// Reference-Number by which the SMS-SC knows it, and behind it those of replacements that the SMS-SC may have accepted.
    pub(crate) references: Vec<u32>,
    /// The SMS-SC has not confirmed it yet.
    pub(crate) pending: bool,
    /// The SMS-SC has replaced an earlier trigger by it.
    pub(crate) replaced: bool,
    /// When no report is awaited any more, in microseconds since 1970.
    pub(crate) ends: u64,
    /// The SCS that has asked for it over Tsp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) scs_of_tsp: Option<Scs>,
}

impl Trigger {
    /// By SCS/AS.
    pub(crate) const SCS: Index = Index(0);
    /// By Reference-Number.
    pub(crate) const REFERENCE: Index = Index(1);
    /// By [`Trigger::ends`]. The store does not remove it then: its SCS/AS is notified.
    pub(crate) const ENDS: Index = Index(2);
    /// Under [`PENDING`], while [`Trigger::pending`].
    pub(crate) const PENDING_ONES: Index = Index(3);

    /// The SMS-SC that may report about it; none: which one has it is not known, as an answer is still awaited.
    pub(crate) fn holder(&self) -> Option<&str> {
        let is_known = !self.sms_sc.is_empty() && self.references.len() == 1;
        is_known.then_some(&*self.sms_sc)
    }

    /// The Reference-Number of the trigger that the SMS-SC has confirmed last.
    pub(crate) fn reference(&self) -> u32 {
        self.references.first().copied().unwrap_or_default()
    }
}

impl Record for Trigger {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "scef_trigger",
        indexes: &[
            IndexSchema::many("scs").ordered(),
            IndexSchema::unique("reference"),
            IndexSchema::many("ends").ordered(),
            IndexSchema::many("pending"),
        ],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        Key::from_slice(&self.id.key())
    }

    fn index(&self, keys: &mut IndexKeys) {
        keys.add(Self::SCS, self.scs.as_bytes());
        for reference in &self.references {
            keys.add(Self::REFERENCE, &reference.to_be_bytes());
        }
        keys.add(Self::ENDS, &self.ends.to_be_bytes());
        if self.pending {
            keys.add(Self::PENDING_ONES, PENDING);
        }
    }

    as_json!();
}
