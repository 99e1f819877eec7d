//! TLS files that are reloaded at run time.

use std::any::Any;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use parking_lot::{Mutex, MutexGuard};
use time::OffsetDateTime;

use crate::files::{TlsError, TlsFiles, unusable};
use crate::material::Material;

/// Interval at which a changed `checkInterval` is noticed, when no files were checked before.
const UNWATCHED: Duration = Duration::from_secs(60);

/// A configuration in effect. Clones share it.
#[derive(Debug)]
pub struct Current<C>(Arc<ArcSwap<C>>);

impl<C> Clone for Current<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C> From<Arc<C>> for Current<C> {
    fn from(config: Arc<C>) -> Self {
        Self(Arc::new(ArcSwap::new(config)))
    }
}

impl<C> Current<C> {
    /// The configuration for a handshake that begins now.
    #[must_use]
    pub fn load(&self) -> Arc<C> {
        self.0.load_full()
    }
}

/// Makes a configuration of what is in the files.
type Make<C> = fn(&Material) -> Result<Arc<C>, TlsError>;

/// Every set of TLS files that a function uses, checked for changes together.
///
/// A set is watched as long as its [`Current`] is in use somewhere.
#[derive(Default)]
pub struct Watched {
    sources: Mutex<Vec<Arc<dyn Source>>>,
    /// Serialises changes, so that no configuration mixes the files of two reloads.
    changing: Mutex<()>,
    /// What judges the files of a key beyond what TLS asks of them.
    judges: Mutex<BTreeMap<String, Judge>>,
}

/// Says why files are not to be used, by their certificate chain in PEM.
type Judge = Box<dyn Fn(&[u8]) -> Result<(), String> + Send>;

/// An own certificate in use.
#[derive(Clone, Debug, PartialEq)]
pub struct Certificate {
    /// The setting that names its files.
    pub key: String,
    /// The file.
    pub file: PathBuf,
    /// When it expires, or the first certificate of its chain.
    pub not_after: OffsetDateTime,
}

/// Configurations that were read and are not in use yet. No other change happens meanwhile.
pub struct Changes<'w> {
    planned: Vec<Apply>,
    _changing: MutexGuard<'w, ()>,
}

/// Puts a configuration into effect; returns whether it differs from the one before.
type Apply = Box<dyn FnOnce() -> bool + Send>;

/// One set of files.
trait Source: Any + Send + Sync + std::fmt::Debug {
    fn key(&self) -> &str;
    fn state(&self) -> &Mutex<State>;
    /// Whether connections can still be made by it.
    fn is_used(&self) -> bool;
    /// Reads these files and makes a configuration of them.
    fn plan(self: Arc<Self>, files: TlsFiles) -> Result<Apply, TlsError>;
}

#[derive(Debug)]
struct State {
    files: TlsFiles,
    /// What was in the files when the configuration was made.
    material: Material,
    checked: Instant,
    /// The fault that was logged last, while it lasts.
    logged: Option<String>,
}

#[derive(Debug)]
struct Files<C> {
    key: String,
    make: Make<C>,
    current: Current<C>,
    state: Mutex<State>,
}

impl<C: Send + Sync + std::fmt::Debug + 'static> Source for Files<C> {
    fn key(&self) -> &str {
        &self.key
    }

    fn state(&self) -> &Mutex<State> {
        &self.state
    }

    fn is_used(&self) -> bool {
        Arc::strong_count(&self.current.0) > 1
    }

    fn plan(self: Arc<Self>, files: TlsFiles) -> Result<Apply, TlsError> {
        let material = Material::read(&files)?;
        let made = match self.state.lock().material == material {
            true => None,
            false => Some((self.make)(&material)?),
        };
        Ok(Box::new(move || {
            let mut state = self.state.lock();
            (state.files, state.material, state.logged) = (files, material, None);
            let changed = made.is_some();
            if let Some(made) = made {
                self.current.0.store(made);
                tracing::info!(tls = self.key, "reloaded TLS files; new handshakes use them");
            }
            changed
        }))
    }
}

