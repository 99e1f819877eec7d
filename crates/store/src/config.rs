//! Settings of a store.

mod cassandra;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, HostPort, Percent, Period, Secret, Validate};

pub(crate) use self::cassandra::WITHOUT_CQL;
pub use self::cassandra::{CassandraConfig, CassandraConsistency, CassandraSerial};

/// Where session state is kept.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Config {
    /// Which engine keeps the data.
    pub engine: EngineKind,
    /// Name of this site; kept with every record it writes.
    pub site: String,
    /// Values longer than this are compressed (LZ4; in the embedded engine with a dictionary that is made of the first
    /// values of their table); 0 compresses none.
    pub compress_above: ByteSize,
    /// Batches that may wait for a commit; beyond it callers get "overflow".
    pub queue_length: usize,
    /// Bytes of batches that may wait for a commit; beyond it callers get "overflow".
    pub queue_bytes: ByteSize,
    /// Operations a batch may have.
    pub max_batch_operations: usize,
    /// Bytes a batch may have.
    pub max_batch_bytes: ByteSize,
    /// Delay of another site's writes from which on alarm 10524 is raised for that site; longer than clocks of sites differ.
    /// 0: no alarm. Of engines that join sites: `mariadb` and `cassandra`.
    pub replication_alarm: Period,
    /// Settings of the embedded engine.
    pub embedded: EmbeddedConfig,
    /// Settings of the database, when `engine` is `mariadb`.
    pub mariadb: MariadbConfig,
    /// How long a start waits for a database that cannot be reached; the function is not ready meanwhile. Then it ends with
    /// exit code 1.
    pub open_for: Period,
    /// Settings of the cluster, when `engine` is `cassandra`.
    pub cassandra: CassandraConfig,
}

/// Which engine keeps the data.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum EngineKind {
    /// A library inside this process, nothing to install. One process owns the data.
    #[default]
    Embedded,
    /// A database that speaks the MariaDB / MySQL protocol. Any number of processes share the data.
    Mariadb,
    /// A cluster of Apache Cassandra or ScyllaDB, of one site or several. Any number of processes share the data.
    Cassandra,
}

/// Settings of the embedded engine.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct EmbeddedConfig {
    /// Directory of the data; created when absent, for its owner alone (0700, files 0600). One process at a time.
    pub directory: PathBuf,
    /// What "durable" means.
    pub durability: Durability,
    /// Size of one file of the log. A batch must fit half of it.
    pub segment: ByteSize,
    /// Files of the log, at most: with `segment`, how large it may become. The last 16 take deletions only, so that
    /// room can be made.
    pub files: usize,
    /// Room on the disk that is kept for deletions, less where the disk has less; 0: none. When a write finds the disk
    /// full, the log gets the room, and only deletions are taken until the disk has as much again.
    pub reserve: ByteSize,
    /// Share of void entries from which on a file is compacted. The log takes at most about
    /// 1 / (1 - share) of what its current records take.
    pub compact_at: Percent,
    /// Bytes a second that compaction reads, so that it does not get in the way. While more than `compactAt` of
    /// the whole log is void it does not hold back.
    pub compaction_rate: ByteSize,
    /// Bytes of the log from which on its indexes are written to a checkpoint, when the store closes and whenever as
    /// much, or half of the size of the indexes, was written since the last one. A store without one reads and
    /// checks the whole log when it opens.
    pub checkpoint_above: ByteSize,
    /// Batches in one group commit.
    pub group_batches: usize,
    /// Shortest time from one group commit to the next. A write in a quiet moment does not wait; under load, those
    /// that come within this time share one flush to disk. Costs at most this much latency, saves most of the
    /// CPU and disk operations of commits.
    pub group_interval: Period,
}

