//! `signalbox policy …`: policy projects checked, explained and tested, without a PCF.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use policy::testing::Case;
use policy::{Limits, Project, ProjectError, Scratch, Trace};
use serde_json::{Value, json};

use crate::config::Config;
use crate::failure::{FAILED, Failure, USAGE};
use crate::{complain, print};

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Compile policy projects: every mistake at once, with file, line and block
    Check(CheckArgs),
    /// Decide for an input and show which block decided what, from which data
    ///
    /// The input is a test case (`request`, `subscriber`, `counters`, `session`, `state`, `subscriberState`,
    /// `event`, `now`), alone or as a list. The decision follows as JSON.
    Explain(ExplainArgs),
    /// Run the test cases of projects (DIR/cases) and show each difference
    ///
    /// A line for each case; below a failed one the path, `-` what is expected, `+` what was decided. Exit code 1 when a
    /// case failed.
    Test(TestArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Folders of projects; each has a project.yaml
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Configuration of the PCF: its limits count, and projects may notify the servers that it names and no others
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON: an array with an object per project
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Folder of the project
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The input: a test case, YAML or JSON
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Of several cases, those whose names contain this text
    #[arg(long, value_name = "TEXT")]
    case: Option<String>,
    /// Print JSON: an array with an object per case
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Folders of projects; cases are the files in DIR/cases
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Print JSON: an array with an object per case
    #[arg(long)]
    json: bool,
}

/// Does what the command says.
pub(crate) fn run(command: &PolicyCommand) -> Result<ExitCode, Failure> {
    match command {
        PolicyCommand::Check(args) => check(args),
        PolicyCommand::Explain(args) => explain(args),
        PolicyCommand::Test(args) => test(args),
    }
}

fn check(args: &CheckArgs) -> Result<ExitCode, Failure> {
    let mut results = Vec::new();
    let mut all_right = true;
    let settings = match &args.config {
        Some(file) => Some(Config::load(Some(file))?.pcf),
        None => None,
    };
    for folder in &args.folders {
        let found = match &settings {
            Some(settings) => {
                let files = files(folder)?;
                let servers = settings.notifier.accepted();
                Ok(Project::compile_for(
                    &borrowed(&files),
                    &settings.policy.limits,
                    &servers,
                ))
            }
            None => compile(folder),
        }?;
        all_right &= found.is_ok();
        if args.json {
            results.push(as_json(folder, &found));
            continue;
        }
        match found {
            Ok(project) => print(&format!(
                "{}: {} ({}), {} blocks, without mistakes\n",
                folder.display(),
                project.name(),
                project.service().name(),
                project.blocks()
            ))?,
            Err(error) => complain(&error),
        }
    }
    if args.json {
        print(&(serde_json::to_string_pretty(&results)? + "\n"))?;
    }
    Ok(code(all_right, USAGE))
}

fn explain(args: &ExplainArgs) -> Result<ExitCode, Failure> {
    let project = match compile(&args.folder)? {
        Ok(project) => project,
        Err(error) => return Err(Failure::Usage(error.to_string())),
    };
    let text = read(&args.input)?;
    let cases = Case::parse(&text, &args.input.display().to_string());
    let cases = cases.map_err(|error| Failure::Usage(error.to_string()))?;
    let wanted = args.case.as_deref().unwrap_or_default();
    let cases: Vec<Case> = cases
        .into_iter()
        .filter(|case| case.name.contains(wanted))
        .collect();
    if cases.is_empty() {
        let what = format!("{}: no case has `{wanted}` in its name", args.input.display());
        return Err(Failure::Usage(what));
    }
    let mut scratch = Scratch::default();
    let mut results = Vec::new();
    let mut decided = true;
    for case in &cases {
        let mut trace = Trace::new();
        let outcome = case.outcome(&project, &mut scratch, Some(&mut trace));
        decided &= outcome.get("fault").is_none();
        if args.json {
            results.push(json!({"case": case.name, "trace": trace, "outcome": outcome}));
            continue;
        }
        let mut page = format!("{}\n\n{trace}\ndecided by\n", case.name);
        for event in trace.decided() {
            let part = event.decided.as_deref().unwrap_or_default();
            page.push_str(&format!("  {part}: {} ({})\n", event.block, event.kind));
        }
        page.push_str(&format!("\n{}\n", serde_json::to_string_pretty(&outcome)?));
        print(&page)?;
    }
    if args.json {
        print(&(serde_json::to_string_pretty(&results)? + "\n"))?;
    }
    Ok(code(decided, FAILED))
}