impl Watched {
    /// Reads files and keeps what `make` makes of them current. `key` names them in errors, logs and metrics; files that
    /// are watched under this key already are shared.
    ///
    /// # Errors
    /// When the files cannot be used, with the key.
    pub fn open<C>(&self, key: &str, files: &TlsFiles, make: Make<C>) -> Result<Current<C>, String>
    where
        C: Send + Sync + std::fmt::Debug + 'static,
    {
        let mut sources = self.sources.lock();
        for source in sources.iter().filter(|source| source.key() == key) {
            let known: &dyn Any = &**source;
            if let Some(known) = known.downcast_ref::<Files<C>>() {
                let mut state = known.state.lock();
                if state.files == *files {
                    state.files.check_interval = files.check_interval;
                    return Ok(known.current.clone());
                }
            }
        }
        let made = Material::read(files).and_then(|material| Ok((make(&material)?, material)));
        let (config, material) = made.map_err(|error| format!("{key}: {error}"))?;
        let current = Current::from(config);
        sources.push(Arc::new(Files {
            key: key.to_owned(),
            make,
            current: current.clone(),
            state: Mutex::new(State {
                files: files.clone(),
                material,
                checked: Instant::now(),
                logged: None,
            }),
        }));
        Ok(current)
    }

    /// Has `judge` decide on each later certificate chain (PEM) of a key: it says why the chain is not to be used, and those
    /// before stay in use.
    pub fn judge(&self, key: &str, judge: impl Fn(&[u8]) -> Result<(), String> + Send + 'static) {
        self.judges.lock().insert(key.to_owned(), Box::new(judge));
    }

    fn plan(&self, source: &Arc<dyn Source>, files: TlsFiles) -> Result<Apply, TlsError> {
        if let Some(judge) = self.judges.lock().get(source.key()) {
            let material = Material::read(&files)?;
            let chain = material.certificate.as_ref().map(|pem| pem.text.as_slice());
            let named = |fault| unusable(format!("{}: {fault}", files.certificate.display()));
            judge(chain.unwrap_or_default()).map_err(named)?;
        }
        source.clone().plan(files)
    }

    /// Reads every set of files again. A set whose key is among `wanted` reads those files instead.
    ///
    /// # Errors
    /// When any set cannot be used, or would have to come or go; nothing has changed then.
    pub fn prepare(&self, wanted: &[(&str, Option<&TlsFiles>)]) -> Result<Changes<'_>, String> {
        let changing = self.changing.lock();
        let sources = self.used();
        for (key, files) in wanted {
            if files.is_some() != sources.iter().any(|source| source.key() == *key) {
                return Err(format!(
                    "{key}: TLS cannot be switched on or off without a restart"
                ));
            }
        }
        let mut planned = Vec::new();
        for source in sources {
            let named = wanted.iter().find(|(key, _)| *key == source.key());
            let files = named.and_then(|(_, files)| files.cloned());
            let files = files.unwrap_or_else(|| source.state().lock().files.clone());
            let fault = |error: TlsError| format!("{}: {error}", source.key());
            planned.push(self.plan(&source, files).map_err(fault)?);
        }
        Ok(Changes {
            planned,
            _changing: changing,
        })
    }

    /// Reloads every set of files. Returns whether something has changed.
    ///
    /// # Errors
    /// As [`Watched::prepare`].
    pub fn reread(&self) -> Result<bool, String> {
        Ok(self.prepare(&[])?.apply())
    }

    /// Reads the sets of files whose interval has passed. Files that cannot be used change nothing and are logged once.
    pub fn poll(&self, now: Instant) {
        let _changing = self.changing.lock();
        for source in self.used() {
            let files = {
                let mut state = source.state().lock();
                let interval = state.files.check_interval.duration();
                if interval.is_zero() || now.saturating_duration_since(state.checked) < interval {
                    continue;
                }
                state.checked = now;
                state.files.clone()
            };
            match self.plan(&source, files) {
                Ok(apply) => drop(apply()),
                Err(error) => {
                    let fault = error.to_string();
                    let mut state = source.state().lock();
                    if state.logged.as_ref() != Some(&fault) {
                        tracing::error!(
                            tls = source.key(),
                            fault,
                            "invalid TLS files; handshakes use the previous contents"
                        );
                        state.logged = Some(fault);
                    }
                }
            }
        }
    }

    /// [`Watched::poll`] at the shortest interval of any set. Never ends; belongs on a control thread.
    pub async fn follow(self: Arc<Self>) {
        loop {
            tokio::time::sleep(self.interval()).await;
            let this = self.clone();
            // Where the files are may be slow; a panic there is in the log already.
            let _ = tokio::task::spawn_blocking(move || this.poll(Instant::now())).await;
        }
    }

    /// The own certificates in use, for metrics and alarms of their expiry.
    #[must_use]
    pub fn certificates(&self) -> Vec<Certificate> {
        let certificate = |source: Arc<dyn Source>| {
            let state = source.state().lock();
            Some(Certificate {
                key: source.key().to_owned(),
                file: state.files.certificate.clone(),
                not_after: state.material.expiry()?,
            })
        };
        self.used().into_iter().filter_map(certificate).collect()
    }

    /// The sets whose files have changed and cannot be used, with the reason: as the last look at them found.
    #[must_use]
    pub fn faults(&self) -> std::collections::BTreeMap<String, String> {
        let fault = |source: Arc<dyn Source>| {
            let fault = source.state().lock().logged.clone()?;
            Some((source.key().to_owned(), fault))
        };
        self.used().into_iter().filter_map(fault).collect()
    }

    /// The sets that connections can still be made by; the others are dropped.
    fn used(&self) -> Vec<Arc<dyn Source>> {
        let mut sources = self.sources.lock();
        sources.retain(|source| source.is_used());
        sources.clone()
    }

    fn interval(&self) -> Duration {
        let sources = self.sources.lock();
        let intervals = sources
            .iter()
            .map(|source| source.state().lock().files.check_interval);
        let watched = intervals.filter(|interval| !interval.is_zero());
        watched
            .map(settings::Period::duration)
            .min()
            .unwrap_or(UNWATCHED)
            .min(UNWATCHED)
    }
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched")
            .field("sources", &self.sources)
            .finish_non_exhaustive()
    }
}

