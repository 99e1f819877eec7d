//! The brokers, through the `rskafka` crate.
//!
//! It always asks for the answer of all replicas in sync (`acks=all`), so a copy that counts as delivered is
//! at least as safe as with `acks=1`. Retries are ours, so that they can be none.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rskafka::BackoffConfig;
use rskafka::chrono::DateTime;
use rskafka::client::ClientBuilder;
use rskafka::client::partition::{Compression, PartitionClient, UnknownTopicHandling};
use tls::{ClientTls, Material, TlsFiles, Watched};

use super::pump::{Record, Sink, SinkError};
use crate::config::{Feed, SecurityProtocol};

/// Connections to the brokers of a topic.
pub(super) struct Kafka {
    brokers: Vec<String>,
    topic: String,
    tls: Option<Tls>,
    timeout: Duration,
    retries: u32,
    backoff: Duration,
    partitions: RefCell<Vec<Arc<PartitionClient>>>,
}

/// The files of `feed.tls`, read again before each connection.
struct Tls {
    watched: Watched,
    current: ClientTls,
}

impl Tls {
    fn open(files: &TlsFiles) -> Result<Self, String> {
        let watched = Watched::default();
        // No ALPN: brokers do not speak HTTP.
        let current = watched.open("feed.tls", files, |material: &Material| material.client(&[]))?;
        Ok(Self { watched, current })
    }

    /// What is in the files now; the previous contents where they cannot be used.
    fn load(&self) -> Arc<rustls::ClientConfig> {
        if let Err(fault) = self.watched.reread() {
            tracing::warn!(%fault, "TLS files cannot be used; the feed uses their previous contents");
        }
        self.current.load()
    }
}

impl SinkError {
    fn new(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}

impl Kafka {
    pub(super) fn new(settings: &Feed) -> Result<Self, String> {
        let tls = match (settings.security_protocol, &settings.tls) {
            (SecurityProtocol::Plaintext, _) => None,
            (SecurityProtocol::Ssl, files) => {
                Some(Tls::open(files.as_ref().unwrap_or(&TlsFiles::default()))?)
            }
        };
        Ok(Self {
            brokers: settings.brokers.iter().map(ToString::to_string).collect(),
            topic: settings.topic.clone(),
            tls,
            timeout: settings.request_timeout.duration(),
            retries: settings.retry_count,
            backoff: settings.retry_backoff.duration(),
            partitions: RefCell::default(),
        })
    }

    async fn try_connect(&self) -> Result<Vec<Arc<PartitionClient>>, SinkError> {
        // A deadline that has passed at the first failure: no retries of its own.
        let never = BackoffConfig {
            deadline: Some(Duration::from_nanos(1)),
            ..BackoffConfig::default()
        };
        let mut builder = ClientBuilder::new(self.brokers.clone())
            .client_id("signalbox-scp")
            .backoff_config(never);
        if let Some(tls) = &self.tls {
            builder = builder.tls_config(tls.load());
        }
        let client = builder.build().await.map_err(SinkError::new)?;
        let topics = client.list_topics().await.map_err(SinkError::new)?;
        let topic = topics
            .into_iter()
            .find(|one| one.name == self.topic)
            .ok_or_else(|| SinkError(format!("the brokers have no topic `{}`", self.topic)))?;
        let mut partitions = Vec::new();
        for number in topic.partitions {
            let partition = client.partition_client(&self.topic, number, UnknownTopicHandling::Error);
            partitions.push(Arc::new(partition.await.map_err(SinkError::new)?));
        }
        Ok(partitions)
    }
}

impl Sink for Kafka {
    fn partitions(&self) -> usize {
        self.partitions.borrow().len()
    }

    async fn connect(&self) -> Result<(), SinkError> {
        let partitions = tokio::time::timeout(self.timeout, self.try_connect())
            .await
            .map_err(|_| SinkError("the brokers did not answer in time".to_owned()))??;
        *self.partitions.borrow_mut() = partitions;
        Ok(())
    }

    fn disconnect(&self) {
        self.partitions.borrow_mut().clear();
    }

    async fn send(&self, partition: usize, records: Vec<Record>) -> Result<(), SinkError> {
        let client = self.partitions.borrow().get(partition).cloned();
        let client = client.ok_or_else(|| SinkError("not connected".to_owned()))?;
        let mut left = self.retries;
        let mut records = Some(records.into_iter().map(encoded).collect::<Vec<_>>());
        loop {
            // The last try needs no copy for another.
            let these = match left {
                0 => records.take().unwrap_or_default(),
                _ => records.clone().unwrap_or_default(),
            };
            let sent = client.produce(these, Compression::NoCompression);
            let error = match tokio::time::timeout(self.timeout, sent).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(error)) => SinkError::new(error),
                Err(_) => SinkError("the broker did not answer in time".to_owned()),
            };
            if left == 0 {
                return Err(error);
            }
            left -= 1;
            tokio::time::sleep(self.backoff).await;
        }
    }
}

/// A message as the client has it.
fn encoded(record: Record) -> rskafka::record::Record {
    rskafka::record::Record {
        key: Some(record.key),
        value: Some(record.value),
        headers: BTreeMap::new(),
        timestamp: DateTime::from_timestamp_nanos(record.at),
    }
}
