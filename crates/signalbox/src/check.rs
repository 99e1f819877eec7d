//! `signalbox check`: every mistake of every file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use settings::Report;

use crate::config::Config;
use crate::failure::{Failure, USAGE};
use crate::{complain, print};

/// Check configurations and call models: every mistake at once, with line and column.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// YAML files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Kind of the files; without it recognised by their keys
    #[arg(long = "as", value_name = "KIND")]
    kind: Option<Kind>,
    /// Print JSON: an array with an object per file
    #[arg(long)]
    json: bool,
}

/// What a file can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Configuration of the core
    Config,
    /// Call model of the laboratory
    Callmodel,
}

impl Kind {
    /// Recognised by the keys at the top that only this kind has.
    fn of(text: &str) -> Self {
        let keys = settings::top_level_keys(text);
        let has = |wanted: &str| keys.iter().any(|key| key == wanted);
        if has("title") || has("guide") {
            Self::Callmodel
        } else {
            Self::Config
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Config => "configuration",
            Self::Callmodel => "call model",
        }
    }

    fn check(self, text: &str, name: &str) -> Result<(), Report> {
        match self {
            Self::Config => settings::from_str::<Config>(text, name).map(drop),
            Self::Callmodel => settings::from_str::<callmodel::CallModel>(text, name).map(drop),
        }
    }
}

/// Checks files; prints mistakes to stderr and the names of files without any to stdout.
pub(crate) fn run(args: &CheckArgs) -> Result<ExitCode, Failure> {
    let mut all_right = true;
    let mut results = Vec::new();
    for file in &args.files {
        let (kind, found) = check(file, args.kind);
        all_right &= found.is_ok();
        if args.json {
            results.push(as_json(file, kind, &found));
            continue;
        }
        match found {
            Ok(()) => print(&format!(
                "{}: a {} without mistakes\n",
                file.display(),
                kind.words()
            ))?,
            Err(report) => complain(&format!("{report}\n")),
        }
    }
    if args.json {
        print(&(serde_json::to_string_pretty(&results)? + "\n"))?;
    }
    Ok(if all_right {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(USAGE)
    })
}

fn check(file: &Path, kind: Option<Kind>) -> (Kind, Result<(), Report>) {
    let name = file.display().to_string();
    match std::fs::read_to_string(file) {
        Ok(text) => {
            let kind = kind.unwrap_or_else(|| Kind::of(&text));
            (kind, kind.check(&text, &name))
        }
        Err(error) => (
            kind.unwrap_or(Kind::Config),
            Err(Report::unreadable(&name, &error)),
        ),
    }
}

fn as_json(file: &Path, kind: Kind, found: &Result<(), Report>) -> Value {
    let mistakes: Vec<Value> = found
        .as_ref()
        .err()
        .map(|report| report.findings())
        .unwrap_or_default()
        .iter()
        .map(|finding| {
            json!({
                "line": finding.place.line,
                "column": finding.place.column,
                "path": finding.path,
                "what": finding.what,
                "expected": finding.expected,
            })
        })
        .collect();
    json!({
        "file": file.display().to_string(),
        "kind": kind.words(),
        "pass": found.is_ok(),
        "mistakes": mistakes,
    })
}
