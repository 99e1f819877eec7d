//! Connections of devices, data for them, notifications, and answers to requests of peers.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{Index, IndexKeys, IndexSchema, Key, Record, TableSchema};

use super::{Id, as_json};

/// A connection of a device over T6a or T6b (TS 29.128 §5.6).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Connection {
    pub(crate) imsi: String,
    /// Bearer-Identifier, in Base64.
    pub(crate) bearer: String,
    /// The NIDD configuration that it belongs to.
    pub(crate) configuration: Id,
    /// Origin-Host of the MME or SGSN.
    pub(crate) host: String,
    /// Origin-Realm of the MME or SGSN.
    pub(crate) realm: String,
    /// Its APN in lower case; empty if the CMR has no APN.
    pub(crate) apn: String,
}

impl Connection {
    /// By NIDD configuration.
    pub(crate) const CONFIGURATION: Index = Index(0);

    /// The key of a connection.
    pub(crate) fn key_of(imsi: &str, bearer: &str) -> String {
        format!("{imsi} {bearer}")
    }
}

impl Record for Connection {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "scef_connection",
        indexes: &[IndexSchema::many("configuration")],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        Key::from_slice(Self::key_of(&self.imsi, &self.bearer).as_bytes())
    }

    fn index(&self, keys: &mut IndexKeys) {
        keys.add(Self::CONFIGURATION, &self.configuration.key());
    }

    as_json!();
}

/// `DeliveryStatus` (TS 29.122 §5.6.2.3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum Status {
    SuccessNextHopAcknowledged,
    SuccessNextHopUnacknowledged,
    Buffering,
    BufferingTemporarilyNotReachable,
    Sending,
    /// Without a better word: the device has no connection.
    Failure,
    FailureNextHop,
    FailureTimeout,
    FailureTemporarilyNotReachable,
}

/// Data for a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Downlink {
    pub(crate) id: Id,
    pub(crate) configuration: Id,
    pub(crate) scs: String,
    /// `notificationDestination` of the configuration.
    pub(crate) target: String,
    /// The resource, without `self` and `deliveryStatus`.
    pub(crate) document: Value,
    pub(crate) status: Status,
    /// Whether it is buffered where the device cannot be reached.
    pub(crate) buffered: bool,
    /// When its time is over, in microseconds since 1970.
    pub(crate) expires: u64,
    /// When something is to be done with it at the latest, in microseconds since 1970.
    pub(crate) due: u64,
    /// Session-Id of the TDR that was sent, and its End-to-End Identifier: a repetition has the same, so that the MME recognises it
    /// (RFC 6733 §3).
    pub(crate) sent: Option<(String, u32)>,
    /// The data for a group that it is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<Id>,
}

impl Downlink {
    /// By NIDD configuration.
    pub(crate) const CONFIGURATION: Index = Index(0);
    /// By [`Downlink::due`].
    pub(crate) const DUE: Index = Index(1);
    /// By [`Downlink::group`].
    pub(crate) const GROUP: Index = Index(2);
}

impl Record for Downlink {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "scef_downlink",
        indexes: &[
            IndexSchema::many("configuration"),
            IndexSchema::many("due").ordered(),
            IndexSchema::many("group"),
        ],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        Key::from_slice(&self.id.key())
    }

    fn index(&self, keys: &mut IndexKeys) {
        keys.add(Self::CONFIGURATION, &self.configuration.key());
        keys.add(Self::DUE, &self.due.min(self.expires).to_be_bytes());
        if let Some(group) = &self.group {
            keys.add(Self::GROUP, &group.key());
        }
    }

    as_json!();
}

/// A notification that an SCS/AS has not accepted yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Notice {
    pub(crate) id: Id,
    /// The resource that it is about; notifications of one are sent in order.
    pub(crate) about: String,
    pub(crate) target: String,
    pub(crate) body: Value,
    /// When it is dropped, in microseconds since 1970.
    pub(crate) expires: u64,
}

impl Record for Notice {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "scef_notice",
        indexes: &[IndexSchema::many("expiry").ordered()],
        by_modified: false,
        sql: None,
    };
    const EXPIRY: Option<Index> = Some(Index(0));

    fn key(&self) -> Key {
        Key::from_slice(&self.id.key())
    }

    fn index(&self, _: &mut IndexKeys) {}

    fn expires(&self) -> Option<u64> {
        Some(self.expires)
    }

    as_json!();
}

/// The answer to a request of a peer, for its duplicates (RFC 6733 §3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answered {
    /// Origin-Host of the request.
    pub(crate) origin: String,
    /// End-to-End Identifier of the request.
    pub(crate) end_to_end: u32,
    /// The result; with a vendor an Experimental-Result-Code.
    pub(crate) code: u32,
    pub(crate) vendor: u32,
    /// When duplicates need not be recognised any more, in microseconds since 1970.
    pub(crate) expires: u64,
}

impl Answered {
    /// The key of the answer to a request.
    pub(crate) fn key_of(origin: &str, end_to_end: u32) -> Vec<u8> {
        let mut key = end_to_end.to_be_bytes().to_vec();
        key.extend(origin.bytes().map(|byte| byte.to_ascii_lowercase()));
        key
    }
}

impl Record for Answered {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "scef_answered",
        indexes: &[IndexSchema::many("expiry").ordered()],
        by_modified: false,
        sql: None,
    };
    const EXPIRY: Option<Index> = Some(Index(0));

    fn key(&self) -> Key {
        Key::from_slice(&Self::key_of(&self.origin, self.end_to_end))
    }

    fn index(&self, _: &mut IndexKeys) {}

    fn expires(&self) -> Option<u64> {
        Some(self.expires)
    }

    /// One is written for each request of a peer: code, vendor and time alone, the key has the rest.
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.code.to_be_bytes());
        out.extend(self.vendor.to_be_bytes());
        out.extend(self.expires.to_be_bytes());
    }

    /// Earlier releases wrote JSON.
    fn decode(key: &[u8], value: &[u8]) -> Result<Self, store::DecodeError> {
        let (Ok(value), Some((end_to_end, origin))) = (<&[u8; 16]>::try_from(value), key.split_first_chunk())
        else {
            return serde_json::from_slice(value).map_err(|error| store::DecodeError(error.to_string()));
        };
        let value = u128::from_be_bytes(*value);
        Ok(Self {
            origin: String::from_utf8_lossy(origin).into_owned(),
            end_to_end: u32::from_be_bytes(*end_to_end),
            code: (value >> 96) as u32,
            vendor: (value >> 64) as u32,
            expires: value as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_as_this_release_and_earlier_ones_write_it() {
        let answered = Answered {
            origin: "mme.example".to_owned(),
            end_to_end: 7,
            code: 2001,
            vendor: 10_415,
            expires: 1 << 50,
        };
        let key = Answered::key_of(&answered.origin, answered.end_to_end);
        let mut short = Vec::new();
        answered.encode(&mut short);
        assert_eq!(short.len(), 16);
        for value in [short, serde_json::to_vec(&answered).unwrap()] {
            assert_eq!(Answered::decode(&key, &value).unwrap(), answered);
        }
        for wrong in [&b""[..], b"{}", &[0; 15]] {
            assert!(Answered::decode(&key, wrong).is_err());
        }
        assert!(Answered::decode(&[1], &[0; 16]).is_err());
    }
}
