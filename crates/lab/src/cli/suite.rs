//! `signalbox lab suite`: every call model and drill of a function.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::{FAILED, Failure, USAGE, failure, folder_for, json_text, period, say};
use crate::run::{self, Options, Progress, Rate};
use crate::suite::{self, SuiteError};

#[derive(Debug, Args)]
pub(super) struct SuiteArgs {
    /// What the names of the models begin with: dsr, or dsr/kill
    beginning: String,
    /// How long to measure each, after warming up
    #[arg(long, default_value = "10s", value_parser = period)]
    duration: Duration,
    /// How long to warm up
    #[arg(long, default_value = "2s", value_parser = period)]
    warmup: Duration,
    /// Transactions per second of each, or a factor of its own rate such as 0.1x
    #[arg(long, default_value = "500", value_parser = str::parse::<Rate>)]
    rate: Rate,
    /// Cores of the function (0 or 0-3,6); generator and simulators get the others
    #[arg(long, value_name = "CPUS", value_parser = run::cpu_list)]
    pin: Option<std::vec::Vec<usize>>,
    /// Where reports go, a folder for each model; a new folder under lab-runs if not given
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn test_features(args: SuiteArgs) -> Result<ExitCode, Failure> {
    let options = Options {
        rate: args.rate,
        duration: args.duration,
        warmup: args.warmup,
        pin: args.pin.unwrap_or_default(),
        out: args.out.unwrap_or_else(|| folder_for("suite")),
        ..Options::default()
    };
    let mut progress = Progress::default();
    let made = suite::run(&args.beginning, &options, &mut progress);
    progress.clear();
    let results = made.map_err(|error| match &error {
        SuiteError::Empty(_) => failure(USAGE)(&error),
        _ => failure(FAILED)(&error),
    })?;
    say(&match args.json {
        true => json_text(&results)?,
        false => format!("{results}  reports     {}\n", options.out.display()),
    })?;
    Ok(match results.passed() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(FAILED),
    })
}
