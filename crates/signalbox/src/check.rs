//! `signalbox check`: every mistake of every file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use pcf::ProjectMistakes;
use serde_json::{Value, json};
use settings::Report;

use crate::config::Config;
use crate::failure::{Failure, USAGE};
use crate::{complain, machine, print};

/// Check configurations and call models: every mistake at once, with line and column
///
/// The policy projects that the configuration of a PCF names are compiled as well. Certificates, keys, authorities, other
/// files, secrets, directories and addresses are those of this machine; relative paths begin at the working directory, as
/// at a start, those of policy projects at the folder of the file.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// YAML files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Kind of the files; without it recognised by their keys
    #[arg(long = "as", value_name = "KIND")]
    kind: Option<Kind>,
    /// The files are for another machine: leave out files, secrets, directories and addresses that they name
    #[arg(long)]
    elsewhere: bool,
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

    fn check(self, text: &str, name: &str, elsewhere: bool) -> Mistakes {
        match self {
            Self::Config => {
                let mut in_projects = Vec::new();
                let read = settings::from_str_and::<Config>(text, name, |config, faults| {
                    if !elsewhere {
                        machine::judge(config, faults);
                    }
                    let mut config = config.clone();
                    config.place_projects(Path::new(name));
                    in_projects = pcf::check_projects(&config.pcf);
                });
                Mistakes {
                    in_file: read.err(),
                    in_projects,
                }
            }
            Self::Callmodel => Mistakes {
                in_file: settings::from_str::<callmodel::CallModel>(text, name).err(),
                in_projects: Vec::new(),
            },
        }
    }
}

/// What is wrong.
struct Mistakes {
    /// With the file, and what it names of the machine.
    in_file: Option<Report>,
    /// With policy projects that the file names.
    in_projects: Vec<ProjectMistakes>,
}

impl Mistakes {
    fn is_empty(&self) -> bool {
        self.in_file.is_none() && self.in_projects.is_empty()
    }
}

/// Checks files; prints mistakes to stderr and the names of files without any to stdout.
pub(crate) fn run(args: &CheckArgs) -> Result<ExitCode, Failure> {
    let mut all_right = true;
    let mut results = Vec::new();
    for file in &args.files {
        let (kind, found) = check(file, args);
        all_right &= found.is_empty();
        if args.json {
            results.push(as_json(file, kind, &found));
            continue;
        }
        if found.is_empty() {
            let words = format!("{}: a {} without mistakes\n", file.display(), kind.words());
            print(&words)?;
        }
        if let Some(report) = &found.in_file {
            complain(&format!("{report}\n"));
        }
        for project in &found.in_projects {
            complain(&format!("{}: pcf.{project}\n", file.display()));
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

fn check(file: &Path, args: &CheckArgs) -> (Kind, Mistakes) {
    let name = file.display().to_string();
    match std::fs::read_to_string(file) {
        Ok(text) => {
            let kind = args.kind.unwrap_or_else(|| Kind::of(&text));
            (kind, kind.check(&text, &name, args.elsewhere))
        }
        Err(error) => {
            let mistakes = Mistakes {
                in_file: Some(Report::unreadable(&name, &error)),
                in_projects: Vec::new(),
            };
            (args.kind.unwrap_or(Kind::Config), mistakes)
        }
    }
}

fn as_json(file: &Path, kind: Kind, found: &Mistakes) -> Value {
    let in_file = found.in_file.iter().flat_map(findings);
    let in_projects = found.in_projects.iter().flat_map(of_project);
    let mistakes: Vec<Value> = in_file.chain(in_projects).collect();
    json!({
        "file": file.display().to_string(),
        "kind": kind.words(),
        "pass": found.is_empty(),
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
