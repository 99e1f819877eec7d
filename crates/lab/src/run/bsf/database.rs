//! Database servers for BSFs that do not use the embedded store: the set-ups of `deploy/`, on ports and in a folder of
//! this run.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::str::FromStr;

use serde_json::{Value, json};

use crate::run::ending::{Ends, starting};
use crate::run::rig::RigError;
use report::measure::Process;

/// What keeps the bindings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Database {
    /// Each BSF its embedded store.
    #[default]
    Embedded,
    /// A Galera cluster of three nodes, which all BSFs share.
    Galera,
    /// A server for each site; they replicate to one another.
    Sites,
}

impl FromStr for Database {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "embedded" => Ok(Self::Embedded),
            "galera" => Ok(Self::Galera),
            "sites" => Ok(Self::Sites),
            _ => Err(format!("{text:?}: embedded, galera and sites are known")),
        }
    }
}

impl Database {
    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Galera => "galera",
            Self::Sites => "sites",
        }
    }
}

/// Nodes of a Galera cluster.
const NODES: u16 = 3;
/// Distance of the ports of one server, of which a script uses four, from those of the next one.
const APART: u16 = 10;

/// The set-up of a cluster.
const GALERA: &str = include_str!("../../../../../deploy/galera/galera.sh");
/// The set-up of sites that replicate to one another; one of them is a server by itself.
const SITES: &str = include_str!("../../../../../deploy/two-sites/two-sites.sh");

/// Running servers. Dropping this stops them and deletes their data.
#[derive(Debug)]
pub(crate) struct Servers {
    database: Database,
    folder: PathBuf,
    port: u16,
    count: u16,
    ends: Option<Ends>,
}

impl Servers {
    /// Starts them: three nodes, or one for each site.
    ///
    /// # Errors
    /// When they cannot be started; the script says why.
    pub(super) fn start(database: Database, sites: u32) -> Result<Option<Self>, RigError> {
        let (count, script) = match database {
            Database::Embedded => return Ok(None),
            Database::Galera => (NODES, GALERA),
            Database::Sites => {
                if !(2..=4).contains(&sites) {
                    return Err(RigError::Settings(format!(
                        "--database sites: two to four sites replicate to one another; this model has {sites}"
                    )));
                }
                (sites as u16, SITES)
            }
        };
        Self::start_with(database, count, script).map(Some)
    }

    /// Starts one server, which several functions share.
    ///
    /// # Errors
    /// When it cannot be started; the script says why.
    pub(crate) fn single() -> Result<Self, RigError> {
        Self::start_with(Database::Sites, 1, SITES)
    }

    /// Starts a cluster of three nodes, which a function uses.
    ///
    /// # Errors
    /// When it cannot be started; the script says why.
    pub(crate) fn cluster() -> Result<Self, RigError> {
        Self::start_with(Database::Galera, NODES, GALERA)
    }

    /// Starts a server for each site; they replicate to one another.
    ///
    /// # Errors
    /// When they cannot be started; the script says why.
    pub(crate) fn sites(count: u32) -> Result<Self, RigError> {
        let started = Self::start(Database::Sites, count)?;
        started.ok_or_else(|| RigError::Settings("no sites are wanted".to_owned()))
    }

    /// A command of the script for each server.
    pub(crate) fn at_each(&self, what: &str) -> Vec<Command> {
        let servers = 1..=self.count;
        let commands = servers.map(|server| self.command_of(&[what, &server.to_string()]));
        commands.collect()
    }

    /// The command that kills a node, counted from 1.
    pub(crate) fn killing(&self, node: u16) -> Command {
        self.command_of(&["kill", &node.to_string()])
    }

