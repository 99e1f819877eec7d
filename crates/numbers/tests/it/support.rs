//! Keys, files and maps for the tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fuzz_support::Random;
use numbers::{DestinationSet, Key, Kind, Load, Map, Writer};
use tempfile::TempDir;

/// What a map must hold.
pub(crate) type Model = BTreeMap<Key, DestinationSet>;

pub(crate) fn key(kind: Kind, digits: &str) -> Key {
    Key::new(kind, digits.as_bytes()).unwrap()
}

pub(crate) fn imsi(number: u64) -> Key {
    Key::from_number(Kind::Imsi, 15, number).unwrap()
}

pub(crate) fn set(number: usize) -> DestinationSet {
    DestinationSet::parse(&format!("hss{number}.example,pcrf=pcrf{}.example", number % 7)).unwrap()
}

/// Dense and sparse parts, ranges that share a set, single numbers far apart, several kinds and lengths.
pub(crate) fn model(seed: u64, numbers: usize) -> Model {
    let mut random = Random::new(seed);
    let mut model = Model::new();
    while model.len() < numbers {
        let kind = Kind::ALL[random.below(3)];
        let length = [15, 15, 12, 14, 5, 1][random.below(6)];
        let most = 10_u64.pow(length);
        let first = random.next_u64() % most;
        let count = random.below(numbers / 4 + 1) as u64;
        let gap = [1, 1, 3, 28, 900, 70_000][random.below(6)];
        let shared = random.below(2) == 0;
        for step in 0..count {
            let number = first + step * gap;
            if number < most {
                let value = if shared { 3 } else { random.below(40) };
                model.insert(
                    Key::from_number(kind, length as usize, number).unwrap(),
                    set(value),
                );
            }
        }
        model.insert(
            Key::from_number(kind, length as usize, first).unwrap(),
            set(random.below(40)),
        );
    }
    model
}

pub(crate) fn write(path: &Path, model: &Model) {
    let mut writer = Writer::create(path).unwrap();
    for (key, set) in model {
        let set = writer.intern(set).unwrap();
        writer.push(*key, set).unwrap();
    }
    assert_eq!(writer.finish().unwrap().numbers, model.len() as u64);
}

pub(crate) fn folder_with(model: &Model) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("base.num");
    write(&path, model);
    (folder, path)
}

pub(crate) fn open(path: &Path) -> Map {
    Map::open(path, None, Load::Mapped).unwrap()
}

/// The destinations of a number, as text.
pub(crate) fn found(map: &Map, key: Key) -> Option<String> {
    map.find(key).unwrap().map(|id| map.set(id).unwrap().to_string())
}

/// A map has what the model has, and nothing beside each of its numbers.
pub(crate) fn assert_same(map: &Map, model: &Model) {
    let mut listed = Model::new();
    let each = |key, set: &DestinationSet| {
        listed.insert(key, set.clone());
        Ok::<_, ()>(())
    };
    map.for_each(each, |damaged| panic!("{damaged}")).unwrap();
    assert!(
        listed == *model,
        "{} numbers, expected {}",
        listed.len(),
        model.len()
    );
    let mut keys: Vec<Key> = model.keys().copied().collect();
    for key in model.keys() {
        let beside = [
            key.number().wrapping_sub(1),
            key.number() + 1,
            key.number() ^ 1 << 16,
        ];
        let beside = beside.map(|number| Key::from_number(key.kind(), key.length(), number));
        let longer = Key::from_number(key.kind(), key.length() + 1, key.number());
        keys.extend(beside.into_iter().chain([longer]).flatten());
    }
    let mut batch = Vec::new();
    map.find_many(&keys, |answer| batch.push(answer.unwrap()));
    assert_eq!(batch.len(), keys.len());
    for (key, answer) in keys.iter().zip(batch) {
        let expected = model.get(key).map(ToString::to_string);
        assert_eq!(found(map, *key), expected, "{key}");
        assert_eq!(
            answer.map(|id| map.set(id).unwrap().to_string()),
            expected,
            "{key} in a batch"
        );
    }
}
