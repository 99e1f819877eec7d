//! The settings of repositories.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, HostPort, Period, Validate};
use store::{EngineKind, SweepConfig};

/// Session and binding repository.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Sbr {
    /// Where sessions and bindings are kept. Of the embedded engine, each router has a directory of its own; on a database,
    /// routers share them. A change takes effect when the router starts.
    pub store: store::Config,
    /// Time without a message after which a session is taken for ended: its end was lost. Messages renew it, each time that
    /// an eighth of it has passed.
    pub stale: Period,
    /// Gateways of stale sessions that are asked in a second, at most, whether the session exists; 0: none is. A session about
    /// which its gateway does not answer is removed after twice the time.
    pub audit_rate: u32,
    /// Removal of stale sessions.
    pub sweep: SweepConfig,
    /// Bound on sessions of gateways; beyond, requests that begin one are refused. Sessions of AFs and TDFs have the same bound
    /// for themselves; beyond, they are not kept.
    pub max_sessions: usize,
    /// Bound on the sessions of one subscriber in one pool; beyond, a new one takes the place of the oldest.
    pub max_sessions_per_subscriber: usize,
    /// Bound on requests that wait while another request of their subscriber chooses a server, and on those that follow it while
    /// it is in flight, for one subscriber; further ones are refused.
    pub max_waiting: usize,
    /// Time that a request without an outcome holds its subscriber, at most; longer than the router's `lifetime`.
    pub reservation: Period,
}

/// Repository of charging sessions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Charging {
    /// Where sessions are kept. Of the embedded engine, each router and each application has a directory of its own; on a
    /// database, routers share them. A change takes effect when the router starts.
    pub store: store::Config,
    /// Time without a message after which a session is taken for ended: its end was lost. Messages renew it, each time that
    /// an eighth of it has passed.
    pub stale: Period,
    /// Removal of stale sessions.
    pub sweep: SweepConfig,
    /// Bound on sessions; beyond, requests that begin one are refused.
    pub max_sessions: usize,
}

/// Settings of a repository: those of its store and others.
pub trait Settings: Clone + PartialEq {
    /// Its store.
    fn store(&self) -> &store::Config;

    /// Its store, to be changed.
    fn store_mut(&mut self) -> &mut store::Config;

    /// The directory of the embedded engine; none: a database.
    fn directory(&self) -> Option<&Path> {
        let store = self.store();
        (store.engine == EngineKind::Embedded).then_some(&store.embedded.directory)
    }

    /// A name by which repositories differ: the directory, or the database with its nodes, however they are spelled.
    fn name(&self) -> PathBuf {
        let store = self.store();
        let (kind, name, nodes) = match store.engine {
            EngineKind::Embedded => return store.embedded.directory.clone(),
            EngineKind::Mariadb => ("database", &store.mariadb.database, &store.mariadb.nodes),
            EngineKind::Cassandra => ("keyspace", &store.cassandra.keyspace, &store.cassandra.nodes),
        };
        let node = |node: &HostPort| {
            let host = node.host.trim_end_matches('.').to_ascii_lowercase();
            match host.parse::<IpAddr>() {
                Ok(address) => SocketAddr::new(address, node.port).to_string(),
                Err(_) => format!("{host}:{}", node.port),
            }
        };
        let nodes: BTreeSet<String> = nodes.iter().map(node).collect();
        let nodes: Vec<String> = nodes.into_iter().collect();
        PathBuf::from(format!("{kind} {name} at {}", nodes.join(", ")))
    }

    /// Whether a reload may put these settings in the place of others, with which the router runs; `is_same_name`: their names
    /// lead to one repository.
    ///
    /// # Errors
    /// When the repository is another one, or its settings are: it is open, and sessions are in it.
    fn may_replace(&self, before: &Self, is_same_name: bool) -> Result<(), String> {
        let mut like_new = before.clone();
        if is_same_name {
            // Spelled in another way.
            let (mine, theirs) = (like_new.store_mut(), self.store());
            mine.embedded.directory.clone_from(&theirs.embedded.directory);
            mine.mariadb.nodes.clone_from(&theirs.mariadb.nodes);
            mine.cassandra.nodes.clone_from(&theirs.cassandra.nodes);
        }
        if *self == like_new {
            return Ok(());
        }
        let why = "`repository` has changed, which takes effect when the router starts: restart it, or reload with \
                   `repository` as it was";
        Err(why.to_owned())
    }
}

