//! Settings of a cluster of Apache Cassandra or ScyllaDB.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, HostPort, Period, Secret, Validate};

/// Settings of a cluster of Apache Cassandra or ScyllaDB.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct CassandraConfig {
    /// Contact points. The driver learns the other nodes from them, which listen at the same port.
    pub nodes: Vec<HostPort>,
    /// Datacentre of this site, as the nodes name it. Only its nodes are used.
    pub datacentre: String,
    /// Name of the keyspace.
    pub keyspace: String,
    /// Replicas for each datacentre, such as `dc1: 3`: the keyspace is created with them when it is absent. Empty: it must
    /// exist.
    pub create_keyspace: BTreeMap<String, u16>,
    /// User; empty: no login.
    pub user: String,
    /// Password, in a file or an environment variable.
    pub password: Option<Secret>,
    /// Certificates (PEM file) of the authority that signed the nodes'; connections are encrypted when given. Needs a
    /// program with the feature `cassandra-tls`.
    pub certificate_authority: Option<PathBuf>,
    /// Certificate (PEM file, with the chain up to the authority) that is shown to the nodes. Read when the store opens.
    pub client_certificate: Option<PathBuf>,
    /// Its private key (PEM file).
    pub client_key: Option<PathBuf>,
    /// Replicas that answer a read or a write before its caller gets the answer.
    pub consistency: CassandraConsistency,
    /// Replicas among which conditions are judged.
    pub serial_consistency: CassandraSerial,
    /// Batches in flight.
    pub writers: usize,
    /// Reads in flight.
    pub readers: usize,
    /// Reads that may wait; beyond it callers get "overflow".
    pub read_queue: usize,
    /// Threads that serve the connections.
    pub threads: usize,
    /// How long connecting to a node may take.
    pub connect_timeout: Period,
    /// How long a statement may take before its outcome counts as unknown.
    pub statement_timeout: Period,
    /// How long a read or a write is tried again before its caller gets the error.
    pub retry_for: Period,
    /// How long reads and writes are tried while the cluster does not serve, as the heart-beat finds, before their callers get
    /// the error: 503 with `Retry-After`. `retryFor` is for a node that leaves. A write whose outcome is unknown is settled for
    /// the whole of `retryFor`.
    pub unavailable_after: Period,
    /// Pause between two heart-beats, which write and read a row: they find out whether the cluster serves, and how late
    /// the writes of other sites arrive.
    pub heartbeat: Period,
    /// How long a transaction that another process has begun may stay undecided before it is rolled back.
    pub transaction_lifetime: Period,
    /// Age from which on an entry of an index that belongs to no record is removed. Much longer than `retryFor`.
    pub leftover_after: Period,
    /// Time that the cluster keeps a record (TTL) beyond its expiry; the sweep removes it earlier, with its index entries.
    pub expiry_margin: Period,
    /// Partitions of an index that is scanned in order. Counts when the keyspace is created.
    pub shards: u16,
}

/// Replicas that answer a read or a write.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum CassandraConsistency {
    /// Most replicas of this site's datacentre.
    #[default]
    LocalQuorum,
    /// Most replicas of all datacentres: what one site has acknowledged is found at every other.
    Quorum,
}

/// Replicas among which conditions are judged.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum CassandraSerial {
    /// Those of this site's datacentre. With several, each site writes also while it is cut off from the others: of a
    /// record that two sites have written the later write stays, and a unique key can be held at both. What a site
    /// wrote meanwhile reaches the others from the hints of its nodes, after more than an hour by a repair of the
    /// cluster (`nodetool repair`).
    #[default]
    LocalSerial,
    /// Those of all datacentres: conditions hold among sites, and a site without most of all replicas does not write.
    Serial,
}

impl Default for CassandraConfig {
    fn default() -> CassandraConfig {
        CassandraConfig {
            nodes: vec![HostPort {
                host: "127.0.0.1".to_owned(),
                port: 9042,
            }],
            datacentre: "datacenter1".to_owned(),
            keyspace: "signalbox".to_owned(),
            create_keyspace: BTreeMap::new(),
            user: String::new(),
            password: None,
            certificate_authority: None,
            client_certificate: None,
            client_key: None,
            consistency: CassandraConsistency::default(),
            serial_consistency: CassandraSerial::default(),
            writers: 256,
            readers: 256,
            read_queue: 16_384,
            threads: 1,
            connect_timeout: Period::from_secs(2),
            statement_timeout: Period::from_secs(5),
            retry_for: Period::from_secs(15),
            unavailable_after: Period::from_secs(2),
            heartbeat: Period::from_millis(500),
            transaction_lifetime: Period::from_secs(5),
            leftover_after: Period::from_secs(3_600),
            expiry_margin: Period::from_secs(86_400),
            shards: 16,
        }
    }
}

/// What is said where this program was built without the engine.
pub(crate) const WITHOUT_CQL: &str = "is cassandra, and this program was built without the driver for CQL";

impl Validate for CassandraConfig {
    fn validate(&self, faults: &mut Faults) {
        if self.nodes.is_empty() {
            faults
                .at("nodes")
                .say("is empty", "at least one address, such as 127.0.0.1:9042");
        }
        let starts_well = self.keyspace.starts_with(|c: char| c.is_ascii_lowercase());
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        if !starts_well || self.keyspace.len() > 48 || !self.keyspace.bytes().all(plain) {
            faults.at("keyspace").say(
                "is not a plain name",
                "1 to 48 of a-z, digits and underscores, first a letter",
            );
        }
        let quoted = |name: &str| name.is_empty() || name.contains(['\'', '"']);
        if quoted(&self.datacentre) || self.create_keyspace.keys().any(|name| quoted(name)) {
            faults.at("datacentre").say(
                "is empty, or has quotation marks",
                "the name that the nodes report",
            );
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
        if self.certificate_authority.is_some() && cfg!(not(feature = "cql-tls")) {
            faults.at("certificateAuthority").say(
                "is set, and this program was built without TLS for Cassandra",
                "a program with the feature `cassandra-tls` (`make dist CASSANDRA_TLS=1`)",
            );
        }
        let counts = [
            ("writers", self.writers),
            ("readers", self.readers),
            ("readQueue", self.read_queue),
            ("threads", self.threads),
            ("shards", usize::from(self.shards)),
        ];
        for (name, _) in counts.iter().filter(|(_, value)| *value == 0) {
            faults.at(name).say("is 0", "at least 1");
        }
        let periods = [
            ("connectTimeout", self.connect_timeout),
            ("statementTimeout", self.statement_timeout),
            ("heartbeat", self.heartbeat),
            ("transactionLifetime", self.transaction_lifetime),
        ];
        for (name, _) in periods.iter().filter(|(_, value)| value.is_zero()) {
            faults.at(name).say("is 0", "some time");
        }
        let longest = self.retry_for.duration() + self.statement_timeout.duration();
        if self.leftover_after.duration() < 4 * longest {
            faults.at("leftoverAfter").say(
                "is too short",
                "at least four times retryFor and statementTimeout",
            );
        }
    }
}
