//! Damaged files: named, and never a wrong answer.

use numbers::{Error, Key, Load, Map};

use crate::support::{Model, folder_with, found, imsi, open, set};

/// Three blocks, sparse, denser and in runs.
fn small() -> Model {
    let sparse = (0..40).map(|i| (imsi(i * 1500), set(i as usize % 5)));
    let dense = (0..140).map(|i| (imsi(65_536 + i * 3), set(i as usize % 3)));
    let runs = (0..900).map(|i| (imsi(131_072 + i), set(0)));
    sparse.chain(dense).chain(runs).collect()
}

/// The numbers that are refused; every other one has its set, and every unknown one none.
fn refused(map: &Map, model: &Model) -> usize {
    let mut refused = 0;
    let beside = (0..200_000).step_by(7001).map(imsi);
    for key in model.keys().copied().step_by(11).chain(beside) {
        match map.find(key) {
            Ok(id) => {
                let found = id.map(|id| map.set(id).unwrap());
                assert_eq!(found.as_deref(), model.get(&key), "{key} is misrouted");
            }
            Err(damaged) => {
                assert!(damaged.to_string().contains("imsi of 15 digits"), "{damaged}");
                refused += 1;
            }
        }
    }
    refused
}

#[test]
fn no_flipped_bit_misroutes_or_costs_more_than_a_block() {
    let model = small();
    let (_folder, path) = folder_with(&model);
    let whole = std::fs::read(&path).unwrap();
    let mut blocks_hit = 0;
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        std::fs::write(&path, &bytes).unwrap();
        let map = Map::open(&path, None, Load::Copied);
        let map = map.unwrap_or_else(|error| panic!("byte {at}: {error}"));
        let refused = refused(&map, &model);
        let mut damaged = Vec::new();
        map.for_each(|_, _| Ok::<_, ()>(()), |block| damaged.push(block))
            .unwrap();
        assert_eq!(damaged.len(), usize::from(refused > 0), "byte {at}");
        assert_eq!(damaged, map.summary().damaged);
        // A byte is in a block, in a copy of index or header, or fills up a block.
        assert!(damaged.is_empty() || map.warnings().is_empty());
        blocks_hit += damaged.len();
    }
    assert!(blocks_hit > 300, "{blocks_hit}");
}

#[test]
fn any_byte_that_is_overwritten_never_misroutes() {
    let model = small();
    let (_folder, path) = folder_with(&model);
    let whole = std::fs::read(&path).unwrap();
    let mut random = fuzz_support::Random::new(5);
    for _ in 0..400 {
        let mut bytes = whole.clone();
        for _ in 0..=random.below(6) {
            let at = random.below(bytes.len());
            let end = (at + 1 + random.below(200)).min(bytes.len());
            bytes[at..end].fill_with(|| random.next_u64() as u8);
        }
        std::fs::write(&path, &bytes).unwrap();
        match Map::open(&path, None, Load::Copied) {
            Ok(map) => drop(refused(&map, &model)),
            Err(error) => assert!(error.to_string().contains("base.num"), "{error}"),
        }
    }
}

#[test]
fn a_file_that_is_cut_or_longer_is_refused() {
    let (_folder, path) = folder_with(&small());
    let whole = std::fs::read(&path).unwrap();
    for length in 0..whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        let error = Map::open(&path, None, Load::Mapped).unwrap_err();
        let expected = match length {
            0..128 => matches!(error, Error::Foreign(_)),
            _ => {
                matches!(error, Error::Length { found, expected, .. } if found == length as u64 && expected == whole.len() as u64)
            }
        };
        assert!(expected, "{length}: {error}");
    }
    let longer = [&whole[..], b"x"].concat();
    std::fs::write(&path, longer).unwrap();
    assert!(matches!(
        Map::open(&path, None, Load::Mapped),
        Err(Error::Length { .. })
    ));
}

#[test]
fn another_version_is_refused_by_name() {
    let (_folder, path) = folder_with(&small());
    let mut bytes = std::fs::read(&path).unwrap();
    let length = bytes.len();
    for at in [0, length - 128] {
        let header = &mut bytes[at..at + 128];
        header[8..12].copy_from_slice(&7_u32.to_le_bytes());
        header[12..16].fill(0);
        let sum = crc32c::crc32c(header);
        header[12..16].copy_from_slice(&sum.to_le_bytes());
    }
    std::fs::write(&path, bytes).unwrap();
    let error = Map::open(&path, None, Load::Mapped).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Version {
                found: 7,
                expected: 1,
                ..
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains("version 7"), "{error}");

    std::fs::write(&path, "imsi,001010000000001,hss1\n".repeat(40)).unwrap();
    assert!(matches!(
        Map::open(&path, None, Load::Mapped),
        Err(Error::Foreign(_))
    ));
    let nowhere = Map::open(&path.with_file_name("nowhere"), None, Load::Mapped).unwrap_err();
    assert!(nowhere.to_string().contains("nowhere"), "{nowhere}");
}

#[test]
fn the_damaged_block_alone_refuses_and_others_are_changed_beside_it() {
    let model = small();
    let (_folder, path) = folder_with(&model);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[130] ^= 4;
    std::fs::write(&path, bytes).unwrap();
    let map = open(&path);
    let first: Vec<Key> = model
        .keys()
        .copied()
        .filter(|key| key.number() < 65_536)
        .collect();
    assert!(first.iter().all(|key| map.find(*key).is_err()));
    let mut journal = numbers::NoJournal::default();
    let refused = map
        .change(&[crate::changes::put(first[0], 1)], &mut journal)
        .unwrap_err();
    assert!(matches!(refused, Error::Damaged(_)), "{refused}");
    map.change(&[crate::changes::put(imsi(70_001), 1)], &mut journal)
        .unwrap();
    assert_eq!(found(&map, imsi(70_001)), Some(set(1).to_string()));
    assert!(map.rewrite(&path.with_file_name("rewritten")).is_err());
    assert!(!path.with_file_name("rewritten").exists());
}
