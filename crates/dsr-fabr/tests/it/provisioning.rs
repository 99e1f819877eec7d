//! Subscribers that are changed one by one.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use dsr_app::Application as _;
use dsr_fabr::Fabr;

use crate::support::{of, settings, written};

fn load(folder: &Path, more: &str) -> Result<Arc<Fabr>, String> {
    let file = written(
        folder,
        "s.csv",
        "imsi,001010000000001,a\nnai,*@iot.example,c\nimsi,00102*,b\n",
    );
    let yaml = format!(
        "file: {file}
changes: {}
lookups: [{{entities: [{{entity: imsi, avps: [userName]}}, {{entity: nai, avps: [userName]}}]}}]
onNoMatch: abandon
{more}",
        folder.join("changes.csv").display()
    );
    Fabr::load(&settings(&yaml)).map(Arc::new)
}

#[test]
fn a_change_goes_before_the_files_and_outlives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let fabr = load(folder.path(), "").unwrap();
    // A reload has the file open as well, and sees what comes after it.
    let reloaded = load(folder.path(), "").unwrap();
    for (subject, to) in [
        ("imsi:001010000000001", "b"),
        ("imsi:001010000000002", "c,pcrf=a"),
        ("imsi:001020000000001", "a"),
        ("imsi:001020000000002", "a"),
        ("imsi:001020000000002", ""),
        ("imsi:001010000000003", ""),
        ("nai:Dev7@iot.example", "a"),
        ("nai:*@other.example", "b"),
    ] {
        fabr.change(subject, to).unwrap().unwrap();
    }
    let seen = |fabr: &Arc<Fabr>| {
        for (user, expected) in [
            ("001010000000001", "hss.b.example/"),
            ("001010000000002", "/c.example"),
            ("001020000000001", "hss.a.example/a.example"),
            ("001020000000002", "hss.b.example/"),
            ("001010000000003", "drop"),
            ("dev7@iot.example", "hss.a.example/a.example"),
            ("dev8@iot.example", "/c.example"),
            ("x@other.example", "hss.b.example/"),
        ] {
            assert_eq!(of(fabr, user), expected, "{user}");
        }
    };
    seen(&fabr);
    seen(&reloaded);
    drop((fabr, reloaded));
    // What was being written at a crash was not acknowledged.
    let path = folder.path().join("changes.csv");
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"imsi,001010000000001,c").unwrap();
    let again = load(folder.path(), "").unwrap();
    seen(&again);
    again.change("imsi:001010000000004", "a").unwrap().unwrap();
    drop(again);
    let again = load(folder.path(), "").unwrap();
    seen(&again);
    assert_eq!(of(&again, "001010000000004"), "hss.a.example/a.example");
    drop(again);
    // A line that is wrong is named, and so is a destination that left the settings.
    std::fs::write(&path, "imsi,001010000000001,gone\n").unwrap();
    let wrong = load(folder.path(), "").unwrap_err();
    assert!(wrong.contains("the destination `gone` does not exist"), "{wrong}");
    std::fs::write(&path, "imsi,001010000000001,a\nimsi,x,a\n").unwrap();
    let wrong = load(folder.path(), "").unwrap_err();
    assert!(wrong.contains("line 2: "), "{wrong}");
}

#[test]
fn what_cannot_be_changed_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let fabr = load(folder.path(), "maxChanges: 1\n").unwrap();
    for (subject, to, wanted) in [
        ("imsi:0010100000000012", "a", "16 digits"),
        ("imsi:00101000000000x", "a", "character 15"),
        ("imsi:00101", "a", "expected 6 to 15"),
        ("imsi:00101*", "a", "character 6"),
        ("imsi:", "a", "empty"),
        ("imei:35209900176148", "a", "does not exist"),
        ("001010000000001", "a", "is not ENTITY:VALUE"),
        (
            "imsi:001010000000001",
            "gone",
            "the destination `gone` does not exist",
        ),
        (
            "imsi:001010000000001",
            "a,hlr=b",
            "the service `hlr` does not exist",
        ),
        ("imsi:001010000000001", "a b", "visible ASCII"),
        ("nai:a,b@x", "a", "comma"),
        ("nai:a\nb@x", "a", "expected user@realm"),
        ("impu:alice", "a", "expected sip:user@realm"),
    ] {
        let wrong = fabr.change(subject, to).unwrap().unwrap_err();
        assert!(wrong.contains(wanted), "{subject}: {wrong}");
    }
    assert_eq!(
        std::fs::read_to_string(folder.path().join("changes.csv")).unwrap(),
        ""
    );
    fabr.change("imsi:001010000000001", "b").unwrap().unwrap();
    let wrong = fabr.change("imsi:001010000000002", "b").unwrap().unwrap_err();
    assert!(wrong.contains("maxChanges (1)"), "{wrong}");
    fabr.change("imsi:001010000000001", "c").unwrap().unwrap();
    assert_eq!(of(&fabr, "001010000000001"), "/c.example");
    let fixed = Fabr::load(&settings("")).unwrap();
    let wrong = fixed.change("imsi:001010000000001", "b").unwrap().unwrap_err();
    assert!(wrong.contains("fabr.changes names no file"), "{wrong}");
}