/// Settings of a database.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct MariadbConfig {
    /// Nodes of the cluster, the preferred one first. One is used at a time; when it fails, the next.
    pub nodes: Vec<HostPort>,
    /// Name of the database (schema); it must exist.
    pub database: String,
    /// User.
    pub user: String,
    /// Password, in a file or an environment variable.
    pub password: Option<Secret>,
    /// Certificates (PEM file) of the authority that signed the nodes'; connections are encrypted when given.
    pub certificate_authority: Option<PathBuf>,
    /// Certificate (PEM file, with the chain up to the authority) that is shown to the nodes, for a user that must have one
    /// (`REQUIRE X509`, `REQUIRE SUBJECT`). Read when the store opens.
    pub client_certificate: Option<PathBuf>,
    /// Its private key (PEM file).
    pub client_key: Option<PathBuf>,
    /// Storage engine of the tables: `InnoDB` for a single server or Galera, `NDBCLUSTER` for NDB Cluster.
    pub storage_engine: String,
    /// Connections for reading.
    pub readers: usize,
    /// Connections for writing: groups that can be on their way at the same time. Few make large groups.
    pub writers: usize,
    /// Threads that serve the connections.
    pub threads: usize,
    /// Batches in one transaction.
    pub group_batches: usize,
    /// Bytes of the batches in one transaction; a larger batch is a transaction of its own. Each record must fit the
    /// server's `max_allowed_packet`.
    pub group_bytes: ByteSize,
    /// Reads that may wait; beyond it callers get "overflow".
    pub read_queue: usize,
    /// How long connecting to a node may take.
    pub connect_timeout: Period,
    /// How long a statement may take before the node is taken for lost. It waits for a lock half of that, 1 s at least, and is
    /// tried again.
    pub statement_timeout: Period,
    /// How long a write is tried again, on whatever node, before its caller gets the error.
    pub retry_for: Period,
    /// How long reads and writes are tried while no node serves, as the heart-beat finds, before their callers get the error:
    /// 503 with `Retry-After`. `retryFor` is for the change from one node to another.
    pub unavailable_after: Period,
    /// How often this site writes its heart-beat, and the delay of others' is looked at.
    pub heartbeat: Period,
    /// How long the table of commits remembers; longer than any retry.
    pub remember_commits: Period,
    /// How long, after a release with another list of indexes has opened the database, records are searched for those
    /// that programs of the earlier release write. Longer than a rolling upgrade of all sites takes.
    pub upgrade_window: Period,
}

/// What "durable" means.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum Durability {
    /// On the disk (`fdatasync`): survives a power failure.
    #[default]
    Fsync,
    /// With the operating system: survives the death of the process, not of the machine.
    Os,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            engine: EngineKind::default(),
            site: "site-1".to_owned(),
            compress_above: ByteSize(0),
            queue_length: 16_384,
            queue_bytes: ByteSize::mib(64),
            max_batch_operations: 4_096,
            max_batch_bytes: ByteSize::mib(16),
            replication_alarm: Period::from_secs(60),
            open_for: Period::from_secs(300),
            embedded: EmbeddedConfig::default(),
            mariadb: MariadbConfig::default(),
            cassandra: CassandraConfig::default(),
        }
    }
}

impl Default for EmbeddedConfig {
    fn default() -> EmbeddedConfig {
        EmbeddedConfig {
            directory: PathBuf::from("data"),
            durability: Durability::default(),
            segment: ByteSize::mib(128),
            files: MOST_FILES,
            reserve: ByteSize::mib(16),
            compact_at: Percent::new(50.0),
            compaction_rate: ByteSize::mib(64),
            checkpoint_above: ByteSize::mib(256),
            group_batches: 1_024,
            group_interval: Period::from_millis(1),
        }
    }
}

impl Default for MariadbConfig {
    fn default() -> MariadbConfig {
        MariadbConfig {
            nodes: vec![HostPort {
                host: "127.0.0.1".to_owned(),
                port: 3306,
            }],
            database: "signalbox".to_owned(),
            user: "signalbox".to_owned(),
            password: None,
            certificate_authority: None,
            client_certificate: None,
            client_key: None,
            storage_engine: "InnoDB".to_owned(),
            readers: 4,
            writers: 2,
            threads: 1,
            group_batches: 512,
            group_bytes: ByteSize::mib(4),
            read_queue: 16_384,
            connect_timeout: Period::from_secs(1),
            statement_timeout: Period::from_secs(5),
            retry_for: Period::from_secs(10),
            unavailable_after: Period::from_secs(2),
            heartbeat: Period::from_millis(500),
            remember_commits: Period::from_secs(600),
            upgrade_window: Period::from_secs(86_400),
        }
    }
}

/// What is said where this program was built without the engine for databases.
pub(crate) const WITHOUT_MARIADB: &str = "is mariadb, and this program was built without MariaDB";

/// Files are numbered with 12 bits in the indexes; below the fewest there is no room to compact.
const MOST_FILES: usize = 4_096;
const FEWEST_FILES: usize = 32;
/// Smaller files would be many.
const SMALLEST_SEGMENT: ByteSize = ByteSize::kib(64);
/// Places in a file are kept in 25 bits, in units of eight bytes.
pub(crate) const LARGEST_SEGMENT: ByteSize = ByteSize::mib(256);

impl Validate for Config {
    fn validate(&self, faults: &mut Faults) {
        if self.site.is_empty() || self.site.len() > 128 {
            faults
                .at("site")
                .say("has no name or too long a one", "1 to 128 characters");
        }
        for (name, value) in [
            ("queueLength", self.queue_length),
            ("maxBatchOperations", self.max_batch_operations),
        ] {
            if value == 0 {
                faults.at(name).say("is 0", "at least 1");
            }
        }
        if self.max_batch_bytes > self.queue_bytes {
            faults
                .at("maxBatchBytes")
                .say("is larger than queueBytes", "a batch that fits the queue");
        }
        if self.engine == EngineKind::Embedded
            && self.max_batch_bytes.bytes() * 2 > self.embedded.segment.bytes()
        {
            faults.at("maxBatchBytes").say(
                "is larger than half of embedded.segment",
                "a batch that fits half a file",
            );
        }
        faults.within("embedded", &self.embedded);
        if self.engine == EngineKind::Mariadb {
            if cfg!(not(feature = "mariadb")) {
                faults.at("engine").say(
                    WITHOUT_MARIADB,
                    "embedded, or a program with the feature `mariadb` (`make dist`)",
                );
            }
            faults.within("mariadb", &self.mariadb);
        }
        if self.engine == EngineKind::Cassandra {
            if cfg!(not(feature = "cql")) {
                faults.at("engine").say(
                    WITHOUT_CQL,
                    "embedded, or a program with the feature `cassandra` (`make dist`)",
                );
            }
            faults.within("cassandra", &self.cassandra);
        }
    }
}

