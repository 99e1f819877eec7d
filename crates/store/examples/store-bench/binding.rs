//! A record of the size and with the keys of a PCF binding (TS 29.521 §5.6.2.2).

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use store::{DecodeError, Index, IndexKeys, IndexSchema, Key, Record, TableSchema};

/// Bytes that a value has at least.
pub(crate) static LARGE: AtomicUsize = AtomicUsize::new(0);

/// A binding, numbered; everything else follows from the number.
pub(crate) struct Binding {
    pub(crate) number: u64,
}

impl Binding {
    pub(crate) const IPV4: Index = Index(0);
    pub(crate) const SUPI: Index = Index(1);

    pub(crate) fn new(number: u64) -> Binding {
        Binding { number }
    }

    pub(crate) fn ipv4(number: u64) -> [u8; 4] {
        // Spread, as pools of several UPFs are: neighbours in time are not neighbours in the index.
        (number as u32).wrapping_mul(0x9e37_79b1).to_be_bytes()
    }

    /// Two sessions per subscriber, like the guide's 32 M subscribers with 64 M sessions.
    pub(crate) fn supi(number: u64) -> String {
        format!("imsi-00101{:010}", number / 2)
    }

    fn gpsi(number: u64) -> String {
        format!("msisdn-1555{:09}", number / 2)
    }

    /// A random-looking 16-byte identity, as a binding's UUID is.
    pub(crate) fn id(number: u64) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&mix(number).to_be_bytes());
        bytes[8..].copy_from_slice(&mix(number ^ 0x5bd1_e995).to_be_bytes());
        bytes
    }
}

/// The finaliser of splitmix64: a permutation, so identities do not collide.
pub(crate) fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Record for Binding {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "binding",
        indexes: &[
            IndexSchema::many("ipv4"),
            IndexSchema::many("supi"),
            IndexSchema::many("gpsi"),
        ],
        by_modified: true,
        sql: None,
    };

    fn key(&self) -> Key {
        Key::from_slice(&Binding::id(self.number))
    }

    fn index(&self, keys: &mut IndexKeys) {
        keys.add(Binding::IPV4, &Binding::ipv4(self.number));
        keys.add(Binding::SUPI, Binding::supi(self.number).as_bytes());
        keys.add(Index(2), Binding::gpsi(self.number).as_bytes());
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let [a, b, c, d] = Binding::ipv4(self.number);
        let pcf = self.number % 16;
        let text = format!(
            "{{\"supi\":\"{}\",\"gpsi\":\"{}\",\"ipv4Addr\":\"{a}.{b}.{c}.{d}\",\"ipDomain\":\"pool{}\",\
             \"dnn\":\"internet\",\"snssai\":{{\"sst\":1,\"sd\":\"000001\"}},\
             \"pcfId\":\"6f1c7a52-0000-4000-8000-0000000000{pcf:02x}\",\"pcfSetId\":\"set1.pcfset.5gc.mnc001.mcc001\",\
             \"pcfFqdn\":\"pcf{pcf}.5gc.mnc001.mcc001.3gppnetwork.org\",\"pcfDiamHost\":\"pcf{pcf}.epc.mnc001.mcc001\",\
             \"pcfDiamRealm\":\"epc.mnc001.mcc001\"}}#{}",
            Binding::supi(self.number),
            Binding::gpsi(self.number),
            self.number % 8,
            self.number,
        );
        // As large as a policy session, with what its rules have that no other one has.
        let mut filling = self.number;
        while out.len() + text.len() < LARGE.load(Relaxed) {
            filling = mix(filling);
            out.extend_from_slice(
                format!(
                    "{{\"pccRuleId\":\"rule-{filling:016x}\",\"precedence\":{}}}",
                    filling % 256
                )
                .as_bytes(),
            );
        }
        out.extend_from_slice(text.as_bytes());
    }

    fn decode(_key: &[u8], value: &[u8]) -> Result<Binding, DecodeError> {
        let text = std::str::from_utf8(value).map_err(|error| DecodeError(error.to_string()))?;
        let number = text.rsplit('#').next().and_then(|number| number.parse().ok());
        number
            .map(Binding::new)
            .ok_or_else(|| DecodeError("no number".to_owned()))
    }
}
