//! Directories of earlier releases: files of format 1, no mark.

use std::collections::BTreeMap;

use store::{Scan, Store, TableDef};

use crate::damage::{config, files, filled, flip, open, put, refuses};
use crate::format_one::make_older;
use crate::session::{Later, id};

#[tokio::test]
async fn a_directory_of_an_earlier_release_opens_and_is_continued() {
    let directory = tempfile::tempdir().unwrap();
    let before = filled(directory.path(), 40).await;
    make_older(directory.path());
    assert!(store::verify(directory.path()).unwrap().damage.is_empty());
    for round in 0..3 {
        let (store, sessions) = open(&config(directory.path())).await;
        for number in 0..40 + 20 * round {
            assert!(
                sessions.get(&id(number)).await.unwrap().is_some(),
                "{number} is lost"
            );
        }
        for number in 40 + 20 * round..60 + 20 * round {
            put(&store, &sessions, number).await;
        }
        drop(sessions);
        store.close().await;
    }
    assert!(files(directory.path()).len() > before.len());
    assert!(store::verify(directory.path()).unwrap().damage.is_empty());
    // What is written now is as safe as everywhere.
    let newest = files(directory.path()).pop().unwrap();
    let length = usize::try_from(newest.metadata().unwrap().len()).unwrap();
    flip(&newest, length - 40);
    refuses(directory.path(), &newest).await;
}

#[tokio::test]
async fn damage_of_an_older_directory_is_refused_and_salvaged() {
    for missing in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let all = filled(directory.path(), 60).await;
        make_older(directory.path());
        let (wrong, lost) = match missing {
            true => {
                std::fs::remove_file(&all[1]).unwrap();
                (&all[1], 10..=20)
            }
            // An end that may be torn, or damaged: nothing says which.
            false => {
                let newest = &all[all.len() - 1];
                let bytes = std::fs::read(newest).unwrap();
                std::fs::write(newest, &bytes[..bytes.len() - 20]).unwrap();
                (newest, 1..=1)
            }
        };
        refuses(directory.path(), wrong).await;
        let salvaged = store::salvage(directory.path()).unwrap();
        assert_eq!(salvaged.dropped.len(), 1, "{salvaged:?}");
        let (_store, sessions) = open(&config(directory.path())).await;
        let mut gone = 0;
        for number in 0..60 {
            gone += usize::from(sessions.get(&id(number)).await.unwrap().is_none());
        }
        assert!(lost.contains(&gone), "{gone} records are gone: {salvaged:?}");
    }
}

/// A mark that says nothing of any file: twice magic, sequence, segment, offset and checksum, a block apart.
fn first_mark() -> Vec<u8> {
    let mut mark = vec![0; 8_192];
    for (sequence, at) in [(1u64, 4_096), (2, 0)] {
        let mut slot = b"sbxmark\x01".to_vec();
        slot.extend(sequence.to_le_bytes());
        slot.extend([0; 16]);
        slot.extend(crc32fast::hash(&slot).to_le_bytes());
        mark[at..at + slot.len()].copy_from_slice(&slot);
    }
    mark
}

/// The next release has other indexes, and the power fails while it writes the log again with their keys: some files
/// are new by then, one is there in both forms, and the catalogue is the old one.
#[tokio::test]
async fn an_upgrade_that_was_interrupted_goes_on_with_the_next_start() {
    const RECORDS: u64 = 60;
    for older in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        filled(directory.path(), RECORDS).await;
        if older {
            make_older(directory.path());
        }
        let read = |directory: &std::path::Path| -> BTreeMap<String, Vec<u8>> {
            let entries = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
            let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
            files
                .map(|entry| {
                    (
                        entry.file_name().into_string().unwrap(),
                        std::fs::read(entry.path()).unwrap(),
                    )
                })
                .collect()
        };
        let before = read(directory.path());
        let upgrade = async |directory: &std::path::Path| {
            let store = Store::open(&config(directory), &[TableDef::of::<Later>()])
                .await
                .unwrap();
            let table = store.table::<Later>().unwrap();
            for number in 0..RECORDS {
                assert!(
                    table.get(&id(number)).await.unwrap().is_some(),
                    "{number} is lost"
                );
            }
            let by_note = table.scan(&Scan::by_index(Later::NOTE, 500)).await.unwrap();
            assert_eq!(by_note.records.len() as u64, RECORDS);
            drop(table);
            store.close().await;
        };
        upgrade(directory.path()).await;
        let after = read(directory.path());
        let old: Vec<&String> = before.keys().filter(|name| name.ends_with(".log")).collect();
        let new: Vec<&String> = after
            .keys()
            .filter(|name| name.ends_with(".log") && !before.contains_key(*name))
            .collect();
        assert!(old.len() > 3 && new.len() >= old.len(), "{old:?} {new:?}");
        for done in 0..old.len() {
            let place = tempfile::tempdir().unwrap();
            let write = |name: &str, bytes: &[u8]| std::fs::write(place.path().join(name), bytes).unwrap();
            for (name, bytes) in &before {
                // The file that is being replaced is removed last.
                if !old[..done].contains(&name) {
                    write(name, bytes);
                }
            }
            new[..=done].iter().for_each(|name| write(name, &after[*name]));
            // The first that is written.
            if older {
                write("store.mark", &first_mark());
            }
            upgrade(place.path()).await;
        }
    }
}
