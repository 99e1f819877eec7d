//! Files of subscribers that are wrong: refused with their line.

use dsr_fabr::Fabr;

use crate::support::{settings, written};

fn refused(text: &str, more: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path(), "s.csv", text);
    let wrong = Fabr::load(&settings(&format!("file: {file}\n{more}"))).unwrap_err();
    assert!(wrong.starts_with(&file), "{wrong}");
    wrong
}

#[test]
fn a_wrong_line_is_named_with_its_reason() {
    let good = "imsi,001010000000001,a\n";
    for (text, line, wanted) in [
        // Cut in the middle of a line, and between two.
        (format!("{good}imsi,001010000"), 2, "the file is cut"),
        (format!("#signalbox-numbers,1\n{good}"), 3, "the file is cut"),
        (
            format!("#signalbox-numbers,1\n{good}#end,2\n"),
            3,
            "lines are lost",
        ),
        (
            format!("{good}imsi,001010000000002,b\n{good}"),
            3,
            "twice; first on line 1",
        ),
        (format!("{good}imsi,0010100000000012,a\n"), 2, "16 digits"),
        (format!("{good}imsi,00101000000000x,a\n"), 2, "character 15"),
        (
            format!("{good}msisdn,+49170,a\n"),
            2,
            "character 1 of the number is not a digit",
        ),
        (format!("{good}imsi,,a\n"), 2, "empty"),
        (format!("{good}imsi,00101,a\n"), 2, "expected 6 to 15"),
        (
            format!("{good}imei,35209900176148,a\n"),
            2,
            "the entity `imei` does not exist",
        ),
        (
            format!("{good}imsi,001010000000002,d\n"),
            2,
            "the destination `d` does not exist",
        ),
        (
            format!("{good}imsi,001010000000002,hlr=a\n"),
            2,
            "the service `hlr` does not exist",
        ),
        (format!("{good}imsi,001010000000002,a,a\n"), 2, "two destinations"),
        (format!("{good}imsi,001010000000002,\n"), 2, "no destination"),
        (format!("{good}imsi,001010000000002\n"), 2, "expected kind"),
        (format!("{good}\n"), 2, "empty line"),
        (format!("{good}imsi,*,a\n"), 2, "empty"),
        (format!("{good}imsi,0010x*,a\n"), 2, "character 5"),
        (format!("{good}imsi,00101..0010,a\n"), 2, "count of digits"),
        (format!("{good}imsi,00102..00101,a\n"), 2, "ends before it begins"),
        (
            format!("{good}imsi,00101..00105,a\nimsi,00103*,b\n"),
            3,
            "the range overlaps that of line 2",
        ),
        (format!("{good}nai,dev*@x,a\n"), 2, "pattern of no supported form"),
        (format!("{good}nai,*@*.x,a\n"), 2, "pattern of no supported form"),
        (
            format!("{good}impu,tel:+49*,a\n"),
            2,
            "pattern of no supported form",
        ),
        (
            format!("{good}impu,sip:a*@x,a\n"),
            2,
            "pattern of no supported form",
        ),
        (format!("{good}nai,alice,a\n"), 2, "expected user@realm"),
        (format!("{good}impu,alice@x,a\n"), 2, "expected sip:user@realm"),
        (
            format!("{good}nai,A@x,a\nimpi,a@x,a\nnai,a@X,b\n"),
            4,
            "a@x is there twice; first on line 2",
        ),
        (
            format!("{good}nai,{}@x,a\n", "a".repeat(254)),
            2,
            "the name has 256 bytes",
        ),
        (String::new(), 1, "no number in the whole input"),
        ("# nothing\n".to_owned(), 2, "no number in the whole input"),
    ] {
        let wrong = refused(&text, "");
        assert!(
            wrong.contains(&format!("line {line}: ")) && wrong.contains(wanted),
            "{text}: {wrong}"
        );
    }
    let wrong = refused(
        "imsi,001010000000001,a\nnai,a@x,a\nimsi,00101*,a\n",
        "maxEntries: 2\n",
    );
    assert!(
        wrong.contains("line 3: more entries than maxEntries (2)"),
        "{wrong}"
    );
}

#[test]
fn a_file_that_is_missing_or_not_text_is_named() {
    let wrong = Fabr::load(&settings("file: /nowhere/s.csv\n")).unwrap_err();
    assert!(wrong.starts_with("/nowhere/s.csv: "), "{wrong}");
    let wrong = Fabr::load(&settings("numbers: /nowhere/s.num\n")).unwrap_err();
    assert!(wrong.contains("/nowhere/s.num"), "{wrong}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.csv");
    std::fs::write(&path, b"imsi,001010000000001,a\nnai,\xff@x,a\n").unwrap();
    let wrong = Fabr::load(&settings(&format!("file: {}\n", path.display()))).unwrap_err();
    assert!(wrong.contains("line 2: not in UTF-8"), "{wrong}");
    let wrong = Fabr::load(&settings(&format!("numbers: {}\n", path.display()))).unwrap_err();
    assert!(wrong.contains("s.csv"), "{wrong}");
}
