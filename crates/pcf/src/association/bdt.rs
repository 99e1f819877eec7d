//! Policies of background data transfers (TS 29.554): what a provider was offered, and what it has selected. No IO.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use store::{DecodeError, Index, IndexKeys, IndexSchema, Key, Record, TableSchema};

use super::{AssociationId, address, repetition};

/// How long a policy is kept after the desired time window, and what is reserved in a window after that, in microseconds.
pub const RETENTION: u64 = 86_400_000_000;

/// A policy of background data transfers (`BdtPolicy`).
#[derive(Clone, Debug, PartialEq)]
pub struct BdtPolicy {
    /// Its identity in URIs; the key of the record.
    pub id: AssociationId,
    /// The rest of it.
    pub content: Content,
}

/// What a policy consists of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Content {
    /// The BDT reference ID.
    pub reference: String,
    /// `BdtReqData`, without `suppFeat`.
    pub request: Value,
    /// The transfer policies that can be selected.
    pub offered: Vec<Offered>,
    /// The identity of the one that is selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected: Option<i64>,
    /// The identity of the last transfer policy that was offered.
    pub last: i64,
    /// The features that both sides have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<String>,
    /// The NF instance that has created it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// When the record expires, in microseconds since 1970.
    pub expires: u64,
    /// Whether what is selected is not wanted any more: its provider was warned, and has selected nothing since.
    #[serde(default)]
    pub is_invalid: bool,
    /// What the UDR has of it.
    #[serde(default)]
    pub udr: Udr,
    /// When it is due for the sweep, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<u64>,
}

/// A transfer policy that can be selected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Offered {
    /// `TransferPolicy`.
    pub policy: Value,
    /// The occurrence of a window in which it reserves volume when it is selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<String>,
}

/// What the UDR has of a policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Udr {
    /// Whether it has the selected transfer policy, or one of before.
    pub has: bool,
    /// Whether it lacks a change.
    pub lacks: bool,
    /// Attempts in a row that have failed.
    pub failures: u32,
}

/// What a UDR is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// `BdtData` (PUT).
    Put,
    /// `BdtDataPatch` (PATCH).
    Patch,
    /// DELETE.
    Delete,
}

impl BdtPolicy {
    /// By the time at which they are due.
    pub const DUE: Index = Index(1);
    /// By what was asked for, of which there is one.
    pub const REQUEST: Index = Index(2);

    /// The key of requests of an NF instance that ask for the same.
    #[must_use]
    pub fn request_key(request: &Value, owner: Option<&str>) -> [u8; 8] {
        let text = essence(request).to_string();
        let all = owner.unwrap_or_default().bytes().chain(text.bytes());
        repetition::hash(all).to_be_bytes()
    }

    /// Whether a request of an NF instance asks for what this policy is about.
    #[must_use]
    pub fn answers(&self, request: &Value, owner: Option<&str>) -> bool {
        self.content.owner.as_deref() == owner && essence(&self.content.request) == essence(request)
    }

    /// A transfer policy that can be selected.
    #[must_use]
    pub fn offered(&self, id: i64) -> Option<&Offered> {
        let mut offered = self.content.offered.iter();
        offered.find(|one| one.policy.get("transPolicyId").and_then(Value::as_i64) == Some(id))
    }

    /// The transfer policy that is selected.
    #[must_use]
    pub fn selected(&self) -> Option<&Offered> {
        self.offered(self.content.selected?)
    }

    /// The occurrence of a window in which it has reserved volume.
    #[must_use]
    pub fn slot(&self) -> Option<&str> {
        self.selected()?.slot.as_deref()
    }

    /// Selects a transfer policy that was offered, or none.
    pub fn select(&mut self, id: Option<i64>) {
        self.content.selected = id;
        self.content.is_invalid = false;
    }

    /// Adds transfer policies, whose identities follow those that were offered before.
    pub fn offer(&mut self, offers: impl IntoIterator<Item = (impl FnOnce(i64) -> Value, Option<String>)>) {
        for (policy, slot) in offers {
            self.content.last += 1;
            let policy = policy(self.content.last);
            self.content.offered.push(Offered { policy, slot });
        }
    }

