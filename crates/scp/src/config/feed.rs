//! The copy of messages for analytics.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, HostPort, Percent, Period, Validate};

/// Point of the processing at which a message is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FeedPoint {
    /// A request as it came from the consumer.
    RxRequest,
    /// A request as it goes to a producer; each attempt is one.
    TxRequest,
    /// A response as it came from a producer.
    RxResponse,
    /// A response as it goes to the consumer, this SCP's own included.
    TxResponse,
}

impl FeedPoint {
    /// Returns the name that settings and messages of the feed use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RxRequest => "RxRequest",
            Self::TxRequest => "TxRequest",
            Self::RxResponse => "RxResponse",
            Self::TxResponse => "TxResponse",
        }
    }

    /// Position in lists by point.
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }
}

/// Which partition of the topic a message goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PartitionSelection {
    /// In turn; if the leader of a partition is unreachable, the next one.
    #[default]
    RoundRobin,
    /// All copies of one exchange go to the same partition.
    CorrelationId,
}

/// Which answer of the brokers confirms the delivery of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Acks {
    /// That of all replicas in sync.
    #[default]
    #[serde(rename = "all")]
    All,
    /// That of the leader of the partition.
    #[serde(rename = "1")]
    Leader,
    /// None: a copy counts as delivered when it is written to the connection.
    #[serde(rename = "0")]
    None,
}

/// How batches are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// gzip at its fastest level.
    Gzip,
    /// LZ4 frames: compress less than gzip, in a tenth of the CPU time.
    Lz4,
}

/// Protocol of the connections to brokers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SecurityProtocol {
    /// Plain TCP.
    #[default]
    Plaintext,
    /// TLS, with the files of `tls`.
    Ssl,
}

/// A copy of messages, with metadata of each, to a topic of Kafka. Signalling never waits for it: copies that the
/// brokers do not accept in time are dropped and counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Feed {
    /// Whether messages are copied.
    pub enabled: bool,
    /// Bootstrap brokers, `host:port`, of Kafka 2.1 or later. The feed queries all of them, and the first answer names
    /// the leaders of the partitions.
    pub brokers: Vec<HostPort>,
    /// The topic; it must exist.
    pub topic: String,
    /// Points of the processing at which messages are copied.
    pub trigger_points: Vec<FeedPoint>,
    /// API names whose messages are copied; empty: all.
    pub services: Vec<String>,
    /// Share of the exchanges that is copied; an exchange is copied completely or not at all.
    pub allowed_traffic_percentage: Percent,
    /// Whether copies have the body.
    pub bodies: bool,
    /// Headers whose values are not copied.
    pub redacted_headers: Vec<String>,
    /// Which partition a message goes to.
    pub partition_selection: PartitionSelection,
    /// Which answer of the brokers confirms the delivery of a copy.
    pub acks: Acks,
    /// How batches are compressed.
    pub compression: Compression,
    /// Threads that encode and send, each with its own connections; the workers are divided among them. At most one
    /// thread per worker is started.
    #[schemars(range(min = 1))]
    pub senders: u16,
    /// Protocol of the connections to brokers.
    pub security_protocol: SecurityProtocol,
    /// Certificates and authorities for `ssl`; reloaded before each connection to a broker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<sbi::tls::TlsFiles>,
    /// Retries of a batch that failed, within `deliveryTimeout`.
    pub retry_count: u32,
    /// Pause before a retry.
    pub retry_backoff: Period,
    /// Timeout of a request to a broker.
    pub request_timeout: Period,
    /// Time from the copy to the broker's answer; later copies are dropped.
    pub delivery_timeout: Period,
    /// Memory of the copies that are not delivered yet, over all workers; further copies are dropped.
    pub buffer_memory: ByteSize,
    /// Size of a batch; a full batch is sent at once.
    pub batch_size: ByteSize,
    /// Time after which a batch that is not full is sent.
    pub linger: Period,
    /// Batches in flight to one partition; further ones are queued.
    #[schemars(range(min = 1))]
    pub max_in_flight: usize,
    /// Time that a full batch may be queued before it is dropped.
    pub max_block: Period,
    /// Time that a message may wait for its batch; older ones are dropped.
    pub blocking_send_timeout: Period,
    /// Consecutive failed batches after which the feed pauses.
    #[schemars(range(min = 1))]
    pub consecutive_failures: u32,
    /// Length of the pause, in which copies are dropped.
    pub degradation_period: Period,
}

