//! `signalbox store`: the files of the embedded store of a function that does not run, and a copy of one that does.

mod running;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::store::{BackedUp, Error, Restored, Salvaged, Verified};
use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::failure::{FAILED, Failure};
use crate::store_export::{self, Form};
use crate::{complain, print};

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Read all files of a store and list all damage; changes nothing
    ///
    /// Exits with 1 when there is damage that keeps the store from opening.
    Verify(StoreArgs),
    /// Keep the readable part of a damaged store, set damaged files aside, list what was dropped
    ///
    /// The damaged files stay as they are in a folder store.damaged-N of the directory. A record whose last write
    /// is lost shows the write before it; one whose deletion is lost reappears. Restore from a copy where there is one.
    Salvage(StoreArgs),
    /// Copy a store into another directory, complete files as hard links where both are on one file system
    ///
    /// With the name of a function in place of a directory it copies the store of the running function, which serves meanwhile:
    /// what was acknowledged before is in the copy. That process writes it, so it must be able to.
    Backup {
        #[command(flatten)]
        store: StoreArgs,
        /// Directory of the copy; absent, or empty
        #[arg(value_name = "TO")]
        to: PathBuf,
        #[command(flatten)]
        endpoint: running::EndpointArgs,
    },
    /// Put a copy in the place of the store of a function that does not run; sets the store that is there aside
    ///
    /// Other files of the directory, such as the NF instance id and the NRF's keys, stay. Run it as the user of the function, or
    /// as root.
    Restore {
        /// Directory of the copy
        #[arg(value_name = "FROM")]
        from: PathBuf,
        /// Directory of the store (`embedded.directory` of its settings)
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write all records of a store as JSON, one a line; changes nothing
    ///
    /// Each line has table, key, times of creation and of the last write (microseconds since 1970), site and value.
    Export {
        /// Directory of the store (`embedded.directory` of its settings)
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// Records of this table alone, such as pcf_binding
        #[arg(long, value_name = "NAME", conflicts_with = "for_import")]
        table: Option<String>,
        /// Bindings of PDU sessions alone, as `signalbox import bsf` reads them
        #[arg(long)]
        for_import: bool,
        /// File to write, which must not exist; without it standard output
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// Directory of the store (`embedded.directory` of its settings)
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Does what the command says.
pub(crate) fn run(command: &StoreCommand) -> Result<ExitCode, Failure> {
    match command {
        StoreCommand::Verify(args) => {
            let verified = failed(::store::verify(&args.directory))?;
            show(args.json, &verified, verified_text)?;
            Ok(if verified.damage.is_empty() {
                ExitCode::SUCCESS
            } else {
                ExitCode::from(FAILED)
            })
        }
        StoreCommand::Salvage(args) => {
            let salvaged = failed(::store::salvage(&args.directory))?;
            show(args.json, &salvaged, salvaged_text)?;
            Ok(ExitCode::SUCCESS)
        }
        StoreCommand::Backup { store, to, endpoint } => {
            let made = match running::named(&store.directory) {
                Some(function) => running::backup(function, to, endpoint)?,
                None => failed(::store::backup(&store.directory, to))?,
            };
            show(store.json, &made, backed_up_text)?;
            Ok(ExitCode::SUCCESS)
        }
        StoreCommand::Restore {
            from,
            directory,
            json,
        } => {
            let restored = failed(::store::restore(from, directory))?;
            show(*json, &restored, restored_text)?;
            Ok(ExitCode::SUCCESS)
        }
        StoreCommand::Export {
            directory,
            table,
            for_import,
            output,
        } => {
            let form = Form {
                table: table.as_deref(),
                for_import: *for_import,
            };
            let lines = match output {
                None => store_export::run(directory, form, std::io::stdout().lock())?,
                Some(file) => {
                    let created = new_file(file).with_context(|| format!("creating {}", file.display()))?;
                    let lines = store_export::run(directory, form, &created)?;
                    created.sync_all()?;
                    lines
                }
            };
            complain(&format!("{lines} records"));
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// A file that its owner alone can read: it has what the store has.
fn new_file(path: &Path) -> std::io::Result<std::fs::File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path)
}

fn failed<T>(result: Result<T, Error>) -> Result<T, Failure> {
    result.map_err(|error| Failure::Other(error.into()))
}

fn show<T: Serialize>(json: bool, value: &T, text: fn(&T) -> String) -> Result<(), Failure> {
    if json {
        print(&(serde_json::to_string_pretty(value)? + "\n"))
    } else {
        print(&text(value))
    }
}

fn backed_up_text(made: &BackedUp) -> String {
    format!(
        "{} files of {} bytes, {} of them as hard links\n",
        made.files, made.bytes, made.linked
    )
}

fn restored_text(made: &Restored) -> String {
    let aside = match &made.aside {
        Some(folder) => format!("; the store that was there is in {}", folder.display()),
        None => String::new(),
    };
    format!("{} files of {} bytes{aside}\n", made.files, made.bytes)
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
                ", the last {} bytes are an unfinished write; the next start sets them aside",
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
        None => "no damage; nothing was changed\n".to_owned(),
        Some(folder) => format!(
            "kept {} entries of damaged files; the damaged files are in {}\n",
            salvaged.kept,
            folder.display()
        ),
    });
    text
}
