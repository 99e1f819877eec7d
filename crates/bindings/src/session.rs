//! The binding of a PDU session: who has its policy (TS 29.521 §5.6.2.2).

use std::collections::BTreeSet;
use std::net::IpAddr;

use model::Ipv6Prefix;
use records::{
    DecodeError, Index, IndexKeys, IndexSchema, Key, Record, SqlColumn, SqlIndex, SqlMapping, SqlValue,
    TableSchema,
};
use serde_json::Value;

use super::document::identity_key;
use super::{Document, Form, Place};

/// A binding of a PDU session.
#[derive(Clone, Debug, PartialEq)]
pub struct PcfBinding(pub Document);

impl PcfBinding {
    /// By `ipv4Addr`.
    pub const IPV4: Index = Index(0);
    /// By `ipv6Prefix`.
    pub const IPV6: Index = Index(1);
    /// By `macAddr48`.
    pub const MAC: Index = Index(2);
    /// By `supi`.
    pub const SUPI: Index = Index(3);
    /// By `gpsi`.
    pub const GPSI: Index = Index(4);
    /// By further prefixes, further MAC addresses and framed routes.
    pub const FURTHER: Index = Index(5);

    /// By `pcfId`, in parts: many bindings have one PCF, and few records may share a key.
    pub const PCF: Index = Index(6);

    /// Key in [`PcfBinding::PCF`] of a part of the bindings of a PCF: those whose identity ends in this number. None where
    /// `pcfId` is not a UUID.
    #[must_use]
    pub fn pcf_key(pcf_id: &str, part: u16) -> Option<Key> {
        let pcf_id = uuid::Uuid::try_parse(pcf_id).ok()?;
        let mut key = Key::from_slice(pcf_id.as_bytes());
        key.extend(part.to_be_bytes());
        Some(key)
    }

    /// Key of a subscriber in [`PcfBinding::SUPI`] and [`PcfBinding::GPSI`].
    #[must_use]
    pub fn identity_key(identity: &str) -> Key {
        identity_key(identity)
    }

    fn ipv4(&self) -> Option<Place> {
        let address = self.0.text_of("ipv4Addr")?.parse().ok()?;
        Some(Place::V4(address, 32))
    }

    fn ipv6(&self) -> Option<Place> {
        self.0.text_of("ipv6Prefix").and_then(prefix)
    }

    fn mac(&self) -> Option<Place> {
        self.0.text_of("macAddr48").and_then(Place::mac)
    }

    /// Further prefixes, MAC addresses and framed routes.
    pub fn further(&self) -> impl Iterator<Item = Place> + '_ {
        let document = &self.0;
        let prefixes = ["addIpv6Prefixes", "ipv6FrameRouteList"]
            .into_iter()
            .flat_map(|name| document.texts_of(name))
            .filter_map(prefix);
        let macs = document.texts_of("addMacAddrs").filter_map(Place::mac);
        let routes = document.texts_of("ipv4FrameRouteList").filter_map(Place::route4);
        prefixes.chain(macs).chain(routes)
    }

    /// The forms of its addresses, which the store must know for the binding to be found by them.
    pub fn forms(&self) -> impl Iterator<Item = Form> + '_ {
        let own = self.ipv6().and_then(|place| match place {
            Place::V6(prefix) => Some(Form::V6(prefix.length())),
            _ => None,
        });
        let further = self.further().map(|place| match place {
            Place::V4(_, length) => Form::RouteV4(length),
            Place::V6(prefix) => Form::FurtherV6(prefix.length()),
            Place::Mac(_) => Form::FurtherMac,
        });
        own.into_iter().chain(further)
    }

    /// Whether two bindings name the same PCF.
    #[must_use]
    pub fn same_pcf(&self, other: &PcfBinding) -> bool {
        [
            "pcfId",
            "pcfSmFqdn",
            "pcfFqdn",
            "pcfDiamHost",
            "pcfSmIpEndPoints",
            "pcfIpEndPoints",
        ]
        .into_iter()
        // The first that both have decides.
        .find(|name| self.0.member(name).is_some() && other.0.member(name).is_some())
        .is_some_and(|name| {
            let members = (self.0.member(name), other.0.member(name));
            matches!(members, (Some(own), Some(other)) if same_address(own, other))
        })
    }
}

/// Whether two members name the same: UUIDs and domain names are compared without regard to case (RFC 9562 §4, RFC 4343),
/// end points by what they mean and in any order.
fn same_address(own: &Value, other: &Value) -> bool {
    match (own, other) {
        (Value::String(own), Value::String(other)) => {
            let name = |text: &str| text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
            name(own) == name(other)
        }
        (Value::Array(own), Value::Array(other)) => {
            let points = |list: &[Value]| list.iter().map(end_point).collect::<BTreeSet<_>>();
            points(own) == points(other)
        }
        _ => own == other,
    }
}

