//! The binding of a UE: which PCF has its access and mobility policy (TS 29.521 §5.6.2.9).

use records::{DecodeError, Index, IndexKeys, IndexSchema, Key, Record, TableSchema};

use super::Document;
use super::document::identity_key;

/// A binding of a UE.
#[derive(Clone, Debug, PartialEq)]
pub struct UeBinding(pub Document);

impl UeBinding {
    /// By `supi`.
    pub const SUPI: Index = Index(0);
    /// By `gpsi`.
    pub const GPSI: Index = Index(1);
}

impl Record for UeBinding {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "pcf_ue_binding",
        indexes: &[IndexSchema::many("supi"), IndexSchema::many("gpsi")],
        by_modified: true,
        sql: None,
    };

    fn key(&self) -> Key {
        self.0.key()
    }

    fn index(&self, keys: &mut IndexKeys) {
        for (index, name) in [(Self::SUPI, "supi"), (Self::GPSI, "gpsi")] {
            if let Some(identity) = self.0.text_of(name) {
                keys.add(index, &identity_key(identity));
            }
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        Document::decode(key, value).map(Self)
    }
}
