//! What configurations name by file.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use dsr_app::Installed;
use dsr_dsa::Dsa;
use dsr_eir::Eir;
use dsr_fabr::Fabr;
use dsr_ocdra::Ocdra;
use dsr_pdra::Pdra;
use dsr_rbar::Rbar;
use parking_lot::Mutex;

use super::Slot;
use crate::config::{self, Config, Ready};

/// Settings of an application, by its kind.
#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Rbar(dsr_rbar::config::Rbar),
    Eir(dsr_eir::config::Eir),
    Fabr(Box<dsr_fabr::config::Fabr>),
    Dsa(dsr_dsa::config::Dsa),
    Pdra(Box<dsr_pdra::config::Pdra>),
    Ocdra(Box<dsr_ocdra::config::Ocdra>),
    /// Of no file: brought when the router started.
    Ready(Ready),
}

impl Kind {
    fn new(application: &config::Application, before: &[Loaded]) -> Option<Self> {
        let rbar = application.rbar.clone().map(Self::Rbar);
        let settings = rbar.or_else(|| application.eir.clone().map(Self::Eir));
        let fabr = || application.fabr.clone().map(|fabr| Self::Fabr(Box::new(fabr)));
        let settings = settings.or_else(fabr);
        let settings = settings.or_else(|| application.dsa.clone().map(Self::Dsa));
        let pdra = || application.pdra.clone().map(|pdra| Self::Pdra(Box::new(pdra)));
        let settings = settings.or_else(pdra);
        let ocdra = || {
            application
                .ocdra
                .clone()
                .map(|ocdra| Self::Ocdra(Box::new(ocdra)))
        };
        let settings = settings.or_else(ocdra);
        let ready = || application.ready.clone().map(Self::Ready);
        // A reload reads files, which do not have it.
        let brought = || {
            let known = before.iter().find(|known| known.name == application.name)?;
            matches!(known.settings, Self::Ready(_)).then(|| known.settings.clone())
        };
        settings.or_else(ready).or_else(brought)
    }

    /// The files that it reads.
    fn files(&self) -> Vec<PathBuf> {
        match self {
            Self::Rbar(settings) => settings.file.iter().cloned().collect(),
            Self::Eir(settings) => settings.file.iter().cloned().collect(),
            Self::Fabr(settings) => dsr_fabr::files(settings),
            Self::Dsa(settings) => dsr_dsa::files(settings),
            Self::Pdra(_) | Self::Ocdra(_) | Self::Ready(_) => Vec::new(),
        }
    }

    /// Whether it may take the place of other settings of the application while the router runs; none: they are of another kind, or
    /// any may.
    fn may_replace(&self, before: &Self) -> Option<Result<(), String>> {
        match (self, before) {
            (Self::Dsa(settings), Self::Dsa(before)) => Some(Dsa::may_replace(settings, before)),
            (Self::Pdra(settings), Self::Pdra(before)) => Some(Pdra::may_replace(settings, before)),
            (Self::Ocdra(settings), Self::Ocdra(before)) => Some(Ocdra::may_replace(settings, before)),
            _ => None,
        }
    }

    /// Reads its files.
    fn open(&self) -> Result<Arc<dyn Installed>, String> {
        Ok(match self {
            Self::Rbar(settings) => Arc::new(Rbar::load(settings)?),
            Self::Eir(settings) => Arc::new(Eir::load(settings)?),
            Self::Fabr(settings) => Arc::new(Fabr::load(settings)?),
            Self::Dsa(settings) => Arc::new(Dsa::load(settings)?),
            Self::Pdra(settings) => Arc::new(Pdra::open(settings)?),
            Self::Ocdra(settings) => Arc::new(Ocdra::open(settings)?),
            Self::Ready(ready) => ready.0.clone(),
        })
    }
}

/// Loads what configurations name by file, and keeps it while neither the file nor its settings change: a
/// million ranges take seconds to read.
#[derive(Debug, Default)]
pub(crate) struct Loader {
    kept: Vec<Loaded>,
    installed: Vec<Option<Slot>>,
    /// Applications that ever were.
    ids: u32,
    /// What was seen last of files that have changed.
    changing: Mutex<Vec<Option<Seen>>>,
    /// Why a changed file cannot be used.
    refusal: Mutex<Option<String>>,
}

#[derive(Debug)]
struct Loaded {
    name: String,
    settings: Kind,
    stamp: Option<Stamp>,
    slot: Slot,
}

/// Of each file: when it was written, its length, and which file it is.
type Stamp = Vec<(SystemTime, u64, u64)>;