fn test(args: &TestArgs) -> Result<ExitCode, Failure> {
    let mut rows = Vec::new();
    let (mut passed, mut failed) = (0_usize, 0_usize);
    for folder in &args.folders {
        let (files, cases) = (files(folder)?, files(&folder.join("cases"))?);
        if cases.is_empty() {
            let what = format!("{}: no test cases", folder.display());
            return Err(Failure::Usage(format!(
                "{what}; expected YAML or JSON files in {}",
                folder.join("cases").display()
            )));
        }
        let results = policy::testing::run(&borrowed(&files), &borrowed(&cases), &Limits::default());
        let results = results.map_err(|error| Failure::Usage(error.to_string()))?;
        for result in results {
            match result.passed() {
                true => passed += 1,
                false => failed += 1,
            }
            if !args.json {
                print(&result.to_string())?;
                continue;
            }
            let difference = |found: &policy::testing::Difference| json!({"path": found.path, "expected": found.expected, "found": found.found});
            let differences: Vec<Value> = result.differences.iter().map(difference).collect();
            rows.push(json!({
                "project": folder.display().to_string(),
                "case": result.name,
                "pass": result.passed(),
                "differences": differences,
            }));
        }
    }
    match args.json {
        true => print(&(serde_json::to_string_pretty(&rows)? + "\n"))?,
        false => print(&format!("{passed} passed, {failed} failed\n"))?,
    }
    Ok(code(failed == 0, FAILED))
}

fn code(good: bool, otherwise: u8) -> ExitCode {
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(otherwise)
    }
}

/// Compiles a project; the inner error is a mistake in it, the outer one that it cannot be read.
fn compile(folder: &Path) -> Result<Result<Project, ProjectError>, Failure> {
    let files = files(folder)?;
    Ok(Project::compile(&borrowed(&files), &Limits::default()))
}

fn borrowed(files: &[(String, String)]) -> Vec<(&str, &str)> {
    files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect()
}

/// The YAML and JSON files of a folder, by name.
fn files(folder: &Path) -> Result<Vec<(String, String)>, Failure> {
    let unreadable = |error: std::io::Error| {
        Failure::Usage(format!(
            "{}: {error}; expected a folder with YAML or JSON files",
            folder.display()
        ))
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let known = path
            .extension()
            .is_some_and(|ending| ["yaml", "yml", "json"].iter().any(|known| ending == *known));
        if known && path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    let mut left = Limits::default().project_bytes as u64;
    let mut files = Vec::new();
    for path in paths {
        let bytes = std::fs::metadata(&path).map_err(unreadable)?.len();
        left = left.checked_sub(bytes).ok_or_else(|| {
            let most = Limits::default().project_bytes;
            Failure::Usage(format!(
                "{}: its files have more than {most} bytes together",
                folder.display()
            ))
        })?;
        files.push((path.display().to_string(), read(&path)?));
    }
    Ok(files)
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| {
        Failure::Usage(format!(
            "{}: {error}; expected a YAML or JSON file in UTF-8",
            path.display()
        ))
    })
}

fn as_json(folder: &Path, found: &Result<Project, ProjectError>) -> Value {
    let reports = found
        .as_ref()
        .err()
        .map(ProjectError::reports)
        .unwrap_or_default();
    let mistakes: Vec<Value> = reports
        .iter()
        .flat_map(|report| {
            report
                .findings()
                .iter()
                .map(move |finding| (report.name(), finding))
        })
        .map(|(file, finding)| {
            json!({
                "file": file,
                "line": finding.place.line,
                "column": finding.place.column,
                "path": finding.path,
                "what": finding.what,
                "expected": finding.expected,
            })
        })
        .collect();
    json!({
        "project": folder.display().to_string(),
        "pass": found.is_ok(),
        "mistakes": mistakes,
    })
}
