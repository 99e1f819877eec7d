//! `signalbox numbers import`: from text or from a directory, into a file of numbers or a subscriber database server.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use clap::{ArgGroup, Args};
use numbers::csv::{self, ImportError, Mistake, Options, Progress};
use numbers::{Key, Kind, Written};

use super::directory::{Directory, MakeLine};
use super::progress::Display;
use super::server::Server;
use super::spool::{MOST_SEEN, Spool};
use crate::failure::Failure;
use crate::print;

/// What is imported, from where, and where to.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("source").required(true).args(["input", "ldap"])))]
#[command(group(ArgGroup::new("target").required(true).args(["output", "sds"])))]
pub(crate) struct Import {
    /// Text to read; - for standard input
    #[arg(value_name = "TEXT")]
    input: Option<PathBuf>,
    /// File of numbers to write; replaced when it exists
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Take lines in any order
    #[arg(long)]
    sort: bool,
    /// Memory for sorting, in MiB; what does not fit is written beside FILE meanwhile, 16 bytes a number
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    sort_memory: u32,
    #[command(flatten)]
    directory: Directory,
    #[command(flatten)]
    server: Server,
}

impl Import {
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let mut display = Display::new();
        match &self.output {
            Some(output) => self.write_file(output, &mut display)?,
            None => self.write_records(&mut display)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn write_file(&self, output: &Path, display: &mut Display) -> Result<(), Failure> {
        let (written, more) = match &self.input {
            Some(input) => (self.import_text(input, output, display)?, String::new()),
            None => self.import_directory(output, display)?,
        };
        print(&format!(
            "{}: {} numbers, {} destination sets, {} bytes ({:.2} a number) in {:.1} s{more}\n",
            output.display(),
            written.numbers,
            written.sets,
            written.bytes,
            written.bytes as f64 / written.numbers.max(1) as f64,
            display.elapsed().as_secs_f64()
        ))
    }

    fn import_text(&self, input: &Path, output: &Path, display: &mut Display) -> Result<Written, Failure> {
        let (reader, bytes) = opened(input)?;
        let written = self.write(reader, bytes, self.sort, output, display);
        Ok(written.with_context(|| input.display().to_string())?)
    }

    /// Reads all entries before anything is written; what is wrong is reported with the name of its entry.
    fn import_directory(&self, output: &Path, display: &mut Display) -> Result<(Written, String), Failure> {
        let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut spool = Spool::new(folder.unwrap_or(Path::new(".")))?;
        let more = self.spooled(line_of_number, &mut spool, display)?;
        let bytes = spool.bytes();
        match self.write(spool.reader()?, Some(bytes), true, output, display) {
            Err(ImportError::Line { line, mistake }) => {
                Err(Failure::Other(anyhow!("{}: {mistake}", spool.entry_of(line)?)))
            }
            Err(ImportError::Twice { key, line, first }) => {
                Err(twice(&mut spool, &key.to_string(), line, first))
            }
            other => Ok((other?, more)),
        }
    }

    /// Writes the entries of the directory into a spool; says how many there are.
    fn spooled(&self, make: MakeLine, spool: &mut Spool, display: &mut Display) -> Result<String, Failure> {
        let entries = self.directory.read(make, spool, display)?;
        if spool.lines() == 0 {
            let reason = format!("none of {entries} entries has a number in an attribute of --attribute");
            return Err(Failure::Other(anyhow!(reason)));
        }
        let without = entries - spool.entries();
        Ok(format!("; {entries} entries, {without} of them without a number"))
    }

    /// Checks all records before the first one is sent.
    fn write_records(&self, display: &mut Display) -> Result<(), Failure> {
        let mut spool = Spool::new(&std::env::temp_dir())?;
        let more = match &self.input {
            None => self.spooled(sds::record_line, &mut spool, display)?,
            Some(input) => {
                let (reader, bytes) = opened(input)?;
                let read = Cell::new(0);
                let counted = Counted {
                    inner: reader,
                    read: &read,
                };
                let mut reader = BufReader::with_capacity(1 << 20, counted);
                let taken = csv::entries(&mut reader, |line, entry| {
                    let record = sds::record_line(entry.kind, entry.value, entry.destinations);
                    let record = record.map_err(|reason| Mistake::at(line, reason))?;
                    let share = bytes.map(|all| read.get() as f64 / all as f64);
                    display.show("lines read", line, share);
                    spool
                        .push(&format!("line {line}"), &[record])
                        .map_err(ImportError::Read)
                });
                taken.with_context(|| input.display().to_string())?;
                String::new()
            }
        };
        if let Some((record, line, first)) = spool.first_twice(MOST_SEEN)? {
            return Err(twice(&mut spool, &record, line, first));
        }
        let count = spool.lines();
        let offset = self.server.send(&mut spool, display)?;
        print(&format!(
            "{count} records written up to transaction {offset} in {:.1} s{more}\n",
            display.elapsed().as_secs_f64()
        ))
    }

    fn write(
        &self,
        input: impl Read,
        bytes: Option<u64>,
        sort: bool,
        output: &Path,
        display: &mut Display,
    ) -> Result<Written, ImportError> {
        let read = Cell::new(0);
        let input = Counted {
            inner: input,
            read: &read,
        };
        let options = Options {
            sort,
            sort_memory: self.sort_memory as usize * (1 << 20),
        };
        let input = BufReader::with_capacity(1 << 20, input);
        csv::import(input, output, options, |progress| {
            match progress {
                Progress::Read(lines) => {
                    let share = bytes.map(|all| read.get() as f64 / all as f64);
                    display.show("lines read", lines, share);
                }
                Progress::Merged { numbers, of } => {
                    display.show(
                        "numbers written",
                        numbers,
                        Some(numbers as f64 / of.max(1) as f64),
                    );
                }
            }
            Ok(())
        })
    }
}

/// A text to read, and its length where that is known.
fn opened(input: &Path) -> Result<(Box<dyn Read>, Option<u64>), Failure> {
    if input.as_os_str() == "-" {
        return Ok((Box::new(io::stdin().lock()), None));
    }
    let file = File::open(input).with_context(|| format!("reading {}", input.display()))?;
    let length = file.metadata().map(|file| file.len()).ok();
    Ok((Box::new(file), length.filter(|length| *length > 0)))
}

fn line_of_number(kind: &str, number: &str, destinations: &str) -> Result<String, String> {
    let kind: Kind = kind
        .parse()
        .map_err(|_| format!("a file has no {kind}; use --sds"))?;
    let key = Key::new(kind, number.as_bytes()).map_err(|error| error.to_string())?;
    Ok(format!("{key},{destinations}"))
}

fn twice(spool: &mut Spool, record: &str, line: u64, first: u64) -> Failure {
    match (spool.entry_of(line), spool.entry_of(first)) {
        (Ok(entry), Ok(other)) => Failure::Other(anyhow!("{entry}: {record} is there twice; also {other}")),
        (Err(error), _) | (_, Err(error)) => error.into(),
    }
}

/// Counts the bytes that are read.
struct Counted<'c, R> {
    inner: R,
    read: &'c Cell<u64>,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.read.set(self.read.get() + read as u64);
        Ok(read)
    }
}
