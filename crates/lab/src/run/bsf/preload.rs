//! The bindings that exist before the load: written into a BSF's store before it starts, by the program's own `import`,
//! or left there by an earlier run (`--store`).

use std::io::{BufRead as _, BufReader, BufWriter, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::run::rig::{Place, RigError};
use crate::run::{Options, Progress, figure};
use callmodel::bsf::BsfModel;
use loadgen::client::{Client, Request};
use workload::bsf::{Numbers, Sessions};
use workload::nrf::setup::SetupError;

/// The file beside stores that outlast a run.
const NOTE: &str = "lab.json";
/// Timeout of a search for a binding.
const PATIENCE: Duration = Duration::from_secs(30);
/// Threads end their bindings in turns but not in step: this many numbers after the first binding that exists, all
/// exist.
const OUT_OF_STEP: u32 = 20_000;
/// Bindings between two reports of the progress.
const REPORT: u32 = 100_000;

/// Figures of the stores that outlast a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Note {
    /// Bindings at all sites.
    sessions: u64,
    sessions_per_subscriber: u32,
    /// Sites that have them.
    sites: u32,
}

/// Which bindings stand, and where they are kept.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) sessions: u64,
    sites: u32,
    kept: Option<PathBuf>,
    note: Note,
    /// The bindings are left from an earlier run.
    pub(super) adopted: bool,
}

impl Plan {
    /// By the model and the options.
    ///
    /// # Errors
    /// When a kept store was filled for something else, or cannot be read.
    pub(super) fn new(model: &BsfModel, options: &Options) -> Result<Self, RigError> {
        let sites = model.sites_with_traffic;
        // Functions have other working directories.
        let kept = options.store.as_deref().map(std::path::absolute);
        let kept = kept.transpose().map_err(RigError::io("finding the store"))?;
        let found = kept.as_deref().map(read_note).transpose()?.flatten();
        let asked = options.sessions.or(found.map(|note| note.sessions));
        let sessions = model.sessions_for_run(asked).min(u64::from(u32::MAX / 2));
        let note = Note {
            sessions,
            sessions_per_subscriber: model.sessions_per_subscriber,
            sites,
        };
        if let (Some(found), Some(kept)) = (found, &kept)
            && found != note
        {
            return Err(RigError::Settings(format!(
                "--store {}: filled with {} bindings, {} a subscriber, at {} sites; this run has {sessions}, {}, {sites}",
                kept.display(),
                found.sessions,
                found.sessions_per_subscriber,
                found.sites,
                model.sessions_per_subscriber,
            )));
        }
        if let Some(kept) = &kept {
            std::fs::create_dir_all(kept).map_err(RigError::io(format!("making {}", kept.display())))?;
        }
        Ok(Self {
            sessions,
            sites,
            adopted: found.is_some(),
            kept,
            note,
        })
    }

    /// Whether a site, counted from 0, has bindings before the load.
    pub(super) fn has(&self, site: u32) -> bool {
        site < self.sites
    }

    /// Those of a site: sites take turns.
    pub(super) fn numbers(&self, site: u32) -> Numbers {
        let all = Numbers {
            first: 0,
            step: 1,
            // `new` keeps it below half of 32 bits.
            count: self.sessions as u32,
        };
        all.share(site, self.sites)
    }

    /// The number of the first session that begins under load.
    pub(super) fn first_new(&self) -> u32 {
        // Earlier runs on these stores have left some bindings in this range.
        let further = if self.adopted {
            rand::random_range(0..1 << 30)
        } else {
            0
        };
        self.sessions as u32 + further
    }

    /// Where a site's store is. A run begins with an empty one unless it is kept.
    pub(super) fn directory(&self, place: &Place, site: u32, name: &str) -> Result<PathBuf, RigError> {
        let folder = self
            .kept
            .as_deref()
            .filter(|_| self.has(site))
            .unwrap_or(&place.folder);
        let directory = folder.join(format!("{name}-store"));
        let is_kept = self.adopted && self.has(site) && self.kept.is_some();
        if directory.exists() && !is_kept {
            std::fs::remove_dir_all(&directory)
                .map_err(RigError::io(format!("removing {}", directory.display())))?;
        }
        Ok(directory)
    }