#[test]
fn what_changes_nothing_is_not_written_and_a_full_file_can_be_emptied() {
    let folder = tempfile::tempdir().unwrap();
    let fabr = load(folder.path(), "maxChanges: 1\n").unwrap();
    let lines = || {
        let text = std::fs::read_to_string(folder.path().join("changes.csv")).unwrap();
        text.lines().count()
    };
    let change = |subject: &str, to: &str| fabr.change(subject, to).unwrap();
    // Unknown; in a range only.
    change("imsi:001030000000001", "").unwrap();
    change("imsi:001020000000001", "").unwrap();
    assert_eq!(lines(), 0);
    change("imsi:001030000000001", "b,pcrf=a").unwrap();
    change("imsi:001030000000001", "b,pcrf=a").unwrap();
    assert_eq!(lines(), 1);
    assert!(
        change("imsi:001030000000002", "b")
            .unwrap_err()
            .contains("maxChanges")
    );
    // One of the text is taken away, and the one that was changed: there is room again.
    change("imsi:001010000000001", "").unwrap();
    change("imsi:001030000000001", "").unwrap();
    change("imsi:001030000000001", "").unwrap();
    assert_eq!(lines(), 3);
    change("imsi:001030000000002", "b").unwrap();
    assert!(change("imsi:001030000000003", "b").is_err());
    drop(fabr);
    let again = load(folder.path(), "maxChanges: 1\n").unwrap();
    assert!(again.change("imsi:001030000000003", "b").unwrap().is_err());
    again.change("imsi:001030000000002", "").unwrap().unwrap();
    again.change("imsi:001030000000003", "b").unwrap().unwrap();
}

#[test]
fn check_reads_all_files_beside_the_router_that_has_them_open() {
    let folder = tempfile::tempdir().unwrap();
    let changes = folder.path().join("changes.csv");
    let check = || dsr_fabr::check_files(&settings(&format!("changes: {}\n", changes.display())));
    check().unwrap();
    assert!(!changes.exists());
    let fabr = load(folder.path(), "").unwrap();
    fabr.change("imsi:001010000000001", "b").unwrap().unwrap();
    check().unwrap();
    drop(fabr);
    for (text, wanted) in [
        (
            "imsi,001010000000001,gone\n",
            "the destination `gone` does not exist",
        ),
        ("imsi,001010000000001,a\nimsi,x,a\nhalf", "line 2: "),
    ] {
        std::fs::write(&changes, text).unwrap();
        let wrong = check().unwrap_err();
        assert!(
            wrong.contains(wanted) && wrong.contains("changes.csv: "),
            "{wrong}"
        );
    }
    let here = folder.path().display();
    for key in ["file", "numbers", "changes"] {
        let settings = settings(&format!("{key}: {here}\n"));
        for wrong in [
            dsr_fabr::check_files(&settings).unwrap_err(),
            Fabr::load(&settings).unwrap_err(),
        ] {
            assert!(wrong.contains("is not a regular file"), "{key}: {wrong}");
        }
    }
}

#[test]
fn one_file_is_not_both_text_and_changes() {
    use settings::{Faults, Validate as _};
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path(), "s.csv", "imsi,001010000000001,a\n");
    let other = folder.path().join("./s.csv");
    let mut settings = settings("");
    settings.file = Some(file.into());
    settings.changes = Some(other);
    let mut faults = Faults::default();
    settings.validate(&mut faults);
    assert!(
        format!("{faults:?}").contains("is the same file as `file`"),
        "{faults:?}"
    );
}

/// The folder in which this process writes subscribers until it is killed, when a test has started it for that.
const WRITER: &str = "DSR_FABR_WRITER";

fn subscriber(number: u64) -> String {
    format!("imsi:{:015}", 1_010_000_000_000 + number)
}

/// The other process of the test below; by itself it does nothing.
#[test]
fn writes_subscribers_until_it_is_killed() {
    let Some(folder) = std::env::var_os(WRITER) else {
        return;
    };
    let fabr = load(Path::new(&folder), "").unwrap();
    for number in 0.. {
        fabr.change(&subscriber(number), "c").unwrap().unwrap();
        // Acknowledged. The pipe ends with the test that reads it.
        if writeln!(std::io::stderr(), "{number}").is_err() {
            return;
        }
    }
}

#[test]
fn kill_9_loses_no_subscriber_that_was_acknowledged() {
    use std::io::BufRead as _;
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = 0;
    for round in 1..=3_u64 {
        let mut writer = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "provisioning::writes_subscribers_until_it_is_killed"])
            .env(WRITER, folder.path())
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = std::io::BufReader::new(writer.stderr.take().unwrap()).lines();
        let mut read = || lines.next()?.ok()?.parse::<u64>().ok();
        while acknowledged < round * 50 {
            acknowledged = acknowledged.max(read().unwrap() + 1);
        }
        // SIGKILL: what Rust's kill sends. What it had acknowledged by then is in the pipe.
        writer.kill().unwrap();
        writer.wait().unwrap();
        while let Some(number) = read() {
            acknowledged = acknowledged.max(number + 1);
        }
        let fabr = load(folder.path(), "").unwrap();
        for number in 0..acknowledged {
            let found = fabr.look_up(&subscriber(number)).unwrap();
            assert_eq!(
                found["destinations"], "c by changes",
                "round {round}: {number} of {acknowledged}"
            );
        }
    }
}
