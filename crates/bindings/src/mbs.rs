//! The binding of a multicast or broadcast session (TS 29.521 §5.6.2.12).

use std::net::Ipv6Addr;

use model::Ipv6Prefix;
use records::{DecodeError, Index, IndexKeys, IndexSchema, Key, Record, TableSchema};
use serde_json::Value;

use super::Document;

/// A binding of an MBS session.
#[derive(Clone, Debug, PartialEq)]
pub struct MbsBinding(pub Document);

impl MbsBinding {
    /// By the identities in `mbsSessionId`. A session has one binding.
    pub const SESSION: Index = Index(0);

    /// Keys of an MBS session: of its TMGI and of its source specific multicast address, each of which identifies it.
    pub fn session_keys(id: &Value) -> impl Iterator<Item = Key> {
        let nid = text(id, "/nid");
        let tmgi = id.get("tmgi").map(|tmgi| {
            let [service, mcc, mnc] =
                ["/mbsServiceId", "/plmnId/mcc", "/plmnId/mnc"].map(|name| text(tmgi, name));
            format!("tmgi {service} {mcc} {mnc} {nid}")
        });
        let ssm = id.get("ssm").map(|ssm| {
            let [source, group] = ["/sourceIpAddr", "/destIpAddr"].map(|side| address(ssm, side));
            format!("ssm {source} {group} {nid}")
        });
        tmgi.into_iter()
            .chain(ssm)
            .map(|key| Key::from_slice(key.as_bytes()))
    }

    /// Whether this is the binding of the session with that identity: all keys that both have agree.
    #[must_use]
    pub fn is_of(&self, id: &Value) -> bool {
        let Some(own) = self.0.member("mbsSessionId") else {
            return false;
        };
        let differs = |name: &str| {
            let part = |of: &Value| {
                let one = serde_json::json!({"nid": of.get("nid"), name: of.get(name)?});
                Self::session_keys(&one).next()
            };
            matches!((part(own), part(id)), (Some(own), Some(wanted)) if own != wanted)
        };
        !differs("tmgi") && !differs("ssm")
    }
}

fn text(value: &Value, pointer: &str) -> String {
    let text = value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    text.to_ascii_lowercase()
}

/// An `IpAddr` (TS 29.571 §5.2.4) in one spelling: an IPv6 address has many (RFC 4291 §2.2).
fn address(ssm: &Value, side: &str) -> String {
    let member = |kind: &str| text(ssm, &format!("{side}/{kind}"));
    let (v6, prefix) = (member("ipv6Addr"), member("ipv6Prefix"));
    let v6 = v6.parse::<Ipv6Addr>().map_or(v6, |address| address.to_string());
    let prefix = prefix.parse::<Ipv6Prefix>().map_or(prefix, |prefix| {
        format!("{}/{}", prefix.address(), prefix.length())
    });
    [member("ipv4Addr"), v6, prefix].concat()
}

impl Record for MbsBinding {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "pcf_mbs_binding",
        indexes: &[IndexSchema::unique("mbs_session").multi()],
        by_modified: true,
        sql: None,
    };

    fn key(&self) -> Key {
        self.0.key()
    }

    fn index(&self, keys: &mut IndexKeys) {
        if let Some(id) = self.0.member("mbsSessionId") {
            Self::session_keys(id).for_each(|key| keys.add(Self::SESSION, &key));
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        Document::decode(key, value).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BindingId;
    use serde_json::json;

    fn ssm(group: &str) -> Value {
        json!({"sourceIpAddr": {"ipv6Addr": "2001:db8::7"}, "destIpAddr": {"ipv6Addr": group}})
    }

    #[test]
    fn one_key_however_an_address_is_written() {
        let keys = |group: &str| MbsBinding::session_keys(&json!({"ssm": ssm(group)})).collect::<Vec<_>>();
        for spelling in ["ff3e:0:0:0:0:0:0:1", "FF3E::1", "ff3e:0000::0001"] {
            assert_eq!(keys(spelling), keys("ff3e::1"), "{spelling}");
        }
        assert_ne!(keys("ff3e::2"), keys("ff3e::1"));
        let of = |prefix: &str| json!({"ssm": {"sourceIpAddr": {"ipv6Prefix": prefix}, "destIpAddr": {"ipv4Addr": "232.0.0.1"}}});
        let prefix = |text: &str| MbsBinding::session_keys(&of(text)).collect::<Vec<_>>();
        assert_eq!(prefix("2001:DB8:0:0::/64"), prefix("2001:db8::/64"));
        assert_ne!(prefix("2001:db8::/64"), prefix("2001:db8::/63"));
    }

    #[test]
    fn each_identity_leads_to_the_session() {
        let tmgi = |service: &str| json!({"mbsServiceId": service, "plmnId": {"mcc": "001", "mnc": "01"}});
        let both = json!({"tmgi": tmgi("00000a"), "ssm": ssm("ff3e::1")});
        let held = MbsBinding(Document::new(
            BindingId([0; 16]),
            json!({"mbsSessionId": both}),
            true,
        ));
        assert!(held.is_of(&both));
        assert!(held.is_of(&json!({"tmgi": tmgi("00000A")})));
        assert!(held.is_of(&json!({"ssm": ssm("FF3E::1")})));
        assert!(!held.is_of(&json!({"tmgi": tmgi("00000b")})));
        assert!(!held.is_of(&json!({"tmgi": tmgi("00000a"), "ssm": ssm("ff3e::2")})));
        assert!(!held.is_of(&json!({"tmgi": tmgi("00000a"), "nid": "0000000000a"})));
    }
}
