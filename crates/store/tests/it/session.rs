//! A record type for the tests, and how to open a store with it.

use std::path::Path;

use store::{
    Config, DecodeError, EmbeddedConfig, Index, IndexKeys, IndexSchema, Key, Record, Store, TableDef,
    TableSchema,
};

/// A session: who has it, from where it is reached, and something to remember.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) id: u64,
    pub(crate) subscriber: String,
    pub(crate) address: Option<String>,
    pub(crate) prefixes: Vec<String>,
    pub(crate) note: String,
}

impl Session {
    pub(crate) const SUBSCRIBER: Index = Index(0);
    pub(crate) const ADDRESS: Index = Index(1);
    pub(crate) const PREFIX: Index = Index(2);

    pub(crate) fn new(id: u64, subscriber: &str) -> Session {
        Session {
            id,
            subscriber: subscriber.to_owned(),
            address: None,
            prefixes: Vec::new(),
            note: String::new(),
        }
    }

    pub(crate) fn address(mut self, address: &str) -> Session {
        self.address = Some(address.to_owned());
        self
    }

    pub(crate) fn note(mut self, note: &str) -> Session {
        self.note = note.to_owned();
        self
    }

    pub(crate) fn prefixes(mut self, prefixes: &[&str]) -> Session {
        self.prefixes = prefixes.iter().map(|&prefix| prefix.to_owned()).collect();
        self
    }
}

pub(crate) fn id(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

impl Record for Session {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "session",
        indexes: &[
            IndexSchema::many("subscriber").ordered(),
            IndexSchema::unique("address"),
            IndexSchema::many("prefix").multi(),
        ],
        by_modified: true,
        sql: None,
    };

    fn key(&self) -> Key {
        Key::from_slice(&id(self.id))
    }

    fn index(&self, keys: &mut IndexKeys) {
        keys.add(Session::SUBSCRIBER, self.subscriber.as_bytes());
        if let Some(address) = &self.address {
            keys.add(Session::ADDRESS, address.as_bytes());
        }
        for prefix in &self.prefixes {
            keys.add(Session::PREFIX, prefix.as_bytes());
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let parts = [
            self.subscriber.as_str(),
            self.address.as_deref().unwrap_or("-"),
            &self.prefixes.join(","),
            &self.note,
        ];
        out.extend_from_slice(parts.join("|").as_bytes());
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Session, DecodeError> {
        let broken = |what: &str| DecodeError(format!("session without {what}"));
        let number = key.try_into().map_err(|_| broken("an 8-byte key"))?;
        let text = std::str::from_utf8(value).map_err(|_| broken("text"))?;
        let mut parts = text.splitn(4, '|');
        let mut next = |what| parts.next().map(str::to_owned).ok_or_else(|| broken(what));
        let (subscriber, address, prefixes, note) = (
            next("subscriber")?,
            next("address")?,
            next("prefixes")?,
            next("note")?,
        );
        Ok(Session {
            id: u64::from_be_bytes(number),
            subscriber,
            address: (address != "-").then_some(address),
            prefixes: prefixes
                .split(',')
                .filter(|prefix| !prefix.is_empty())
                .map(str::to_owned)
                .collect(),
            note,
        })
    }
}

/// A later release of [`Session`], which looks up by note as well and no longer by address.
#[derive(Debug)]
pub(crate) struct Later(Session);

impl Later {
    pub(crate) const NOTE: Index = Index(1);

    pub(crate) fn of(session: Session) -> Later {
        Later(session)
    }

    pub(crate) fn key_number(&self) -> u64 {
        self.0.id
    }
}

impl Record for Later {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "session",
        indexes: &[
            IndexSchema::many("subscriber"),
            IndexSchema::many("note").ordered(),
        ],
        by_modified: true,
        sql: None,
    };

    fn key(&self) -> Key {
        self.0.key()
    }

    fn index(&self, keys: &mut IndexKeys) {
        keys.add(Session::SUBSCRIBER, self.0.subscriber.as_bytes());
        keys.add(Later::NOTE, self.0.note.as_bytes());
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Later, DecodeError> {
        Session::decode(key, value).map(Later)
    }
}

pub(crate) fn embedded_config(directory: &Path) -> Config {
    Config {
        embedded: EmbeddedConfig {
            directory: directory.to_owned(),
            ..EmbeddedConfig::default()
        },
        ..Config::default()
    }
}

pub(crate) async fn open_embedded(directory: &Path) -> Store {
    Store::open(&embedded_config(directory), &[TableDef::of::<Session>()])
        .await
        .unwrap()
}