/// A changed file.
#[derive(Clone, Debug)]
struct Seen {
    stamp: Stamp,
    since: Instant,
    /// It was reported as stale: what cannot be used is not read again before it changes.
    is_tried: bool,
}

/// A file that is written in place is read when it has not changed for so long: half of it may look whole. One that is
/// renamed into place is read at once.
const SETTLED: Duration = Duration::from_secs(5);

/// Whether an application may begin with these settings while the router runs. One that comes in place of others, which the same
/// reload takes away, has the repository of one of them: it is the same application with another name.
fn may_begin(name: &str, settings: &Kind, config: &Config, known: &[Loaded]) -> Result<(), String> {
    let has_namesake = known.iter().any(|one| one.name == name);
    let stays = |one: &Loaded| config.applications.iter().any(|new| new.name == one.name);
    let is_before = |one: &&Loaded| {
        if has_namesake {
            one.name == name
        } else {
            !stays(one)
        }
    };
    let before = known.iter().filter(is_before);
    let mut verdicts = before.filter_map(|one| settings.may_replace(&one.settings));
    match verdicts.next() {
        Some(Err(wrong)) if !verdicts.any(|verdict| verdict.is_ok()) => Err(wrong),
        _ => Ok(()),
    }
}

/// Of a file whose metadata cannot be read.
const ABSENT: (SystemTime, u64, u64) = (SystemTime::UNIX_EPOCH, 0, 0);

/// None where it reads no file, or one is unavailable. A directory that is empty or unavailable is another one than before: without
/// its tables there would be no measures.
fn stamp(settings: &Kind) -> Option<Stamp> {
    let files = settings.files();
    let stamp = |file: &PathBuf| {
        let metadata = std::fs::metadata(file).ok()?;
        Some((metadata.modified().ok()?, metadata.len(), metadata.ino()))
    };
    if matches!(settings, Kind::Dsa(_)) {
        return Some(files.iter().map(|file| stamp(file).unwrap_or(ABSENT)).collect());
    }
    let stamps: Option<Stamp> = files.iter().map(stamp).collect();
    stamps.filter(|stamps| !stamps.is_empty())
}

/// Whether each file that has changed is another one, which was renamed into its place.
fn is_replaced(then: &Stamp, now: &Stamp) -> bool {
    then.len() == now.len()
        && then
            .iter()
            .zip(now)
            .all(|(then, now)| then == now || then.2 != now.2 && *now != ABSENT)
}

impl Loader {
    /// Loads the files of a configuration; what has not changed since `before` is taken from it.
    ///
    /// # Errors
    /// When a file cannot be used.
    pub(crate) fn load(config: &Config, before: Option<&Self>) -> Result<Self, String> {
        let known = before.map_or(&[][..], |before| &before.kept);
        let mut loaded = Self {
            ids: before.map_or(0, |before| before.ids),
            ..Self::default()
        };
        for application in &config.applications {
            let Some(settings) = Kind::new(application, known) else {
                loaded.installed.push(None);
                continue;
            };
            let (name, now) = (application.name.clone(), stamp(&settings));
            let same = known
                .iter()
                .find(|one| one.settings == settings && one.stamp == now);
            let open = || {
                may_begin(&name, &settings, config, known)?;
                settings.open()
            };
            let installed = match same {
                Some(same) => same.slot.application.clone(),
                None => open().map_err(|reason| format!("application {name}: {reason}"))?,
            };
            let is_it = |one: &&Loaded| one.name == name && one.slot.application.kind() == installed.kind();
            let id = known.iter().find(is_it).map(|before| before.slot.id);
            let id = id.unwrap_or_else(|| {
                loaded.ids += 1;
                loaded.ids
            });
            let slot = Slot {
                id,
                application: installed,
            };
            loaded.installed.push(Some(slot.clone()));
            loaded.kept.push(Loaded {
                name,
                settings,
                stamp: now,
                slot,
            });
        }
        Ok(loaded)
    }

    /// The applications of the configuration, in its order.
    pub(crate) fn installed(&self) -> Vec<Option<Slot>> {
        self.installed.clone()
    }

    /// Whether a file is another one than was read, or is missing.
    pub(crate) fn has_changed(&self) -> bool {
        self.kept
            .iter()
            .any(|loaded| stamp(&loaded.settings) != loaded.stamp)
    }

