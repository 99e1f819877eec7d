//! The command line of the laboratory, to be mounted by the binary: `signalbox lab …` and `signalbox lab-sim …`.

mod bench;
mod measure;
mod models;
mod reports;
mod suite;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use callmodel::Found;
use clap::{Args, Subcommand};
use settings::Period;
use time::OffsetDateTime;
use time::macros::format_description;

use bench::BenchArgs;
use measure::RunArgs;
use suite::SuiteArgs;

use crate::run::ending;

/// Measure a function with an operator's call model.
#[derive(Debug, Args)]
pub struct LabArgs {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Debug, Subcommand)]
enum LabCommand {
    /// The call models there are
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// A call model: its traffic, what the guide measured, and where the guide contradicts itself
    Show {
        /// Name (nrf/5k) or path of a YAML file
        model: String,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Run a call model against a function that is started for it
    Run(Box<RunArgs>),
    /// Run every call model and drill of a function, and say which of its features passed
    Suite(Box<SuiteArgs>),
    /// Compare two programs for one job under one load, in turns
    Bench(Box<BenchArgs>),
    /// Render the report of a run again, or compare two runs
    Report {
        /// Folder of a run; a second one to compare with
        #[arg(required_unless_present = "list", num_args = 1..=2)]
        folders: Vec<PathBuf>,
        /// List the runs under lab-runs, the latest last
        #[arg(long, conflicts_with = "folders")]
        list: bool,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
}

fn period(text: &str) -> Result<Duration, String> {
    text.parse::<Period>()
        .map(Period::duration)
        .map_err(|error| format!("{text:?} {error}, as in 60s or 5m"))
}

/// The folder of a run without `--out`.
const RUNS: &str = "lab-runs";

/// What a command ends with: 0 done or passed, 1 failed, 2 usage or configuration, 3 a run that shows nothing since the
/// machine was busy.
const FAILED: u8 = 1;
const USAGE: u8 = 2;
const INVALID: u8 = 3;

impl LabArgs {
    /// Executes the command line.
    #[must_use]
    pub fn run(self) -> ExitCode {
        let starts = matches!(
            self.command,
            LabCommand::Run(_) | LabCommand::Suite(_) | LabCommand::Bench(_)
        );
        if starts && let Err(error) = ending::end_all_on_signal() {
            eprintln!("what this starts would outlive a signal that ends it: {error}");
            return ExitCode::from(FAILED);
        }
        let done = match self.command {
            LabCommand::List { json } => models::list(json),
            LabCommand::Show { model, json } => models::show(&model, json),
            LabCommand::Run(args) => measure::measure(args),
            LabCommand::Suite(args) => suite::test_features(*args),
            LabCommand::Bench(args) => bench::compare(&args),
            LabCommand::Report { list: true, json, .. } => reports::runs(Path::new(RUNS), json),
            LabCommand::Report { folders, json, .. } => reports::again(&folders, json),
        };
        done.unwrap_or_else(|failure| {
            eprintln!("{}", failure.words);
            ExitCode::from(failure.code)
        })
    }
}

/// Why a command failed.
struct Failure {
    words: String,
    code: u8,
}

fn failure(code: u8) -> impl Fn(&dyn std::fmt::Display) -> Failure {
    move |words| Failure {
        words: words.to_string(),
        code,
    }
}

fn find(name: &str) -> Result<Found, Failure> {
    callmodel::find(name).map_err(|error| failure(USAGE)(&error))
}

fn say(text: &str) -> Result<(), Failure> {
    // A reader that has closed the pipe (`| head`) is not an error.
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(failure(FAILED)(&error)),
        _ => Ok(()),
    }
}

fn json_text(value: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(value)
        .map(|text| text + "\n")
        .map_err(|error| failure(FAILED)(&error))
}

fn folder_for(model: &str) -> PathBuf {
    let now = OffsetDateTime::now_utc();
    let stamp = now
        .format(format_description!("[year][month][day]-[hour][minute][second]"))
        .unwrap_or_default();
    let model = Path::new(model).file_stem().map_or(model.to_owned(), |stem| {
        let folder = Path::new(model)
            .parent()
            .and_then(Path::file_name)
            .map(|f| format!("{}-", f.to_string_lossy()));
        folder.unwrap_or_default() + &stem.to_string_lossy()
    });
    PathBuf::from(RUNS).join(format!("{model}-{stamp}"))
}
