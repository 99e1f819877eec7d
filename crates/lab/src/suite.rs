//! Every call model and drill of a function, one after the other: a test of its features that an operator can run on
//! machines of his own before an acceptance or an upgrade.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use crate::run::{self, Options, Progress, RunError};
use callmodel::LoadError;

/// What came of the models.
#[derive(Debug, Default, Serialize)]
pub struct Results {
    /// One for each model, in the order in which they ran.
    pub rows: Vec<Row>,
}

/// What came of one model.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub model: String,
    /// What it is about.
    pub title: String,
    /// Checks that held.
    pub passed: Vec<String>,
    /// Checks that did not, with what was found.
    pub failed: Vec<String>,
    /// Where its report is.
    pub report: PathBuf,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// No model has such a name.
    #[error("no call model begins with `{0}`; `signalbox lab list` shows all")]
    Empty(String),
    /// A model of the library cannot be read.
    #[error(transparent)]
    Model(#[from] LoadError),
    /// A report cannot be written.
    #[error("writing the report of {model}: {source}")]
    Report {
        /// The model.
        model: String,
        /// Why not.
        source: std::io::Error,
    },
}

/// Runs every model whose name begins so, each as `options` says, in a folder of its own below `options.out`. One that
/// cannot be run has failed; the others run all the same.
///
/// # Errors
/// When there is no such model, or a report cannot be written.
pub fn run(beginning: &str, options: &Options, progress: &mut Progress) -> Result<Results, SuiteError> {
    let names: Vec<&str> = callmodel::names()
        .filter(|name| name.starts_with(beginning))
        .collect();
    if names.is_empty() {
        return Err(SuiteError::Empty(beginning.to_owned()));
    }
    let mut results = Results::default();
    for name in names {
        let found = callmodel::find(name)?;
        let out = options.out.join(name.replace('/', "-"));
        let options = Options {
            out: out.clone(),
            ..options.clone()
        };
        progress.note(&format!("{name}: {}", found.model.title));
        let (mut passed, mut failed) = (Vec::new(), Vec::new());
        match run::run(&found, &options, progress) {
            Ok((report, series)) => {
                for check in &report.checks {
                    match check.pass {
                        true => passed.push(check.name.clone()),
                        false => failed.push(format!("{}: {} ({})", check.name, check.got, check.expected)),
                    }
                }
                let written = ::report::write(&out, &report, &series);
                written.map_err(|source| SuiteError::Report {
                    model: name.to_owned(),
                    source,
                })?;
            }
            Err(error) => failed.push(failure(&error)),
        }
        results.rows.push(Row {
            model: name.to_owned(),
            title: found.model.title,
            passed,
            failed,
            report: out,
        });
    }
    Ok(results)
}

fn failure(error: &RunError) -> String {
    match error {
        RunError::Missing { .. } => format!("not run: {error}"),
        _ => error.to_string(),
    }
}

impl Results {
    /// Whether every check of every model held.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.rows.iter().all(|row| row.failed.is_empty())
    }
}

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.rows {
            let mark = if row.failed.is_empty() { "✓" } else { "✗" };
            let (passed, all) = (row.passed.len(), row.passed.len() + row.failed.len());
            writeln!(
                f,
                "{mark} {:<22} {passed:>2} of {all:>2} checks   {}",
                row.model, row.title
            )?;
            for failed in &row.failed {
                writeln!(f, "    ✗ {failed}")?;
            }
        }
        let passed = self.rows.iter().filter(|row| row.failed.is_empty()).count();
        writeln!(f, "{passed} of {} passed", self.rows.len())
    }
}