impl Settings for Sbr {
    fn store(&self) -> &store::Config {
        &self.store
    }

    fn store_mut(&mut self) -> &mut store::Config {
        &mut self.store
    }
}

impl Settings for Charging {
    fn store(&self) -> &store::Config {
        &self.store
    }

    fn store_mut(&mut self) -> &mut store::Config {
        &mut self.store
    }
}

impl Default for Charging {
    fn default() -> Self {
        let mut store = store::Config::default();
        store.embedded.directory = "data/charging".into();
        Self {
            store,
            stale: Period::from_secs(7 * 24 * 3600),
            sweep: SweepConfig::default(),
            max_sessions: 16_000_000,
        }
    }
}

impl Validate for Charging {
    fn validate(&self, faults: &mut Faults) {
        faults.within("store", &self.store);
        faults.within("sweep", &self.sweep);
        if self.stale.is_zero() {
            faults.at("stale").say("is 0", "some time, such as 24h");
        }
        if self.max_sessions == 0 {
            faults.at("maxSessions").say("is 0", "at least 1");
        }
    }
}

impl Default for Sbr {
    fn default() -> Self {
        let mut store = store::Config::default();
        store.embedded.directory = "data/sbr".into();
        Self {
            store,
            stale: Period::from_secs(7 * 24 * 3600),
            audit_rate: 0,
            sweep: SweepConfig::default(),
            max_sessions: 16_000_000,
            max_sessions_per_subscriber: 16,
            max_waiting: 16,
            reservation: Period::from_secs(60),
        }
    }
}

impl Validate for Sbr {
    fn validate(&self, faults: &mut Faults) {
        faults.within("store", &self.store);
        faults.within("sweep", &self.sweep);
        let periods = [("stale", self.stale), ("reservation", self.reservation)];
        for (name, _) in periods.iter().filter(|(_, period)| period.is_zero()) {
            faults.at(name).say("is 0", "some time, such as 60s");
        }
        let counts = [
            ("maxSessions", self.max_sessions),
            ("maxSessionsPerSubscriber", self.max_sessions_per_subscriber),
        ];
        for (name, _) in counts.iter().filter(|(_, count)| *count == 0) {
            faults.at(name).say("is 0", "at least 1");
        }
        if self.max_sessions_per_subscriber > MOST_PER_SUBSCRIBER {
            let expected = format!("at most {MOST_PER_SUBSCRIBER}");
            faults
                .at("maxSessionsPerSubscriber")
                .say(format!("is {}", self.max_sessions_per_subscriber), expected);
        }
    }
}

/// All of them are read when a session begins.
const MOST_PER_SUBSCRIBER: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn name(engine: EngineKind, nodes: &[&str]) -> PathBuf {
        let mut settings = Sbr::default();
        settings.store.engine = engine;
        let nodes: Vec<HostPort> = nodes.iter().map(|node| node.parse().unwrap()).collect();
        settings.store.mariadb.nodes.clone_from(&nodes);
        settings.store.cassandra.nodes = nodes;
        settings.name()
    }

    #[test]
    fn two_spellings_of_the_nodes_of_a_database_are_one() {
        let shown = name(EngineKind::Mariadb, &["[2001:db8::1]:3306", "DB1.Example:3307"]);
        let shown = shown.to_str().unwrap();
        assert!(
            shown.ends_with(" at [2001:db8::1]:3306, db1.example:3307"),
            "{shown}"
        );
        for engine in [EngineKind::Mariadb, EngineKind::Cassandra] {
            let one = name(engine, &["db1.example:3306", "[2001:db8::1]:3306"]);
            let same = ["[2001:DB8:0::0:1]:3306", "DB1.Example.:3306", "db1.example:3306"];
            assert_eq!(name(engine, &same), one);
            for other in [
                &["db1.example:3306"][..],
                &["db1.example:3307", "[2001:db8::1]:3306"],
            ] {
                assert_ne!(name(engine, other), one);
            }
        }
        assert_ne!(
            name(EngineKind::Mariadb, &["a:1"]),
            name(EngineKind::Cassandra, &["a:1"])
        );
    }
}
