//! The binding of a multicast or broadcast session (TS 29.521 §5.6.2.12).

use serde_json::Value;
use store::{DecodeError, Index, IndexKeys, IndexSchema, Key, Record, TableSchema};

use super::Document;

/// A binding of an MBS session.
#[derive(Clone, Debug, PartialEq)]
pub struct MbsBinding(pub Document);

impl MbsBinding {
    /// By `mbsSessionId`. A session has one binding.
    pub const SESSION: Index = Index(0);

    /// Key of an MBS session's identity.
    #[must_use]
    pub fn session_key(id: &Value) -> Key {
        let text = |pointer: &str| {
            let value = id.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            value.to_ascii_lowercase()
        };
        let address = |side: &str| {
            ["ipv4Addr", "ipv6Addr", "ipv6Prefix"]
                .map(|kind| text(&format!("/ssm/{side}/{kind}")))
                .concat()
        };
        let key = format!(
            "{} {} {} {} {} {}",
            text("/tmgi/mbsServiceId"),
            text("/tmgi/plmnId/mcc"),
            text("/tmgi/plmnId/mnc"),
            text("/nid"),
            address("sourceIpAddr"),
            address("destIpAddr")
        );
        Key::from_slice(key.as_bytes())
    }
}

impl Record for MbsBinding {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "pcf_mbs_binding",
        indexes: &[IndexSchema::unique("session")],
        by_modified: true,
        sql: None,
    };

    fn key(&self) -> Key {
        self.0.key()
    }

    fn index(&self, keys: &mut IndexKeys) {
        if let Some(id) = self.0.member("mbsSessionId") {
            keys.add(Self::SESSION, &Self::session_key(id));
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        Document::decode(key, value).map(Self)
    }
}
