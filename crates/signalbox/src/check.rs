//! `signalbox check`: every mistake of every file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use pcf::ProjectMistakes;
use serde_json::{Value, json};
use settings::Report;

use crate::config::Config;
use crate::failure::{Failure, USAGE};
use crate::{complain, print};

/// Check configurations and call models: every mistake at once, with line and column
///
/// The policy projects that the configuration of a PCF names are compiled as well. Their folders are relative to the working
/// directory, as at a start.
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

    fn check(self, text: &str, name: &str) -> Result<(), Mistakes> {
        match self {
            Self::Config => {
                let config = settings::from_str::<Config>(text, name).map_err(Mistakes::InFile)?;
                let projects = pcf::check_projects(&config.pcf);
                match projects.is_empty() {
                    true => Ok(()),
                    false => Err(Mistakes::InProjects(projects)),
                }
            }
            Self::Callmodel => settings::from_str::<callmodel::CallModel>(text, name)
                .map(drop)
                .map_err(Mistakes::InFile),
        }
    }
}

/// What is wrong.
enum Mistakes {
    /// With the file.
    InFile(Report),
    /// With policy projects that the file names.
    InProjects(Vec<ProjectMistakes>),
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
            Err(Mistakes::InFile(report)) => complain(&format!("{report}\n")),
            Err(Mistakes::InProjects(projects)) => {
                for project in projects {
                    complain(&format!("{}: pcf.{project}\n", file.display()));
                }
            }
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

fn check(file: &Path, kind: Option<Kind>) -> (Kind, Result<(), Mistakes>) {
    let name = file.display().to_string();
    match std::fs::read_to_string(file) {
        Ok(text) => {
            let kind = kind.unwrap_or_else(|| Kind::of(&text));
            (kind, kind.check(&text, &name))
        }
        Err(error) => (
            kind.unwrap_or(Kind::Config),
            Err(Mistakes::InFile(Report::unreadable(&name, &error))),
        ),
    }
}

fn as_json(file: &Path, kind: Kind, found: &Result<(), Mistakes>) -> Value {
    let mistakes = match found {
        Ok(()) => Vec::new(),
        Err(Mistakes::InFile(report)) => findings(report).collect(),
        Err(Mistakes::InProjects(projects)) => projects.iter().flat_map(of_project).collect(),
    };
    json!({
        "file": file.display().to_string(),
        "kind": kind.words(),
        "pass": found.is_ok(),
        "mistakes": mistakes,
    })
}

fn findings(report: &Report) -> impl Iterator<Item = Value> + '_ {
    report.findings().iter().map(|finding| {
        json!({
            "line": finding.place.line,
            "column": finding.place.column,
            "path": finding.path,
            "what": finding.what,
            "expected": finding.expected,
        })
    })
}

/// The mistakes of a project, with the setting that names it; those in its files with the file.
fn of_project(project: &ProjectMistakes) -> Vec<Value> {
    let setting = format!("pcf.{}", project.setting());
    if project.reports().is_empty() {
        return vec![json!({"path": setting, "what": project.to_string()})];
    }
    let reports = project.reports().iter();
    let all = reports.flat_map(|report| {
        findings(report).map(|mut finding| {
            finding["file"] = report.name().into();
            finding["setting"] = setting.as_str().into();
            finding
        })
    });
    all.collect()
}
