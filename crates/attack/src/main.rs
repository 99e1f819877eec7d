//! `make attack`: every attack against the release binary, a table, a report as JSON.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use attack::{Dose, attacks, report, run, stage};
use clap::Parser;

/// Attacks on running functions, with an honest client beside each.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 110)]
struct Args {
    /// Only attacks whose names begin with this: a family (`http2`) or one (`http2.ping-acks`)
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Print the attacks and do nothing
    #[arg(long)]
    list: bool,
    /// Small doses and no timed bar, as in `make test`
    #[arg(long)]
    quick: bool,
    /// The program under attack; without it, the one beside this program
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// File of the JSON report
    #[arg(long, value_name = "FILE", default_value = "target/attack/report.json")]
    report: PathBuf,
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let mut out = std::io::stdout();
    let chosen: Vec<_> = attacks::all()
        .into_iter()
        .filter(|attack| {
            args.only.is_empty() || args.only.iter().any(|only| attack.name.starts_with(&**only))
        })
        .collect();
    anyhow::ensure!(
        !chosen.is_empty(),
        "no attack has such a name; --list shows them all"
    );
    if args.list {
        for attack in chosen {
            writeln!(
                out,
                "{:<32} {:<4} {}",
                attack.name,
                attack.stage.function(),
                attack.about
            )?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let binary = match args.binary {
        Some(binary) => binary.canonicalize().context("the program under attack")?,
        None => stage::binary()?,
    };
    let (dose, name) = if args.quick {
        (Dose::Quick, "quick")
    } else {
        (Dose::Full, "full")
    };
    writeln!(out, "{}", report::HEAD)?;
    let outcomes = run::run(&chosen, &binary, dose, |outcome| {
        // A pipe that was closed does not end the run.
        let _ = writeln!(std::io::stdout(), "{}", outcome.row());
        for note in &outcome.notes {
            let _ = writeln!(std::io::stdout(), "    {note}");
        }
    });
    writeln!(out, "{}", report::summary(&outcomes))?;
    if let Some(folder) = args.report.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(&args.report, report::json(&outcomes, name))?;
    let missed = outcomes.iter().any(|outcome| !outcome.withstood());
    Ok(if missed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
