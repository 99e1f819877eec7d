//! Files of names: exact, sorted, checked page by page.

use std::collections::BTreeMap;
use std::path::Path;

use numbers::{DamagedNames, DestinationSet, Error, Load, NameFile, NameWriter};
use proptest::prelude::*;

fn set(number: usize) -> DestinationSet {
    DestinationSet::parse(&format!("hss{number}.example,pcrf=p{}", number % 3)).unwrap()
}

fn write(path: &Path, names: &BTreeMap<Vec<u8>, usize>) -> NameFile {
    let mut writer = NameWriter::create(path).unwrap();
    for (name, number) in names {
        writer.push(name, &set(*number)).unwrap();
    }
    assert_eq!(writer.finish().unwrap(), names.len() as u64);
    NameFile::open(path, Load::Mapped).unwrap()
}

/// The set of a name as text; none: it is unknown.
fn found(file: &NameFile, name: &[u8]) -> Result<Option<String>, DamagedNames> {
    file.find(name).map(|set| set.map(ToString::to_string))
}

fn all(file: &NameFile) -> BTreeMap<Vec<u8>, String> {
    let mut all = BTreeMap::new();
    file.for_each::<DamagedNames>(|name, set| {
        let last = all.last_key_value();
        assert!(
            last.is_none_or(|(last, _): (&Vec<u8>, _)| **last < *name),
            "ascending"
        );
        all.insert(name.to_vec(), set.to_string());
        Ok(())
    })
    .unwrap();
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_file_has_the_names_that_were_written_and_no_others(
        names in prop::collection::btree_map("[ab.@]{1,6}|dev[0-9]{2,4}@iot.example|[a-c]{250,255}", 0_usize..9, 0..700),
        others in prop::collection::vec("[ab.@]{0,7}|dev[0-9]{2,5}@iot.exampl[ef]|[a-c]{250,256}", 50),
    ) {
        let names: BTreeMap<Vec<u8>, usize> = names.into_iter().map(|(name, set)| (name.into_bytes(), set)).collect();
        let folder = tempfile::tempdir().unwrap();
        let file = write(&folder.path().join("n"), &names);
        prop_assert_eq!(file.len(), names.len());
        for (name, number) in &names {
            prop_assert_eq!(found(&file, name), Ok(Some(set(*number).to_string())));
        }
        for other in others {
            let expected = names.get(other.as_bytes()).map(|number| set(*number).to_string());
            prop_assert_eq!(found(&file, other.as_bytes()), Ok(expected), "{}", other);
        }
        let expected: BTreeMap<Vec<u8>, String> = names.iter().map(|(name, number)| (name.clone(), set(*number).to_string())).collect();
        prop_assert_eq!(all(&file), expected);
    }
}

fn devices(count: usize, distance: usize) -> BTreeMap<Vec<u8>, usize> {
    let name = |at: usize| format!("imei{:011}@iot.example", at * distance).into_bytes();
    (0..count).map(|at| (name(at), at % 5)).collect()
}

#[test]
fn a_flipped_bit_costs_the_names_of_a_page_at_most() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("n");
    let names = devices(200, 17);
    drop(write(&path, &names));
    let whole = std::fs::read(&path).unwrap();
    let (mut damaged, mut refused) = (0, 0);
    for bit in (0..whole.len() * 8).step_by(7) {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, &bytes).unwrap();
        let file = NameFile::open(&path, Load::Copied).unwrap();
        let mut lost = 0;
        for (name, number) in &names {
            match found(&file, name) {
                Ok(found) => assert_eq!(found, Some(set(*number).to_string()), "bit {bit}"),
                Err(_) => lost += 1,
            }
        }
        assert!(lost <= 128, "bit {bit}: {lost}");
        assert!(lost > 0 || !file.warnings().is_empty(), "bit {bit} is noticed");
        damaged += usize::from(lost > 0);
        refused += usize::from(lost == 0);
    }
    assert!(damaged > 0 && refused > 0);
    // Cut, of another kind, and damaged in both copies of the index.
    for bytes in [&whole[..whole.len() - 1], b"SBXNUMS\n", b""] {
        std::fs::write(&path, bytes).unwrap();
        assert!(NameFile::open(&path, Load::Mapped).is_err());
    }
}

#[test]
fn names_of_a_file_ascend() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("n");
    let mut writer = NameWriter::create(&path).unwrap();
    writer.push(b"b", &set(1)).unwrap();
    for (name, reason) in [
        (&b"a"[..], "a follows b"),
        (b"b", "b follows b"),
        (b"", "0 bytes"),
        (&[b'x'; 256], "256 bytes"),
    ] {
        let wrong = writer.push(name, &set(1)).unwrap_err();
        assert!(
            matches!(wrong, Error::Name(_)) && wrong.to_string().contains(reason),
            "{wrong}"
        );
    }
    drop(writer);
    assert!(!path.exists(), "nothing is left of a file that was not finished");
}

#[test]
fn a_name_of_27_bytes_takes_less_than_eight() {
    let folder = tempfile::tempdir().unwrap();
    let names = devices(20_000, 19);
    let file = write(&folder.path().join("n"), &names);
    assert!(names.keys().all(|name| name.len() == 27));
    let bytes = file.bytes() as f64 / names.len() as f64;
    assert!(bytes < 8.0, "{bytes}");
    assert_eq!(
        found(&file, b"imei00000000019@iot.example"),
        Ok(Some(set(1).to_string()))
    );
    assert_eq!(found(&file, b"imei00000000020@iot.example"), Ok(None));
}
