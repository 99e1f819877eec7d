//! A policy session as JSON of some 12 KB, found by seven keys.

use store::{DecodeError, Index, IndexKeys, IndexSchema, Key, Record, TableSchema};

/// A policy session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Policy {
    pub(crate) number: u64,
    pub(crate) value: Vec<u8>,
}

pub(crate) const KEYS: u8 = 7;

/// Text that differs with the number, and has nothing that repeats.
fn noise(number: u64) -> String {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let other = mixed.rotate_left(23).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    format!("{:016x}{other:016x}", mixed ^ (mixed >> 29))
}

impl Policy {
    /// The session of a number after this many changes, each of which was one of its rules; about 360 bytes a rule.
    pub(crate) fn new(number: u64, changes: u64, rules: u64) -> Self {
        use std::fmt::Write as _;
        let mut text =
            format!("{{\"supi\":\"imsi-{number:015}\",\"gpsi\":\"msisdn-{number:012}\",\"pccRules\":{{");
        for rule in 0..rules {
            let change = (changes + rules - 1 - rule) / rules;
            let own = noise(number << 20 | change << 10 | rule);
            let comma = if rule == 0 { "" } else { "," };
            // A text takes what is written to it.
            let _ = write!(
                text,
                "{comma}\"{own}\":{{\"pccRuleId\":\"{own}\",\"precedence\":{},\"appId\":\"app-{rule}\",\"flowInfos\":[{{\
                 \"flowDescription\":\"permit out ip from 10.{}.{}.0/24 to assigned\",\"flowDirection\":\"BIDIRECTIONAL\",\
                 \"packetFilterUsage\":true}}],\"refQosData\":[\"qos-{rule}\"],\"refChgData\":[\"chg-{}\"],\
                 \"refUmData\":null,\"easRedisInd\":false}}",
                number % 255,
                rule % 200,
                change % 250,
                rule % 7
            );
        }
        let _ = write!(text, "}},\"changes\":{changes}}}");
        Self {
            number,
            value: text.into_bytes(),
        }
    }

    /// The key of an index, 34 bytes.
    pub(crate) fn index_key(number: u64, index: u8) -> String {
        format!("{index}-{}", noise(number + u64::from(index) * 1_000_000_007))
    }

    pub(crate) fn id(number: u64) -> [u8; 8] {
        number.to_be_bytes()
    }
}

impl Record for Policy {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "policy",
        indexes: &[
            IndexSchema::unique("supi"),
            IndexSchema::many("gpsi"),
            IndexSchema::many("ipv4"),
            IndexSchema::many("ipv6"),
            IndexSchema::many("binding"),
            IndexSchema::many("notify"),
            IndexSchema::many("charging"),
        ],
        by_modified: true,
        sql: None,
    };

    fn key(&self) -> Key {
        Key::from_slice(&Self::id(self.number))
    }

    fn index(&self, keys: &mut IndexKeys) {
        for index in 0..KEYS {
            keys.add(Index(index), Self::index_key(self.number, index).as_bytes());
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.value);
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        let number = key
            .try_into()
            .map_err(|_| DecodeError("a key of 8 bytes".to_owned()))?;
        Ok(Self {
            number: u64::from_be_bytes(number),
            value: value.to_vec(),
        })
    }
}
