//! The brokers: leaders of the partitions, a connection to each leader, and retries.
//!
//! ```text
//! bootstrap brokers ─ all queried at once, the first answer counts ─ leaders of the partitions
//! batch ─ leader of its partition ─ unreachable, or no longer the leader: another partition (RoundRobin)
//!                                 └ delivery unknown: retried `retryCount` times, then lost
//! ```
//!
//! The feed controls retries itself: a batch that may have been delivered is sent again only if `retryCount` allows it.

mod batch;
mod broker;
mod protocol;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream::{FuturesUnordered, StreamExt};
use settings::HostPort;
use tls::{ClientTls, Material, TlsFiles, Watched};
use tokio::sync::Mutex;

use super::pump::{Record, Sink, SinkError};
use crate::config::{Acks, Compression, Feed, PartitionSelection, SecurityProtocol};
use broker::{Broker, Lost};
use protocol::{Metadata, Produce};

/// Brokers of the cluster that are asked for leaders beside those of the settings.
const MORE_TO_ASK: usize = 8;
/// The longest time after which a broker that could not be reached is tried again, and between questions for leaders
/// while a partition has none.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The shortest.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);

/// The topic, with connections to the leaders of its partitions.
pub(super) struct Kafka(Rc<Cluster>);

/// The settings of the feed, as its threads need them.
pub(super) struct Brokers {
    bootstrap: Vec<HostPort>,
    topic: String,
    tls: Option<Tls>,
    acks: Acks,
    compression: Compression,
    /// Whether a batch may go to another partition than it was meant for.
    moves: bool,
    timeout: Duration,
    retries: u32,
    backoff: Duration,
}

struct Cluster {
    settings: Brokers,
    known: RefCell<Known>,
    /// Whether a query for the leaders is in flight.
    refreshing: Cell<bool>,
}

/// Metadata of the cluster.
#[derive(Default)]
struct Known {
    leaders: Vec<Option<i32>>,
    nodes: BTreeMap<i32, Rc<Node>>,
}

/// A broker of the cluster.
struct Node {
    host: String,
    port: u16,
    /// Locked while connecting, so that other batches wait for the same connection.
    connection: Mutex<Option<Rc<Broker>>>,
    /// After a failed connection: when the next attempt may begin, and the length of the pause.
    rests: Cell<Option<(Instant, Duration)>>,
}

/// Why a batch was not delivered to one partition.
enum Undelivered {
    /// Certainly not delivered: the batch may go to another partition.
    Surely(String),
    /// Possibly delivered.
    Perhaps(String),
}

/// The files of `feed.tls`, reloaded before each connection.
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
            tracing::warn!(%fault, "invalid TLS files; the feed uses their previous contents");
        }
        self.current.load()
    }
}

impl Brokers {
    pub(super) fn new(settings: &Feed) -> Result<Self, String> {
        let tls = match (settings.security_protocol, &settings.tls) {
            (SecurityProtocol::Plaintext, _) => None,
            (SecurityProtocol::Ssl, files) => {
                Some(Tls::open(files.as_ref().unwrap_or(&TlsFiles::default()))?)
            }
        };
        Ok(Self {
            bootstrap: settings.brokers.clone(),
            topic: settings.topic.clone(),
            tls,
            acks: settings.acks,
            compression: settings.compression,
            moves: settings.partition_selection == PartitionSelection::RoundRobin,
            timeout: settings.request_timeout.duration(),
            retries: settings.retry_count,
            backoff: settings.retry_backoff.duration(),
        })
    }
}

impl Kafka {
    pub(super) fn new(settings: Brokers) -> Self {
        Self(Rc::new(Cluster {
            settings,
            known: RefCell::default(),
            refreshing: Cell::new(false),
        }))
    }
}

impl Sink for Kafka {
    fn partitions(&self) -> usize {
        self.0.known.borrow().leaders.len()
    }

    async fn connect(&self) -> Result<(), SinkError> {
        let found = self.0.look_up().await.map_err(SinkError)?;
        self.0.learn(found);
        Ok(())
    }

    fn disconnect(&self) {
        *self.0.known.borrow_mut() = Known::default();
    }

    async fn send(&self, partition: usize, records: Vec<Record>) -> Result<(), SinkError> {
        let cluster = &self.0;
        let mut left = cluster.settings.retries;
        loop {
            let error = match cluster.deliver(partition, &records).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            Cluster::refresh(cluster);
            if left == 0 {
                return Err(SinkError(error));
            }
            left -= 1;
            tokio::time::sleep(cluster.settings.backoff).await;
        }
    }
}