    /// Records in the folder that its stores are filled.
    pub(super) fn filled(&self) -> Result<(), RigError> {
        let Some(kept) = self.kept.as_deref().filter(|_| !self.adopted) else {
            return Ok(());
        };
        let path = kept.join(NOTE);
        let text = serde_json::to_string_pretty(&self.note).unwrap_or_default() + "\n";
        std::fs::write(&path, text).map_err(RigError::io(format!("writing {}", path.display())))
    }
}

fn read_note(kept: &Path) -> Result<Option<Note>, RigError> {
    let path = kept.join(NOTE);
    match std::fs::read(&path) {
        Ok(text) => serde_json::from_slice(&text)
            .map(Some)
            .map_err(|error| RigError::Settings(format!("{}: {error}", path.display()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(RigError::io(format!("reading {}", path.display()))(error)),
    }
}

/// Writes bindings into the store that these settings of a BSF name.
///
/// # Errors
/// When the program cannot be started or does not take them.
pub(super) fn import(
    place: &Place,
    config: &Path,
    sessions: &Sessions,
    numbers: Numbers,
    progress: &mut Progress,
) -> Result<Duration, RigError> {
    let begun = Instant::now();
    let log = config.with_extension("import.log");
    let failed = || RigError::io(format!("importing bindings (see {})", log.display()));
    let mut child = Command::new(&place.program)
        .args(["import", "bsf", "--config"])
        .arg(config)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&log).map_err(failed())?)
        .spawn()
        .map_err(failed())?;
    let mut written = Ok(());
    if let Some(input) = child.stdin.take() {
        let mut input = BufWriter::with_capacity(1 << 18, input);
        for (count, number) in numbers.iter().enumerate() {
            written = write_line(&mut input, sessions, number);
            if written.is_err() {
                break;
            }
            if (count as u32).is_multiple_of(REPORT) && count > 0 {
                let share = count as f64 / f64::from(numbers.count) * 100.0;
                let each = count as f64 / begun.elapsed().as_secs_f64();
                progress.status(&format!(
                    "writing bindings into the store: {share:.0}% of {}, {} a second",
                    figure(f64::from(numbers.count)),
                    figure(each)
                ));
            }
        }
        written = written.and_then(|()| input.flush());
    }
    let status = child.wait().map_err(failed())?;
    if !status.success() {
        return Err(failed()(std::io::Error::other(format!(
            "{status}: {}",
            last_line(&log)
        ))));
    }
    written.map_err(failed())?;
    Ok(begun.elapsed())
}

fn last_line(log: &Path) -> String {
    let lines = std::fs::File::open(log).map(|file| BufReader::new(file).lines());
    lines
        .ok()
        .and_then(|lines| lines.map_while(Result::ok).last())
        .unwrap_or_default()
}

/// The body of the registration with the identity before its other members.
fn write_line(out: &mut impl Write, sessions: &Sessions, number: u32) -> std::io::Result<()> {
    let body = sessions.body(number);
    write!(out, "{{\"bindingId\":\"{}\",", Sessions::id(number))?;
    out.write_all(&body[1..])?;
    out.write_all(b"\n")
}

/// Of the bindings of an earlier run, those that still exist: each run ends the oldest ones.
///
/// # Errors
/// When the BSF does not answer, or has none of them.
pub(super) fn standing(bsf: SocketAddr, sessions: &Sessions, numbers: Numbers) -> Result<Numbers, RigError> {
    let failed = |source| RigError::from(SetupError::Io { peer: bsf, source });
    let mut client = Client::connect(bsf, PATIENCE).map_err(failed)?;
    let mut stands = |position: u32| {
        let request = Request::new("GET", sessions.query(numbers.at(position)));
        let answers = client.exchange(&[request]).map_err(failed)?;
        Ok::<bool, RigError>(answers.first().is_some_and(|answer| answer.status == 200))
    };
    if numbers.count == 0 || stands(0)? {
        return Ok(numbers);
    }
    // Ended below `low`, existing from `high` on.
    let (mut low, mut high) = (0, numbers.count);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if stands(middle)? {
            high = middle;
        } else {
            low = middle;
        }
    }
    let left = numbers.from(high.saturating_add(OUT_OF_STEP));
    if left.count == 0 {
        return Err(RigError::Settings(
            "the kept store has no bindings left that runs have not ended; fill another (--store)".to_owned(),
        ));
    }
    Ok(left)
}

/// Bytes of the files in a directory.
pub(crate) fn disk(directory: &Path) -> u64 {
    let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
    files
        .filter_map(|file| file.metadata().ok())
        .map(|metadata| metadata.len())
        .sum()
}