impl Default for Feed {
    fn default() -> Self {
        Self {
            enabled: false,
            brokers: vec![HostPort {
                host: "127.0.0.1".to_owned(),
                port: 9092,
            }],
            topic: "SCP".to_owned(),
            trigger_points: vec![
                FeedPoint::RxRequest,
                FeedPoint::TxRequest,
                FeedPoint::RxResponse,
                FeedPoint::TxResponse,
            ],
            services: Vec::new(),
            allowed_traffic_percentage: Percent::new(100.0),
            bodies: true,
            redacted_headers: [
                "authorization",
                "3gpp-sbi-client-credentials",
                "3gpp-sbi-source-nf-client-credentials",
                "3gpp-sbi-access-token",
            ]
            .map(str::to_owned)
            .to_vec(),
            partition_selection: PartitionSelection::default(),
            acks: Acks::default(),
            compression: Compression::default(),
            senders: 1,
            security_protocol: SecurityProtocol::default(),
            tls: None,
            retry_count: 0,
            retry_backoff: Period::from_millis(100),
            request_timeout: Period::from_secs(1),
            delivery_timeout: Period::from_secs(5),
            buffer_memory: ByteSize(128_000_000),
            batch_size: ByteSize::kib(256),
            linger: Period::from_millis(5),
            max_in_flight: 5,
            max_block: Period::from_millis(100),
            blocking_send_timeout: Period::from_millis(500),
            consecutive_failures: 10,
            degradation_period: Period::from_secs(1),
        }
    }
}

/// Fault of a feed that is enabled in a program without the feature.
pub(crate) const WITHOUT_KAFKA: &str = "is true, and this program was built without Kafka";

impl Validate for Feed {
    fn validate(&self, faults: &mut Faults) {
        if self.enabled && cfg!(not(feature = "kafka")) {
            faults.at("enabled").say(
                WITHOUT_KAFKA,
                "false, or a program with the feature `kafka` (`make dist`)",
            );
        }
        if self.enabled && self.brokers.is_empty() {
            faults
                .at("brokers")
                .say("is empty", "at least one, such as kafka:9092");
        }
        if self.topic.is_empty() {
            faults.at("topic").say("is empty", "the name of a topic");
        }
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if self.topic.len() > 249 || !self.topic.chars().all(is_of_name) {
            faults.at("topic").say(
                "is an invalid topic name",
                "up to 249 letters, digits, `.`, `_` and `-`",
            );
        }
        if self.senders == 0 {
            faults.at("senders").say("is 0", "at least 1");
        }
        let ssl = self.security_protocol == SecurityProtocol::Ssl;
        if ssl && self.tls.as_ref().is_none_or(|tls| tls.authorities.is_none()) {
            faults.at("tls").say(
                "names no authorities, and the protocol is ssl",
                "`tls.authorities`",
            );
        }
        for (i, name) in self.redacted_headers.iter().enumerate() {
            if http::HeaderName::from_bytes(name.as_bytes()).is_err() {
                faults
                    .at(format!("redactedHeaders[{i}]"))
                    .say(format!("`{name}` is not a header name"), "such as authorization");
            }
        }
        for (key, period) in [
            ("requestTimeout", self.request_timeout),
            ("deliveryTimeout", self.delivery_timeout),
            ("linger", self.linger),
        ] {
            if period.is_zero() {
                faults.at(key).say("is 0", "a period such as 1s");
            }
        }
        if self.max_in_flight == 0 {
            faults.at("maxInFlight").say("is 0", "at least 1");
        }
        if self.batch_size.bytes() == 0 || self.batch_size.bytes() > 16 << 20 {
            faults
                .at("batchSize")
                .say(format!("is {}", self.batch_size), "up to 16MiB");
        }
    }
}