    /// Whether its provider is to be warned (`warnNotifReq`), and at which URI.
    #[must_use]
    pub fn warned_at(&self) -> Option<&str> {
        let request = &self.content.request;
        let is_wanted = request.get("warnNotifReq").and_then(Value::as_bool) == Some(true);
        request
            .get("notifUri")
            .and_then(Value::as_str)
            .filter(|_| is_wanted)
    }

    /// Sets whether its provider is to be warned.
    pub fn want_warnings(&mut self, wanted: bool) {
        if let Some(request) = self.content.request.as_object_mut() {
            request.insert("warnNotifReq".to_owned(), wanted.into());
        }
    }

    /// What the UDR is to be sent; `None`: it has all that it is to have.
    #[must_use]
    pub fn owed(&self) -> Option<Change> {
        let Udr { has, lacks, .. } = self.content.udr;
        match (has, self.content.selected.is_some()) {
            _ if !lacks => None,
            (false, true) => Some(Change::Put),
            (true, true) => Some(Change::Patch),
            (true, false) => Some(Change::Delete),
            (false, false) => None,
        }
    }

    /// What the UDR is sent by a change (`BdtData`, `BdtDataPatch`, TS 29.519 §5.4.2.8).
    #[must_use]
    pub fn body(&self, change: Change) -> Option<Value> {
        let status = match self.content.is_invalid {
            true => "INVALID",
            false => "VALID",
        };
        let policy = &self.selected()?.policy;
        let mut body = json!({"transPolicy": policy, "bdtpStatus": status});
        match change {
            Change::Delete => return None,
            Change::Patch => {}
            Change::Put => {
                body["bdtRefId"] = self.content.reference.clone().into();
                for member in [
                    "aspId",
                    "nwAreaInfo",
                    "numOfUes",
                    "volPerUe",
                    "dnn",
                    "snssai",
                    "trafficDes",
                ] {
                    if let Some(value) = self.content.request.get(member) {
                        body[member] = value.clone();
                    }
                }
            }
        }
        Some(body)
    }

    /// `BdtPolicyData` (TS 29.554 §5.6.2.4).
    #[must_use]
    pub fn data(&self) -> Value {
        let policies: Vec<&Value> = self.content.offered.iter().map(|one| &one.policy).collect();
        let mut data = json!({"bdtRefId": self.content.reference, "transfPolicies": policies});
        if let Some(selected) = self.content.selected {
            data["selTransPolicyId"] = selected.into();
        }
        if let Some(features) = &self.content.features {
            data["suppFeat"] = features.clone().into();
        }
        data
    }

    /// `BdtPolicy` (TS 29.554 §5.6.2.2).
    #[must_use]
    pub fn shown(&self) -> Map<String, Value> {
        Map::from_iter([
            ("bdtPolData".to_owned(), self.data()),
            ("bdtReqData".to_owned(), self.content.request.clone()),
        ])
    }
}

/// A request without what can be changed of it.
fn essence(request: &Value) -> Value {
    let mut request = request.clone();
    if let Some(members) = request.as_object_mut() {
        members.shift_remove("warnNotifReq");
    }
    request
}

impl Record for BdtPolicy {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "pcf_bdt_policy",
        indexes: &[
            IndexSchema::many("expiry").ordered(),
            IndexSchema::many("due").ordered(),
            IndexSchema::unique("request"),
        ],
        by_modified: false,
        sql: None,
    };
    const EXPIRY: Option<Index> = Some(Index(0));

    fn key(&self) -> Key {
        Key::from_slice(&self.id.0)
    }

    fn index(&self, keys: &mut IndexKeys) {
        if let Some(due) = self.content.due {
            keys.add(Self::DUE, &due.to_be_bytes());
        }
        let owner = self.content.owner.as_deref();
        keys.add(Self::REQUEST, &Self::request_key(&self.content.request, owner));
    }

    fn expires(&self) -> Option<u64> {
        Some(self.content.expires)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        // Values of serde_json and texts: what cannot fail to be JSON.
        out.extend(serde_json::to_vec(&self.content).unwrap_or_default());
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        let id: Result<[u8; 16], _> = key.try_into();
        let id = id.map_err(|_| DecodeError("a key of 16 bytes is expected".to_owned()))?;
        let content = serde_json::from_slice(value);
        Ok(Self {
            id: AssociationId(id),
            content: content.map_err(|error| DecodeError(error.to_string()))?,
        })
    }
}

