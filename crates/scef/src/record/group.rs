//! Data for groups of devices, and what has become of it for each.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use store::{Index, IndexKeys, IndexSchema, Key, Record, TableSchema};

use super::{Id, Status, as_json};
use crate::clock::now;
use crate::identity;

/// Data for a group, until it is known what has become of it for each member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct GroupDelivery {
    pub(crate) id: Id,
    /// The NIDD configuration of the group.
    pub(crate) configuration: Id,
    /// The resource, without `self`.
    pub(crate) document: Value,
}

impl GroupDelivery {
    /// By NIDD configuration.
    pub(crate) const CONFIGURATION: Index = Index(0);
}

impl Record for GroupDelivery {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "scef_group_delivery",
        indexes: &[IndexSchema::many("configuration")],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        Key::from_slice(&self.id.key())
    }

    fn index(&self, keys: &mut IndexKeys) {
        keys.add(Self::CONFIGURATION, &self.configuration.key());
    }

    as_json!();
}

/// What has become of data for a member of a group: its SCS/AS is not notified of it yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct GroupOutcome {
    pub(crate) id: Id,
    pub(crate) delivery: Id,
    /// `GmdResult` (TS 29.122 §5.6.2.2.3).
    pub(crate) result: Value,
}

impl GroupOutcome {
    /// By [`GroupDelivery`].
    pub(crate) const DELIVERY: Index = Index(0);

    /// What has become of data for a device, which `document` names.
    pub(crate) fn new(delivery: Id, document: &Value, status: Status) -> Self {
        let mut result = Map::new();
        identity::copy_user(document, &mut result);
        result.insert("deliveryStatus".to_owned(), json!(status));
        Self {
            id: Id::new(now()),
            delivery,
            result: result.into(),
        }
    }
}

impl Record for GroupOutcome {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "scef_group_outcome",
        indexes: &[IndexSchema::many("delivery")],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        Key::from_slice(&self.id.key())
    }

    fn index(&self, keys: &mut IndexKeys) {
        keys.add(Self::DELIVERY, &self.delivery.key());
    }

    as_json!();
}
