//! The parts of a run: the function under test, its simulated peers, and the traffic for it.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::Options;
use super::bsf::Servers;
use super::children::{ChildError, Guarded, Simulator};
use super::database::Database;
use super::drill::Drill;
use ::report::{Check, StoreFigures};
use loadgen::Traffic;
use loadgen::engine::ClientTls;
use report::measure::{Thread, Usage};
use workload::nrf::setup::SetupError;

/// Everything of a run, ready for load.
pub struct Rig {
    /// The function's name.
    pub name: &'static str,
    /// The function, if the lab started it.
    pub function: Option<Guarded>,
    /// Where load goes.
    pub address: SocketAddr,
    /// The function at other sites, if there are several.
    pub sites: Vec<Guarded>,
    /// Where load goes at other sites.
    pub site_addresses: Vec<SocketAddr>,
    /// Its peers.
    pub simulators: Vec<Simulator>,
    /// Other functions that this one needs, measured no more than simulators are.
    pub beside: Vec<Guarded>,
    /// Connections of the generator, where they follow the rate; else those of the model's load.
    pub connections: Option<u32>,
    /// Requests that wait for induced latencies, where that may be more than the model's load allows.
    pub in_flight: Option<u32>,
    /// One per generator thread.
    pub workloads: Vec<Traffic>,
    /// What the function must send to its peers.
    pub outgoing: Vec<Outgoing>,
    /// Who receives requests of the function, where its guide counts those into the rate.
    pub egress: Vec<Egress>,
    /// A query to the function when the load is over.
    pub probes: Vec<Probe>,
    /// What a reader of the report should know.
    pub notes: Vec<String>,
    /// TLS of the generator's HTTP connections; none: cleartext.
    pub tls: Option<ClientTls>,
    /// Addresses that the generator's connections come from, in turn; none: the system chooses.
    pub sources: Vec<IpAddr>,
    /// What happens while the load goes on.
    pub drill: Option<Box<dyn Drill>>,
    /// What the function's sessions take before the load, where it keeps some.
    pub store: Option<StoreFigures>,
    /// Databases of the function; they end after everything else.
    pub(crate) servers: Option<Servers>,
    /// Database processors of the function, with their server.
    pub(super) database: Option<Rc<RefCell<Database>>>,
}

impl Rig {
    /// A function of this name at this address, with this load, and nothing around it.
    pub(super) fn new(name: &'static str, address: SocketAddr, workloads: Vec<Traffic>) -> Self {
        Self {
            name,
            function: None,
            address,
            sites: Vec::new(),
            site_addresses: Vec::new(),
            simulators: Vec::new(),
            beside: Vec::new(),
            connections: None,
            in_flight: None,
            workloads,
            outgoing: Vec::new(),
            egress: Vec::new(),
            probes: Vec::new(),
            notes: Vec::new(),
            tls: None,
            sources: Vec::new(),
            drill: None,
            store: None,
            servers: None,
            database: None,
        }
    }

    /// What the function has used, over all sites; `None` when it is not known.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        let mut sum = self.function.as_ref()?.process().usage()?;
        for usage in self.sites.iter().filter_map(|site| site.process().usage()) {
            sum.cpu += usage.cpu;
            sum.user += usage.user;
            sum.rss += usage.rss;
            sum.threads += usage.threads;
        }
        Some(sum)
    }

    /// The threads of the function, over all sites.
    #[must_use]
    pub fn threads(&self) -> Vec<Thread> {
        let processes = self.function.iter().chain(&self.sites);
        processes.flat_map(|one| one.process().threads()).collect()
    }

    /// What its databases have used, with their names.
    pub(crate) fn databases(&self) -> Vec<(String, Usage)> {
        let processes = self.servers.iter().flat_map(Servers::processes);
        let processes = processes.filter_map(|(name, process)| Some((name, process.usage()?)));
        let database = self.database.iter().flat_map(|one| one.borrow().usages());
        processes.chain(database).collect()
    }

    /// The function's processes, if the lab started them.
    pub fn processes(&mut self) -> impl Iterator<Item = &mut Guarded> {
        self.function.iter_mut().chain(&mut self.sites)
    }

    /// Where load goes, at all sites.
    #[must_use]
    pub fn targets(&self) -> Vec<SocketAddr> {
        let first = std::iter::once(self.address);
        first.chain(self.site_addresses.iter().copied()).collect()
    }
}