/// What is reserved in an occurrence of a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BdtLoad {
    /// The occurrence ([`slot_of`]); the key of the record.
    pub slot: String,
    /// Bytes of all policies that are selected in it.
    pub bytes: u64,
    /// When the record expires, in microseconds since 1970.
    pub expires: u64,
}

/// The name of an occurrence of a window that begins at a time, in seconds since 1970.
#[must_use]
pub fn slot_of(window: &str, begins: i64) -> String {
    format!("{begins}/{window}")
}

impl BdtLoad {
    /// The key of an occurrence.
    #[must_use]
    pub fn key_of(slot: &str) -> Key {
        address::text_key(slot)
    }
}

impl Record for BdtLoad {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "pcf_bdt_load",
        indexes: &[IndexSchema::many("expiry").ordered()],
        by_modified: false,
        sql: None,
    };
    const EXPIRY: Option<Index> = Some(Index(0));

    fn key(&self) -> Key {
        Self::key_of(&self.slot)
    }

    fn index(&self, _: &mut IndexKeys) {}

    fn expires(&self) -> Option<u64> {
        Some(self.expires)
    }

    /// The volume, the expiry, then the name: the key of a long name has only its beginning ([`address::text_key`]).
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.bytes.to_be_bytes());
        out.extend(self.expires.to_be_bytes());
        out.extend(self.slot.as_bytes());
    }

    fn decode(_: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        let wrong = || DecodeError("a volume, a time and a name are expected".to_owned());
        let (bytes, rest) = value.split_first_chunk::<8>().ok_or_else(wrong)?;
        let (expires, slot) = rest.split_first_chunk::<8>().ok_or_else(wrong)?;
        Ok(Self {
            slot: String::from_utf8(slot.to_vec()).map_err(|_| wrong())?,
            bytes: u64::from_be_bytes(*bytes),
            expires: u64::from_be_bytes(*expires),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> BdtPolicy {
        let mut policy = BdtPolicy {
            id: AssociationId([7; 16]),
            content: Content {
                reference: "r".to_owned(),
                request: json!({"aspId": "a", "numOfUes": 3, "warnNotifReq": true, "notifUri": "http://a/b"}),
                expires: 9,
                due: Some(5),
                ..Content::default()
            },
        };
        let offer = |id: i64| json!({"transPolicyId": id});
        policy.offer([(offer, Some(slot_of("night", 60))), (offer, None)]);
        policy
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let policy = policy();
        let mut bytes = Vec::new();
        policy.encode(&mut bytes);
        assert_eq!(BdtPolicy::decode(&policy.key(), &bytes), Ok(policy.clone()));
        assert!(BdtPolicy::decode(b"short", &bytes).is_err());
        let load = BdtLoad {
            slot: slot_of("night", 60),
            bytes: 7,
            expires: 8,
        };
        let mut bytes = Vec::new();
        load.encode(&mut bytes);
        assert_eq!(BdtLoad::decode(&load.key(), &bytes), Ok(load));
        assert!(BdtLoad::decode(b"", b"short").is_err());
    }

    #[test]
    fn a_udr_gets_what_it_lacks() {
        let mut policy = policy();
        assert_eq!((policy.content.last, policy.owed()), (2, None));
        policy.content.udr.lacks = true;
        assert_eq!(policy.owed(), None);
        policy.select(Some(1));
        assert_eq!(
            (policy.owed(), policy.slot()),
            (Some(Change::Put), Some("60/night"))
        );
        let body = policy.body(Change::Put).unwrap();
        assert_eq!(
            (&body["numOfUes"], &body["bdtpStatus"]),
            (&json!(3), &json!("VALID"))
        );
        policy.content.udr.has = true;
        policy.content.is_invalid = true;
        assert_eq!(policy.owed(), Some(Change::Patch));
        assert_eq!(
            policy.body(Change::Patch),
            Some(json!({"transPolicy": {"transPolicyId": 1}, "bdtpStatus": "INVALID"}))
        );
        policy.select(None);
        assert_eq!(
            (policy.owed(), policy.body(Change::Delete)),
            (Some(Change::Delete), None)
        );
    }

    #[test]
    fn warnings_need_a_wish_and_a_uri() {
        let mut policy = policy();
        assert_eq!(policy.warned_at(), Some("http://a/b"));
        policy.want_warnings(false);
        assert_eq!(policy.warned_at(), None);
    }
}