/// An `IpEndPoint` (TS 29.510 §6.1.6.2.5) in one spelling. Without `transport` it is TCP.
fn end_point(value: &Value) -> (Option<IpAddr>, String, Option<u64>) {
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let address = text("ipv4Address").or_else(|| text("ipv6Address"));
    (
        address.and_then(|address| address.parse().ok()),
        text("transport").unwrap_or("TCP").to_ascii_uppercase(),
        value.get("port").and_then(Value::as_u64),
    )
}

fn prefix(text: &str) -> Option<Place> {
    text.parse::<Ipv6Prefix>().ok().map(Place::V6)
}

impl Record for PcfBinding {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "pcf_binding",
        indexes: &[
            IndexSchema::many("ipv4_addr"),
            IndexSchema::many("ipv6_prefix"),
            IndexSchema::many("mac_addr_48"),
            IndexSchema::many("supi"),
            IndexSchema::many("gpsi"),
            IndexSchema::many("further_address").multi(),
            IndexSchema::many("pcf_id"),
        ],
        by_modified: true,
        sql: Some(&COLUMNS),
    };

    fn key(&self) -> Key {
        self.0.key()
    }

    fn index(&self, keys: &mut IndexKeys) {
        for (index, place) in [
            (Self::IPV4, self.ipv4()),
            (Self::IPV6, self.ipv6()),
            (Self::MAC, self.mac()),
        ] {
            if let Some(place) = place {
                keys.add(index, &place.key());
            }
        }
        for (index, name) in [(Self::SUPI, "supi"), (Self::GPSI, "gpsi")] {
            if let Some(identity) = self.0.text_of(name) {
                keys.add(index, &identity_key(identity));
            }
        }
        for place in self.further() {
            keys.add(Self::FURTHER, &place.further_key());
        }
        let [.., high, low] = self.0.id.0;
        let part = u16::from_be_bytes([high, low]);
        if let Some(key) = self.0.text_of("pcfId").and_then(|id| Self::pcf_key(id, part)) {
            keys.add(Self::PCF, &key);
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        Document::decode(key, value).map(Self)
    }

    fn columns(&self, out: &mut Vec<SqlValue>) {
        let slice = self.0.member("snssai");
        let sd = slice.and_then(|slice| slice.get("sd")).and_then(Value::as_str);
        let sst = slice.and_then(|slice| slice.get("sst")).and_then(Value::as_i64);
        let audited = self.0.audited();
        out.extend([
            short(self.0.text_of("ipDomain")),
            short(self.0.text_of("dnn")),
            short(sd),
            sst.map_or(SqlValue::Null, SqlValue::Int),
            SqlValue::Int(audited.map_or(0, |audited| i64::from(audited.attempts))),
            audited.map_or(SqlValue::Null, |audited| date_time(audited.at)),
        ]);
    }
}

/// Text for a column that people read: nothing that the column cannot hold.
fn short(text: Option<&str>) -> SqlValue {
    const WIDTH: usize = 128;
    let plain = |text: &str| text.chars().filter(|c| c.len_utf8() < 4).take(WIDTH).collect();
    text.map_or(SqlValue::Null, |text| SqlValue::Text(plain(text)))
}

/// A time as a database reads it, in UTC.
fn date_time(micros: u64) -> SqlValue {
    let seconds = i64::try_from(micros / 1_000_000).unwrap_or(i64::MAX);
    let format = time::macros::format_description!("[year]-[month]-[day] [hour]:[minute]:[second]");
    let text = time::OffsetDateTime::from_unix_timestamp(seconds)
        .ok()
        .and_then(|time| time.format(format).ok());
    text.map_or(SqlValue::Null, SqlValue::Text)
}

const fn index(name: &'static str, key_name: &'static str, to_sql: fn(&[u8]) -> SqlValue) -> SqlIndex {
    SqlIndex {
        column: SqlColumn {
            name,
            sql_type: "varchar(64)",
        },
        key_name,
        to_sql,
    }
}

const fn column(name: &'static str, sql_type: &'static str) -> SqlColumn {
    SqlColumn { name, sql_type }
}

fn identity_text(key: &[u8]) -> SqlValue {
    SqlValue::Text(String::from_utf8_lossy(key).into_owned())
}

