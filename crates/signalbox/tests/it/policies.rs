//! `signalbox policy`: what is printed, and exit codes.

use std::path::{Path, PathBuf};

use crate::process::{signalbox, text};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/policy")
        .join(name)
}

/// A copy of the example of low complexity, changed.
fn changed(file: &str, from: &str, to: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("cases")).unwrap();
    for name in ["project.yaml", "cases/plans.yaml"] {
        let mut content = std::fs::read_to_string(example("low").join(name)).unwrap();
        if name == file {
            assert!(content.contains(from));
            content = content.replacen(from, to, 1);
        }
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    folder
}

#[test]
fn policy_check_names_every_mistake_with_file_and_line() {
    let folders = ["low", "medium", "high"].map(|name| example(name).display().to_string());
    let output = signalbox(&["policy", "check", &folders[0], &folders[1], &folders[2]]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(
        text(&output.stdout).contains("internet-high (sm)"),
        "{}",
        text(&output.stdout)
    );

    let folder = changed("project.yaml", "sessRuleId: ims", "sesRuleId: ims");
    let output = signalbox(&["policy", "check", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    for part in [
        "project.yaml:",
        "SessionRule has no member `sesRuleId`",
        "did you mean `sessRuleId`?",
    ] {
        assert!(said.contains(part), "{part} is missing:\n{said}");
    }
    let output = signalbox(&["policy", "check", "--json", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let results: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(results[0]["pass"], false);
    assert!(
        results[0]["mistakes"][0]["line"]
            .as_u64()
            .is_some_and(|line| line > 10)
    );

    let output = signalbox(&["policy", "check", "/nowhere/at-all"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("/nowhere/at-all"));
}

#[test]
fn policy_explain_shows_which_block_decided_what() {
    let (folder, input) = (example("high"), example("high").join("cases/internet.yaml"));
    let (folder, input) = (folder.to_str().unwrap(), input.to_str().unwrap());
    let output = signalbox(&["policy", "explain", folder, "--input", input, "--case", "a gold"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    for part in [
        "lookup rate: row 1 of plans",
        "$request.dnn = \"internet\"",
        "sessRules.default: default-session (sessionRule)",
        "pccRules.app-netvideo: application-rule (pccRule)",
        "\"uplink\": \"800 Mbps\"",
    ] {
        assert!(said.contains(part), "{part} is missing:\n{said}");
    }
    let output = signalbox(&["policy", "explain", folder, "--input", input, "--json"]);
    let results: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(results.as_array().map(Vec::len), Some(5));
    assert_eq!(results[0]["trace"]["events"][0]["block"], "facts");

    let output = signalbox(&[
        "policy",
        "explain",
        folder,
        "--input",
        input,
        "--case",
        "no such case",
    ]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn policy_test_prints_the_difference() {
    let folders = ["low", "medium", "high"].map(|name| example(name).display().to_string());
    let output = signalbox(&["policy", "test", &folders[0], &folders[1], &folders[2]]);
    assert!(output.status.success(), "{}", text(&output.stdout));
    assert!(
        text(&output.stdout).ends_with("13 passed, 0 failed\n"),
        "{}",
        text(&output.stdout)
    );

    let folder = changed("project.yaml", "[gold, 1 Gbps,", "[gold, 3 Gbps,");
    let output = signalbox(&["policy", "test", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    let difference = "  sessRules.default.authSessAmbr.uplink\n    - \"1 Gbps\"\n    + \"3 Gbps\"\n";
    assert!(
        said.contains(difference) && said.ends_with("4 passed, 1 failed\n"),
        "{said}"
    );

    let folder = changed("cases/plans.yaml", "subscriber:", "subscribr:");
    let output = signalbox(&["policy", "test", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("did you mean `subscriber`?"),
        "{}",
        text(&output.stderr)
    );
}
