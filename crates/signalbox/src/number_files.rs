//! `signalbox numbers`: files of numbers with their destinations.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use numbers::csv::{self, Options, Progress};
use numbers::{Key, Kind, Load, Map};

use crate::failure::{FAILED, Failure};
use crate::{complain, print};

#[derive(Debug, Subcommand)]
pub(crate) enum NumbersCommand {
    /// Write a file of numbers from text, one number a line: kind,number,destination[,service=destination…]
    ///
    /// Kinds are imei, imsi and msisdn, in this order, then fewer digits before more, then ascending. The first wrong line is
    /// printed with its reason, and a file that is there already stays as it is.
    Import {
        /// Text to read; - for standard input
        #[arg(value_name = "TEXT")]
        input: PathBuf,
        /// File of numbers to write; replaced when it exists
        #[arg(long, short, value_name = "FILE")]
        output: PathBuf,
        /// Take lines in any order
        #[arg(long)]
        sort: bool,
        /// Memory for sorting, in MiB; what does not fit is written beside FILE meanwhile, 16 bytes a number
        #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=65_536))]
        sort_memory: u32,
    },
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
        NumbersCommand::Import {
            input,
            output,
            sort,
            sort_memory,
        } => {
            let options = Options {
                sort: *sort,
                sort_memory: *sort_memory as usize * (1 << 20),
            };
            import(input, output, options)
        }
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

fn import(input: &Path, output: &Path, options: Options) -> Result<ExitCode, Failure> {
    let opened = || File::open(input).with_context(|| format!("reading {}", input.display()));
    let (reader, bytes): (Box<dyn Read>, Option<u64>) = if input.as_os_str() == "-" {
        (Box::new(io::stdin().lock()), None)
    } else {
        let file = opened()?;
        let length = file.metadata().map(|file| file.len()).ok();
        (Box::new(file), length.filter(|length| *length > 0))
    };
    let read = Cell::new(0);
    let counted = Counted {
        inner: reader,
        read: &read,
    };
    let mut display = Display::new(bytes);
    let written = csv::import(
        BufReader::with_capacity(1 << 20, counted),
        output,
        options,
        |progress| {
            display.show(progress, read.get());
            Ok(())
        },
    );
    let written = written.with_context(|| input.display().to_string())?;
    print(&format!(
        "{}: {} numbers, {} destination sets, {} bytes ({:.2} a number) in {:.1} s\n",
        output.display(),
        written.numbers,
        written.sets,
        written.bytes,
        written.bytes as f64 / written.numbers.max(1) as f64,
        display.begun.elapsed().as_secs_f64()
    ))?;
    Ok(ExitCode::SUCCESS)
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

/// Progress on stderr: count, rate, remaining time.
struct Display {
    begun: Instant,
    shown: Instant,
    /// When merging began.
    merging: Option<Instant>,
    bytes: Option<u64>,
}

impl Display {
    const EVERY: Duration = Duration::from_secs(2);

    fn new(bytes: Option<u64>) -> Self {
        let now = Instant::now();
        Self {
            begun: now,
            shown: now,
            merging: None,
            bytes,
        }
    }

    fn show(&mut self, progress: Progress, bytes: u64) {
        let now = Instant::now();
        if let Progress::Merged { .. } = progress {
            self.merging.get_or_insert(now);
        }
        if now - self.shown < Self::EVERY {
            return;
        }
        self.shown = now;
        let (what, count, begun, share) = match progress {
            Progress::Read(lines) => {
                let share = self.bytes.map(|all| bytes as f64 / all as f64);
                ("lines read", lines, self.begun, share)
            }
            Progress::Merged { numbers, of } => {
                let share = Some(numbers as f64 / of.max(1) as f64);
                (
                    "numbers written",
                    numbers,
                    self.merging.unwrap_or(self.begun),
                    share,
                )
            }
        };
        complain(&line(what, count, now - begun, share));
    }
}

fn line(what: &str, count: u64, took: Duration, share: Option<f64>) -> String {
    let seconds = took.as_secs_f64().max(0.001);
    let mut text = format!("{count} {what}, {:.0} a second", count as f64 / seconds);
    if let Some(share) = share.filter(|share| *share > 0.0) {
        let left = (seconds / share.min(1.0) - seconds).ceil();
        text += &format!(", {:.0} %, {left:.0} s left", share.min(1.0) * 100.0);
    }
    text
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_has_rate_share_and_remaining_time() {
        let text = line("lines read", 4_000_000, Duration::from_secs(4), Some(0.25));
        assert_eq!(text, "4000000 lines read, 1000000 a second, 25 %, 12 s left");
        let text = line("lines read", 10, Duration::from_secs(5), None);
        assert_eq!(text, "10 lines read, 2 a second");
    }
}