    /// Whether a file has changed since it was read, and is whole by now as far as can be seen. Once for each change.
    #[must_use]
    pub(crate) fn is_stale(&self, now: Instant) -> bool {
        let mut changing = self.changing.lock();
        changing.resize(self.kept.len(), None);
        let files = self.kept.iter().zip(changing.iter_mut());
        let stale = |(loaded, seen): (&Loaded, &mut Option<Seen>)| {
            let (Some(current), then) = (stamp(&loaded.settings), &loaded.stamp) else {
                return false;
            };
            if Some(&current) == then.as_ref() {
                *seen = None;
                return false;
            }
            let seen = match seen {
                Some(known) if known.stamp == current => known,
                _ => seen.insert(Seen {
                    stamp: current.clone(),
                    since: now,
                    is_tried: false,
                }),
            };
            let is_another = then.as_ref().is_none_or(|then| is_replaced(then, &current));
            let is_whole = is_another || now.saturating_duration_since(seen.since) >= SETTLED;
            is_whole && !std::mem::replace(&mut seen.is_tried, is_whole)
        };
        // Each is checked, so that each begins to settle.
        let is_stale = files.map(stale).fold(false, |any, one| any | one);
        if changing.iter().all(Option::is_none) {
            *self.refusal.lock() = None;
        }
        is_stale
    }

    /// Notes that a changed file cannot be used.
    pub(crate) fn refuse(&self, reason: &str) {
        *self.refusal.lock() = Some(reason.to_owned());
    }

    /// Why a changed file cannot be used; none: what runs is what the files say, as far as is known.
    pub(crate) fn refusal(&self) -> Option<String> {
        self.refusal.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_that_is_written_in_place_settles_first() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ranges.csv");
        std::fs::write(&path, "# one\n").unwrap();
        let config = Config {
            applications: vec![config::Application {
                name: "resolve".to_owned(),
                rbar: Some(dsr_rbar::config::Rbar {
                    file: Some(path.clone()),
                    ..dsr_rbar::config::Rbar::default()
                }),
                ..config::Application::default()
            }],
            ..Config::default()
        };
        let loader = Loader::load(&config, None).unwrap();
        let now = Instant::now();
        assert!(!loader.is_stale(now));
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        writeln!(file, "# half").unwrap();
        assert!(!loader.is_stale(now));
        assert!(!loader.is_stale(now + SETTLED - Duration::from_millis(1)));
        writeln!(file, "# whole").unwrap();
        assert!(!loader.is_stale(now + SETTLED), "it has changed again");
        assert!(loader.is_stale(now + 2 * SETTLED));
        assert!(!loader.is_stale(now + 3 * SETTLED), "it was tried");
        // A file that takes its place is whole.
        let next = directory.path().join("next.csv");
        std::fs::write(&next, "# other\n").unwrap();
        std::fs::rename(&next, &path).unwrap();
        assert!(loader.is_stale(now + 2 * SETTLED));
        // Without it, what was read stays.
        std::fs::remove_file(&path).unwrap();
        assert!(!loader.is_stale(now + 3 * SETTLED));
    }

    #[test]
    fn measures_whose_files_are_gone_are_a_refused_reload() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("Security_Countermeasure_Config.csv");
        let head = "CounterMeasure_Type,Admin_Status,Operating_Mode,Continue_If_Vulnerable\n";
        let whole = format!("{head}OhOrFrmChk,Enable,Detection_Only,Yes\n");
        std::fs::write(&path, &whole).unwrap();
        let config = Config {
            applications: vec![config::Application {
                name: "screen".to_owned(),
                dsa: Some(dsr_dsa::config::Dsa {
                    tables: Some(directory.path().to_owned()),
                    ..dsr_dsa::config::Dsa::default()
                }),
                ..config::Application::default()
            }],
            ..Config::default()
        };
        let loader = Loader::load(&config, None).unwrap();
        let now = Instant::now();
        assert!(!loader.is_stale(now));
        let refused = |from: Instant| {
            assert!(!loader.is_stale(from), "it settles");
            assert!(loader.is_stale(from + SETTLED));
            let reason = Loader::load(&config, Some(&loader)).unwrap_err();
            loader.refuse(&reason);
            assert!(!loader.is_stale(from + 2 * SETTLED), "it was tried");
            loader.refusal().unwrap()
        };
        let aside = directory.path().join("aside");
        std::fs::rename(&path, &aside).unwrap();
        let reason = refused(now);
        assert!(reason.contains("no measure is on"), "{reason}");
        // What it had is there again.
        std::fs::rename(&aside, &path).unwrap();
        assert!(!loader.is_stale(now + 3 * SETTLED));
        assert_eq!(loader.refusal(), None);
        std::fs::write(&path, head).unwrap();
        let reason = refused(now + 4 * SETTLED);
        assert!(reason.contains("no measure is on"), "{reason}");
        std::fs::remove_dir_all(directory.path()).unwrap();
        refused(now + 8 * SETTLED);
    }
}
