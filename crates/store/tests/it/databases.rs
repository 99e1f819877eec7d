//! Real database servers for the tests, by the scripts in `deploy/`, which a reader can run as well.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use settings::{HostPort, Secret};
use store::{Config, EmbeddedConfig, EngineKind, MariadbConfig};

/// Servers of one of the scripts; they and their data are gone when this is dropped.
pub(crate) struct Servers {
    script: PathBuf,
    directory: tempfile::TempDir,
    port: u16,
    count: (&'static str, u16),
    /// A folder with the certificates of the servers.
    tls: Option<PathBuf>,
}

impl Servers {
    /// Three nodes, or however many, of a Galera cluster; `None` (and a word) where that is not installed.
    pub(crate) fn galera(nodes: u16) -> Option<Servers> {
        Servers::start("galera/galera.sh", ("--nodes", nodes), None)
    }

    /// Sites that replicate to one another; one site is a plain server.
    pub(crate) fn sites(sites: u16) -> Option<Servers> {
        Servers::start("two-sites/two-sites.sh", ("--sites", sites), None)
    }

    #[allow(
        dead_code,
        reason = "not every program of tests that shares this file uses TLS"
    )]
    /// A server with the certificates `authority.crt`, `server.crt` and `server.key` of a folder.
    pub(crate) fn with_tls(folder: &Path) -> Option<Servers> {
        Servers::start("two-sites/two-sites.sh", ("--sites", 1), Some(folder.to_owned()))
    }

    fn start(script: &str, count: (&'static str, u16), tls: Option<PathBuf>) -> Option<Servers> {
        let deploy = Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .nth(2)?
            .join("deploy");
        let directory = tempfile::tempdir().ok()?;
        let servers = Servers {
            script: deploy.join(script),
            directory,
            port: free_ports::row(10 * count.1, 1).unwrap(),
            count,
            tls,
        };
        let galera = script.contains("galera") && !Path::new("/usr/lib/galera/libgalera_smm.so").exists();
        if galera
            || ["mariadbd", "mariadb", "bash"]
                .iter()
                .any(|program| !installed(program))
        {
            testpeer::skip::missing("MariaDB or Galera (apt-get install mariadb-server galera-4)");
            return None;
        }
        assert!(servers.run("start", None), "{script} start");
        Some(servers)
    }

    /// Runs a command of the script, for one server or all.
    pub(crate) fn run(&self, command: &str, one: Option<u16>) -> bool {
        let mut script = Command::new("bash");
        script
            .arg(&self.script)
            .arg(command)
            .args(one.map(|one| one.to_string()));
        script
            .arg("--dir")
            .arg(self.directory.path())
            .args(["--port", &self.port.to_string()]);
        script.args([self.count.0, &self.count.1.to_string()]);
        script.args(
            self.tls
                .iter()
                .flat_map(|folder| [Path::new("--tls"), folder.as_path()]),
        );
        let output = script.stdin(Stdio::null()).output().unwrap();
        if !output.status.success() {
            eprintln!(
                "{command}: {}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
        }
        output.status.success()
    }

    #[allow(
        dead_code,
        reason = "not every program of tests that shares this file administers nodes"
    )]
    /// Runs a statement on a node of a Galera cluster, or the server of a site, as its administrator. Returns the rows
    /// that it prints.
    pub(crate) fn administer(&self, server: u16, statement: &str) -> String {
        let [node, site] = ["node", "site"].map(|kind| {
            self.directory
                .path()
                .join(format!("{kind}{server}/mariadbd.sock"))
        });
        let socket = if node.exists() { node } else { site };
        let output = Command::new("mariadb")
            .arg(format!("--socket={}", socket.display()))
            .args(["--user=root", "--skip-column-names", "-e", statement])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{statement}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What each server says of its replication, and the end of its log.
    fn troubles(&self) -> String {
        const LINES: usize = 20;
        let mut troubles = String::new();
        for server in 1..=self.count.1 {
            let home = ["node", "site"].map(|kind| self.directory.path().join(format!("{kind}{server}")));
            let Some(home) = home.into_iter().find(|home| home.exists()) else {
                continue;
            };
            let status = Command::new("mariadb")
                .arg(format!("--socket={}", home.join("mariadbd.sock").display()))
                .args(["--user=root", "--connect-timeout=3", "-e"])
                .arg("SHOW ALL SLAVES STATUS\\G SHOW FULL PROCESSLIST; SELECT * FROM information_schema.innodb_trx\\G \
                      SELECT * FROM signalbox.session ORDER BY id DESC LIMIT 8\\G")
                .stdin(Stdio::null())
                .output();
            let status = status.map_or_else(
                |error| error.to_string(),
                |output| {
                    [output.stdout, output.stderr]
                        .map(|text| String::from_utf8_lossy(&text).into_owned())
                        .concat()
                },
            );
            let log = std::fs::read_to_string(home.join("error.log")).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let end = lines[lines.len().saturating_sub(LINES)..].join("\n");
            troubles += &format!("server {server}:\n{status}{end}\n");
        }
        troubles
    }

    /// Address of a server, from 1.
    pub(crate) fn address(&self, number: u16) -> HostPort {
        HostPort {
            host: "127.0.0.1".to_owned(),
            port: self.port + 10 * (number - 1),
        }
    }

    /// A store on these servers, in this order, for one process: its directory is of its own.
    pub(crate) fn config(&self, site: &str, servers: &[u16]) -> Config {
        let password = self.directory.path().join("password");
        std::fs::write(&password, "signalbox\n").unwrap();
        Config {
            engine: EngineKind::Mariadb,
            site: site.to_owned(),
            mariadb: MariadbConfig {
                nodes: servers.iter().map(|server| self.address(*server)).collect(),
                password: Some(Secret::File(password)),
                ..MariadbConfig::default()
            },
            embedded: EmbeddedConfig {
                directory: self
                    .directory
                    .path()
                    .join(format!("own-{:x}", rand::random::<u64>())),
                ..EmbeddedConfig::default()
            },
            ..Config::default()
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        // Afterwards it cannot be found out any more why a site or node has not followed.
        if std::thread::panicking() {
            eprintln!("{}", self.troubles());
        }
        self.run("remove", None);
    }
}

fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let sbin = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(sbin)
        .any(|directory| directory.join(program).exists())
}
