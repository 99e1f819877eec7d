//! What packages contain beside the program, made from the command line itself: man pages and completions.

use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::Shell;

use crate::failure::Failure;
use crate::print;

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell that reads them
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Directory of section 1; it is created
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Prints the completions of a shell.
pub(crate) fn completions(args: &CompletionsArgs, mut command: Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "signalbox", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Writes a man page for each command: `signalbox.1`, `signalbox-run.1`, `signalbox-nrf-instances.1`.
pub(crate) fn man(args: &ManArgs, command: Command) -> Result<(), Failure> {
    let pages = |error| named(&args.directory, error);
    std::fs::create_dir_all(&args.directory).map_err(pages)?;
    // Each command's `help` would have a page as well.
    let command = command.disable_help_subcommand(true);
    clap_mangen::generate_to(command, &args.directory).map_err(pages)?;
    Ok(())
}

fn named(directory: &Path, error: std::io::Error) -> Failure {
    anyhow::Error::new(error)
        .context(format!("writing man pages to {}", directory.display()))
        .into()
}
