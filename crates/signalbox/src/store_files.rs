//! `signalbox store`: the files of the embedded store of a function that does not run.

use std::path::PathBuf;
use std::process::ExitCode;

use ::store::{Error, Salvaged, Verified};
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::failure::{FAILED, Failure};
use crate::print;

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Read all files of a store and list what is wrong with them; nothing is changed
    ///
    /// Exits with 1 when there is damage that keeps the store from opening.
    Verify(StoreArgs),
    /// Keep what can be read of a damaged store, set damaged files aside, say what was dropped
    ///
    /// The damaged files stay as they are in a folder store.damaged-N of the directory. A record whose last write
    /// is lost shows the write before it, and one whose deletion is lost is back. First try to restore from a copy.
    Salvage(StoreArgs),
}

#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// Directory of the store (`embedded.directory` of its settings)
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// For machines
    #[arg(long)]
    json: bool,
}

/// Does what the command says.
pub(crate) fn run(command: &StoreCommand) -> Result<ExitCode, Failure> {
    match command {
        StoreCommand::Verify(args) => {
            let verified = told(::store::verify(&args.directory))?;
            show(args, &verified, verified_text)?;
            Ok(match verified.damage.is_empty() {
                true => ExitCode::SUCCESS,
                false => ExitCode::from(FAILED),
            })
        }
        StoreCommand::Salvage(args) => {
            let salvaged = told(::store::salvage(&args.directory))?;
            show(args, &salvaged, salvaged_text)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn told<T>(result: Result<T, Error>) -> Result<T, Failure> {
    result.map_err(|error| Failure::Other(error.into()))
}

fn show<T: Serialize>(args: &StoreArgs, value: &T, text: fn(&T) -> String) -> Result<(), Failure> {
    match args.json {
        true => print(&(serde_json::to_string_pretty(value)? + "\n")),
        false => print(&text(value)),
    }
}

fn verified_text(verified: &Verified) -> String {
    let mut text = String::new();
    for file in &verified.files {
        text.push_str(&format!(
            "{}  {} entries, {} bytes",
            file.file, file.entries, file.bytes
        ));
        if file.unfinished > 0 {
            text.push_str(&format!(
                ", the last {} bytes are a write that was not finished; the next start sets them aside",
                file.unfinished
            ));
        }
        text.push('\n');
    }
    for damage in &verified.damage {
        text.push_str(&format!(
            "damaged: {} at byte {}: {}\n",
            damage.file, damage.byte, damage.reason
        ));
    }
    let count = verified.files.len();
    text.push_str(&match verified.damage.len() {
        0 => format!("no damage in {count} files\n"),
        damages => format!("{damages} places are damaged in {count} files\n"),
    });
    text
}

fn salvaged_text(salvaged: &Salvaged) -> String {
    let mut text = String::new();
    for dropped in &salvaged.dropped {
        let to = dropped
            .to
            .map_or_else(|| "the end".to_owned(), |to| format!("before {to}"));
        text.push_str(&format!(
            "dropped: {} from byte {} to {to}, {} entries that can be read: {}\n",
            dropped.file, dropped.from, dropped.entries, dropped.reason
        ));
    }
    for file in &salvaged.moved {
        text.push_str(&format!("set aside: {file}\n"));
    }
    text.push_str(&match &salvaged.aside {
        None => "nothing is damaged, nothing was changed\n".to_owned(),
        Some(folder) => format!(
            "kept {} entries of damaged files; the damaged files are in {}\n",
            salvaged.kept,
            folder.display()
        ),
    });
    text
}
