//! What configurations name by file.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Installed;
use crate::application::Application;
use crate::config::{self, Config};
use crate::eir::Eir;
use crate::rbar::Rbar;

/// Settings of an application, by its kind.
#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Rbar(config::Rbar),
    Eir(config::Eir),
}

impl Kind {
    fn new(application: &config::Application) -> Option<Self> {
        let rbar = application.rbar.clone().map(Self::Rbar);
        rbar.or_else(|| application.eir.clone().map(Self::Eir))
    }

    fn file(&self) -> Option<&Path> {
        match self {
            Self::Rbar(settings) => settings.file.as_deref(),
            Self::Eir(settings) => settings.file.as_deref(),
        }
    }

    /// Reads its file.
    fn open(&self) -> Result<Arc<dyn Application>, String> {
        Ok(match self {
            Self::Rbar(settings) => Arc::new(Rbar::load(settings)?),
            Self::Eir(settings) => Arc::new(Eir::load(settings)?),
        })
    }
}

/// Loads what configurations name by file, and keeps it while neither the file nor its settings change: a
/// million ranges take seconds to read.
#[derive(Debug, Default)]
pub(crate) struct Loader {
    kept: Vec<(Kind, Option<Stamp>, Arc<dyn Application>)>,
    installed: Vec<Installed>,
    /// What was seen last of files that have changed.
    changing: Mutex<Vec<Option<Seen>>>,
}

/// When a file was written, its length, and which file it is.
type Stamp = (std::time::SystemTime, u64, u64);

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

fn stamp(settings: &Kind) -> Option<Stamp> {
    let metadata = std::fs::metadata(settings.file()?).ok()?;
    Some((metadata.modified().ok()?, metadata.len(), metadata.ino()))
}

impl Loader {
    /// Loads the files of a configuration; what has not changed since `before` is taken from it.
    ///
    /// # Errors
    /// When a file cannot be used.
    pub(crate) fn load(config: &Config, before: Option<&Self>) -> Result<Self, String> {
        let known = before.map_or(&[][..], |before| &before.kept);
        let mut loaded = Self::default();
        for application in &config.applications {
            let Some(settings) = Kind::new(application) else {
                loaded.installed.push(None);
                continue;
            };
            let now = stamp(&settings);
            let mut known = known.iter();
            let installed = match known.find(|(of, then, _)| *of == settings && *then == now) {
                Some((.., installed)) => installed.clone(),
                None => settings
                    .open()
                    .map_err(|reason| format!("application {}: {reason}", application.name))?,
            };
            loaded.kept.push((settings, now, installed.clone()));
            loaded.installed.push(Some(installed));
        }
        Ok(loaded)
    }

    /// The applications of the configuration, in its order.
    pub(crate) fn installed(&self) -> Vec<Installed> {
        self.installed.clone()
    }

    /// Whether a file has changed since it was read, and is whole by now as far as can be seen. Once for each change.
    #[must_use]
    pub(crate) fn is_stale(&self, now: Instant) -> bool {
        let mut changing = self.changing.lock();
        changing.resize(self.kept.len(), None);
        let files = self.kept.iter().zip(changing.iter_mut());
        let stale = |((settings, then, _), seen): (&(Kind, Option<Stamp>, _), &mut Option<Seen>)| {
            let Some(current) = stamp(settings) else {
                return false;
            };
            if Some(current) == *then {
                *seen = None;
                return false;
            }
            let seen = match seen {
                Some(known) if known.stamp == current => known,
                _ => seen.insert(Seen {
                    stamp: current,
                    since: now,
                    is_tried: false,
                }),
            };
            let is_another = then.is_none_or(|then| then.2 != current.2);
            let is_whole = is_another || now.saturating_duration_since(seen.since) >= SETTLED;
            is_whole && !std::mem::replace(&mut seen.is_tried, is_whole)
        };
        // Each is checked, so that each begins to settle.
        files.map(stale).fold(false, |any, one| any | one)
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
                rbar: Some(config::Rbar {
                    file: Some(path.clone()),
                    ..config::Rbar::default()
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
}
