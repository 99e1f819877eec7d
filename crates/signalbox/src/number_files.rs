//! `signalbox numbers`: files of numbers with their destinations.

mod directory;
mod import;
mod progress;
mod server;
mod spool;

use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use numbers::csv;
use numbers::{Key, Kind, Load, Map};

use self::import::Import;
use crate::failure::{FAILED, Failure};
use crate::{complain, print};

#[derive(Debug, Subcommand)]
pub(crate) enum NumbersCommand {
    /// Write a file of numbers, or records of a subscriber database server, from text: kind,number,destination[,service=destination…]
    ///
    /// Kinds are imei, imsi and msisdn, in this order, then fewer digits before more, then ascending. The first wrong line is
    /// printed with its reason, and a file that is there already stays as it is. With --ldap the numbers are those of the entries
    /// of a directory, in any order, and what is wrong is printed with the name of its entry.
    Import(Box<Import>),
    /// Write all numbers as text, as import takes them
    Export {
        #[command(flatten)]
        files: Files,
        /// Numbers of this kind alone: imei, imsi or msisdn
        #[arg(long)]
        kind: Option<Kind>,
    },
    /// Print the destinations of numbers; exits with 1 when one is unknown
    Find {
        #[command(flatten)]
        files: Files,
        /// Kind of the numbers: imei, imsi or msisdn
        kind: Kind,
        /// Numbers of 1 to 15 digits; leading zeros count
        #[arg(required = true)]
        numbers: Vec<String>,
    },
    /// Print what a file consists of and check every block; with a number, how it is found
    ///
    /// Exits with 1 when a block is damaged.
    Explain {
        #[command(flatten)]
        files: Files,
        /// Kind of the number: imei, imsi or msisdn
        #[arg(requires = "number")]
        kind: Option<Kind>,
        /// A number of 1 to 15 digits
        number: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Files {
    /// File of numbers
    #[arg(value_name = "FILE")]
    base: PathBuf,
    /// Changes to it: a checkpoint of a running function
    #[arg(long, value_name = "FILE")]
    changes: Option<PathBuf>,
}

impl Files {
    fn open(&self) -> Result<Map, Failure> {
        let map = Map::open(&self.base, self.changes.as_deref(), Load::Mapped)?;
        map.warnings().iter().for_each(|warning| complain(warning));
        Ok(map)
    }
}

/// Does what the command says.
pub(crate) fn run(command: &NumbersCommand) -> Result<ExitCode, Failure> {
    match command {
        NumbersCommand::Import(import) => import.run(),
        NumbersCommand::Export { files, kind } => export(&files.open()?, *kind),
        NumbersCommand::Find { files, kind, numbers } => find(files, *kind, numbers),
        NumbersCommand::Explain { files, kind, number } => {
            let key = match (kind, number) {
                (Some(kind), Some(number)) => Some(key(*kind, number)?),
                _ => None,
            };
            explain(&files.open()?, key)
        }
    }
}

fn export(map: &Map, kind: Option<Kind>) -> Result<ExitCode, Failure> {
    let mut output = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let mut damaged = false;
    let exported = csv::export(map, kind, &mut output, |block| {
        damaged = true;
        complain(&block);
    });
    match exported {
        // Who reads the lines has seen enough, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
        other => complain(&format!("{} numbers", other?)),
    }
    Ok(code(!damaged))
}

fn find(files: &Files, kind: Kind, numbers: &[String]) -> Result<ExitCode, Failure> {
    let keys: Result<Vec<Key>, Failure> = numbers.iter().map(|number| key(kind, number)).collect();
    let (keys, map) = (keys?, files.open()?);
    let mut all_known = true;
    for key in keys {
        let set = map.find(key)?.and_then(|set| map.set(set));
        all_known &= set.is_some();
        match set {
            Some(set) => print(&format!("{key},{set}\n"))?,
            None => complain(&format!("{key}: unknown")),
        }
    }
    Ok(code(all_known))
}

fn key(kind: Kind, number: &str) -> Result<Key, Failure> {
    Key::new(kind, number.as_bytes()).map_err(|error| Failure::Usage(format!("{kind} `{number}`: {error}")))
}

fn explain(map: &Map, key: Option<Key>) -> Result<ExitCode, Failure> {
    if let Some(key) = key {
        let explained = map.explain(key);
        let text = |result: Result<String, numbers::Damaged>| match result {
            Ok(text) => text,
            Err(damaged) => damaged.to_string(),
        };
        let sound = explained.found.is_ok();
        let found = explained
            .found
            .map(|found| found.unwrap_or_else(|| "unknown".to_owned()));
        print(&format!(
            "{key}\n  block  {}\n  place  {}\n  form   {}\n  found  {}\n",
            explained.block,
            explained.place,
            text(explained.form),
            text(found)
        ))?;
        return Ok(code(sound));
    }
    let summary = map.summary();
    print(&summary.to_string())?;
    summary.damaged.iter().for_each(|block| complain(block));
    Ok(code(summary.damaged.is_empty()))
}

fn code(good: bool) -> ExitCode {
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(FAILED)
    }
}
