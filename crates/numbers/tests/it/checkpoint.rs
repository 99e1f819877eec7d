//! Checkpoints: what is acknowledged is there after a crash, whenever it comes.

use std::io;

use numbers::{Change, Error, Journal, Load, Map};

use crate::changes::put;
use crate::support::{Model, assert_same, folder_with, imsi, open, set};

/// A journal that survives crashes of the map; positions are counts of units.
#[derive(Default)]
struct Kept {
    first: u64,
    units: Vec<Vec<Change>>,
}

impl Journal for Kept {
    fn append(&mut self, changes: &[Change]) -> io::Result<u64> {
        self.units.push(changes.to_vec());
        Ok(self.first + self.units.len() as u64)
    }

    fn trim(&mut self, position: u64) -> io::Result<()> {
        self.units.drain(..(position - self.first) as usize);
        self.first = position;
        Ok(())
    }
}

impl Kept {
    fn replay(&self, map: &Map) {
        for (at, unit) in self.units.iter().enumerate() {
            let position = self.first + at as u64 + 1;
            if position > map.position() {
                map.replay(unit, position).unwrap();
            }
        }
    }
}

fn start() -> (tempfile::TempDir, std::path::PathBuf, Model) {
    let model: Model = (0..5000).map(|i| (imsi(i * 40), set(i as usize % 30))).collect();
    let (folder, path) = folder_with(&model);
    (folder, path, model)
}

#[test]
fn every_acknowledged_change_is_there_after_a_crash() {
    let (folder, path, mut model) = start();
    let changes = folder.path().join("base.changes");
    let mut journal = Kept::default();
    let mut has_checkpoint = false;
    for round in 0..8_u64 {
        // A crash: all that is left are the files and the journal.
        let map = Map::open(&path, has_checkpoint.then_some(&*changes), Load::Mapped).unwrap();
        journal.replay(&map);
        assert_same(&map, &model);
        for step in 0..20 {
            let key = imsi((round * 31 + step) * 9973 % 300_000);
            let change = if step % 3 == 0 {
                model.remove(&key);
                Change::Remove { key }
            } else {
                model.insert(key, set(step as usize + 100));
                put(key, step as usize + 100)
            };
            map.change(&[change], &mut journal).unwrap();
        }
        match round % 4 {
            // In the middle of a checkpoint: the beginning of a file under its temporary name.
            0 => std::fs::write(folder.path().join("base.changes.new"), b"SBXNUMS\n half").unwrap(),
            // Behind the rename, before the journal is trimmed.
            1 => {
                map.checkpoint(&changes, &mut Untrimmed).unwrap_err();
                has_checkpoint = true;
            }
            2 => {
                map.checkpoint(&changes, &mut journal).unwrap();
                assert!(journal.units.is_empty());
            }
            _ => {}
        }
    }
}

/// Dies before it trims.
struct Untrimmed;

impl Journal for Untrimmed {
    fn append(&mut self, _: &[Change]) -> io::Result<u64> {
        unreachable!("a checkpoint appends nothing")
    }

    fn trim(&mut self, _: u64) -> io::Result<()> {
        Err(io::Error::other("crash"))
    }
}

/// The file as it was, for each length at which the writing of the next may have stopped.
#[test]
fn a_checkpoint_that_is_cut_is_refused_and_the_one_before_stands() {
    let (folder, path, mut model) = start();
    let changes = folder.path().join("base.changes");
    let mut journal = Kept::default();
    let map = open(&path);
    map.change(&[put(imsi(7), 7)], &mut journal).unwrap();
    model.insert(imsi(7), set(7));
    map.checkpoint(&changes, &mut journal).unwrap();
    let whole = std::fs::read(&changes).unwrap();
    for length in (0..whole.len()).step_by(13) {
        std::fs::write(folder.path().join("base.changes.new"), &whole[..length]).unwrap();
        let cut = folder.path().join("cut");
        std::fs::write(&cut, &whole[..length]).unwrap();
        let refused = Map::open(&path, Some(&cut), Load::Mapped).unwrap_err();
        assert!(
            matches!(
                refused,
                Error::Length { .. } | Error::Foreign(_) | Error::Index { .. }
            ),
            "{refused}"
        );
    }
    assert_same(&Map::open(&path, Some(&changes), Load::Mapped).unwrap(), &model);
    // The next checkpoint overwrites what a crash has left.
    map.checkpoint(&changes, &mut journal).unwrap();
    assert!(!folder.path().join("base.changes.new").exists());
}

