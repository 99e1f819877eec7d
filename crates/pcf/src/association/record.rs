//! The record of an association in the store.

use std::borrow::Cow;

use policy::Service;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use store::{DecodeError, Index, IndexKeys, IndexSchema, Key, Record, TableSchema};

use super::messages::Messages;
use super::{address, applications, callbacks, claims, decision, sd, ue_policy};

/// Identity of an association: a UUID in URIs, 16 bytes in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AssociationId(pub [u8; 16]);

impl AssociationId {
    /// A random one.
    #[must_use]
    pub fn random() -> Self {
        Self(*uuid::Uuid::new_v4().as_bytes())
    }

    /// Parses the segment of a URI; `None` for what this PCF never hands out.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        uuid::Uuid::try_parse(text)
            .ok()
            .map(|uuid| Self(*uuid.as_bytes()))
    }
}

impl std::fmt::Display for AssociationId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        uuid::Uuid::from_bytes(self.0).hyphenated().fmt(f)
    }
}

/// What an association is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// A PDU session at an SMF (TS 29.512).
    Sm,
    /// Access and mobility of a UE at an AMF (TS 29.507).
    Am,
    /// The policies of a UE at an AMF (TS 29.525).
    Ue,
    /// An IP-CAN session at a PCEF (TS 29.212).
    Gx,
    /// What is left of a session that has ended, until its TDF ends its own (TS 29.212 §4b.5.4).
    Tdf,
}

impl Kind {
    /// The policy service that decides for it.
    #[must_use]
    pub fn service(self) -> Service {
        match self {
            Self::Sm | Self::Gx | Self::Tdf => Service::Sm,
            Self::Am => Service::Am,
            Self::Ue => Service::Ue,
        }
    }

    /// Its name in records and on pages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sm => "sm",
            Self::Am => "am",
            Self::Ue => "ue",
            Self::Gx => "gx",
            Self::Tdf => "tdf",
        }
    }
}

/// Addresses that an update adds to those of the context, as texts of TS 29.571.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Addresses {
    /// Further IPv6 prefixes (`addIpv6AddrPrefixes`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ipv6: Vec<String>,
    /// MAC addresses of an Ethernet PDU session (`ueMac`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mac: Vec<String>,
}

impl Addresses {
    fn is_empty(&self) -> bool {
        self.ipv6.is_empty() && self.mac.is_empty()
    }
}

/// An association, as the store keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Association {
    /// Its identity; the key of the record.
    #[serde(skip, default = "nil")]
    pub id: AssociationId,
    /// What it is for.
    pub kind: Kind,
    /// `SmPolicyContextData` or `PolicyAssociationRequest`, with what updates have changed. Unknown members survive.
    pub context: Value,
    /// What the policy project has decided last.
    pub policy: Map<String, Value>,
    /// Further parts of the decision by their owner, each in the form of `SmPolicyDecision`: an AF session has one, under
    /// `n5:` or `rx:` and its id.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parts: Map<String, Value>,
    /// Accumulated usage by `umId`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub usage: Map<String, Value>,
    /// State variables that policies have set (`remember`).
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub state: Map<String, Value>,
    /// Addresses beside those of the context.
    #[serde(default, skip_serializing_if = "Addresses::is_empty")]
    pub addresses: Addresses,
    /// What a room of the PCF keeps with an association, by its name: `bsf`, `gx`, `uePolicy`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub rooms: Map<String, Value>,
    /// Messages of the last decision to servers of the operator, until it is written; not stored.
    #[serde(skip)]
    pub(crate) messages: Messages,
}

fn nil() -> AssociationId {
    AssociationId([0; 16])
}

impl Association {
    /// By `supi`.
    pub const SUPI: Index = Index(0);
    /// By `gpsi`.
    pub const GPSI: Index = Index(1);
    /// By addresses of the UE; see [`address`].
    pub const ADDRESS: Index = Index(2);
    /// By a name that another protocol gives it: the Session-Id of Gx.
    pub const NAME: Index = Index(3);
    /// By what at most one association may have.
    pub(crate) const CLAIM: Index = Index(4);

    /// A new association, without a decision.
    #[must_use]
    pub fn new(kind: Kind, context: Value) -> Self {
        Self {
            id: AssociationId::random(),
            kind,
            context,
            policy: Map::new(),
            parts: Map::new(),
            usage: Map::new(),
            state: Map::new(),
            addresses: Addresses::default(),
            rooms: Map::new(),
            messages: Messages::default(),
        }
    }

    /// A member of the context that is a text.
    #[must_use]
    pub fn text_of(&self, name: &str) -> Option<&str> {
        self.context.get(name)?.as_str()
    }

    /// Whether its SUPI is not one that the network has authenticated (`invalidSupi`, TS 29.512 §5.6.2.3).
    #[must_use]
    pub fn has_invalid_supi(&self) -> bool {
        self.context.get("invalidSupi").and_then(Value::as_bool) == Some(true)
    }

