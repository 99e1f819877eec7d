//! What is written: bindings, or policy sessions.

use std::path::Path;

use store::{IndexKeys, Record};

use crate::binding::{Binding, mix};
use crate::session::{KEYS, Policy};

/// A record as the engines get it.
pub(crate) struct Bytes {
    pub(crate) number: u64,
    pub(crate) changes: u64,
    pub(crate) id: Vec<u8>,
    pub(crate) keys: Vec<(u8, Vec<u8>)>,
    pub(crate) modified: u64,
    pub(crate) value: Vec<u8>,
}

/// Kinds of records that are numbered: everything else follows from the number and how often the record was changed.
pub(crate) trait Work: Record {
    /// Index keys of a record.
    const KEYS: u8;
    /// Updates of each record, if the command line does not say.
    const UPDATES: u64;

    fn id(number: u64) -> Vec<u8>;
    fn make(number: u64, changes: u64) -> Self;
    /// The record that these bytes are.
    fn take(bytes: &Bytes) -> Self;
    /// What our store returns of a record, as cheap as it can be had.
    fn answer(self) -> Vec<u8>;
    /// An index and the key in it under which the record is found.
    fn key_of(number: u64, turn: u64) -> (u8, Vec<u8>);
    /// Whether an engine's answer is the record as it was written last.
    fn is_current(answer: &[u8], number: u64, changes: u64) -> bool;
}

/// When a record was written: each change is later.
pub(crate) fn modified(number: u64, changes: u64) -> u64 {
    1_700_000_000_000_000 + changes * 1_000_000_000 + number
}

pub(crate) fn bytes<W: Work>(number: u64, changes: u64) -> Bytes {
    let record = W::make(number, changes);
    let (mut keys, mut value) = (IndexKeys::default(), Vec::new());
    record.index(&mut keys);
    record.encode(&mut value);
    Bytes {
        number,
        changes,
        id: W::id(number),
        keys: keys.iter().map(|(index, key)| (index.0, key.to_vec())).collect(),
        modified: modified(number, changes),
        value,
    }
}

impl Work for Binding {
    const KEYS: u8 = 3;
    const UPDATES: u64 = 0;

    fn id(number: u64) -> Vec<u8> {
        Binding::id(number).to_vec()
    }

    fn make(number: u64, _changes: u64) -> Binding {
        Binding::new(number)
    }

    fn take(bytes: &Bytes) -> Binding {
        Binding::new(bytes.number)
    }

    fn answer(self) -> Vec<u8> {
        self.number.to_le_bytes().to_vec()
    }

    fn key_of(number: u64, _turn: u64) -> (u8, Vec<u8>) {
        (0, Binding::ipv4(number).to_vec())
    }

    fn is_current(answer: &[u8], number: u64, _changes: u64) -> bool {
        answer == number.to_le_bytes() || answer.ends_with(format!("#{number}").as_bytes())
    }
}

/// Rules of a policy session: 11.2 KB.
const RULES: u64 = 33;

impl Work for Policy {
    const KEYS: u8 = KEYS;
    const UPDATES: u64 = 15;

    fn id(number: u64) -> Vec<u8> {
        Policy::id(number).to_vec()
    }

    fn make(number: u64, changes: u64) -> Policy {
        Policy::new(number, changes, RULES)
    }

    fn take(bytes: &Bytes) -> Policy {
        Policy {
            number: bytes.number,
            value: bytes.value.clone(),
        }
    }

    fn answer(self) -> Vec<u8> {
        self.value
    }

    fn key_of(number: u64, turn: u64) -> (u8, Vec<u8>) {
        let index = (turn % u64::from(KEYS)) as u8;
        (index, Policy::index_key(number, index).into_bytes())
    }

    fn is_current(answer: &[u8], number: u64, changes: u64) -> bool {
        answer.ends_with(&Policy::new(number, changes, RULES).value)
    }
}

/// A record far from the one of the turn before.
pub(crate) fn pick(turn: u64, records: u64) -> u64 {
    mix(turn) % records.max(1)
}

/// Bytes that this process has had written to disks; 0 where the kernel does not count them.
pub(crate) fn written() -> u64 {
    let counters = std::fs::read_to_string(Path::new("/proc/self/io")).unwrap_or_default();
    let line = counters
        .lines()
        .find_map(|line| line.strip_prefix("write_bytes: "));
    line.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}
