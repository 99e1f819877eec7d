//! The word of one router to others on the same database that it chooses a server for a subscriber now.

use store::{DecodeError, Index, IndexKeys, IndexSchema, Key, Record, TableSchema};

/// A reservation: while it stands, other routers choose no server for this subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// As [`binding_key`](crate::binding_key).
    pub key: Vec<u8>,
    /// Which router.
    pub owner: u64,
    /// When it is void, in microseconds since 1970.
    pub expires: u64,
}

impl Record for Reservation {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "sbr_reservation",
        indexes: &[IndexSchema::many("expiry").ordered()],
        by_modified: false,
        sql: None,
    };
    const EXPIRY: Option<Index> = Some(Index(0));

    fn key(&self) -> Key {
        Key::from_slice(&self.key)
    }

    fn index(&self, _: &mut IndexKeys) {}

    fn expires(&self) -> Option<u64> {
        Some(self.expires)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.owner.to_be_bytes());
        out.extend(self.expires.to_be_bytes());
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        let words = value.split_first_chunk::<8>();
        let words = words.and_then(|(owner, rest)| Some((owner, <&[u8; 8]>::try_from(rest).ok()?)));
        let (owner, expires) = words.ok_or_else(|| DecodeError("16 bytes are expected".to_owned()))?;
        Ok(Self {
            key: key.to_vec(),
            owner: u64::from_be_bytes(*owner),
            expires: u64::from_be_bytes(*expires),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let one = Reservation {
            key: b"1/all".to_vec(),
            owner: 7,
            expires: 9,
        };
        let mut bytes = Vec::new();
        one.encode(&mut bytes);
        assert_eq!(Reservation::decode(&one.key(), &bytes), Ok(one));
        assert!(Reservation::decode(b"1", &bytes[1..]).is_err());
    }
}
