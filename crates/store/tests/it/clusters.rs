//! Real clusters of Apache Cassandra for the tests, by the script in `deploy/`, which a reader can run as well.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use settings::{HostPort, Secret};
use store::{CassandraConfig, Config, EngineKind};

/// A cluster; it and its data are gone when this is dropped.
pub(crate) struct Cluster {
    script: PathBuf,
    pub(crate) directory: tempfile::TempDir,
    port: u16,
    nodes: u16,
    datacentres: u16,
    password: bool,
    tls: Option<PathBuf>,
}

impl Cluster {
    /// Nodes, divided among datacentres; `None` (and a word) where Java or the jars are absent.
    pub(crate) fn start(nodes: u16, datacentres: u16, password: bool) -> Option<Cluster> {
        Cluster::begin(nodes, datacentres, password, None)
    }

    /// As [`Cluster::start`]; with `tls` nodes have the certificate of `server.p12` in this folder, and ask clients for theirs if
    /// `clients.p12` is there.
    pub(crate) fn begin(
        nodes: u16,
        datacentres: u16,
        password: bool,
        tls: Option<PathBuf>,
    ) -> Option<Cluster> {
        let deploy = Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .nth(2)?
            .join("deploy");
        let cluster = Cluster {
            script: deploy.join("cassandra/cassandra.sh"),
            directory: tempfile::tempdir().ok()?,
            port: free_ports::row(3, nodes as u8).unwrap(),
            nodes,
            datacentres,
            password,
            tls,
        };
        let java = Command::new("java").arg("-version").output();
        if java.is_err() || !cluster.run("fetch", None) {
            testpeer::skip::missing("Java, or the jars of Cassandra (deploy/cassandra/cassandra.sh fetch),");
            return None;
        }
        assert!(cluster.run("start", None), "the cluster starts");
        Some(cluster)
    }

    /// Runs a command of the script, for one node or all.
    pub(crate) fn run(&self, command: &str, one: Option<u16>) -> bool {
        let mut script = Command::new("bash");
        script
            .arg(&self.script)
            .arg(command)
            .args(one.map(|one| one.to_string()))
            .arg("--dir")
            .arg(self.directory.path().join("cluster"))
            .args(["--port", &self.port.to_string()])
            .args(["--nodes", &self.nodes.to_string()])
            .args(["--datacentres", &self.datacentres.to_string()])
            .args(self.password.then_some("--password"));
        if let Some(folder) = &self.tls {
            script.arg("--tls").arg(folder);
        }
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

    /// A store on this cluster, for a site in a datacentre.
    pub(crate) fn config(&self, site: &str, datacentre: u16) -> Config {
        let password = self.directory.path().join("password");
        std::fs::write(&password, "cassandra\n").unwrap();
        let of_each = self.nodes / self.datacentres;
        let names = (1..=self.datacentres).map(|number| format!("dc{number}"));
        let nodes = (1..=self.nodes).filter(|node| (node - 1) % self.datacentres + 1 == datacentre);
        Config {
            engine: EngineKind::Cassandra,
            site: site.to_owned(),
            cassandra: CassandraConfig {
                nodes: nodes
                    .map(|node| HostPort {
                        host: format!("127.0.0.{node}"),
                        port: self.port,
                    })
                    .collect(),
                datacentre: format!("dc{datacentre}"),
                create_keyspace: names.map(|name| (name, of_each)).collect(),
                user: if self.password { "cassandra" } else { "" }.to_owned(),
                password: self.password.then_some(Secret::File(password)),
                shards: 4,
                ..CassandraConfig::default()
            },
            ..Config::default()
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.run("remove", None);
    }
}
