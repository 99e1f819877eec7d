//! Every setting of an SDS.

use std::net::SocketAddr;
use std::path::PathBuf;

pub use function::sbi::config::{Overload, Tokens};

use function::sbi::config::{Interface, check_root};
use sbi::identity::IdentitySettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, Listen, Period, Validate};
use store::{CassandraSerial, EngineKind};

/// Settings of an SDS. Defaults run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Config {
    /// Instance id of this SDS, a UUID: the audience of access tokens. Empty: made at the first start and kept in the file
    /// `sds-instance-id` of `directory`.
    pub nf_instance_id: String,
    /// Addresses of provisioning, and of the journal for database processors.
    pub listen: Listen,
    /// Address of the admin endpoint (`/livez /readyz /metrics /config`).
    #[schemars(extend("format" = "socket-address"))]
    pub admin: SocketAddr,
    /// Worker threads. 0: one per core.
    pub workers: usize,
    /// Cores the workers are pinned to; empty: not pinned.
    pub cores: Vec<usize>,
    /// TLS; absent: cleartext.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-reload" = true))]
    pub tls: Option<sbi::tls::TlsFiles>,
    /// TLS of the connections to `nrfs` and to authorization servers; absent: only those with `http` addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-reload" = true))]
    pub client_tls: Option<sbi::tls::TlsFiles>,
    /// API roots of NRFs, tried in turn, with which the server registers as type `SDS`: they grant tokens for its services
    /// `sds-provisioning` and `sds-journal`. Empty: it does not register.
    pub nrfs: Vec<String>,
    /// NF types that `nrfs` grant tokens for `sds-provisioning`: as what provisioning systems register.
    pub provisioners: Vec<String>,
    /// Limits of the server. `maxBody` is the largest body of a bulk request.
    pub server: sbi::server::ServerConfig,
    /// Connections to authorization servers, for their keys.
    pub client: sbi::client::ClientConfig,
    /// Directory of the records; created when absent, for its owner alone. One process at a time.
    pub directory: PathBuf,
    /// Where the journal and groups are kept. Servers with one database (`mariadb`, `cassandra`) serve the same records, and
    /// each of them takes writes.
    pub store: store::Config,
    /// The journal.
    pub journal: JournalSettings,
    /// Limits and discards under overload.
    #[schemars(extend("x-reload" = true))]
    pub overload: Overload,
    /// Access tokens: scope `sds-provisioning` for records, `sds-journal` for database processors.
    #[schemars(extend("x-reload" = true))]
    pub tokens: Tokens,
    /// Who may send requests, by certificate or token.
    #[schemars(extend("x-reload" = true))]
    pub identity: IdentitySettings,
}

/// Settings of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct JournalSettings {
    /// Transactions that are kept at most, beside those since the records were last written to `directory`. A database
    /// processor or another server that lacks more takes a checkpoint.
    #[schemars(extend("x-reload" = true))]
    pub keep: u64,
    /// Time after which transactions are removed; longer than a database processor or another server is away.
    #[schemars(extend("x-reload" = true))]
    pub keep_for: Period,
    /// Interval of writing the records to `directory`. A start reads the transactions since then from the journal.
    #[schemars(extend("x-reload" = true))]
    pub checkpoint: Period,
    /// Interval of reading what other servers have written, where the store is a database.
    pub poll: Period,
}

impl Default for JournalSettings {
    fn default() -> Self {
        Self {
            keep: 1_000_000,
            keep_for: Period::from_secs(7 * 86_400),
            checkpoint: Period::from_secs(600),
            poll: Period::from_millis(200),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        let mut store = store::Config::default();
        store.embedded.directory = "run/sds/journal".into();
        Self {
            nf_instance_id: String::new(),
            listen: Listen::local(8095),
            admin: SocketAddr::from(([127, 0, 0, 1], 9095)),
            workers: 0,
            cores: Vec::new(),
            tls: None,
            client_tls: None,
            nrfs: Vec::new(),
            provisioners: vec!["AF".to_owned()],
            server: sbi::server::ServerConfig {
                max_body: ByteSize::mib(16),
                ..sbi::server::ServerConfig::default()
            },
            client: sbi::client::ClientConfig {
                user_agent: "SDS".to_owned(),
                ..sbi::client::ClientConfig::default()
            },
            directory: "run/sds".into(),
            store,
            journal: JournalSettings::default(),
            overload: Overload::default(),
            tokens: Tokens::default(),
            identity: IdentitySettings::default(),
        }
    }
}

impl Validate for Config {
    fn validate(&self, faults: &mut Faults) {
        Interface {
            nf_instance_id: &self.nf_instance_id,
            listen: &self.listen,
            usual_port: 8095,
            api_root: "",
            tls: self.tls.as_ref(),
            client_tls: self.client_tls.as_ref(),
            max_candidates: None,
            max_body_size: self.server.max_body,
            // A body is written in transactions of a thousand changes at most, which fit a batch.
            max_batch_bytes: self.server.max_body,
            tokens: &self.tokens,
            identity: &self.identity,
        }
        .validate(faults);
        for (index, root) in self.nrfs.iter().enumerate() {
            check_root(root, &format!("nrfs[{index}]"), faults);
        }
        if self.provisioners.is_empty() {
            faults.at("provisioners").say(
                "is empty: any function would get a token",
                "NF types such as [AF]",
            );
        }
        faults.within("server", &self.server);
        faults.within("store", &self.store);
        faults.within("journal", &self.journal);
        faults.within("overload", &self.overload);
        if self.store.engine == EngineKind::Cassandra
            && self.store.cassandra.serial_consistency == CassandraSerial::LocalSerial
        {
            faults.at("store.cassandra.serialConsistency").say(
                "is localSerial: two datacentres could give an offset of the journal twice",
                "serial; in one datacentre both are the same",
            );
        }
        if self.store.max_batch_bytes < ByteSize::mib(16) {
            faults.at("store.maxBatchBytes").say(
                "is too small for a transaction of a thousand changes",
                "at least 16MiB",
            );
        }
    }
}

impl Validate for JournalSettings {
    fn validate(&self, faults: &mut Faults) {
        if self.checkpoint.is_zero() {
            faults.at("checkpoint").say("is 0", "a period such as 10m");
        }
        if self.keep == 0 {
            faults.at("keep").say(
                "is 0: no database processor could follow the journal",
                "a count such as 1000000",
            );
        }
        if self.keep_for < self.checkpoint || self.keep_for < self.poll {
            faults.at("keepFor").say(
                "is shorter than checkpoint or poll: another server may lack what is removed",
                "at least as long as both",
            );
        }
        if self.poll.is_zero() {
            faults.at("poll").say("is 0", "a period such as 200ms");
        }
    }
}

impl function::sbi::config::TokenSettings for Config {
    fn tokens(&self) -> &Tokens {
        &self.tokens
    }
}
