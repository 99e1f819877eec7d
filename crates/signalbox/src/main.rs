//! The signalling core and its laboratory on one command line.
//!
//! `signalbox up` starts everything with defaults; `signalbox run` starts some functions for production;
//! `signalbox lab` measures them. Exit codes: 0 done or passed, 1 a check or run failed, 2 usage or
//! configuration.

mod admin;
mod check;
mod config;
mod inspect;
mod run;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

/// One heap per thread fits one thread per core.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// An open signalling core for 4G and 5G networks, and the laboratory that proves what it carries.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the whole core in one process, with defaults that run, and print what to open
    Up(UpArgs),
    /// Start some functions, for production
    Run(RunArgs),
    /// Check configuration files: every mistake at once, with line and column
    Check {
        /// YAML files
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// The configuration: its reference page, or the one in effect
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Look inside a running NRF
    #[command(subcommand)]
    Nrf(NrfCommand),
    /// Measure a function with an operator's call model
    Lab(lab::cli::LabArgs),
    /// Simulators of the laboratory, each in a process of its own
    #[command(hide = true)]
    LabSim {
        /// Settings of the simulator
        args: Vec<String>,
    },
}

#[derive(Debug, Args)]
struct UpArgs {
    /// Configuration; without it the defaults
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Start only the functions, without simulated traffic
    #[arg(long)]
    quiet: bool,
}

#[derive(Debug, Args)]
struct RunArgs {
    /// Functions to start
    #[arg(required = true, value_enum)]
    functions: Vec<config::Function>,
    /// Configuration; without it the defaults
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print the reference page of every key, as Markdown
    Reference,
    /// Print the configuration in effect: the file over the defaults
    Show {
        /// Configuration; without it the defaults
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
enum NrfCommand {
    /// The registered NF instances
    Instances {
        /// Admin address of the NRF
        #[arg(long, default_value = "127.0.0.1:9010")]
        admin: std::net::SocketAddr,
        /// For machines
        #[arg(long)]
        json: bool,
    },
}

/// What a command ends with when the configuration or the command line is wrong.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Up(args) => run::up(args.config.as_deref(), !args.quiet),
        Command::Run(args) => run::functions(&args.functions, args.config.as_deref()),
        Command::Check { files } => return check::files(&files),
        Command::Config(ConfigCommand::Reference) => return check::print(&config::reference()),
        Command::Config(ConfigCommand::Show { config }) => run::load(config.as_deref()).map(|config| {
            check::print(&config.to_yaml());
        }),
        Command::Nrf(NrfCommand::Instances { admin, json }) => inspect::nrf_instances(admin, json),
        Command::Lab(args) => return args.run(),
        Command::LabSim { args } => return lab::sim::main(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(failure.code())
        }
    }
}
