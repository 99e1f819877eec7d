//! The workspace as Cargo sees it, without the network.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

/// The crates of the workspace.
pub(crate) struct Workspace {
    pub(crate) members: Vec<Member>,
    /// Our crates in the order of `[workspace.dependencies]`.
    pub(crate) order: Vec<String>,
}

/// A crate of ours.
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    /// Names of what its library or program needs; not of what its tests need.
    pub(crate) dependencies: Vec<String>,
    /// Names of all that it declares, for tests too.
    pub(crate) declared: Vec<String>,
}

impl Workspace {
    pub(crate) fn read() -> Self {
        let metadata = cargo(&[
            "metadata",
            "--offline",
            "--locked",
            "--no-deps",
            "--format-version",
            "1",
        ]);
        let metadata: Value = serde_json::from_str(&metadata).unwrap();
        let members = metadata["packages"]
            .as_array()
            .unwrap()
            .iter()
            .map(Member::of)
            .collect();
        let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
        let path_of = |line: &str| line.split_once(" = { path = ").map(|(name, _)| name.to_owned());
        let order = manifest.lines().filter_map(path_of).collect();
        Self { members, order }
    }

    /// All crates below one, in the features that it asks for itself.
    pub(crate) fn tree(&self, name: &str) -> BTreeSet<String> {
        let args = [
            "tree",
            "--offline",
            "--locked",
            "-e",
            "normal",
            "--prefix",
            "none",
            "--format",
            "{p}",
            "-p",
            name,
        ];
        let names = |line: &str| line.split_whitespace().next().map(str::to_owned);
        cargo(&args).lines().filter_map(names).collect()
    }
}

impl Member {
    fn of(package: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let manifest = PathBuf::from(text(&package["manifest_path"]));
        let all = package["dependencies"].as_array().unwrap();
        let dependencies = all.iter();
        Self {
            declared: all.iter().map(|dependency| text(&dependency["name"])).collect(),
            name: text(&package["name"]),
            folder: manifest.parent().unwrap().to_owned(),
            dependencies: dependencies
                .filter(|dependency| dependency["kind"].is_null() || dependency["kind"] == "build")
                .map(|dependency| text(&dependency["name"]))
                .collect(),
        }
    }
}

pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn cargo(args: &[&str]) -> String {
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(program)
        .args(args)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "cargo {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}
