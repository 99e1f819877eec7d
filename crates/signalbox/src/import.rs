//! `signalbox import`: records from standard input into the store of a stopped function, and configurations of other cores.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use telemetry::logging;

use crate::config::Config;
use crate::failure::Failure;
use crate::foreign::{self, Core, ForeignArgs};
use crate::{complain, print};

#[derive(Debug, Subcommand)]
pub(crate) enum ImportCommand {
    /// Write bindings from standard input into the store of a stopped BSF
    ///
    /// One PcfBinding (TS 29.521) as JSON on each line, with a member bindingId for a binding that has an identity already.
    Bsf(RecordArgs),
    /// Write policy associations from standard input into the store of a stopped PCF
    Pcf(RecordArgs),
    /// Write configurations from those of Open5GS (NRF, SCP, BSF, PCF, PCRF)
    ///
    /// With the freeDiameter file of the PCRF where it has one. Policies that are in the files become a policy project.
    /// Each line that is not carried over is listed on stderr, with the reason.
    Open5gs(ForeignArgs),
    /// Write configurations from those of free5GC (NRF, SCP, BSF, PCF)
    ///
    /// Each line that is not carried over is listed on stderr, with the reason.
    Free5gc(ForeignArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Configuration; without it the defaults
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Imports, and prints what was written.
pub(crate) fn run(command: &ImportCommand) -> Result<(), Failure> {
    match command {
        ImportCommand::Bsf(args) => records(args, "bsf"),
        ImportCommand::Pcf(args) => records(args, "pcf"),
        ImportCommand::Open5gs(args) => foreign::run(Core::Open5gs, args),
        ImportCommand::Free5gc(args) => foreign::run(Core::Free5gc, args),
    }
}

fn records(args: &RecordArgs, function: &str) -> Result<(), Failure> {
    let config = Config::load(args.config.as_deref())?;
    logging::init(&config.log);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    if std::io::stdin().is_terminal() {
        complain(&"reading records from the terminal, one JSON object per line; Ctrl-D ends, Ctrl-C cancels");
    }
    let begun = Instant::now();
    let input = std::io::stdin().lock();
    let (imported, records) = match function {
        "pcf" => (
            runtime.block_on(pcf::import::import(&config.pcf.store, input)),
            "policy associations",
        ),
        _ => (
            runtime.block_on(bsf::import::import(&config.bsf.store, input)),
            "bindings",
        ),
    };
    let count = imported.with_context(|| format!("importing into {function}"))?;
    print(&format!(
        "{count} {records} in {:.1} s\n",
        begun.elapsed().as_secs_f64()
    ))
}
