//! The command line.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::config::Config;
use crate::failure::Failure;
use crate::functions::{self, Function};
use crate::{check, import, inspect, print, run, store_files};

/// An open signalling core for 4G and 5G networks, and the laboratory that proves what it carries.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 110, after_help = EXAMPLES, subcommand_required = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  signalbox up                                     everything on 127.0.0.1, with simulated traffic
  signalbox up --secure                            the same, with mutual TLS and access tokens everywhere
  signalbox check signalbox.yaml                   every mistake, with line and column
  signalbox run nrf --config signalbox.yaml        for production; SIGHUP reads the file again
  signalbox nrf instances                          look inside a running NRF
  signalbox lab run nrf/5k --duration 60s          measure with an operator's call model

Exit codes: 0 done or passed, 1 a check or run failed, 2 usage or configuration.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the whole core in one process, with defaults that run, and print what to open
    Up(UpArgs),
    /// Start some functions, for production
    ///
    /// Prints a line for each address it listens on and `ready` when all are there; logs go to stderr. SIGHUP
    /// reads the configuration again, SIGTERM and SIGINT let requests in flight finish and end it; a second
    /// one ends it at once.
    Run(RunArgs),
    /// Check configurations and call models: every mistake at once, with line and column
    Check(check::CheckArgs),
    /// The configuration: its reference page, or the one in effect
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Write records into the store of a function that does not run, from standard input
    ///
    /// For bsf: bindings of PDU sessions, one PcfBinding (TS 29.521) as JSON on each line, with a member bindingId
    /// where it is to keep an identity.
    Import(import::ImportArgs),
    /// Look for damage in the files of a store whose function does not run, or keep what can be kept
    #[command(subcommand)]
    Store(store_files::StoreCommand),
    /// Print the reference page of every metric, as Markdown
    Metrics,
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
    /// Only the functions, without simulated traffic
    #[arg(long)]
    no_traffic: bool,
    /// With mutual TLS and access tokens everywhere, by certificates that are made at the start
    #[arg(long)]
    secure: bool,
}

#[derive(Debug, Args)]
struct RunArgs {
    /// Functions to start
    #[arg(required = true, value_parser = functions::parse, value_name = "FUNCTION")]
    functions: Vec<&'static Function>,
    /// Configuration; without it the defaults
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print the reference page of every key, as Markdown
    Reference,
    /// Print the configuration in effect, the file over the defaults, as YAML
    Show {
        /// Configuration; without it the defaults
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// For machines
        #[arg(long)]
        json: bool,
    },
}

/// Does what the command line says.
pub(crate) fn run() -> Result<ExitCode, Failure> {
    let command = functions::ALL.iter().fold(Cli::command(), |command, function| {
        command.subcommand(inspect::command(function))
    });
    let matches = command.get_matches();
    if let Some((name, inner)) = matches.subcommand()
        && let Some(function) = functions::find(name)
    {
        return inspect::run(function, inner);
    }
    let command = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli.command,
        Err(error) => error.exit(),
    };
    match command {
        Command::Up(args) => run::up(args.config, !args.no_traffic, args.secure)?,
        Command::Run(args) => run::functions(&args.functions, args.config)?,
        Command::Check(args) => return check::run(&args),
        Command::Config(ConfigCommand::Reference) => {
            print(&settings::reference::<Config>("Configuration"))?;
        }
        Command::Config(ConfigCommand::Show { config, json }) => {
            print(&Config::load(config.as_deref())?.show(json)?)?;
        }
        Command::Import(args) => import::run(&args)?,
        Command::Store(command) => return store_files::run(&command),
        Command::Metrics => print(&functions::metrics_page())?,
        Command::Lab(args) => return Ok(args.run()),
        Command::LabSim { args } => return Ok(lab::sim::main(&args)),
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        functions::ALL
            .iter()
            .fold(Cli::command(), |command, function| {
                command.subcommand(inspect::command(function))
            })
            .debug_assert();
    }
}
