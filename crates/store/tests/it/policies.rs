//! Records of the size of a policy session: JSON of 4 to 64 KB under seven keys, updated often, compressed with a
//! dictionary of their table.

use std::path::{Path, PathBuf};
use std::time::Duration;

use settings::ByteSize;
use store::{
    Batch, Condition, Config, DecodeError, Index, IndexKeys, IndexSchema, Key, Record, Store, Table,
    TableDef, TableSchema,
};

use crate::session::{embedded_config, id};

/// A policy session: its number, how often it was changed, and its rules.
#[derive(Clone, Debug, PartialEq)]
struct Policy {
    number: u64,
    value: Vec<u8>,
}

const KEYS: usize = 7;

/// Text that differs with the number, and repeats nowhere.
fn noise(number: u64) -> String {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!(
        "{:016x}{:016x}",
        mixed ^ (mixed >> 29),
        mixed.rotate_left(23).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    )
}

impl Policy {
    fn new(number: u64, change: u64, rules: u64) -> Policy {
        let rule = |rule: u64| {
            let own = noise(number << 20 | change << 10 | rule);
            format!(
                "\"{own}\":{{\"pccRuleId\":\"{own}\",\"precedence\":{},\"appId\":\"app-{rule}\",\"flowInfos\":[{{\"flowDescription\":\
                 \"permit out ip from 10.{}.{}.0/24 to assigned\",\"flowDirection\":\"BIDIRECTIONAL\",\"packetFilterUsage\":true}}],\
                 \"refQosData\":[\"qos-{rule}\"],\"refChgData\":[\"chg-{}\"],\"refUmData\":null,\"easRedisInd\":false}}",
                number % 255,
                rule % 200,
                change % 250,
                rule % 7
            )
        };
        let rules: Vec<String> = (0..rules).map(rule).collect();
        let value = format!(
            "{{\"supi\":\"imsi-{number:015}\",\"revalidationTime\":\"2026-11-23T10:00:00Z\",\"pccRules\":{{{}}}}}",
            rules.join(",")
        );
        Policy {
            number,
            value: value.into_bytes(),
        }
    }

    fn index_key(&self, index: usize) -> String {
        format!("{index}-{}", noise(self.number + index as u64 * 1_000_000))
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
        Key::from_slice(&id(self.number))
    }

    fn index(&self, keys: &mut IndexKeys) {
        for index in 0..KEYS {
            keys.add(Index(index as u8), self.index_key(index).as_bytes());
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.value);
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Policy, DecodeError> {
        let number = key
            .try_into()
            .map_err(|_| DecodeError("a key of 8 bytes".to_owned()))?;
        Ok(Policy {
            number: u64::from_be_bytes(number),
            value: value.to_vec(),
        })
    }
}

/// The next release, with fewer keys.
struct Fewer(Policy);

impl Record for Fewer {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "policy",
        indexes: &[IndexSchema::unique("supi")],
        by_modified: true,
        sql: None,
    };

    fn key(&self) -> Key {
        self.0.key()
    }