impl Cluster {
    /// Delivers records to a partition, or to another one where its leader certainly has not taken them.
    async fn deliver(self: &Rc<Self>, partition: usize, records: &[Record]) -> Result<(), String> {
        let partitions = self.known.borrow().leaders.len();
        let others = match self.settings.moves {
            true => partitions,
            false => 1,
        };
        let mut why = "not connected".to_owned();
        for step in 0..others.min(partitions) {
            let to = (partition + step) % partitions;
            match self.deliver_to(to, records).await {
                Ok(()) => return Ok(()),
                Err(Undelivered::Perhaps(error)) => return Err(error),
                Err(Undelivered::Surely(error)) => {
                    why = error;
                    Self::refresh(self);
                }
            }
        }
        Err(why)
    }

    async fn deliver_to(&self, partition: usize, records: &[Record]) -> Result<(), Undelivered> {
        let surely = |why: String| Undelivered::Surely(why);
        let number = i32::try_from(partition).map_err(|error| surely(error.to_string()))?;
        let leader = {
            let known = self.known.borrow();
            let leader = known.leaders.get(partition).copied().flatten();
            leader.and_then(|leader| known.nodes.get(&leader).cloned())
        };
        let leader = leader.ok_or_else(|| surely(format!("partition {partition} has no leader")))?;
        let broker = self.broker(&leader).await.map_err(surely)?;
        let produce = Produce {
            topic: &self.settings.topic,
            partition: number,
            acks: self.settings.acks,
            timeout_ms: i32::try_from(self.settings.timeout.as_millis()).unwrap_or(i32::MAX),
            compression: self.settings.compression,
        };
        let request = protocol::produce(&produce, records).map_err(|error| surely(error.to_string()))?;
        let answered = self.settings.acks != Acks::None;
        let at = || format!("{}:{}", leader.host, leader.port);
        let answer = match broker.ask(request, answered, self.settings.timeout).await {
            Ok(answer) => answer,
            Err(Lost::NotSent) => return Err(surely(format!("{}: the connection was closed", at()))),
            Err(Lost::Broken) => return Err(Undelivered::Perhaps(format!("{}: the connection broke", at()))),
            Err(Lost::Silent) => {
                let why = format!("{}: no answer within {:?}", at(), self.settings.timeout);
                return Err(Undelivered::Perhaps(why));
            }
        };
        if !answered {
            return Ok(());
        }
        match protocol::produce_answer(&answer) {
            Some(Ok(())) => Ok(()),
            Some(Err(code)) if code.is_not_taken() => Err(surely(format!("{}: {code}", at()))),
            Some(Err(code)) => Err(Undelivered::Perhaps(format!("{}: {code}", at()))),
            None => Err(Undelivered::Perhaps(format!("{}: invalid answer", at()))),
        }
    }

    /// The connection to a broker, made where there is none.
    async fn broker(&self, node: &Node) -> Result<Rc<Broker>, String> {
        let mut connection = node.connection.lock().await;
        if let Some(open) = connection.as_ref().filter(|open| !open.is_closed()) {
            return Ok(open.clone());
        }
        let now = Instant::now();
        if node.rests.get().is_some_and(|(until, _)| now < until) {
            return Err(format!(
                "{}:{} was unreachable; the pause before the next attempt has not ended",
                node.host, node.port
            ));
        }
        match self.open(&node.host, node.port).await {
            Ok(open) => {
                node.rests.set(None);
                let open = Rc::new(open);
                *connection = Some(open.clone());
                Ok(open)
            }
            Err(why) => {
                let pause = node.rests.get().map_or(SHORTEST_PAUSE, |(_, last)| last * 2);
                let pause = pause.min(LONGEST_PAUSE);
                tracing::warn!(error = %why, ?pause, "broker of the feed unreachable");
                node.rests.set(Some((Instant::now() + pause, pause)));
                Err(why)
            }
        }
    }

    async fn open(&self, host: &str, port: u16) -> Result<Broker, String> {
        let tls = self.settings.tls.as_ref().map(Tls::load);
        tokio::time::timeout(self.settings.timeout, Broker::connect(host, port, tls))
            .await
            .unwrap_or_else(|_| {
                Err(format!(
                    "{host}:{port}: no connection within {:?}",
                    self.settings.timeout
                ))
            })
    }

