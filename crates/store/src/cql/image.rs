//! Rows as the cluster keeps them: the committed image of a record, and what a transaction is about to make of it.

use std::sync::Arc;

use crate::engine::Row;
use crate::record::{IndexKeys, TableDef};
use crate::schema::IndexSchema;
use crate::version::Version;

/// A key under which a record can be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HeldKey {
    /// Which index, see [`tag`].
    pub(super) tag: u32,
    /// The version with which the record got the key: a part of the key of the index entry, so that the removal of an
    /// earlier entry never removes a later one.
    pub(super) entry: u64,
    pub(super) key: Vec<u8>,
}

/// The tag of an index: the checksum of its name and kind, which stays when releases number indexes in another order.
pub(super) fn tag(index: &IndexSchema) -> u32 {
    let (unique, ordered) = (u8::from(index.unique), u8::from(index.ordered));
    crc32fast::hash(&[index.name.as_bytes(), &[unique, ordered]].concat())
}

/// The order by modification is an index like others; no index has this name, which is not plain.
pub(super) const MODIFIED: IndexSchema = IndexSchema::many("-modified").ordered();

/// A record, or the claim of a unique key, whose value is the primary key of its holder.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Image {
    pub(super) version: Version,
    pub(super) created: u64,
    pub(super) site: Arc<str>,
    pub(super) value: Vec<u8>,
    pub(super) keys: Vec<HeldKey>,
}

impl Image {
    pub(super) fn holds(&self, tag: u32, key: &[u8], entry: Option<u64>) -> bool {
        let same = |held: &HeldKey| held.tag == tag && held.key == key;
        self.keys
            .iter()
            .any(|held| same(held) && entry.is_none_or(|entry| entry == held.entry))
    }

    /// The key of the index of expiry, which has this tag.
    pub(super) fn expiry(&self, tag: Option<u32>) -> Option<&[u8]> {
        let held = self.keys.iter().find(|held| Some(held.tag) == tag)?;
        Some(&held.key)
    }

    pub(super) fn row(self, key: Vec<u8>) -> Row {
        Row {
            key,
            version: self.version,
            created: self.created,
            site: self.site,
            value: self.value,
        }
    }
}

/// The keys of a record that is written now; those that it had before keep their entries.
pub(super) fn keys_of(
    def: &TableDef,
    keys: &IndexKeys,
    version: Version,
    before: Option<&Image>,
) -> Vec<HeldKey> {
    let before = before.map(|image| image.keys.as_slice()).unwrap_or_default();
    let own = keys.iter().filter_map(|(index, key)| {
        let tag = tag(def.schema.indexes.get(usize::from(index.0))?);
        let earlier = before.iter().find(|held| held.tag == tag && held.key == key);
        Some(HeldKey {
            tag,
            entry: earlier.map_or(version.0, |held| held.entry),
            key: key.to_vec(),
        })
    });
    let mut all: Vec<HeldKey> = own.collect();
    if def.schema.by_modified {
        all.push(HeldKey {
            tag: tag(&MODIFIED),
            entry: version.0,
            key: version.0.to_be_bytes().to_vec(),
        });
    }
    all
}

/// Keys as one value: for each the tag, the entry, the length and the bytes, in big endian.
pub(super) fn encode_keys(keys: &[HeldKey]) -> Vec<u8> {
    let mut out = Vec::with_capacity(keys.iter().map(|held| 14 + held.key.len()).sum());
    for held in keys {
        out.extend_from_slice(&held.tag.to_be_bytes());
        out.extend_from_slice(&held.entry.to_be_bytes());
        // Keys have at most `MAX_KEY` bytes, checked when the batch was made.
        out.extend_from_slice(&(held.key.len() as u16).to_be_bytes());
        out.extend_from_slice(&held.key);
    }
    out
}

fn decode_keys(mut bytes: &[u8]) -> Option<Vec<HeldKey>> {
    let mut keys = Vec::new();
    while !bytes.is_empty() {
        let (tag, rest) = bytes.split_first_chunk::<4>()?;
        let (entry, rest) = rest.split_first_chunk::<8>()?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let (key, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        keys.push(HeldKey {
            tag: u32::from_be_bytes(*tag),
            entry: u64::from_be_bytes(*entry),
            key: key.to_vec(),
        });
        bytes = rest;
    }
    Some(keys)
}

/// What a transaction does to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Put,
    Delete,
    /// The row stays as it is: it is locked for a condition.
    Keep,
}

