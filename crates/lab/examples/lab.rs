//! The laboratory without the network functions: `lab lab …` and `lab lab-sim …`, for a function that runs
//! already (`--target`) or another program that runs it (`--program`). The binary `signalbox` mounts the same.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure a function with an operator's call model
    Lab(lab::cli::LabArgs),
    /// Play a peer
    #[command(hide = true)]
    LabSim {
        /// Settings file
        args: Vec<String>,
    },
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Lab(args) => args.run(),
        Command::LabSim { args } => lab::sim::main(&args),
    }
}
