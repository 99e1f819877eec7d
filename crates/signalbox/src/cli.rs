//! The command line.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::config::Config;
use crate::failure::Failure;
use crate::functions::{self, Function};
use crate::{
    administration, check, following, import, inspect, laboratory, manual, number_files, overview, pack,
    policies, print, replay, run, store_files, timeline,
};

/// The release, the commit it was built from, and which of the optional parts are in it.
const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("SIGNALBOX_COMMIT"),
    env!("SIGNALBOX_FEATURES"),
    ")"
);

/// An open signalling core for 4G and 5G networks, and the laboratory that proves what it carries.
#[derive(Debug, Parser)]
#[command(version = VERSION, max_term_width = 110, after_help = EXAMPLES, subcommand_required = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  signalbox up                                     everything on 127.0.0.1, with simulated traffic
  signalbox up --secure                            the same, with mutual TLS and access tokens everywhere
  signalbox check signalbox.yaml                   every mistake, with line and column
  signalbox run nrf --config signalbox.yaml        for production; SIGHUP reloads the file
  signalbox status                                 how all functions are doing, and the remedy for what is wrong
  signalbox nrf instances                          look inside a running NRF
  signalbox follow imsi-001010000000001            the messages of a subscriber, in all functions
  signalbox policy test examples/policy/low        a policy project's own test cases, with a diff
  signalbox lab run nrf/5k --duration 60s          measure with an operator's call model

Exit codes: 0 done or passed, 1 a check or run failed, 2 usage or configuration.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the whole core in one process, with defaults that run, and print what to open
    Up(UpArgs),
    /// Start some functions, for production
    ///
    /// Prints a line for each listen address, then `ready`; logs go to stderr. SIGHUP reloads the configuration.
    /// SIGTERM and SIGINT stop the process after requests in flight have finished; a second one stops it immediately.
    Run(RunArgs),
    /// Show how all functions are doing: what is wrong, and the remedy
    ///
    /// Asks each function at its admin endpoint. Exit code 0 only if all of them serve and lack nothing.
    Status(overview::StatusArgs),
    /// Show what has changed in all functions, in order of time
    ///
    /// Starts, reloads (applied or refused, and by whom), certificates, alarms, peers, operators' changes. The journal of a
    /// function that does not run is read from its directory.
    Journal(timeline::JournalArgs),
    /// Follow a subscriber: its messages in all functions, as a ladder
    ///
    /// Asks each function at its admin endpoint to copy the messages in which the identity occurs, and those of the same
    /// subscriber that the function finds by them (resource ids, addresses of the UE, Session-Ids). Tokens, credentials and
    /// keys are overwritten. The journal of each function records who followed whom.
    Follow(following::FollowArgs),
    /// Check configurations and call models: every mistake at once, with line and column
    Check(check::CheckArgs),
    /// Print the reference of all keys or the configuration in effect, or change a setting of running processes
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Administer several processes together: their configuration, alarms and measurements
    #[command(subcommand)]
    Network(administration::NetworkCommand),
    /// Take over records, or the configuration of another core
    #[command(subcommand)]
    Import(import::ImportCommand),
    /// Find and repair damage in the store of a stopped function
    #[command(subcommand)]
    Store(store_files::StoreCommand),
    /// Import, export and search files of numbers (IMSI, MSISDN, IMEI) with their destinations
    #[command(subcommand)]
    Numbers(number_files::NumbersCommand),
    /// Check, explain and test policy projects
    #[command(subcommand)]
    Policy(policies::PolicyCommand),
    /// Try the security application of the Diameter router on a capture
    #[command(subcommand)]
    Dsa(replay::DsaCommand),
    /// Print the reference page of every metric, as Markdown
    Metrics,
    /// Rules for Prometheus and dashboards for Grafana, from the declarations of metrics and alarms
    #[command(subcommand)]
    Observability(pack::PackCommand),
    /// Print the completions of a shell, for its folder of completions
    Completions(manual::CompletionsArgs),
    /// Write the man pages, one for each command
    Man(manual::ManArgs),
    /// Measure a function with an operator's call model
    Lab(laboratory::LabArgs),
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
    /// Without what an earlier start has kept: its folders are renamed to NAME.old
    #[arg(long)]
    fresh: bool,
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
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Change one setting in the file of running processes, and put it into effect
    ///
    /// The process checks the change, writes its file, in which all other lines stay as they are, and reloads it; what the reload
    /// refuses is taken back. The journal records who has changed what.
    Set(administration::SetArgs),
}

/// The command line, with what looks into each function.
fn whole() -> clap::Command {
    functions::ALL.iter().fold(Cli::command(), |command, function| {
        command.subcommand(inspect::command(function))
    })
}

/// Does what the command line says.
pub(crate) fn run() -> Result<ExitCode, Failure> {
    let matches = whole().get_matches();
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
        Command::Up(args) => run::up(args.config, !args.no_traffic, args.secure, args.fresh)?,
        Command::Run(args) => run::functions(&args.functions, args.config)?,
        Command::Status(args) => return overview::run(&args),
        Command::Journal(args) => return timeline::run(&args),
        Command::Follow(args) => return following::run(&args),
        Command::Check(args) => return check::run(&args),
        Command::Config(ConfigCommand::Reference) => {
            print(&settings::reference::<Config>("Configuration"))?;
        }
        Command::Config(ConfigCommand::Show { config, json }) => {
            print(&Config::load(config.as_deref())?.show(json)?)?;
        }
        Command::Config(ConfigCommand::Set(args)) => return administration::set(&args),
        Command::Network(command) => return administration::run(&command),
        Command::Import(command) => import::run(&command)?,
        Command::Store(command) => return store_files::run(&command),
        Command::Numbers(command) => return number_files::run(&command),
        Command::Policy(command) => return policies::run(&command),
        Command::Dsa(command) => return replay::run(&command),
        Command::Metrics => print(&functions::metrics_page())?,
        Command::Observability(command) => pack::run(&command)?,
        Command::Completions(args) => manual::completions(&args, whole())?,
        Command::Man(args) => manual::man(&args, whole())?,
        Command::Lab(args) => return Ok(args.run()),
        Command::LabSim { args } => return Ok(laboratory::simulate(&args)),
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        whole().debug_assert();
    }
}
