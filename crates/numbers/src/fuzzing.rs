//! Bodies of the fuzz targets of this crate: what may be done with bytes from elsewhere, and what must hold then. No part of
//! its interface. The suite runs them for a moment, the targets in `fuzz/` for hours.

use std::io::Write as _;
use std::path::PathBuf;

use crate::block::{Block, Head, OwnedBlock};
use crate::csv::{self, Options};
use crate::key::{Key, Kind};
use crate::map::{Change, Map, NoJournal};
use crate::memory::Load;
use crate::sets::DestinationSet;

/// Bytes as a file of numbers: opened, searched, listed, changed. What is found one by one is found in a batch as well.
pub fn file(bytes: &[u8]) {
    block(bytes);
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("a temporary file can be written");
    let Ok(map) = Map::open(file.path(), None, Load::Copied) else {
        return;
    };
    let mut keys = Vec::new();
    let listed = map.for_each(
        |key, _| {
            keys.push(key);
            if keys.len() < 10_000 { Ok(()) } else { Err(()) }
        },
        |damaged| assert!(!damaged.to_string().is_empty()),
    );
    let _ = listed;
    keys.extend((0..100).filter_map(|number| Key::from_number(Kind::Imsi, 15, number * 7001)));
    let mut found = Vec::new();
    map.find_many(&keys, |answer| found.push(answer));
    for (key, answer) in keys.iter().zip(found) {
        assert_eq!(map.find(*key), answer, "{key}");
        let _ = map.explain(*key);
    }
    let set = DestinationSet::parse("a").expect("a set");
    for key in keys.iter().step_by(50) {
        let change = Change::Put {
            key: *key,
            set: set.clone(),
        };
        if map.change(&[change], &mut NoJournal::default()).is_ok() {
            let id = map.find(*key).expect("a block that was rebuilt");
            assert_eq!(id.and_then(|id| map.set(id)).as_deref(), Some(&set));
        }
    }
    let _ = map.summary();
}

/// Bytes as a block whose checksum fits: its head, and what it is the head of. What it lists it finds.
fn block(bytes: &[u8]) {
    let Some((head, bytes)) = bytes.split_first_chunk::<8>() else {
        return;
    };
    // Forms and widths that exist, so that the bytes are read at all.
    let head = u64::from_le_bytes(*head) & 0x0000_ffff_000f_0ff3;
    let Some(head) = Head::unpack(head) else { return };
    let block = Block { head, bytes };
    for low in (0..=u16::MAX).step_by(251) {
        let _ = (block.find(low), block.signpost(low), block.cell(low));
    }
    let Some(entries) = block.entries() else { return };
    for (low, value) in &entries {
        assert_eq!(block.find(*low), Some(*value), "{low} of {head:?}");
    }
    assert_eq!(OwnedBlock::encode(&entries).view().entries(), Some(entries));
}

/// Bytes as lines to import. What is accepted, sorted or not, is exported as an import takes it, and is the same again.
pub fn lines(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    let import = |bytes: &[u8], to: &str, sort: bool| {
        let options = Options { sort, sort_memory: 0 };
        csv::import(bytes, &path(to), options, |_| Ok(())).ok()
    };
    let exported = |name: &str| {
        let map = Map::open(&path(name), None, Load::Copied).expect("a file that was written opens");
        let mut text = Vec::new();
        csv::export(&map, None, &mut text, |damaged| panic!("{damaged}")).expect("memory can be written");
        text
    };
    let Some(written) = import(bytes, "sorted", true) else {
        assert!(
            import(bytes, "plain", false).is_none(),
            "sorting refuses what is accepted without"
        );
        return;
    };
    let text = exported("sorted");
    let again = import(&text, "again", false).expect("what was exported can be imported");
    assert_eq!(again.numbers, written.numbers);
    assert_eq!(exported("again"), text);
    if import(bytes, "plain", false).is_some() {
        assert_eq!(exported("plain"), text);
    }
}