    fn index(&self, keys: &mut IndexKeys) {
        keys.add(Index(0), self.0.index_key(0).as_bytes());
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Fewer, DecodeError> {
        Policy::decode(key, value).map(Fewer)
    }
}

fn config(directory: &Path, compress_above: u64) -> Config {
    let mut config = embedded_config(directory);
    config.compress_above = ByteSize(compress_above);
    config.embedded.segment = ByteSize::mib(1);
    config.max_batch_bytes = ByteSize::kib(256);
    config
}

async fn open(config: &Config) -> (Store, Table<Policy>) {
    let store = Store::open(config, &[TableDef::of::<Policy>()]).await.unwrap();
    let policies = store.table::<Policy>().unwrap();
    (store, policies)
}

async fn put(table: &Table<Policy>, policy: &Policy) {
    let mut batch = Batch::default();
    batch.put(table, policy, Condition::Always);
    table.store().commit(batch).await.unwrap();
}

const RECORDS: u64 = 300;

/// About 12 KB each; every tenth of 64 KB.
fn policy(number: u64, change: u64) -> Policy {
    Policy::new(number, change, if number % 10 == 9 { 185 } else { 33 })
}

async fn check(table: &Table<Policy>, change: u64, keys: usize) {
    for number in 0..RECORDS {
        let expected = policy(number, change);
        let found = table.get(&id(number)).await.unwrap().unwrap();
        assert!(found.record == expected, "record {number}");
        for index in 0..keys {
            let key = expected.index_key(index);
            let found = table.find(Index(index as u8), key.as_bytes(), 2).await.unwrap();
            assert!(
                found.len() == 1 && found[0].record == expected,
                "record {number} by index {index}"
            );
        }
    }
}

#[tokio::test]
async fn policies_are_compressed_with_a_dictionary_and_read_for_as_long_as_the_store_lives() {
    let directory = tempfile::tempdir().unwrap();
    let (store, table) = open(&config(directory.path(), 256)).await;
    let sizes: Vec<usize> = (0..RECORDS).map(|number| policy(number, 0).value.len()).collect();
    assert!(
        sizes.iter().all(|size| (9_000..70_000).contains(size)) && sizes.iter().any(|size| *size > 60_000)
    );
    // The first values make the dictionary; what is written once it is there is compressed with it.
    let mut plain = 0;
    for change in 0..3 {
        plain = 0;
        for number in 0..RECORDS {
            let one = policy(number, change);
            plain += one.value.len();
            put(&table, &one).await;
        }
    }
    check(&table, 2, KEYS).await;
    let live = usize::try_from(store.stats().live_bytes).unwrap();
    let without: usize = (0..RECORDS)
        .map(|number| lz4_flex::compress_prepend_size(&policy(number, 2).value).len())
        .sum();
    eprintln!("{plain} bytes of values, {without} by LZ4 alone, {live} in the store, keys included");
    assert!(live < plain / 2, "{live} of {plain}");
    let dictionary = std::fs::read_to_string(directory.path().join("store.json")).unwrap();
    assert!(dictionary.contains("signalbox_dictionary"));
    drop(table);
    store.close().await;

    // After a restart, without compression, by an export, and from a copy.
    for compress_above in [256, 0] {
        let (store, table) = open(&config(directory.path(), compress_above)).await;
        check(&table, 2, KEYS).await;
        drop(table);
        store.close().await;
    }
    let mut exported = 0;
    store::export::<store::Error>(directory.path(), |record| {
        if record.table == "policy" {
            let number = u64::from_be_bytes(record.key.try_into().unwrap());
            assert!(record.value == policy(number, 2).value, "record {number}");
            exported += 1;
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(exported, RECORDS);
    let copy = tempfile::tempdir().unwrap();
    let there = copy.path().join("copy");
    store::backup(directory.path(), &there).unwrap();
    let (store, table) = open(&config(&there, 0)).await;
    check(&table, 2, KEYS).await;
    drop(table);
    store.close().await;

    // A release with other indexes reads the values to compute their keys.
    let fewer = Store::open(&config(directory.path(), 0), &[TableDef::of::<Fewer>()])
        .await
        .unwrap();
    fewer.close().await;
    let (store, table) = open(&config(directory.path(), 256)).await;
    check(&table, 2, KEYS).await;
    assert!(store.stats().live_bytes < plain as u64 / 2);
    drop(table);
    store.close().await;
}

/// Where the dictionaries of the table are in the files of a log.
fn dictionaries(directory: &Path) -> Vec<(PathBuf, usize)> {
    let name_of_table = b"\x06policy";
    let files = std::fs::read_dir(directory).unwrap();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.retain(|path| path.is_file());
    files.sort_unstable();
    let mut found = Vec::new();
    for path in files {
        let bytes = std::fs::read(&path).unwrap();
        let windows = bytes.windows(name_of_table.len()).enumerate();
        let here = windows.filter(|(_, window)| window == name_of_table);
        found.extend(here.map(|(at, _)| (path.clone(), at)));
    }
    found
}

#[tokio::test]
async fn values_outlive_a_damaged_dictionary() {
    let directory = tempfile::tempdir().unwrap();
    let (store, table) = open(&config(directory.path(), 256)).await;
    for number in 0..RECORDS {
        put(&table, &policy(number, 0)).await;
    }
    // A thread of its own makes the dictionary of them, and writes it twice.
    while dictionaries(directory.path()).len() < 2 {
        put(&table, &policy(0, 1)).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    for number in 0..RECORDS {
        put(&table, &policy(number, 2)).await;
    }
    drop(table);
    store.close().await;
    // The second time it is the copy that was read the first time.
    for _ in 0..2 {
        let (path, at) = dictionaries(directory.path()).swap_remove(0);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[at + 1_000] ^= 0x10;
        std::fs::write(&path, bytes).unwrap();
        let opened = Store::open(&config(directory.path(), 256), &[TableDef::of::<Policy>()]).await;
        assert!(opened.is_err(), "a damaged log is not opened");
        let salvaged = store::salvage(directory.path()).unwrap();
        assert_eq!(salvaged.dropped.len(), 1, "{salvaged:?}");
        std::fs::remove_dir_all(salvaged.aside.unwrap()).unwrap();
        let (store, table) = open(&config(directory.path(), 256)).await;
        check(&table, 2, KEYS).await;
        assert_eq!(
            dictionaries(directory.path()).len(),
            2,
            "the lost copy is written again"
        );
        drop(table);
        store.close().await;
    }
}
