//! What SCS/AS have asked for: subscriptions to monitoring events, NIDD configurations.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{Index, IndexKeys, IndexSchema, Key, Record, TableSchema};

use super::{Id, PENDING, as_json};
use crate::clock::now;

/// A subscription to a monitoring event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Subscription {
    /// SCEF-Reference-ID, by which HSS, MME and SGSN report; the id of the resource as well.
    pub(crate) reference: u32,
    /// The SCS/AS.
    pub(crate) scs: String,
    /// The resource, without `self`.
    pub(crate) document: Value,
    /// The HSS has not confirmed it yet.
    pub(crate) pending: bool,
    /// Reports that may follow; `None`: any number.
    pub(crate) left: Option<u32>,
    /// `monitorExpireTime`, in microseconds since 1970.
    pub(crate) expires: Option<u64>,
    /// Origin-Host of the HSS that has the event; empty before its answer, and in a record of an earlier release.
    #[serde(default)]
    pub(crate) hss: String,
}

impl Subscription {
    /// By SCS/AS.
    pub(crate) const SCS: Index = Index(0);
    /// Under [`PENDING`], while [`Subscription::pending`].
    pub(crate) const PENDING_ONES: Index = Index(2);

    /// The id of the resource.
    pub(crate) fn id(&self) -> String {
        format!("{:08x}", self.reference)
    }

    /// The reference of a resource with this id.
    pub(crate) fn reference_of(id: &str) -> Option<u32> {
        let digits = id.len() == 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        digits.then(|| u32::from_str_radix(id, 16).ok()).flatten()
    }
}

impl Record for Subscription {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "scef_subscription",
        indexes: &[
            IndexSchema::many("scs").ordered(),
            IndexSchema::many("expiry").ordered(),
            IndexSchema::many("pending"),
        ],
        by_modified: false,
        sql: None,
    };
    const EXPIRY: Option<Index> = Some(Index(1));

    fn key(&self) -> Key {
        Key::from_slice(&self.reference.to_be_bytes())
    }

    fn index(&self, keys: &mut IndexKeys) {
        keys.add(Self::SCS, self.scs.as_bytes());
        if self.pending {
            keys.add(Self::PENDING_ONES, PENDING);
        }
    }

    fn expires(&self) -> Option<u64> {
        self.expires
    }

    as_json!();
}

/// A NIDD configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Configuration {
    pub(crate) id: Id,
    /// The SCS/AS.
    pub(crate) scs: String,
    /// The resource, without `self` and `niddDownlinkDataTransfers`.
    pub(crate) document: Value,
    /// IMSI of the device, from the HSS; empty: it is of a group, whose members have configurations of their own.
    pub(crate) imsi: String,
    /// The configuration of the group that the device is a member of, which T8 shows in place of this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<Id>,
    /// Origin-Host of the HSS that has authorized the device; empty in a record of an earlier release.
    #[serde(default)]
    pub(crate) hss: String,
    /// APN of its connection; empty: any.
    pub(crate) apn: String,
    /// `duration`, or what the HSS has granted, in microseconds since 1970.
    pub(crate) expires: Option<u64>,
    /// Until when the HSS has granted it, in microseconds since 1970.
    pub(crate) granted: Option<u64>,
}

impl Configuration {
    /// By SCS/AS.
    pub(crate) const SCS: Index = Index(0);
    /// By device or group: at most one for each APN.
    pub(crate) const DEVICE: Index = Index(1);
    /// By IMSI.
    pub(crate) const IMSI: Index = Index(2);
    /// By the end of its time. The store does not remove it then: its SCS/AS is notified, and its connection is released.
    pub(crate) const ENDS: Index = Index(3);
    /// Those of the members of a group, by the configuration of the group.
    pub(crate) const GROUP: Index = Index(4);

    /// Whether it is of a group of devices.
    pub(crate) fn is_of_group(&self) -> bool {
        self.imsi.is_empty()
    }

    /// Whether its time is not over.
    pub(crate) fn is_active(&self) -> bool {
        self.expires.is_none_or(|at| at > now())
    }

    /// Whether it is for a connection of this APN.
    pub(crate) fn is_for(&self, apn: Option<&str>) -> bool {
        match apn {
            Some(apn) => self.apn.is_empty() || apn.eq_ignore_ascii_case(&self.apn),
            None => true,
        }
    }
}

impl Record for Configuration {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "scef_configuration",
        indexes: &[
            IndexSchema::many("scs").ordered(),
            IndexSchema::unique("device"),
            IndexSchema::many("imsi"),
            IndexSchema::many("expiry").ordered(),
            IndexSchema::many("group"),
        ],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        Key::from_slice(&self.id.key())
    }

    fn index(&self, keys: &mut IndexKeys) {
        match &self.group {
            Some(group) => keys.add(Self::GROUP, &group.key()),
            None => keys.add(Self::SCS, self.scs.as_bytes()),
        }
        let group = self.document.get("externalGroupId").and_then(Value::as_str);
        let whom = match self.is_of_group() {
            true => group.unwrap_or_default(),
            false => &self.imsi,
        };
        let device = format!("{} {}", whom.to_ascii_lowercase(), self.apn.to_ascii_lowercase());
        keys.add(Self::DEVICE, device.as_bytes());
        if !self.is_of_group() {
            keys.add(Self::IMSI, self.imsi.as_bytes());
        }
        if let Some(at) = self.expires {
            keys.add(Self::ENDS, &at.to_be_bytes());
        }
    }

    as_json!();
}
