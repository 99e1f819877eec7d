//! Names the commit and the features that are built, for `--version` and `signalbox_build_info`.

use std::process::Command;

fn main() {
    // Written by each commit, checkout and rebase.
    println!("cargo:rerun-if-changed=../../.git/logs/HEAD");
    let git = Command::new("git")
        .args(["rev-parse", "--short=12", "HEAD"])
        .output();
    let commit = git
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok());
    // Sources without a repository, as in a package, have no commit.
    let commit = commit.as_deref().map_or("unknown", str::trim);
    println!("cargo:rustc-env=SIGNALBOX_COMMIT={commit}");
    // What was left out is said, so that it need not be guessed.
    let parts = ["cassandra", "kafka", "lab", "mariadb"];
    let (with, without): (Vec<&str>, Vec<&str>) = parts
        .into_iter()
        .partition(|part| std::env::var_os(format!("CARGO_FEATURE_{}", part.to_uppercase())).is_some());
    let list = |word: &str, parts: &[&str]| match parts {
        [] => String::new(),
        _ => format!("; {word} {}", parts.join(", ")),
    };
    let features = format!("{}{}", list("with", &with), list("without", &without));
    println!("cargo:rustc-env=SIGNALBOX_FEATURES={features}");
}