/// `6f1c7a52-0000-4000-8000-000000000001/0a2f`: the PCF, and the part.
fn pcf_text(key: &[u8]) -> SqlValue {
    let text = key.split_first_chunk::<16>().map(|(id, part)| {
        let part = part.iter().fold(0_u32, |part, byte| part << 8 | u32::from(*byte));
        format!("{}/{part:04x}", uuid::Uuid::from_bytes(*id).hyphenated())
    });
    text.map_or(SqlValue::Null, SqlValue::Text)
}

/// The table as databases show it: the binding schema that operators' tools know.
static COLUMNS: SqlMapping = SqlMapping {
    id: column("binding_id", "binary(16)"),
    indexes: &[
        index("ipv4_addr", "idx_ipv4Addr", |key| {
            SqlValue::Text(Place::v4_text(key))
        }),
        index("ipv6_prefix", "idx_ipv6Prefix", |key| {
            SqlValue::Text(Place::v6_text(key))
        }),
        index("mac_addr_48", "idx_macAddr48", |key| {
            SqlValue::Text(Place::mac_text(key))
        }),
        index("supi", "idx_supi", identity_text),
        index("gpsi", "idx_gpsi", identity_text),
        index("further_address", "idx_further_address", |key| {
            SqlValue::Text(Place::further_text(key))
        }),
        index("pcf_id", "idx_pcf_id", pcf_text),
    ],
    value: "json_content",
    created: "created_date_time",
    modified: "last_access_timestamp",
    extra: &[
        column("ip_domain", "varchar(128)"),
        column("dnn", "varchar(128)"),
        column("snssai_sd", "varchar(64)"),
        column("snssai_sst", "int"),
        column("audit_attempts", "bigint unsigned"),
        column("last_audited_date_time", "datetime"),
    ],
    keys: &[
        ("idx_created_date_time", "created_date_time"),
        ("idx_audit_datetime", "last_audited_date_time"),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BindingId;
    use serde_json::json;

    #[test]
    fn a_binding_is_under_its_pcf_in_any_spelling_and_under_none_where_that_is_no_uuid() {
        let keys = |pcf_id: Value| {
            let mut keys = IndexKeys::default();
            PcfBinding(Document::new(BindingId([7; 16]), json!({"pcfId": pcf_id}), true)).index(&mut keys);
            keys.iter()
                .map(|(index, key)| (index, key.to_vec()))
                .collect::<Vec<_>>()
        };
        let id = "6f1c7a52-0000-4000-8000-00000000000a";
        let expected = PcfBinding::pcf_key(id, 0x0707).unwrap();
        assert_eq!(keys(json!(id)), [(PcfBinding::PCF, expected.to_vec())]);
        assert_eq!(keys(json!(id.to_uppercase())), keys(json!(id)));
        assert!(keys(json!("pcf1")).is_empty() && keys(json!(null)).is_empty());
        assert_eq!(pcf_text(&expected), SqlValue::Text(format!("{id}/0707")));
    }

    #[test]
    fn the_same_pcf_in_other_spellings() {
        let binding = |value: Value| PcfBinding(Document::new(BindingId([0; 16]), value, true));
        let point = |address: &str, port: u16| json!({"ipv6Address": address, "port": port});
        for (own, other, same) in [
            (
                json!({"pcfId": "6f1c7a52-0000-4000-8000-00000000000a"}),
                json!({"pcfId": "6F1C7A52-0000-4000-8000-00000000000A"}),
                true,
            ),
            (
                json!({"pcfId": "6f1c7a52-0000-4000-8000-00000000000a"}),
                json!({"pcfId": "6f1c7a52-0000-4000-8000-00000000000b"}),
                false,
            ),
            (
                json!({"pcfSmFqdn": "sm.pcf.example.org"}),
                json!({"pcfSmFqdn": "SM.PCF.example.org."}),
                true,
            ),
            (
                json!({"pcfDiamHost": "a.example.org"}),
                json!({"pcfDiamHost": "b.example.org"}),
                false,
            ),
            (
                json!({"pcfIpEndPoints": [point("2001:db8::1", 80), point("2001:db8::2", 80)]}),
                json!({"pcfIpEndPoints": [point("2001:DB8:0::2", 80), point("2001:db8:0:0::1", 80)]}),
                true,
            ),
            (
                json!({"pcfIpEndPoints": [point("2001:db8::1", 80)]}),
                json!({"pcfIpEndPoints": [point("2001:db8::1", 81)]}),
                false,
            ),
            (
                json!({"pcfIpEndPoints": [{"ipv4Address": "10.0.0.1"}]}),
                json!({"pcfIpEndPoints": [{"ipv4Address": "10.0.0.1", "transport": "TCP"}]}),
                true,
            ),
        ] {
            assert_eq!(
                binding(own.clone()).same_pcf(&binding(other.clone())),
                same,
                "{own} {other}"
            );
        }
    }
}
