//! A record of all that was done to the files of a directory, and what a power failure at any moment may leave of it.
//!
//! Of each file there is what was flushed, whatever comes after. Each write since then may be there as a whole, in
//! part (by blocks of 512 bytes, in any order) or not at all; so may each change of names since the directory was
//! flushed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rand::Rng;
use rand::rngs::StdRng;

/// What disks write at once.
const SECTOR: usize = 512;

/// Something that was done. Files have numbers, which stay when they are renamed.
#[derive(Clone, Debug)]
pub(in crate::embedded) enum Step {
    Write(usize, u64, Vec<u8>),
    Length(usize, u64),
    Sync(usize),
    Create(String, usize),
    Rename(String, String),
    Remove(String),
    SyncNames,
}

/// The record of a directory.
#[derive(Debug, Default)]
pub(in crate::embedded) struct Tape {
    steps: Mutex<Steps>,
}

#[derive(Debug, Default)]
struct Steps {
    steps: Vec<Step>,
    files: usize,
    names: BTreeMap<String, usize>,
}

/// A file that is recorded.
#[derive(Debug)]
pub(super) struct Writer {
    tape: Arc<Tape>,
    file: usize,
}

static TAPES: Mutex<Vec<(PathBuf, Arc<Tape>)>> = Mutex::new(Vec::new());

/// Records from now on what is done in a directory, which must be empty.
pub(in crate::embedded) fn record(directory: &Path) -> Arc<Tape> {
    let tape = Arc::<Tape>::default();
    TAPES.lock().push((directory.to_owned(), tape.clone()));
    tape
}

fn of(path: &Path) -> Option<(Arc<Tape>, String)> {
    let name = path.file_name()?.to_str()?.to_owned();
    let tapes = TAPES.lock();
    let tape = tapes
        .iter()
        .find(|(directory, _)| Some(&**directory) == path.parent());
    tape.map(|(_, tape)| (tape.clone(), name))
}

pub(super) fn created(path: &Path) -> Option<Writer> {
    let (tape, name) = of(path)?;
    let mut steps = tape.steps.lock();
    let file = match steps.names.get(&name) {
        // Emptied, as it is opened.
        Some(file) => {
            let file = *file;
            steps.steps.push(Step::Length(file, 0));
            file
        }
        None => {
            steps.files += 1;
            let file = steps.files;
            steps.names.insert(name.clone(), file);
            steps.steps.push(Step::Create(name, file));
            file
        }
    };
    drop(steps);
    Some(Writer { tape, file })
}

pub(super) fn opened(path: &Path) -> Option<Writer> {
    let (tape, name) = of(path)?;
    let file = tape.steps.lock().names.get(&name).copied()?;
    Some(Writer { tape, file })
}

pub(super) fn note(writer: Option<&Writer>, step: impl FnOnce(usize) -> Step) {
    if let Some(writer) = writer {
        writer.tape.steps.lock().steps.push(step(writer.file));
    }
}

pub(super) fn renamed(from: &Path, to: &Path) {
    if let (Some((tape, from)), Some((_, to))) = (of(from), of(to)) {
        let mut steps = tape.steps.lock();
        if let Some(file) = steps.names.remove(&from) {
            steps.names.insert(to.clone(), file);
        }
        steps.steps.push(Step::Rename(from, to));
    }
}

pub(super) fn removed(path: &Path) {
    if let Some((tape, name)) = of(path) {
        let mut steps = tape.steps.lock();
        steps.names.remove(&name);
        steps.steps.push(Step::Remove(name));
    }
}

pub(super) fn synced(path: &Path) {
    if let Some((tape, _)) = of(path) {
        tape.steps.lock().steps.push(Step::SyncNames);
    }
}

#[derive(Clone, Debug, Default)]
struct Content {
    flushed: Vec<u8>,
    /// Writes and changes of the length since.
    pending: Vec<Step>,
}

