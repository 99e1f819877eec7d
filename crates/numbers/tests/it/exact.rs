//! A map holds what was written and nothing else.

use numbers::{Error, Key, Kind, Load, Map, Writer};

use crate::support::{Model, assert_same, folder_with, found, imsi, key, model, open, set};

#[test]
fn a_map_is_what_was_written_mapped_and_copied() {
    for seed in 1..12 {
        let model = model(seed, 3000);
        let (_folder, path) = folder_with(&model);
        assert_same(&open(&path), &model);
        let copied = Map::open(&path, None, Load::Copied).unwrap();
        assert_same(&copied, &model);
        assert!(copied.warnings().is_empty());
        assert_eq!(copied.position(), 0);
    }
}

#[test]
fn the_count_of_digits_is_part_of_a_number() {
    let model = Model::from([
        (key(Kind::Imsi, "001"), set(1)),
        (key(Kind::Msisdn, "1"), set(2)),
        (key(Kind::Imei, "999999999999999"), set(3)),
        (key(Kind::Imsi, "000000000000000"), set(4)),
    ]);
    let (_folder, path) = folder_with(&model);
    let map = open(&path);
    assert_same(&map, &model);
    for (kind, digits) in [
        (Kind::Imsi, "1"),
        (Kind::Imsi, "01"),
        (Kind::Imsi, "0001"),
        (Kind::Msisdn, "001"),
        (Kind::Imei, "99999999999999"),
        (Kind::Imsi, "0"),
    ] {
        assert_eq!(found(&map, key(kind, digits)), None, "{kind} {digits}");
    }
}

#[test]
fn a_million_unknown_numbers_are_unknown() {
    let model: Model = (0..20_000)
        .map(|i| (imsi(1_010_000_000_000 + i * 31), set(i as usize % 300)))
        .collect();
    let (_folder, path) = folder_with(&model);
    let map = open(&path);
    let unknown: Vec<Key> = (0..1_000_000)
        .map(|i| imsi(1_010_000_000_000 + i * 31 / 30 + i))
        .filter(|key| !model.contains_key(key))
        .collect();
    let mut known = 0;
    map.find_many(&unknown, |answer| known += u32::from(answer.unwrap().is_some()));
    assert_eq!((known, unknown.len() > 900_000), (0, true));
}

#[test]
fn an_empty_map_knows_nothing() {
    let (_folder, path) = folder_with(&Model::new());
    let map = open(&path);
    assert_same(&map, &Model::new());
    assert_eq!(found(&map, imsi(5)), None);
}

#[test]
fn numbers_must_ascend_and_come_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("base.num");
    let mut writer = Writer::create(&path).unwrap();
    let id = writer.intern(&set(1)).unwrap();
    writer.push(imsi(100), id).unwrap();
    assert!(matches!(writer.push(imsi(100), id), Err(Error::Twice(twice)) if twice == imsi(100)));
    assert!(matches!(writer.push(imsi(99), id), Err(Error::Order { .. })));
    assert!(matches!(Writer::create(&path), Err(Error::Busy(_))));
    drop(writer);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn neighbours_that_share_a_set_take_less_than_a_byte() {
    let model: Model = (0..200_000)
        .map(|i| (imsi(i * 2), set(i as usize / 5000)))
        .collect();
    let (_folder, path) = folder_with(&model);
    let each = std::fs::metadata(&path).unwrap().len() as f64 / model.len() as f64;
    assert!(each < 1.0, "{each}");
}
