//! Directories of earlier releases: files of format 1, no mark.

use std::path::Path;

use crate::damage::{config, files, filled, flip, open, put, refuses};
use crate::session::id;

/// Makes of a directory what an earlier release would have written.
fn make_older(directory: &Path) {
    for file in files(directory) {
        let bytes = std::fs::read(&file).unwrap();
        let mut older = bytes[..16].to_vec();
        older[7] = 1;
        older[12..].fill(0);
        let mut at = 16;
        while at < bytes.len() {
            let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
            let length = usize::try_from(number(at + 4)).unwrap();
            let mut entry = bytes[at..at + length.next_multiple_of(8)].to_vec();
            at += entry.len();
            // Heads of groups and the end are new, and so is the second flag.
            if entry[8] <= 2 {
                entry[9] &= 1;
                let checksum = crc32fast::hash(&entry[4..length]);
                entry[..4].copy_from_slice(&checksum.to_le_bytes());
                older.extend(entry);
            }
        }
        std::fs::write(&file, older).unwrap();
    }
    std::fs::remove_file(directory.join("store.mark")).unwrap();
    let path = directory.join("store.json");
    let mut catalogue: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    catalogue["format"] = 1.into();
    catalogue.as_object_mut().unwrap().remove("checksum");
    std::fs::write(&path, catalogue.to_string()).unwrap();
}

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
