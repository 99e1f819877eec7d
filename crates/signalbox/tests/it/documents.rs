//! The pages keep their word: what they show as configuration is one, and what they show as a command is one.

use std::path::{Path, PathBuf};

use crate::process::{signalbox, text};

/// Sections of a configuration.
const SECTIONS: [&str; 15] = [
    "nrf:", "scp:", "bsf:", "pcf:", "scef:", "dsr:", "ipfe:", "stp:", "enum:", "sds:", "dp:", "log:",
    "admin:", "alarms:", "traces:",
];

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = std::fs::read_dir(root.join("docs")).unwrap();
    let docs = docs.map(|entry| entry.unwrap().path());
    let mut all: Vec<PathBuf> = docs.chain([root.join("README.md")]).collect();
    all.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    all.sort();
    assert!(all.len() > 10);
    all
}

/// The blocks of a page in this language, each with its line.
pub(crate) fn blocks(page: &Path, language: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, bool, String)> = None;
    for (number, line) in std::fs::read_to_string(page).unwrap().lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(name), None) => open = Some((number + 1, name.trim() == language, String::new())),
            (Some(_), Some(_)) => {
                if let Some((at, true, block)) = open.take() {
                    found.push((at, block));
                }
            }
            (None, Some((_, _, block))) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, None) => {}
        }
    }
    found
}

#[test]
fn every_configuration_of_the_pages_passes_check() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for page in pages() {
        for (line, block) in blocks(&page, "yaml") {
            let is_configuration = |line: &str| SECTIONS.iter().any(|section| line.starts_with(section));
            if !block.lines().any(is_configuration) {
                continue;
            }
            let name = page.file_name().unwrap().to_str().unwrap();
            let file = folder.path().join(format!("{name}-{line}.yaml"));
            std::fs::write(&file, block).unwrap();
            files.push(file.to_str().unwrap().to_owned());
        }
    }
    assert!(files.len() > 10, "{files:?}");
    let mut args = vec!["check", "--elsewhere", "--as", "config"];
    args.extend(files.iter().map(String::as_str));
    let output = signalbox(&args);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// Words of a command that stand for others, and what a shell does with it.
fn is_plain(command: &str) -> bool {
    !command.contains(['|', '>', '<', '$', '`', '*', '…', '{', '\\', '&', ';', '('])
        && !command.contains("...")
}

#[test]
fn every_command_of_the_pages_is_one() {
    let mut count = 0;
    for page in pages() {
        for (line, block) in blocks(&page, "sh") {
            for command in block.lines() {
                let command = command.split(" #").next().unwrap_or_default().trim();
                let command = command.strip_prefix("./target/release/").unwrap_or(command);
                let Some(arguments) = command.strip_prefix("signalbox ").filter(|_| is_plain(command)) else {
                    continue;
                };
                let words = arguments.replace(['\'', '"'], "");
                let mut args: Vec<&str> = words.split_whitespace().collect();
                // It is read, and not carried out.
                args.push("--help");
                let output = signalbox(&args);
                let said = text(&output.stderr);
                assert!(
                    output.status.success(),
                    "{}:{line}: {command}\n{said}",
                    page.display()
                );
                count += 1;
            }
        }
    }
    assert!(count > 20, "{count}");
}
