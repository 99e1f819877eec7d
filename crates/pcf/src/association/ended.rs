//! AF sessions that ended with the session of their UE: their AFs, which are notified of it, terminate them as well (STR,
//! TS 29.214 §4.4.6.1; delete, TS 29.514 §4.2.5.3), and that succeeds, at whichever PCF of the store and after a restart. No IO.

use std::time::Duration;

use store::{DecodeError, Index, IndexKeys, IndexSchema, Key, Record, TableSchema};

use super::{Association, address, af};

/// Time for an AF to terminate its session, after which the record expires.
const WITHIN: Duration = Duration::from_secs(120);

/// An AF session that ended with the session of its UE; written in one batch with that end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedSession {
    /// Its name ([`af::ended_name`]); the key of the record.
    pub name: String,
    /// When the record expires, in microseconds since 1970.
    pub expires: u64,
}

impl EndedSession {
    /// Those of an association that ends now, in microseconds since 1970.
    pub fn of(association: &Association, now: u64) -> impl Iterator<Item = Self> + '_ {
        let within = u64::try_from(WITHIN.as_micros()).unwrap_or(u64::MAX);
        let expires = now.saturating_add(within);
        af::sessions(association).map(move |session| Self {
            name: af::ended_name(association, &session),
            expires,
        })
    }

    /// The key of an AF session.
    #[must_use]
    pub fn key_of(name: &str) -> Key {
        address::text_key(name)
    }
}

impl Record for EndedSession {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "pcf_ended_session",
        indexes: &[IndexSchema::many("expiry").ordered()],
        by_modified: false,
        sql: None,
    };
    const EXPIRY: Option<Index> = Some(Index(0));

    fn key(&self) -> Key {
        Self::key_of(&self.name)
    }

    fn index(&self, _: &mut IndexKeys) {}

    fn expires(&self) -> Option<u64> {
        Some(self.expires)
    }

    /// The expiry, then the name: the key of a long name has only its beginning ([`address::text_key`]).
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.expires.to_be_bytes());
        out.extend(self.name.as_bytes());
    }

    fn decode(_: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        let wrong = |what: &str| DecodeError(format!("an AF session that ended is expected: {what}"));
        let (expires, name) = value
            .split_first_chunk::<8>()
            .ok_or_else(|| wrong("it has less than 8 bytes"))?;
        let name = std::str::from_utf8(name).map_err(|_| wrong("its name is not UTF-8"))?;
        Ok(Self {
            name: name.to_owned(),
            expires: u64::from_be_bytes(*expires),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::association::Kind;
    use crate::association::af::AfSession;
    use pcc::Mapping;
    use serde_json::json;

    #[test]
    fn each_af_session_of_an_association_has_its_record() {
        let mut association = Association::new(Kind::Sm, json!({}));
        let session = AfSession::new(7, json!({}), None);
        af::put(&mut association, &session, &Mapping::default()).unwrap();
        let ended: Vec<EndedSession> = EndedSession::of(&association, 1_000_000).collect();
        let name = format!("{}.{}", association.id, session.id);
        assert_eq!(
            ended,
            [EndedSession {
                name,
                expires: 121_000_000
            }]
        );
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let one = EndedSession {
            name: "pcscf.example.org;1;2".to_owned(),
            expires: 121_000_000,
        };
        let mut bytes = Vec::new();
        one.encode(&mut bytes);
        assert_eq!(EndedSession::decode(&one.key(), &bytes), Ok(one.clone()));
        for damaged in [&b"short"[..], b"12345678\xff"] {
            assert!(EndedSession::decode(&one.key(), damaged).is_err());
        }
    }
}
