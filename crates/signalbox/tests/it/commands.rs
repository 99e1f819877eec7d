//! Exit codes and what is printed.

use std::process::{Command, Output};

fn signalbox(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_signalbox"))
        .args(args)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn check_tells_every_mistake_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.yaml");
    std::fs::write(
        &file,
        "nrf:\n  lisen: 127.0.0.1:1\n  heartBeat:\n    min: 2h\n    max: 1h\n  workers: many\n",
    )
    .unwrap();
    let output = signalbox(&["check", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    for part in ["wrong.yaml:2:3", "listen", "wrong.yaml:6", "workers"] {
        assert!(said.contains(part), "{part} is missing:\n{said}");
    }
}

#[test]
fn what_it_prints_it_reads() {
    let shown = signalbox(&["config", "show"]);
    assert!(shown.status.success());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shown.yaml");
    std::fs::write(&file, &shown.stdout).unwrap();
    let checked = signalbox(&["check", file.to_str().unwrap()]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
}

#[test]
fn the_reference_names_every_section() {
    let output = signalbox(&["config", "reference"]);
    let page = text(&output.stdout);
    for part in [
        "# Configuration",
        "heartBeat",
        "staticTargets",
        "maxConcurrentStreams",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
}

#[test]
fn the_lab_lists_and_shows_its_models() {
    let list = text(&signalbox(&["lab", "list"]).stdout);
    for model in ["nrf/5k", "nrf/38k", "nrf/51k"] {
        assert!(list.contains(model), "{list}");
    }
    assert!(text(&signalbox(&["lab", "show", "nrf/5k"]).stdout).contains("UDM"));
    assert_eq!(signalbox(&["lab", "show", "nrf/none"]).status.code(), Some(2));
}

#[test]
fn examples_are_read() {
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut count = 0;
    for file in std::fs::read_dir(examples).unwrap() {
        let file = file.unwrap().path();
        if file.extension().is_some_and(|ending| ending == "yaml") {
            let output = signalbox(&["check", file.to_str().unwrap()]);
            assert!(output.status.success(), "{}", text(&output.stderr));
            count += 1;
        }
    }
    assert!(count > 0);
}