    /// The decision that its consumer has: that of the policy project with the parts of others.
    #[must_use]
    pub fn decision(&self) -> Map<String, Value> {
        decision::whole(&self.policy, self.parts.values())
    }

    /// As [`Self::decision`], where that of the policy project is needed no longer.
    pub(crate) fn take_decision(&mut self) -> Map<String, Value> {
        match self.parts.is_empty() {
            true => pcc::decision::without_removed(std::mem::take(&mut self.policy)),
            false => self.decision(),
        }
    }

    /// What policies read as `$session`.
    #[must_use]
    pub fn session(&self) -> Value {
        let used = self
            .usage
            .values()
            .filter_map(|one| one.get("volUsage")?.as_u64());
        json!({
            "usage": self.usage,
            "usedVolume": used.fold(0_u64, u64::saturating_add),
            "afSessions": self.parts.keys().collect::<Vec<_>>(),
            "applications": applications::of(self),
            "tdf": sd::state_of(self),
        })
    }

    /// The names in [`Association::NAME`]: Session-Ids of Gx after `gx:`, those of Rx after `rx:`, identities of AF sessions of
    /// N5 after `n5:`, paths of producers after `callback:`, those of Sy after `sy:` and of Sd after
    /// `sd:`, and that of requests in flight, and of deliveries that an earlier release has begun.
    pub fn names(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let gx = super::gx::name_of(self);
        let af = super::af::sessions(self);
        let af = af.filter_map(|session| match (session.rx, session.name) {
            (Some(rx), _) => Some(super::af::rx_name(&rx.session)),
            (None, name) => name.map(|name| super::af::n5_name(&name)),
        });
        let sy = self
            .rooms
            .get("pds")
            .and_then(|room| room.get("sy")?.get("sessionId")?.as_str());
        let sy = sy.map(|session| Cow::Owned(format!("sy:{session}")));
        let delivery = ue_policy::is_named(self).then_some(ue_policy::IN_FLIGHT);
        let sd = sd::names(self).map(Cow::Owned);
        gx.into_iter()
            .chain(delivery.map(Cow::Borrowed))
            .chain(af.map(Cow::Owned))
            .chain(callbacks::names(self).map(Cow::Owned))
            .chain(sy)
            .chain(sd)
    }
}

impl Record for Association {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "pcf_association",
        indexes: &[
            IndexSchema::many("supi"),
            IndexSchema::many("gpsi"),
            IndexSchema::many("address").multi(),
            IndexSchema::many("name").multi(),
            IndexSchema::unique("claim").multi(),
        ],
        by_modified: true,
        sql: None,
    };

    fn key(&self) -> Key {
        Key::from_slice(&self.id.0)
    }

    fn index(&self, keys: &mut IndexKeys) {
        for (index, identity) in [
            (Self::SUPI, self.text_of("supi")),
            (Self::GPSI, self.text_of("gpsi")),
        ] {
            if let Some(identity) = identity {
                keys.add(index, &address::text_key(identity));
            }
        }
        for name in self.names() {
            keys.add(Self::NAME, &address::text_key(&name));
        }
        for claim in claims::of(self) {
            keys.add(Self::CLAIM, &address::text_key(&claim));
        }
        for key in address::keys(self) {
            keys.add(Self::ADDRESS, &key);
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        // Values of serde_json and texts: what cannot fail to be JSON.
        out.extend(serde_json::to_vec(self).unwrap_or_default());
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        let id = key.try_into().map_err(|_| {
            DecodeError(format!(
                "an identity of an association has 16 bytes, this one {}",
                key.len()
            ))
        })?;
        // Checked once as a whole: `from_slice` checks each text of the document.
        let text = std::str::from_utf8(value).map_err(|error| DecodeError(error.to_string()))?;
        let association: Self = serde_json::from_str(text).map_err(|error| DecodeError(error.to_string()))?;
        Ok(Self {
            id: AssociationId(id),
            ..association
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let context = json!({"supi": "imsi-001010000000001", "gpsi": "msisdn-1", "ipv4Address": "10.0.0.1",
            "vendorExtra": {"kept": [1, 2.50, null]}});
        let mut association = Association::new(Kind::Sm, context);
        association.policy.insert("online".to_owned(), json!(true));
        association
            .parts
            .insert("n5:1".to_owned(), json!({"pccRules": {}}));
        association.addresses.ipv6.push("2001:db8::/64".to_owned());
        let mut bytes = Vec::new();
        association.encode(&mut bytes);
        assert_eq!(Association::decode(&association.key(), &bytes), Ok(association));
        assert!(Association::decode(b"short", &bytes).is_err());
        assert!(Association::decode(&[0; 16], b"{}").is_err());
    }
}