/// Queries the function when the load is over.
pub type Probe = Box<dyn Fn() -> Check>;

impl std::fmt::Debug for Rig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rig")
            .field("name", &self.name)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// Traffic from the function to a simulator: what it must be and where it is counted.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// What it is.
    pub name: &'static str,
    /// The simulator that receives it.
    pub simulator: usize,
    /// Incremented by the workloads.
    pub expected: Counter,
    /// Whether the guide counts it into the rate that it achieved.
    pub in_rate: bool,
}

/// A function that receives requests of the one under test, and counts them.
#[derive(Clone, Debug)]
pub struct Egress {
    /// Its name.
    pub name: &'static str,
    /// Where the count is.
    pub count: Received,
}

/// Where requests of the function are counted.
#[derive(Clone, Debug)]
pub enum Received {
    /// By this simulator of the rig.
    Simulator(usize),
    /// By a function beside, at whose admin endpoint the count is.
    Function(Counter),
}

/// Reads one of the counters that workloads increment.
#[derive(Clone)]
pub struct Counter(pub Arc<dyn Fn() -> u64 + Send + Sync>);

impl std::fmt::Debug for Counter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", (self.0)())
    }
}

impl Counter {
    /// Reads a part of something shared.
    pub fn of<T: Send + Sync + 'static>(shared: &Arc<T>, part: fn(&T) -> &AtomicU64) -> Self {
        let shared = shared.clone();
        Self(Arc::new(move || {
            part(&shared).load(std::sync::atomic::Ordering::Relaxed)
        }))
    }
}

/// A rig could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum RigError {
    /// A process.
    #[error(transparent)]
    Child(#[from] ChildError),
    /// Registrations and subscriptions.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A file or socket.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why not.
        source: std::io::Error,
    },
    /// The settings given for the function.
    #[error("{0}")]
    Settings(String),
}

impl RigError {
    /// A failure of a file or socket.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

/// Where the processes of a run live.
#[derive(Clone, Debug)]
pub struct Place {
    /// The program that runs functions and simulators.
    pub program: PathBuf,
    /// Settings and logs.
    pub folder: PathBuf,
    /// Cores of the function; empty for any.
    pub function_cpus: Vec<usize>,
    /// Cores of everything else; empty for any.
    pub lab_cpus: Vec<usize>,
}

impl Place {
    /// By the options of a run.
    ///
    /// # Errors
    /// When folders cannot be made or cores are not there.
    pub fn new(options: &Options) -> Result<Self, RigError> {
        Self::at(&options.out, &options.pin, options.program.as_deref())
    }

    /// Under this folder, with functions on these cores (any, when empty), of this program or the running one.
    ///
    /// # Errors
    /// As [`Place::new`].
    pub(crate) fn at(out: &Path, pin: &[usize], program: Option<&Path>) -> Result<Self, RigError> {
        let program = match program {
            Some(program) => program.to_owned(),
            None => std::env::current_exe().map_err(RigError::io("finding this program"))?,
        };
        // Processes have working directories of their own.
        let absolute = |path: &Path| {
            std::path::absolute(path).map_err(RigError::io(format!("finding {}", path.display())))
        };
        let (program, folder) = (absolute(&program)?, absolute(&out.join("processes"))?);
        std::fs::create_dir_all(&folder).map_err(RigError::io(format!("making {}", folder.display())))?;
        let all = report::measure::cpus().map_err(RigError::io("asking for the cores"))?;
        if let Some(missing) = pin.iter().find(|cpu| !all.contains(cpu)) {
            return Err(RigError::Settings(format!(
                "--pin: core {missing} does not exist; the machine has {all:?}"
            )));
        }
        let rest: Vec<usize> = all.iter().copied().filter(|cpu| !pin.contains(cpu)).collect();
        let lab_cpus = if pin.is_empty() || rest.is_empty() {
            Vec::new()
        } else {
            rest
        };
        Ok(Self {
            program,
            folder,
            function_cpus: pin.to_vec(),
            lab_cpus,
        })
    }

