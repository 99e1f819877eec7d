//! Numbers that continue others.

use fuzz_support::Random;
use numbers::{Change, Key, Kind, Map, NoJournal};

use crate::changes::put;
use crate::counted::allocations;
use crate::support::{Model, folder_with, key, model, open};

fn digits(key: Key) -> String {
    format!("{:0length$}", key.number(), length = key.length())
}

/// What `has_longer` must answer.
fn longer(model: &Model, prefix: Key) -> bool {
    let begin = digits(prefix);
    let continues = |one: &&Key| {
        one.kind() == prefix.kind() && one.length() > prefix.length() && digits(**one).starts_with(&begin)
    };
    model.keys().any(|one| continues(&one))
}

#[test]
fn a_prefix_has_longer_numbers_exactly_when_one_is_known() {
    for seed in 1..4 {
        let mut expected = model(seed, 400);
        let (_folder, path) = folder_with(&expected);
        let map = open(&path);
        let mut random = Random::new(seed);
        let keys: Vec<Key> = expected.keys().copied().collect();
        for round in 0..60 {
            let near = keys[random.below(keys.len())];
            let length = 1 + random.below(near.length());
            let text = digits(near);
            let prefix = key(near.kind(), &text[..length]);
            for prefix in [
                Some(prefix),
                Key::from_number(near.kind(), length, prefix.number() + 1),
            ] {
                let Some(prefix) = prefix else { continue };
                assert_eq!(
                    map.has_longer(prefix).unwrap(),
                    longer(&expected, prefix),
                    "{seed} {prefix}"
                );
            }
            // From now on in changed blocks, of which some are emptied and some were not there.
            let far = Key::from_number(Kind::Msisdn, 13, random.next_u64() % 10_000_000_000_000).unwrap();
            let mut changes = vec![Change::Remove { key: near }];
            expected.remove(&near);
            if round % 3 == 0 {
                expected.insert(far, crate::support::set(1));
                changes.push(put(far, 1));
            }
            map.change(&changes, &mut NoJournal::default()).unwrap();
        }
    }
}

#[test]
fn the_last_longer_number_takes_its_prefixes_with_it() {
    let one = key(Kind::Msisdn, "4366012345");
    let expected = Model::from([(one, crate::support::set(1))]);
    let (_folder, path) = folder_with(&expected);
    let map = open(&path);
    let prefixes = ["4", "43", "43660", "436601234"].map(|text| key(Kind::Msisdn, text));
    for prefix in prefixes {
        assert!(map.has_longer(prefix).unwrap(), "{prefix}");
    }
    assert!(!map.has_longer(one).unwrap(), "itself is not longer");
    assert!(!map.has_longer(key(Kind::Msisdn, "44")).unwrap());
    assert!(!map.has_longer(key(Kind::Msisdn, "999999999999999")).unwrap());
    assert!(!map.has_longer(key(Kind::Imsi, "43")).unwrap(), "another kind");
    map.change(&[Change::Remove { key: one }], &mut NoJournal::default())
        .unwrap();
    for prefix in prefixes {
        assert!(!map.has_longer(prefix).unwrap(), "{prefix}");
    }
}

/// An unknown name of a stranger: no block is decoded for it, however full it is.
#[test]
fn an_unknown_prefix_is_found_so_without_memory() {
    let numbers = (0..40_000).map(|number| Key::from_number(Kind::Msisdn, 9, 436_600_000 + number).unwrap());
    let expected: Model = numbers.map(|key| (key, crate::support::set(1))).collect();
    let (_folder, path) = folder_with(&expected);
    let map = open(&path);
    let prefix = key(Kind::Msisdn, "436650");
    let put = [put(key(Kind::Msisdn, "436640000"), 1)];
    for change in [&[][..], &put] {
        map.change(change, &mut NoJournal::default()).unwrap();
        let before = allocations();
        assert!(!map.has_longer(prefix).unwrap());
        assert_eq!(allocations(), before);
    }
}

#[test]
fn a_map_without_a_file_takes_changes() {
    let map = Map::empty();
    let (one, prefix) = (key(Kind::Msisdn, "43660"), key(Kind::Msisdn, "436"));
    assert_eq!(map.find(one), Ok(None));
    assert!(!map.has_longer(prefix).unwrap());
    for map in [&map, &map.without_changes()] {
        map.change(&[put(one, 1)], &mut NoJournal::default()).unwrap();
        let found = map.find(one).unwrap().and_then(|id| map.set(id));
        assert_eq!(found.as_deref(), Some(&crate::support::set(1)));
        assert!(map.has_longer(prefix).unwrap());
        assert_eq!(map.find_in_base(one), Ok(None));
    }
}