    /// Queries all brokers at once for the leaders of the partitions, so that a silent broker causes no delay.
    async fn look_up(&self) -> Result<Metadata, String> {
        let mut places: Vec<(String, u16)> = Vec::new();
        {
            let known = self.known.borrow();
            let of_cluster = known.nodes.values().map(|node| (node.host.as_str(), node.port));
            let configured = self
                .settings
                .bootstrap
                .iter()
                .map(|one| (one.host.as_str(), one.port));
            for (host, port) in configured.chain(of_cluster.take(MORE_TO_ASK)) {
                if !places
                    .iter()
                    .any(|place| (place.0.as_str(), place.1) == (host, port))
                {
                    places.push((host.to_owned(), port));
                }
            }
        }
        let mut answers: FuturesUnordered<_> = places
            .iter()
            .map(|(host, port)| self.look_up_at(host, *port))
            .collect();
        let mut why = "no broker is configured".to_owned();
        while let Some(answer) = answers.next().await {
            match answer {
                Ok(found) => return Ok(found),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    async fn look_up_at(&self, host: &str, port: u16) -> Result<Metadata, String> {
        let broker = self.open(host, port).await?;
        let request = protocol::metadata(&self.settings.topic);
        let answer = broker.ask(request, true, self.settings.timeout).await;
        let answer = answer.map_err(|lost| match lost {
            Lost::Silent => format!("{host}:{port}: no answer within {:?}", self.settings.timeout),
            Lost::Broken | Lost::NotSent => {
                format!("{host}:{port}: the connection was closed (Kafka 2.1 or later is needed)")
            }
        })?;
        match protocol::metadata_answer(&answer, &self.settings.topic) {
            Some(Ok(found)) if found.leaders.iter().any(Option::is_some) => Ok(found),
            Some(Ok(_)) => Err(format!(
                "no partition of topic `{}` has a leader",
                self.settings.topic
            )),
            Some(Err(code)) => Err(format!("{host}:{port}: topic `{}`: {code}", self.settings.topic)),
            None => Err(format!("{host}:{port}: invalid answer")),
        }
    }

    /// Applies new metadata. Brokers at the same address keep their connections and pauses.
    fn learn(&self, found: Metadata) {
        let mut known = self.known.borrow_mut();
        let mut before = std::mem::take(&mut known.nodes);
        for (id, host, port) in found.brokers {
            let same = before
                .remove(&id)
                .filter(|node| (node.host.as_str(), node.port) == (host.as_str(), port));
            let node = same.unwrap_or_else(|| {
                Rc::new(Node {
                    host,
                    port,
                    connection: Mutex::default(),
                    rests: Cell::new(None),
                })
            });
            known.nodes.insert(id, node);
        }
        // A batch may be in flight to any partition that was known before.
        let count = known.leaders.len().max(found.leaders.len());
        known.leaders = found.leaders;
        known.leaders.resize(count, None);
    }

    /// Queries the leaders until each partition has one, in a task of its own.
    fn refresh(cluster: &Rc<Self>) {
        if cluster.refreshing.replace(true) {
            return;
        }
        let weak = Rc::downgrade(cluster);
        tokio::task::spawn_local(async move {
            let mut pause = SHORTEST_PAUSE;
            while !Self::has_refreshed(&weak).await {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            if let Some(cluster) = weak.upgrade() {
                // Minimum interval of queries, however many batches fail.
                tokio::time::sleep(SHORTEST_PAUSE).await;
                cluster.refreshing.set(false);
            }
        });
    }

    /// Whether each partition has a leader now, or the feed has disconnected.
    async fn has_refreshed(weak: &Weak<Self>) -> bool {
        let Some(cluster) = weak.upgrade() else {
            return true;
        };
        // A feed that has disconnected reconnects after its pause.
        if cluster.known.borrow().leaders.is_empty() {
            return true;
        }
        match cluster.look_up().await {
            Ok(found) => {
                let all_led = found.leaders.iter().all(Option::is_some);
                if !cluster.known.borrow().leaders.is_empty() {
                    cluster.learn(found);
                }
                all_led
            }
            Err(error) => {
                tracing::debug!(%error, "the leaders of the feed's topic are unknown");
                false
            }
        }
    }
}

impl std::fmt::Debug for Kafka {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Kafka")
    }
}