/// What the files are at a moment: flushed, and not yet.
#[derive(Clone, Debug, Default)]
pub(in crate::embedded) struct Disks {
    at: usize,
    files: BTreeMap<usize, Content>,
    names: BTreeMap<String, usize>,
    /// Changes of names since the directory was flushed.
    pending: Vec<Step>,
}

impl Tape {
    /// How many steps there are.
    pub(in crate::embedded) fn length(&self) -> usize {
        self.steps.lock().steps.len()
    }

    /// Goes on to the moment after this number of steps.
    pub(in crate::embedded) fn play(&self, disks: &mut Disks, until: usize) {
        let steps = self.steps.lock();
        while disks.at < until
            && let Some(step) = steps.steps.get(disks.at)
        {
            disks.take(step);
            disks.at += 1;
        }
    }
}

impl Disks {
    fn take(&mut self, step: &Step) {
        match step {
            Step::Write(file, ..) | Step::Length(file, _) => {
                self.files.entry(*file).or_default().pending.push(step.clone());
            }
            Step::Sync(file) => {
                let content = self.files.entry(*file).or_default();
                for step in content.pending.drain(..) {
                    apply(&mut content.flushed, &step, |_| true);
                }
            }
            Step::Create(..) | Step::Rename(..) | Step::Remove(_) => self.pending.push(step.clone()),
            Step::SyncNames => {
                let pending = std::mem::take(&mut self.pending);
                pending.iter().for_each(|step| rename(&mut self.names, step));
            }
        }
    }

    /// Writes into an empty directory what the power failure leaves this time.
    pub(in crate::embedded) fn fail(&self, directory: &Path, random: &mut StdRng) {
        let mut names = self.names.clone();
        // Journals keep the order; what of it is there is chance.
        let kept = random.random_range(0..=self.pending.len());
        self.pending
            .iter()
            .take(kept)
            .for_each(|step| rename(&mut names, step));
        for (name, file) in names {
            let content = self.files.get(&file).cloned().unwrap_or_default();
            let mut bytes = content.flushed;
            let fate = random.random_range(0..4);
            for step in &content.pending {
                match fate {
                    // Nothing was written; all was; or each for itself.
                    0 => {}
                    1 => apply(&mut bytes, step, |_| true),
                    _ => match random.random_range(0..3) {
                        0 => {}
                        1 => apply(&mut bytes, step, |_| true),
                        _ => apply(&mut bytes, step, |_| random.random_bool(0.5)),
                    },
                }
            }
            std::fs::write(directory.join(name), bytes).unwrap();
        }
    }
}

fn rename(names: &mut BTreeMap<String, usize>, step: &Step) {
    match step {
        Step::Create(name, file) => drop(names.insert(name.clone(), *file)),
        Step::Rename(from, to) => {
            if let Some(file) = names.remove(from) {
                names.insert(to.clone(), file);
            }
        }
        Step::Remove(name) => drop(names.remove(name)),
        _ => {}
    }
}

/// Applies a change of a file, of a write those sectors that `keeps` says.
fn apply(bytes: &mut Vec<u8>, step: &Step, mut keeps: impl FnMut(usize) -> bool) {
    match step {
        Step::Length(_, length) if keeps(0) => bytes.resize(usize::try_from(*length).unwrap(), 0),
        Step::Write(_, at, written) => {
            let (mut at, mut rest) = (usize::try_from(*at).unwrap(), &written[..]);
            while !rest.is_empty() {
                let (sector, further) = rest.split_at(rest.len().min(SECTOR - at % SECTOR));
                if keeps(at / SECTOR) {
                    if bytes.len() < at + sector.len() {
                        bytes.resize(at + sector.len(), 0);
                    }
                    bytes[at..at + sector.len()].copy_from_slice(sector);
                }
                (at, rest) = (at + sector.len(), further);
            }
        }
        _ => {}
    }
}