    /// Starts a function with the settings in a file, which has the name of the process.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn start(&self, function: &str, file: &Path, cpus: &[usize]) -> Result<Guarded, RigError> {
        let command = self.function(function, file)?;
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        Ok(Guarded::start(&name, command, cpus, &file.with_extension("log"))?)
    }

    /// The command line of a function with the settings in a file. Its working directory is of this process alone: directories that its
    /// settings do not name are there, and processes of a run, and runs at the same time, share none.
    ///
    /// # Errors
    /// When the working directory cannot be made.
    pub(crate) fn function(&self, function: &str, file: &Path) -> Result<Command, RigError> {
        let own = file.with_extension("cwd");
        std::fs::create_dir_all(&own).map_err(RigError::io(format!("making {}", own.display())))?;
        let mut command = Command::new(&self.program);
        command.arg("run").arg(function).arg("--config").arg(file);
        command
            .current_dir(own)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        Ok(command)
    }

    /// A folder for a store, which does not exist yet: a run begins without the records of one before, also in a folder that was
    /// used.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub(crate) fn empty_folder(&self, name: &str) -> Result<PathBuf, RigError> {
        let folder = self.folder.join(name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder)
                .map_err(RigError::io(format!("removing {}", folder.display())))?;
        }
        Ok(folder)
    }
}

/// An address that no program listens on at this moment.
pub(crate) fn free_address() -> Result<SocketAddr, RigError> {
    free_ports::address().map_err(RigError::io("finding a free port"))
}

/// Writes the settings of a function, with the user's own merged over them.
pub(crate) fn write_config(
    path: &Path,
    made: serde_json::Value,
    over: Option<&Path>,
) -> Result<(), RigError> {
    let mut config = made;
    if let Some(over) = over {
        let text =
            std::fs::read_to_string(over).map_err(RigError::io(format!("reading {}", over.display())))?;
        let own: AnySettings = settings::from_str(&text, &over.display().to_string())
            .map_err(|report| RigError::Settings(report.to_string()))?;
        merge(&mut config, own.0);
    }
    std::fs::write(path, settings::to_yaml(&config))
        .map_err(RigError::io(format!("writing {}", path.display())))
}

/// Settings that only the function itself can check.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
struct AnySettings(serde_json::Value);

impl settings::Validate for AnySettings {
    fn validate(&self, _faults: &mut settings::Faults) {}
}

fn merge(into: &mut serde_json::Value, from: serde_json::Value) {
    match (into, from) {
        (serde_json::Value::Object(into), serde_json::Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(serde_json::Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_has_a_working_directory_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            out: folder.path().to_owned(),
            program: Some("target/signalbox".into()),
            ..Options::default()
        };
        let place = Place::new(&options).unwrap();
        let of = |name: &str| {
            let command = place.function("dsr", &place.folder.join(name)).unwrap();
            assert!(Path::new(command.get_program()).is_absolute(), "{command:?}");
            command.get_current_dir().unwrap().to_owned()
        };
        let (first, second) = (of("dsr-0.yaml"), of("dsr-1.yaml"));
        assert_ne!(first, second);
        for directory in [first, second] {
            assert!(
                directory.is_dir() && directory.starts_with(folder.path()),
                "{directory:?}"
            );
        }
    }
}
