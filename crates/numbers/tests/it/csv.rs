//! Import and export of text.

use std::path::PathBuf;

use numbers::csv::{self, ImportError, Mistake, Options, Progress, TextWriter};
use numbers::{DestinationSet, Kind, Map};
use tempfile::TempDir;

use crate::support::{assert_same, found, imsi, key, model, open};

const PLAIN: Options = Options {
    sort: false,
    sort_memory: 0,
};
const SORTED: Options = Options {
    sort: true,
    sort_memory: 0,
};

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("n.num");
    (folder, path)
}

fn text_of(map: &Map, kind: Option<Kind>) -> String {
    let mut text = Vec::new();
    csv::export(map, kind, &mut text, |damaged| panic!("{damaged}")).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn what_is_exported_is_imported_in_any_order() {
    let (folder, path) = folder();
    for seed in 1..5 {
        let model = model(seed, 4000);
        crate::support::write(&path, &model);
        let text = text_of(&open(&path), None);
        let again = folder.path().join("again");
        csv::import(text.as_bytes(), &again, PLAIN, |_| Ok(())).unwrap();
        assert_same(&open(&again), &model);
        let mut lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        lines.reverse();
        let reversed = lines.join("\r\n") + "\r\n";
        csv::import(reversed.as_bytes(), &again, SORTED, |_| Ok(())).unwrap();
        assert_same(&open(&again), &model);
    }
}

#[test]
fn export_of_one_kind() {
    let (_folder, path) = folder();
    let lines = "imsi,001010000000001,hss1,pcrf=p1\nmsisdn,491511,b,a=x\n";
    csv::import(lines.as_bytes(), &path, PLAIN, |_| Ok(())).unwrap();
    let map = open(&path);
    assert_eq!(
        text_of(&map, Some(Kind::Msisdn)),
        "#signalbox-numbers,1\nmsisdn,491511,b,a=x\n#end,1\n"
    );
    assert_eq!(
        map.set(map.find(key(Kind::Imsi, "001010000000001")).unwrap().unwrap())
            .unwrap()
            .destination("ocs"),
        Some("hss1")
    );
}

/// Each input with the line and a part of the reason; whatever the options, the file that was there stays.
#[test]
fn a_wrong_line_is_refused_with_its_number_and_reason_and_nothing_changes() {
    let (folder, path) = folder();
    csv::import(&b"imsi,000000000000042,stays\n"[..], &path, PLAIN, |_| Ok(())).unwrap();
    let long = format!("imsi,1,a\nimsi,2,{}\n", "a".repeat(9000));
    let sixty = format!("imsi,{},a\n", "1".repeat(7000));
    let cases: &[(&[u8], u64, &str)] = &[
        (
            b"imsi,1,a\nimsi,12345678901234x,a\n",
            2,
            "character 15 of the number is not a digit",
        ),
        (b"imsi,1234567890123456,a\n", 1, "16 digits; expected 1 to 15"),
        (b"imsi,,a\n", 1, "the number is empty"),
        (b"imsi,0010f0000000001,a\n", 1, "character 5"),
        (b"imsi, 1,a\n", 1, "character 1"),
        (b"msisdn,+491511,a\n", 1, "character 1"),
        ("imsi,\u{661},a\n".as_bytes(), 1, "character 1"),
        (b"imsi,1,a\nimsi,2,a\nimsi,2,b\n", 3, "imsi,2 is there twice"),
        (b"imsi,1,a\nimsi,1,a\n", 2, "twice"),
        (
            b"imsi,1,a\n#signalbox-numbers,1\nimsi,2,a\nimsi,3",
            4,
            "the file is cut",
        ),
        (b"#signalbox-numbers,1\nimsi,1,a\n", 3, "the file is cut"),
        (
            b"#signalbox-numbers,1\nimsi,1,a\n#end,2\n",
            3,
            "1 numbers before, expected 2",
        ),
        (
            b"#signalbox-numbers,1\nimsi,1,a\n#end,1\nimsi,2,a\n",
            4,
            "behind the end",
        ),
        (b"imsi,1,a\n#end,1x\n", 2, "#end"),
        (
            b"#signalbox-numbers,2\nimsi,1,a\n#end,1\n",
            1,
            "version `2`; expected",
        ),
        (b"#signalbox-numbers,1\n#end,1\n", 2, "0 numbers before"),
        (b"#signalbox-numbers,1\n", 2, "the file is cut"),
        (b"imsi,1,a\n\nimsi,2,a\n", 2, "empty line"),
        (b"imsi,1\n", 1, "expected kind,number,destination"),
        (b"imsi\n", 1, "expected kind,number,destination"),
        (b"imsi,1,\n", 1, "no destination"),
        (b"imsi,1,a,\n", 1, "destination ``"),
        (b"imsi,1,a,b\n", 1, "two destinations"),
        (b"imsi,1,\"a\"\n", 1, "destination"),
        (b"imsj,1,a\n", 1, "unknown kind"),
        (b"kind,number,destination\n", 1, "unknown kind"),
        (b"imsi,1,\xff\n", 1, "UTF-8"),
        (b"\xef\xbb\xbfimsi,1,a\n", 1, "unknown kind"),
        (b"", 1, "no number"),
        (b"# nothing\n", 2, "no number"),
        (long.as_bytes(), 2, "more than 8192 bytes"),
        (sixty.as_bytes(), 1, "7000 digits"),
    ];
    for (input, line, reason) in cases {
        for options in [PLAIN, SORTED] {
            let error = csv::import(*input, &path, options, |_| Ok(()))
                .unwrap_err()
                .to_string();
            let shown = String::from_utf8_lossy(&input[..input.len().min(80)]);
            assert!(error.starts_with(&format!("line {line}: ")), "{shown:?}: {error}");
            assert!(error.contains(reason), "{shown:?}: {error}");
        }
    }
    let unsorted = b"imsi,2,a\nimsi,10,a\nimsi,9,a\n";
    let error = csv::import(&unsorted[..], &path, PLAIN, |_| Ok(()))
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("line 3: imsi,9 follows imsi,10"), "{error}");
    let twice = b"imsi,2,a\nimsi,10,a\nimsi,2,a\n";
    let error = csv::import(&twice[..], &path, SORTED, |_| Ok(()))
        .unwrap_err()
        .to_string();
    assert_eq!(error, "line 3: imsi,2 is there twice; first on line 1");
    assert_eq!(found(&open(&path), imsi(42)).as_deref(), Some("stays"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn more_sets_than_a_map_can_have_are_refused_by_line() {
    let (_folder, path) = folder();
    let mut text = String::new();
    for number in 10_000..10_000 + 65_536 {
        text += &format!("msisdn,{number:06},d{number}\n");
    }
    let error = csv::import(text.as_bytes(), &path, PLAIN, |_| Ok(()))
        .unwrap_err()
        .to_string();
    assert_eq!(error, "line 65536: more than 65535 different destination sets");
}

#[test]
fn progress_can_end_an_import() {
    let (folder, path) = folder();
    let lines: String = (0..100_000)
        .map(|number| format!("imsi,{number:06},a\n"))
        .collect();
    let mut seen = Vec::new();
    let ended = csv::import(lines.as_bytes(), &path, PLAIN, |line| {
        seen.push(line);
        Err(std::io::Error::other("no more"))
    });
    assert!(ended.is_err());
    assert_eq!(seen, [Progress::Read(65_536)]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// What a text has, as kind, value and destinations.
fn read(text: &[u8]) -> Result<Vec<[String; 3]>, ImportError> {
    let mut all = Vec::new();
    csv::entries(&mut &*text, |line, entry| {
        DestinationSet::parse(entry.destinations).map_err(|error| Mistake::at(line, error))?;
        all.push([entry.kind, entry.value, entry.destinations].map(str::to_owned));
        Ok(())
    })?;
    Ok(all)
}

#[test]
fn a_flipped_bit_of_a_text_with_a_checksum_changes_no_entry() {
    let mut text = TextWriter::new(Vec::new()).unwrap();
    text.comment("#journal,j1").unwrap();
    for entry in ["imsi,001010000000001,hss1,pcrf=p1", "name,a@b,hss2"] {
        text.entry(entry).unwrap();
    }
    text.end().unwrap();
    let text = text.into_output();
    let (expected, mut refused) = (read(&text).unwrap(), 0);
    assert_eq!(expected[1], ["name", "a@b", "hss2"]);
    for bit in 0..text.len() * 8 {
        let mut damaged = text.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        match read(&damaged) {
            Ok(found) => assert_eq!(found, expected, "{}", damaged.escape_ascii()),
            Err(_) => refused += 1,
        }
    }
    // Not in the names of the comments that say that there are an end and a checksum.
    assert!(refused > text.len() * 6, "{refused}");
    // Line ends may become those of another system.
    let other = String::from_utf8(text).unwrap().replace('\n', "\r\n");
    assert_eq!(read(other.as_bytes()).unwrap(), expected);
    let wrong = read(other.replace("hss2", "hss3").as_bytes())
        .unwrap_err()
        .to_string();
    assert!(
        wrong.starts_with("line 5: ") && wrong.contains("checksum"),
        "{wrong}"
    );
}

#[test]
fn a_text_that_says_that_it_has_no_number_is_one_without_numbers() {
    let (_folder, path) = folder();
    let text = "#signalbox-numbers,1\n#journal,j1\n#offset,3\n#end,0\n";
    let written = csv::import(text.as_bytes(), &path, PLAIN, |_| Ok(())).unwrap();
    assert_eq!(written.numbers, 0);
    assert_eq!(text_of(&open(&path), None), "#signalbox-numbers,1\n#end,0\n");
}