#[test]
fn changes_of_another_base_are_refused() {
    let (folder, path, _) = start();
    let (_other_folder, other) = folder_with(&Model::from([(imsi(1), set(1))]));
    let changes = folder.path().join("base.changes");
    open(&path).checkpoint(&changes, &mut Kept::default()).unwrap();
    assert!(Map::open(&path, Some(&changes), Load::Mapped).is_ok());
    for (base, changes) in [
        (&other, Some(&*changes)),
        (&path, Some(&*other)),
        (&changes, None),
    ] {
        let refused = Map::open(base, changes, Load::Mapped).unwrap_err();
        assert!(matches!(refused, Error::OtherBase { .. }), "{refused}");
    }
}

#[test]
fn a_removed_number_stays_removed_and_its_set_is_not_needed() {
    let (folder, path, model) = start();
    let changes = folder.path().join("base.changes");
    let mut journal = Kept::default();
    let map = open(&path);
    let all: Vec<Change> = model.keys().map(|key| Change::Remove { key: *key }).collect();
    map.change(&all, &mut journal).unwrap();
    map.checkpoint(&changes, &mut journal).unwrap();
    assert_same(
        &Map::open(&path, Some(&changes), Load::Mapped).unwrap(),
        &Model::new(),
    );
    let rewritten = folder.path().join("rewritten");
    assert_eq!(map.rewrite(&rewritten).unwrap().blocks, 0);
    assert_same(&open(&rewritten), &Model::new());
}

#[test]
fn a_damaged_changed_block_refuses_and_does_not_show_what_was_before() {
    let (folder, path, model) = start();
    let changes = folder.path().join("base.changes");
    let mut journal = Kept::default();
    let map = open(&path);
    map.change(&[put(imsi(0), 7)], &mut journal).unwrap();
    map.checkpoint(&changes, &mut journal).unwrap();
    let mut bytes = std::fs::read(&changes).unwrap();
    // The first block begins behind the header.
    bytes[140] ^= 1;
    std::fs::write(&changes, bytes).unwrap();
    let map = Map::open(&path, Some(&changes), Load::Mapped).unwrap();
    assert!(
        map.warnings()[0].contains("imsi of 15 digits, 000000000000000 to 000000000065535"),
        "{:?}",
        map.warnings()
    );
    assert!(map.find(imsi(0)).is_err());
    assert!(map.change(&[put(imsi(0), 7)], &mut journal).is_err());
    assert!(map.checkpoint(&changes, &mut journal).is_err());
    let (last, destinations) = model.last_key_value().unwrap();
    assert_eq!(
        map.set(map.find(*last).unwrap().unwrap()).as_deref(),
        Some(destinations)
    );
}

#[test]
fn a_rewritten_base_is_without_the_sets_that_no_number_has() {
    let (folder, path, mut model) = start();
    let map = open(&path);
    // One number, which had almost every set that fits.
    let many: Vec<Change> = (1_000..61_000).map(|at| put(imsi(7), at)).collect();
    map.replay(&many, 1).unwrap();
    // Its last set is behind those that go.
    model.insert(imsi(7), set(60_999));
    assert!(map.sets().len() > 60_000);
    let new = folder.path().join("new");
    let written = map.rewrite(&new).unwrap();
    assert_eq!(written.sets, 31);
    let map = open(&new);
    assert_eq!(map.position(), 1);
    assert_same(&map, &model);
    assert!(map.has_set(&set(60_999)) && !map.has_set(&set(1_000)));
    // Few of them stay: a block is copied as it is.
    map.replay(&[put(imsi(7), 100)], 2).unwrap();
    assert_eq!(map.rewrite(&path).unwrap().sets, 32);
    model.insert(imsi(7), set(100));
    assert_same(&open(&path), &model);
}
