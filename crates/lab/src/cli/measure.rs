//! `signalbox lab run`: a call model against a function that is started for it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use ::report::{self, Verdict};
use clap::Args;
use settings::Period;

use super::reports::summary;
use super::{FAILED, Failure, INVALID, USAGE, failure, find, folder_for, json_text, period, say};
use crate::run::{self, Database, Options, Progress, Rate};

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// Name (nrf/5k) or path of a YAML file
    model: String,
    /// How long to measure, after warming up
    #[arg(long, default_value = "60s", value_parser = period)]
    duration: Duration,
    /// How long to warm up
    #[arg(long, default_value = "5s", value_parser = period)]
    warmup: Duration,
    /// Transactions per second, a factor such as 0.2x, or max to search for the knee
    #[arg(long, value_parser = str::parse::<Rate>)]
    rate: Option<Rate>,
    /// Cores of the function (0 or 0-3,6); generator and simulators get the others
    #[arg(long, value_name = "CPUS", value_parser = run::cpu_list)]
    pin: Option<std::vec::Vec<usize>>,
    /// Where reports go; a new folder under lab-runs if not given
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Connections to the function, instead of the model's
    #[arg(long)]
    connections: Option<u32>,
    /// Bindings that stand when the load begins [default: the model's, at most 100000]
    #[arg(long)]
    sessions: Option<u64>,
    /// Keep the stores with these bindings in a folder, for later runs; those of an earlier run there are used
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// What keeps the bindings: embedded, galera (a cluster of three nodes), sites (servers that replicate)
    #[arg(long, value_name = "KIND", value_parser = str::parse::<Database>)]
    database: Option<Database>,
    /// Generator threads
    #[arg(long, default_value_t = 1)]
    generators: usize,
    /// Load a function that runs already, at this address
    #[arg(long, value_name = "ADDRESS")]
    target: Option<SocketAddr>,
    /// Settings of the function, laid over those that the lab makes
    #[arg(long, value_name = "FILE")]
    function_config: Option<PathBuf>,
    /// Whether consumers and producers speak TLS (scp/…), instead of what the model says
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    tls: Option<bool>,
    /// How many times the latencies of network, producers and NRF that a model has (scp/…); 0 for none
    #[arg(long, value_name = "FACTOR", default_value = "1x", value_parser = run::latency, allow_negative_numbers = true)]
    latency: f64,
    /// Put a relay of TCP before each site that adds this much to the time of its answers (bsf/…), such as 50ms
    #[arg(long, value_name = "TIME", value_parser = period)]
    site_latency: Option<Duration>,
    /// Let a process that never sleeps compete for each core of the function (with --pin): it takes half of them
    #[arg(long)]
    contend: bool,
    /// A Kafka broker for models that copy messages (scp/model-d-10), instead of one that is started
    #[arg(long, value_name = "ADDRESS")]
    kafka: Option<SocketAddr>,
    /// The program that runs the function, instead of this one
    #[arg(long, value_name = "PROGRAM", hide = true)]
    program: Option<PathBuf>,
    /// Print report.json instead of a summary
    #[arg(long)]
    json: bool,
}

pub(super) fn measure(args: Box<RunArgs>) -> Result<ExitCode, Failure> {
    let found = find(&args.model)?;
    let out = args.out.unwrap_or_else(|| folder_for(&found.name));
    let options = Options {
        rate: args.rate.unwrap_or_default(),
        duration: args.duration,
        warmup: args.warmup,
        pin: args.pin.unwrap_or_default(),
        connections: args.connections,
        sessions: args.sessions,
        store: args.store,
        database: args.database.unwrap_or_default(),
        generators: args.generators.clamp(1, 64),
        out: out.clone(),
        program: args.program,
        target: args.target,
        function_config: args.function_config,
        tls: args.tls,
        latency: args.latency,
        site_latency: Period(args.site_latency.unwrap_or_default()),
        contend: args.contend,
        kafka: args.kafka,
    };
    let mut progress = Progress::default();
    let made = run::run(&found, &options, &mut progress);
    progress.clear();
    let (report, series) = made.map_err(|error| match &error {
        run::RunError::Rig(run::RigError::Settings(_)) => failure(USAGE)(&error),
        _ => failure(FAILED)(&error),
    })?;
    report::write(&out, &report, &series)
        .map_err(|error| failure(FAILED)(&format!("cannot write to {}: {error}", out.display())))?;
    say(&if args.json {
        json_text(&report)?
    } else {
        summary(&report, &out)
    })?;
    Ok(match report.verdict {
        Verdict::Pass => ExitCode::SUCCESS,
        Verdict::Fail => ExitCode::from(FAILED),
        Verdict::Invalid => ExitCode::from(INVALID),
    })
}