impl Kind {
    pub(super) fn code(self) -> i8 {
        match self {
            Kind::Put => 1,
            Kind::Delete => 2,
            Kind::Keep => 3,
        }
    }
}

/// A transaction that is about to change a row.
#[derive(Clone, Debug)]
pub(super) struct Intent {
    pub(super) transaction: Vec<u8>,
    pub(super) kind: Kind,
    pub(super) image: Option<Image>,
}

/// A row.
#[derive(Clone, Debug)]
pub(super) struct Loaded {
    pub(super) key: Vec<u8>,
    pub(super) image: Option<Image>,
    /// The version that the current one has replaced.
    pub(super) prior: Option<Version>,
    pub(super) intent: Option<Intent>,
}

impl Loaded {
    pub(super) fn absent(key: &[u8]) -> Loaded {
        Loaded {
            key: key.to_vec(),
            image: None,
            prior: None,
            intent: None,
        }
    }

    pub(super) fn version(&self) -> Option<Version> {
        self.image.as_ref().map(|image| image.version)
    }

    /// The row once its transaction is committed.
    pub(super) fn after(self) -> Option<Image> {
        match self.intent {
            Some(intent) if intent.kind != Kind::Keep => intent.image,
            _ => self.image,
        }
    }
}

/// The columns of [`COLUMNS`].
pub(super) type Columns = (
    Vec<u8>,
    Option<i64>,
    Option<i64>,
    Option<String>,
    Option<Vec<u8>>,
    Option<Vec<u8>>,
    Option<i64>,
    Option<Vec<u8>>,
    Option<i8>,
    Option<i64>,
    Option<i64>,
    Option<String>,
    Option<Vec<u8>>,
    Option<Vec<u8>>,
);

pub(super) const COLUMNS: &str = "id, version, created, site, value, keys, prior, \
     tx, n_kind, n_version, n_created, n_site, n_value, n_keys";

/// Versions and times are kept as `bigint`; they stay below 2^63 until the year 2255.
pub(super) fn signed(number: u64) -> i64 {
    number.cast_signed()
}

/// The row of these columns, or what is wrong with them.
pub(super) fn load(columns: Columns, intern: impl Fn(String) -> Arc<str>) -> Result<Loaded, String> {
    let (
        key,
        version,
        created,
        site,
        value,
        keys,
        prior,
        tx,
        kind,
        n_version,
        n_created,
        n_site,
        n_value,
        n_keys,
    ) = columns;
    let image = |version: Option<i64>,
                 created: Option<i64>,
                 site: Option<String>,
                 value: Option<Vec<u8>>,
                 keys: Option<Vec<u8>>| {
        version
            .map(|version| {
                let keys = decode_keys(&keys.unwrap_or_default())
                    .ok_or("its index keys cannot be read".to_owned())?;
                Ok::<_, String>(Image {
                    version: Version(version.cast_unsigned()),
                    created: created.unwrap_or_default().cast_unsigned(),
                    site: intern(site.unwrap_or_default()),
                    value: value.unwrap_or_default(),
                    keys,
                })
            })
            .transpose()
    };
    let kind = match kind {
        Some(1) => Kind::Put,
        Some(2) => Kind::Delete,
        _ => Kind::Keep,
    };
    let next = image(n_version, n_created, n_site, n_value, n_keys)?;
    Ok(Loaded {
        key,
        image: image(version, created, site, value, keys)?,
        prior: prior.map(|prior| Version(prior.cast_unsigned())),
        intent: tx.map(|transaction| Intent {
            transaction,
            kind,
            image: next,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_survive_their_encoding_and_cut_ones_are_refused() {
        let keys: Vec<HeldKey> = [b"".as_slice(), b"10.0.0.1", &[0xff; 512]]
            .iter()
            .map(|key| HeldKey {
                tag: tag(&IndexSchema::unique("address")),
                entry: u64::MAX - 1,
                key: key.to_vec(),
            })
            .collect();
        let bytes = encode_keys(&keys);
        assert_eq!(decode_keys(&bytes), Some(keys));
        for end in [1, 13, bytes.len() - 1] {
            assert_eq!(decode_keys(&bytes[..end]), None, "{end} bytes");
        }
    }
}