    fn start_with(database: Database, count: u16, script: &str) -> Result<Self, RigError> {
        // A directory that the user of the database server may enter; folders of runs are often readable by their owner
        // only.
        let port =
            free_ports::row(APART * count, 1).map_err(RigError::io("finding free ports for the database"))?;
        // Several runs of one process have servers at the same time.
        let own = format!("signalbox-lab-{}-{port}", std::process::id());
        let folder = std::env::temp_dir().join(own);
        std::fs::create_dir_all(&folder).map_err(RigError::io(format!("making {}", folder.display())))?;
        let mut servers = Self {
            database,
            port,
            folder,
            count,
            ends: None,
        };
        for (name, text) in [("servers.sh", script), ("password", "signalbox\n")] {
            let path = servers.folder.join(name);
            std::fs::write(&path, text).map_err(RigError::io(format!("writing {}", path.display())))?;
        }
        let remove = (servers.command("remove"), servers.folder.clone());
        servers.ends = Some(starting().ends_by(move || {
            let (mut command, folder) = remove;
            let _ = command.output();
            let _ = std::fs::remove_dir_all(folder);
        }));
        let output = servers
            .run("start")
            .map_err(RigError::io("starting the database"))?;
        if output.status.success() {
            return Ok(servers);
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        Err(RigError::Settings(format!(
            "the database does not start: {}",
            errors.trim()
        )))
    }

    /// Stops the single server in order.
    ///
    /// # Errors
    /// When the script does not run.
    pub(crate) fn stop(&self) -> Result<(), RigError> {
        self.act(&["stop", "1"])
    }

    /// Starts the single server again; it answers when this returns.
    ///
    /// # Errors
    /// When it does not answer.
    pub(crate) fn restart(&self) -> Result<(), RigError> {
        self.act(&["restart", "1"])
    }

    fn act(&self, what: &[&str]) -> Result<(), RigError> {
        let words = what.join(" ");
        let output = self
            .command_of(what)
            .output()
            .map_err(RigError::io(format!("database: {words}")))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(RigError::Settings(format!(
                "database: {words}: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            ))),
        }
    }

    fn run(&self, what: &str) -> std::io::Result<Output> {
        self.command(what).output()
    }

    fn command(&self, what: &str) -> Command {
        self.command_of(&[what])
    }

    fn command_of(&self, what: &[&str]) -> Command {
        let counted = match self.database {
            Database::Sites => "--sites",
            _ => "--nodes",
        };
        let mut command = Command::new("bash");
        command
            .arg(self.folder.join("servers.sh"))
            .args(what)
            .arg("--dir")
            .arg(self.folder.join("data"))
            .args(["--port", &self.port.to_string(), counted, &self.count.to_string()])
            .stdin(Stdio::null());
        command
    }

    /// The settings of the store of a site's BSF, counted from 0. In a cluster each begins with another node.
    pub(crate) fn settings(&self, site: u32) -> Value {
        let address = |server: u16| format!("127.0.0.1:{}", self.port + APART * server);
        let first = (site % u32::from(self.count)) as u16;
        let nodes: Vec<String> = match self.database {
            Database::Sites => vec![address(first)],
            _ => (0..self.count)
                .map(|node| address((first + node) % self.count))
                .collect(),
        };
        json!({
            "engine": "mariadb",
            "site": format!("site-{}", site + 1),
            "maxBatchBytes": "4MiB",
            "mariadb": { "nodes": nodes, "password": { "file": self.folder.join("password") } },
        })
    }

    /// The processes of the servers, to measure them.
    pub(crate) fn processes(&self) -> Vec<(String, Process)> {
        let home = match self.database {
            Database::Sites => "site",
            _ => "node",
        };
        let process = |number: u16| {
            let path = self.folder.join(format!("data/{home}{number}/mariadbd.pid"));
            let id = std::fs::read_to_string(path).ok()?.trim().parse().ok()?;
            Some((format!("database {home} {number}"), Process::new(id)))
        };
        (1..=self.count).filter_map(process).collect()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.ends = None;
        // A failure here leaves files behind and must not hide the result of the run.
        let _ = self.run("remove");
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
