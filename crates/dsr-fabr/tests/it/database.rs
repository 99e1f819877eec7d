//! A file of numbers: known, unknown, damaged.

use std::path::Path;
use std::sync::Arc;

use dsr_app::Application as _;
use dsr_fabr::Fabr;
use numbers::csv::{self, Options};
use numbers::{Key, Kind, Load, Map, Place};

use crate::support::{of, settings, written};

fn imported(folder: &Path, text: &str) -> String {
    let path = folder.join("s.num");
    let options = Options {
        sort: true,
        sort_memory: 0,
    };
    csv::import(text.as_bytes(), &path, options, |_| Ok(())).unwrap();
    path.display().to_string()
}

fn load(numbers: &str, more: &str) -> Result<Arc<Fabr>, String> {
    let yaml = format!(
        "numbers: {numbers}
lookups: [{{service: lte-hss, entities: [{{entity: imsi, avps: [userName]}}, {{entity: msisdn, avps: [userName]}}]}}]
onDatabaseError: {{answer: {{resultCode: 3002, message: damaged}}}}
onNoMatch: abandon
{more}"
    );
    Fabr::load(&settings(&yaml)).map(Arc::new)
}

#[test]
fn numbers_are_found_behind_the_text() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = imported(
        folder.path(),
        "imsi,001010000000001,a\nimsi,001010000000002,a,lte-hss=b\nmsisdn,491701234,c\nimsi,001010000000003,pcrf=b\n",
    );
    let file = written(
        folder.path(),
        "s.csv",
        "imsi,001010000000001,c\nimsi,001010000000*,b\nnai,a@x,a\n",
    );
    let fabr = load(&numbers, &format!("file: {file}\n")).unwrap();
    assert_eq!(of(&fabr, "001010000000001"), "/c.example", "the text");
    assert_eq!(of(&fabr, "001010000000002"), "hss.b.example/");
    assert_eq!(of(&fabr, "491701234"), "/c.example");
    assert_eq!(of(&fabr, "001010000000003"), "hss.b.example/", "its range");
    assert_eq!(of(&fabr, "001010000001003"), "drop");
    assert_eq!(
        fabr.look_up("imsi:001010000000002").unwrap()["destinations"],
        "a by numbers, lte-hss=b by numbers"
    );
    let tables = fabr.tables();
    let entries = tables.iter().map(|table| (table.name, table.entries));
    let expected = [("subscribers", 1), ("names", 1), ("ranges", 1), ("numbers", 4)];
    assert_eq!(entries.collect::<Vec<_>>(), expected);
    let wrong = load(&imported(folder.path(), "imsi,1,nowhere\n"), "").unwrap_err();
    assert!(
        wrong.contains("s.num: the destination `nowhere` does not exist"),
        "{wrong}"
    );
}

#[test]
fn a_damaged_block_refuses_its_own_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = imported(
        folder.path(),
        "imsi,001010000000001,a\nimsi,001020000000001,a\nimsi,001020000000002,b\n",
    );
    let key = Key::new(Kind::Imsi, b"001020000000001").unwrap();
    let map = Map::open(Path::new(&numbers), None, Load::Copied).unwrap();
    let Place::Base(offset) = map.explain(key).place else {
        panic!("no block");
    };
    let mut bytes = std::fs::read(&numbers).unwrap();
    bytes[offset as usize] ^= 1;
    std::fs::write(&numbers, bytes).unwrap();
    // A range must not stand in for what cannot be read.
    let file = written(folder.path(), "s.csv", "imsi,00102*,c\n");
    let fabr = load(&numbers, &format!("file: {file}\n")).unwrap();
    assert_eq!(of(&fabr, "001010000000001"), "hss.a.example/a.example");
    assert_eq!(of(&fabr, "001020000000001"), "0:3002 damaged");
    assert_eq!(of(&fabr, "001030000000001"), "drop");
    let error = fabr.look_up("imsi:001020000000001").unwrap()["error"].to_string();
    assert!(error.contains("001020000"), "{error}");
}

#[test]
fn a_file_of_numbers_and_processors_exclude_one_another() {
    let wrong = |yaml: &str| {
        let read = ::settings::from_str::<dsr_fabr::config::Fabr>(yaml, "test");
        read.unwrap_err().to_string()
    };
    let processors = "processors: [{address: \"192.0.2.1:3800\"}]\n";
    let both = wrong(&format!("numbers: s.num\n{processors}"));
    assert!(both.contains("is set beside processors"), "{both}");
    let at_once = wrong(&format!("{processors}processorDeadline: 0s\n"));
    assert!(at_once.contains("processorDeadline"), "{at_once}");
    let many = "{address: \"192.0.2.1:3800\"},".repeat(33);
    let many = wrong(&format!("processors: [{many}]\n"));
    assert!(many.contains("at most 32"), "{many}");
}
