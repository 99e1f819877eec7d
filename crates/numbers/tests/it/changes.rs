//! Changes, alone and beside readers.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use fuzz_support::Random;
use numbers::{Change, Error, Journal, Key, NoJournal};

use crate::support::{Model, assert_same, folder_with, found, imsi, model, open, set};

pub(crate) fn put(key: Key, number: usize) -> Change {
    Change::Put {
        key,
        set: set(number),
    }
}

#[test]
fn a_changed_map_is_what_a_tree_would_be() {
    for seed in 1..6 {
        let mut expected = model(seed, 1500);
        let (_folder, path) = folder_with(&expected);
        let map = open(&path);
        let mut random = Random::new(seed);
        let keys: Vec<Key> = expected.keys().copied().collect();
        for _ in 0..150 {
            let mut changes = Vec::new();
            for _ in 0..=random.below(5) {
                let near = keys[random.below(keys.len())];
                let number = near.number() + random.below(3) as u64;
                let far = imsi(random.next_u64() % 1_000_000_000_000_000);
                let key = match random.below(4) {
                    0 => far,
                    1 => near,
                    _ => Key::from_number(near.kind(), near.length(), number).unwrap_or(far),
                };
                if random.below(3) == 0 {
                    expected.remove(&key);
                    changes.push(Change::Remove { key });
                } else {
                    let value = random.below(60);
                    expected.insert(key, set(value));
                    changes.push(put(key, value));
                }
            }
            map.change(&changes, &mut NoJournal::default()).unwrap();
        }
        assert_same(&map, &expected);
        let again = path.with_file_name("again.num");
        map.rewrite(&again).unwrap();
        assert_same(&open(&again), &expected);
    }
}

struct FullDisk;

impl Journal for FullDisk {
    fn append(&mut self, _: &[Change]) -> io::Result<u64> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn trim(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_the_journal_refuses_is_not_seen() {
    let expected = Model::from([(imsi(1), set(1))]);
    let (_folder, path) = folder_with(&expected);
    let map = open(&path);
    let refused = map.change(&[put(imsi(1), 2), put(imsi(2), 2)], &mut FullDisk);
    assert!(matches!(refused, Err(Error::Journal(_))));
    assert_same(&map, &expected);
}

/// A writer moves one number to and fro between two blocks' worth of neighbours that stay. Readers must find the neighbours
/// each time, and of the number either value, never a third.
#[test]
fn readers_see_a_block_before_or_after_a_change() {
    let expected: Model = (0..3000).map(|i| (imsi(i * 50), set(1))).collect();
    let (_folder, path) = folder_with(&expected);
    let map = open(&path);
    let stop = AtomicBool::new(false);
    let keys: Vec<Key> = (0..200).map(|i| imsi(i * 700)).collect();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut rounds = 0;
                while !stop.load(Ordering::Relaxed) || rounds < 3 {
                    rounds += 1;
                    assert_eq!(found(&map, imsi(50)).as_deref(), Some(set(1).as_str()));
                    let moved =
                        found(&map, imsi(51)).map(|text| text == set(2).as_str() || text == set(3).as_str());
                    assert_ne!(moved, Some(false));
                    map.find_many(&keys, |answer| {
                        let id = answer.unwrap().expect("a number that stays");
                        assert_eq!(map.set(id).as_deref(), Some(&set(1)));
                    });
                }
            });
        }
        let mut journal = NoJournal::default();
        for round in 0..300 {
            let change = match round % 3 {
                0 => put(imsi(51), 2),
                1 => put(imsi(51), 3),
                _ => Change::Remove { key: imsi(51) },
            };
            // And a block that is new each time.
            let new = put(imsi(1_000_000_000 + round * 65_536), round as usize);
            map.change(&[change, new], &mut journal).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(map.summary().changed_blocks, 301);
}
