//! Walks: all numbers as they are at one moment.

use numbers::{Change, Key, Map, NoJournal, Walk};

use crate::changes::put;
use crate::counted::allocated;
use crate::support::{Model, folder_with, imsi, model, open, set};

fn all(walk: Walk) -> Model {
    let found: Vec<_> = walk.map(Result::unwrap).collect();
    assert!(found.is_sorted_by_key(|(key, _)| *key));
    let owned = found.into_iter().map(|(key, set)| (key, (*set).clone()));
    owned.collect()
}

#[test]
fn a_walk_has_the_numbers_of_its_moment() {
    let mut expected = model(7, 3_000);
    let (_folder, path) = folder_with(&expected);
    let map = open(&path);
    let keys: Vec<Key> = expected.keys().copied().collect();
    let removed = keys.iter().step_by(3).map(|key| Change::Remove { key: *key });
    let changes: Vec<Change> = removed
        .chain((0..500).map(|number| put(imsi(number * 70_001), 5)))
        .collect();
    map.replay(&changes, 17).unwrap();
    expected.retain(|key, _| !changes.contains(&Change::Remove { key: *key }));
    expected.extend((0..500).map(|number| (imsi(number * 70_001), set(5))));

    let walk = map.walk(None);
    let middle = *expected.keys().nth(expected.len() / 2).unwrap();
    let behind = map.walk(Some(middle));
    assert_eq!(map.count(), expected.len() as u64);
    // What follows is not in them.
    let later: Vec<Change> = keys.iter().map(|key| put(*key, 9)).collect();
    map.change(&later, &mut NoJournal::default()).unwrap();
    assert_eq!((walk.position(), all(walk)), (17, expected.clone()));
    let mut above = expected.split_off(&middle);
    above.remove(&middle);
    assert_eq!(all(behind), above);
    // Page by page, beside changed blocks and without any.
    for map in [&map, &open(&path)] {
        let whole: Vec<Key> = all(map.walk(None)).into_keys().collect();
        for most in [1, 7, 400, 10_000] {
            let (mut pages, mut after) = (Vec::new(), None);
            loop {
                let page = map.walk_first(after, most).take(most);
                let page: Vec<Key> = page.map(|number| number.unwrap().0).collect();
                let Some(last) = page.last() else { break };
                after = Some(*last);
                pages.extend(page);
            }
            assert_eq!(pages, whole, "{most}");
        }
    }
}

#[test]
fn a_walk_through_nothing_ends() {
    let map = Map::empty();
    assert_eq!((all(map.walk(None)).len(), map.count()), (0, 0));
    map.replay(&[Change::Remove { key: imsi(1) }], 1).unwrap();
    assert_eq!((all(map.walk(None)).len(), map.count()), (0, 0));
    map.replay(&[put(imsi(1), 1)], 2).unwrap();
    assert_eq!((all(map.walk(Some(imsi(1)))).len(), map.count()), (0, 1));
}

#[test]
fn a_walk_shares_the_changed_blocks() {
    let map = Map::empty();
    let changes: Vec<Change> = (0..20_000).map(|number| put(imsi(number * 65_536), 1)).collect();
    map.replay(&changes, 1).unwrap();
    let before = allocated();
    let mut walk = map.walk(None);
    assert!(walk.next().is_some_and(|first| first.is_ok()));
    let taken = allocated() - before;
    assert!(taken < 16 * 1_024, "{taken} bytes for 20,000 changed blocks");
    assert_eq!((walk.count(), map.count()), (19_999, 20_000));
    let before = allocated();
    assert_eq!(map.count(), 20_000);
    assert_eq!(allocated(), before);
}