impl Validate for EmbeddedConfig {
    fn validate(&self, faults: &mut Faults) {
        if self.segment < SMALLEST_SEGMENT || self.segment > LARGEST_SEGMENT {
            let expected = format!("{SMALLEST_SEGMENT} to {LARGEST_SEGMENT}");
            faults.at("segment").say(format!("is {}", self.segment), expected);
        }
        if !(FEWEST_FILES..=MOST_FILES).contains(&self.files) {
            let expected = format!("{FEWEST_FILES} to {MOST_FILES}");
            faults.at("files").say(format!("is {}", self.files), expected);
        }
        let share = self.compact_at.percent();
        if !(10.0..=90.0).contains(&share) {
            faults
                .at("compactAt")
                .say(format!("is {}", self.compact_at), "10% to 90%");
        }
        if self.compaction_rate < ByteSize::mib(1) {
            faults
                .at("compactionRate")
                .say(format!("is {}", self.compaction_rate), "at least 1MiB");
        }
        if self.group_batches == 0 {
            faults.at("groupBatches").say("is 0", "at least 1");
        }
    }
}

impl Validate for MariadbConfig {
    fn validate(&self, faults: &mut Faults) {
        if self.nodes.is_empty() {
            faults
                .at("nodes")
                .say("is empty", "at least one address, such as 127.0.0.1:3306");
        }
        let word =
            |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !word(&self.storage_engine) {
            faults
                .at("storageEngine")
                .say("is not a name of a storage engine", "InnoDB, NDBCLUSTER …");
        }
        if !word(&self.database) {
            faults
                .at("database")
                .say("is not a plain name", "letters, digits and underscores");
        }
        if self.client_certificate.is_some() != self.client_key.is_some() {
            faults.at("clientKey").say(
                "and clientCertificate belong together, one of them is missing",
                "both, or none",
            );
        }
        if self.client_certificate.is_some() && self.certificate_authority.is_none() {
            faults.at("clientCertificate").say(
                "is not used: connections are not encrypted without certificateAuthority",
                "certificateAuthority as well",
            );
        }
        let counts = [
            ("readers", self.readers),
            ("writers", self.writers),
            ("threads", self.threads),
            ("groupBatches", self.group_batches),
            ("readQueue", self.read_queue),
        ];
        for (name, _) in counts.iter().filter(|(_, value)| *value == 0) {
            faults.at(name).say("is 0", "at least 1");
        }
        let periods = [
            ("connectTimeout", self.connect_timeout),
            ("statementTimeout", self.statement_timeout),
            ("heartbeat", self.heartbeat),
        ];
        for (name, _) in periods.iter().filter(|(_, value)| value.is_zero()) {
            faults.at(name).say("is 0", "some time");
        }
        if self.remember_commits.duration() < 2 * self.retry_for.duration() {
            faults
                .at("rememberCommits")
                .say("is too short", "at least twice retryFor");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_certificate_needs_its_key_and_an_authority() {
        let faults = |certificate: bool, key: bool, authority: bool| {
            let file = |is_set: bool| is_set.then(|| PathBuf::from("a.pem"));
            let config = MariadbConfig {
                client_certificate: file(certificate),
                client_key: file(key),
                certificate_authority: file(authority),
                ..MariadbConfig::default()
            };
            let mut faults = Faults::default();
            config.validate(&mut faults);
            !faults.is_empty()
        };
        assert!(!faults(true, true, true) && !faults(false, false, true));
        assert!(faults(true, false, true) && faults(false, true, true) && faults(true, true, false));
    }

    #[test]
    fn each_engine_is_valid_with_the_other_settings_at_their_defaults() {
        for engine in [EngineKind::Embedded, EngineKind::Mariadb, EngineKind::Cassandra] {
            let config = Config {
                engine,
                ..Config::default()
            };
            let mut faults = Faults::default();
            config.validate(&mut faults);
            let built = match engine {
                EngineKind::Embedded => true,
                EngineKind::Mariadb => cfg!(feature = "mariadb"),
                EngineKind::Cassandra => cfg!(feature = "cql"),
            };
            assert_eq!(faults.is_empty(), built, "{engine:?}: {faults:?}");
        }
    }
}
