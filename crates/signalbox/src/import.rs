//! Records from standard input into the store of a stopped function.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context as _;
use clap::Args;
use telemetry::logging;

use crate::config::Config;
use crate::failure::Failure;
use crate::{complain, print};

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Function that owns the store
    #[arg(value_parser = ["bsf", "pcf"], value_name = "FUNCTION")]
    function: String,
    /// Configuration; without it the defaults
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Imports, and prints the number of records.
pub(crate) fn run(args: &ImportArgs) -> Result<(), Failure> {
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
    // The command line accepts no other function.
    let (imported, records) = match args.function.as_str() {
        "pcf" => (
            runtime.block_on(pcf::import::import(&config.pcf.store, input)),
            "policy associations",
        ),
        _ => (
            runtime.block_on(bsf::import::import(&config.bsf.store, input)),
            "bindings",
        ),
    };
    let count = imported.with_context(|| format!("importing into {}", args.function))?;
    print(&format!(
        "{count} {records} in {:.1} s\n",
        begun.elapsed().as_secs_f64()
    ))
}