impl Changes<'_> {
    /// Puts the new configurations into effect for new handshakes. Returns whether something has changed.
    pub fn apply(self) -> bool {
        self.planned
            .into_iter()
            .fold(false, |changed, apply| apply() | changed)
    }
}

impl std::fmt::Debug for Changes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Changes")
            .field("planned", &self.planned.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::Authority;
    use crate::material::{HTTP2, Sides};

    fn written(authority: &Authority, folder: &tempfile::TempDir) -> TlsFiles {
        let identity = authority.issue(&["localhost"]).unwrap();
        authority.write(&identity, folder.path(), "nf").unwrap()
    }

    fn open(watched: &Watched, key: &str, files: &TlsFiles) -> Result<Current<Sides>, String> {
        watched.open(key, files, Material::sides)
    }

    #[test]
    fn the_same_files_are_read_once_and_forgotten_with_their_last_user() {
        let folder = tempfile::tempdir().unwrap();
        let files = written(&Authority::new("a").unwrap(), &folder);
        let watched = Watched::default();
        let one = open(&watched, "peer", &files).unwrap();
        let other = open(&watched, "peer", &files).unwrap();
        assert!(Arc::ptr_eq(&one.load(), &other.load()));
        let server = watched
            .open("peer", &files, |material| material.server(HTTP2))
            .unwrap();
        assert_eq!(watched.certificates().len(), 2, "another use of the same files");
        drop((one, server));
        assert_eq!(watched.certificates().len(), 1);
        drop(other);
        assert_eq!(watched.certificates(), []);
    }

    #[test]
    fn files_are_checked_when_their_interval_has_passed() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = written(&Authority::new("old").unwrap(), &folder);
        let watched = Watched::default();
        let current = open(&watched, "peer", &files).unwrap();
        let first = current.load();
        let replaced = || !Arc::ptr_eq(&current.load(), &first);
        let soon = Instant::now();
        let later = soon + Duration::from_secs(31);
        watched.poll(later);
        assert!(
            !replaced(),
            "nothing has changed, whenever the files were written"
        );

        written(&Authority::new("new").unwrap(), &folder);
        watched.poll(soon);
        watched.poll(later + Duration::from_secs(1));
        assert!(!replaced(), "too early");
        files.check_interval = settings::Period::default();
        open(&watched, "peer", &files).unwrap();
        watched.poll(later + Duration::from_secs(3600));
        assert!(!replaced(), "only at a reload");
        files.check_interval = settings::Period::from_secs(1);
        open(&watched, "peer", &files).unwrap();
        watched.poll(later + Duration::from_secs(3601));
        assert!(replaced());
    }

    #[test]
    fn a_change_is_taken_whole_or_not_at_all() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let files = written(&Authority::new("old").unwrap(), &folder);
        let stray = written(&Authority::new("stray").unwrap(), &other);
        let watched = Watched::default();
        let handles = ["tls", "rx.tls"].map(|key| open(&watched, key, &files).unwrap());
        let before = handles.each_ref().map(Current::load);
        let same = || (0..2).all(|at| Arc::ptr_eq(&handles[at].load(), &before[at]));
        let gone = TlsFiles {
            key: folder.path().join("gone"),
            ..stray.clone()
        };
        let fault = watched
            .prepare(&[("tls", Some(&stray)), ("rx.tls", Some(&gone))])
            .unwrap_err();
        assert!(fault.starts_with("rx.tls: ") && fault.contains("gone"), "{fault}");
        for wanted in [("tls", None), ("clientTls", Some(&files))] {
            assert!(watched.prepare(&[wanted]).unwrap_err().contains("restart"));
        }
        drop(watched.prepare(&[("tls", Some(&stray))]).unwrap());
        assert!(same() && !watched.reread().unwrap(), "not applied");
        assert!(watched.prepare(&[("tls", Some(&stray))]).unwrap().apply());
        assert!(!Arc::ptr_eq(&handles[0].load(), &before[0]) && Arc::ptr_eq(&handles[1].load(), &before[1]));
        // From now on, a reload reads the files that were named last.
        std::fs::remove_file(&stray.key).unwrap();
        assert!(watched.reread().unwrap_err().starts_with("tls: "));
    }

    #[test]
    fn what_a_judge_refuses_leaves_the_files_before_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new("a").unwrap();
        let files = written(&authority, &folder);
        let watched = Watched::default();
        let current = open(&watched, "tls", &files).unwrap();
        let first = current.load();
        let known = std::fs::read(&files.certificate).unwrap();
        watched.judge("tls", move |chain| match chain == known {
            true => Ok(()),
            false => Err("another one".to_owned()),
        });
        let old = ["certificate", "key"].map(|part| {
            let path = match part {
                "key" => &files.key,
                _ => &files.certificate,
            };
            (path.clone(), std::fs::read(path).unwrap())
        });
        written(&authority, &folder);
        let fault = watched.reread().unwrap_err();
        assert!(
            fault.starts_with("tls: ") && fault.contains("another one"),
            "{fault}"
        );
        watched.poll(Instant::now() + Duration::from_secs(60));
        assert!(watched.faults()["tls"].contains("another one"));
        assert!(Arc::ptr_eq(&current.load(), &first));
        for (path, text) in old {
            std::fs::write(path, text).unwrap();
        }
        watched.poll(Instant::now() + Duration::from_secs(120));
        assert_eq!(watched.faults().len(), 0);
    }

    #[test]
    fn a_fault_is_logged_once_and_ends_with_a_use_of_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let files = written(&Authority::new("a").unwrap(), &folder);
        let watched = Watched::default();
        let current = open(&watched, "peer", &files).unwrap();
        let key = std::fs::read(&files.key).unwrap();
        let logged = || watched.used()[0].state().lock().logged.clone();
        std::fs::write(&files.key, "no key").unwrap();
        let start = Instant::now();
        watched.poll(start + Duration::from_secs(60));
        assert!(logged().unwrap().contains("a private key"));
        assert!(watched.faults()["peer"].contains("a private key"));
        std::fs::write(&files.key, key).unwrap();
        watched.poll(start + Duration::from_secs(120));
        assert_eq!((logged(), watched.faults().len()), (None, 0));
        drop(current);
    }
}
