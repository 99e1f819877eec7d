//! The copy of messages, to a real broker and to none.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use http::{Method, StatusCode};
use rskafka::client::ClientBuilder;
use rskafka::client::partition::{OffsetAt, UnknownTopicHandling};
use scp::config::{Acks, Compression, Feed, FeedPoint, SecurityProtocol};
use serde_json::Value;
use settings::{HostPort, Period};

use crate::support::{PATH, Producer, knowing, local, until};

/// A Kafka broker in a process of its own.
struct Broker {
    child: Option<Child>,
    directory: tempfile::TempDir,
    port: u16,
    /// The port of the first broker of its cluster, if it is another one.
    first: Option<u16>,
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/kafka.sh")
}

impl Broker {
    /// A broker, or `None` where it cannot be had. With `tls` it has a certificate of this authority.
    fn start(tls: Option<&tls::authority::Authority>) -> Option<Self> {
        let java = Command::new("java")
            .arg("-version")
            .stderr(Stdio::null())
            .status();
        let fetched = Command::new(script()).arg("fetch").status();
        if !java.is_ok_and(|status| status.success()) || !fetched.is_ok_and(|status| status.success()) {
            testpeer::skip::missing("Java, or the jars of Kafka (scripts/kafka.sh fetch),");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        if let Some(authority) = tls
            && !keystore(authority, directory.path())
        {
            testpeer::skip::missing("openssl or keytool");
            return None;
        }
        let mut broker = Self {
            child: None,
            directory,
            port: free_ports::row(3, 1).unwrap(),
            first: None,
        };
        broker.run();
        Some(broker)
    }

    /// A second broker of its cluster.
    fn second(&self) -> Self {
        let mut broker = Self {
            child: None,
            directory: tempfile::tempdir().unwrap(),
            port: free_ports::row(3, 1).unwrap(),
            first: Some(self.port),
        };
        broker.run();
        broker
    }

    fn run(&mut self) {
        let child = Command::new(script())
            .arg(if self.first.is_some() { "join" } else { "run" })
            .arg(self.directory.path())
            .arg(self.port.to_string())
            .args(self.first.map(|port| port.to_string()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.child = Some(child.unwrap());
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    async fn client(&self) -> rskafka::client::Client {
        for _ in 0..600 {
            let client = ClientBuilder::new(vec![format!("127.0.0.1:{}", self.port)]).build();
            if let Ok(Ok(client)) = tokio::time::timeout(Duration::from_secs(5), client).await {
                return client;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the broker does not come up");
    }

    async fn topic(&self, name: &str, partitions: i32) {
        self.replicated_topic(name, partitions, 1).await;
    }

    async fn replicated_topic(&self, name: &str, partitions: i32, replicas: i16) {
        let client = self.client().await;
        let controller = client.controller_client().unwrap();
        // A second broker may not be one of the cluster yet.
        let mut tries = 0;
        while let Err(error) = controller.create_topic(name, partitions, replicas, 20_000).await {
            tries += 1;
            assert!(tries < 600, "{error}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        // A topic exists a moment before its partitions have leaders.
        for number in 0..partitions {
            let partition = client.partition_client(name, number, UnknownTopicHandling::Retry);
            let partition = partition.await.unwrap();
            partition.get_offset(OffsetAt::Latest).await.unwrap();
        }
    }

    /// What is in a topic, with the partition of each.
    async fn read(&self, topic: &str, partitions: i32) -> Vec<(i32, Value)> {
        let client = self.client().await;
        let mut all = Vec::new();
        for number in 0..partitions {
            let partition = client
                .partition_client(topic, number, UnknownTopicHandling::Retry)
                .await
                .unwrap();
            let mut at = 0;
            loop {
                let (records, end) = partition.fetch_records(at, 0..10_000_000, 100).await.unwrap();
                let Some(last) = records.last() else { break };
                at = last.offset + 1;
                let values = records.iter().map(|one| {
                    let text = one.record.value.as_deref().unwrap();
                    (number, serde_json::from_slice(text).unwrap())
                });
                all.extend(values);
                if at >= end {
                    break;
                }
            }
        }
        all
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Key and trust stores as Java reads them.
fn keystore(authority: &tls::authority::Authority, directory: &Path) -> bool {
    let identity = authority.issue(&["127.0.0.1", "localhost"]).unwrap();
    let written = authority.write(&identity, directory, "broker").unwrap();
    let authorities = written.authorities.clone().unwrap();
    let run = |program: &str, arguments: &[&str]| {
        let status = Command::new(program)
            .args(arguments)
            .current_dir(directory)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
    };
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    run(
        "openssl",
        &[
            "pkcs12",
            "-export",
            "-in",
            &path(&written.certificate),
            "-inkey",
            &path(&written.key),
            "-out",
            "keystore.p12",
            "-passout",
            "pass:changeit",
        ],
    ) && run(
        "keytool",
        &[
            "-importcert",
            "-noprompt",
            "-alias",
            "ca",
            "-file",
            &path(&authorities),
            "-keystore",
            "truststore.p12",
            "-storetype",
            "PKCS12",
            "-storepass",
            "changeit",
        ],
    )
}

/// A feed to a broker, patient enough for a slow machine.
fn to(port: u16, topic: &str) -> Feed {
    Feed {
        enabled: true,
        brokers: vec![HostPort {
            host: "127.0.0.1".into(),
            port,
        }],
        topic: topic.into(),
        request_timeout: Period::from_secs(20),
        delivery_timeout: Period::from_secs(30),
        blocking_send_timeout: Period::from_secs(60),
        max_block: Period::from_secs(20),
        degradation_period: Period::from_millis(100),
        ..Feed::default()
    }
}

const DELIVERED: &str = "signalbox_scp_feed_delivered_total";
const LOST: &str = "signalbox_scp_feed_lost_total";

#[test]
fn every_message_of_an_exchange_is_copied_and_a_broker_that_goes_disturbs_nobody() {
    local(async {
        let Some(mut broker) = Broker::start(None) else {
            return;
        };
        broker.topic("scp", 3).await;
        let (failing, well) = (Producer::start(1), Producer::start(2));
        failing.fails_with(503);
        let scp = knowing(&[&failing, &well], |config| {
            config.feed = to(broker.port, "scp");
        });
        let request = http::Request::builder()
            .method(Method::GET)
            .uri(PATH)
            .header("3gpp-sbi-target-apiroot", failing.root())
            .header("authorization", "Bearer secret")
            .body("{\"asked\":1}".to_owned().into())
            .unwrap();
        assert_eq!(scp.send(request).await.by(), well.id);
        until("all six are delivered", async || scp.count(DELIVERED, "") == 6.0).await;
        let got = broker.read("scp", 3).await;
        let mut partitions: Vec<i32> = got.iter().map(|one| one.0).collect();
        partitions.sort_unstable();
        assert_eq!(partitions, [0, 0, 1, 1, 2, 2], "one after the other");
        let mut messages: Vec<&Value> = got.iter().map(|one| &one.1).collect();
        messages.sort_by_key(|one| one["metadata-list"]["timestamp"].as_str().unwrap().to_owned());
        let points: Vec<&str> = messages
            .iter()
            .map(|one| one["metadata-list"]["message-direction"].as_str().unwrap())
            .collect();
        assert_eq!(
            points,
            [
                "RxRequest",
                "TxRequest",
                "RxResponse",
                "TxRequest",
                "RxResponse",
                "TxResponse"
            ]
        );
        let first = &messages[0]["metadata-list"]["correlation-id"];
        assert!(
            messages
                .iter()
                .all(|one| one["metadata-list"]["correlation-id"] == *first)
        );
        assert_eq!(messages[0]["5g-sbi-message"]["asked"], 1);
        assert_eq!(messages[0]["metadata-list"]["consumer-id"], "AMF-test");
        assert_eq!(messages[2]["status"], 503);
        assert_eq!(messages[3]["metadata-list"]["producer-id"], well.id);
        assert_eq!(messages[5]["5g-sbi-message"]["by"], well.id);
        assert!(!got.iter().any(|one| one.1.to_string().contains("secret")));

        // The broker goes: every request is served, every copy is counted as lost.
        broker.kill();
        for _ in 0..50 {
            assert_eq!(scp.get(&well).await.status, StatusCode::OK);
        }
        until("the loss is counted", async || scp.count(LOST, "") == 200.0).await;
        // The copies of all these requests may have been a batch or two: more follow.
        until("the feed pauses", async || {
            assert_eq!(scp.get(&well).await.status, StatusCode::OK);
            scp.count("signalbox_scp_feed_pauses_total", "") >= 1.0
        })
        .await;
        until("memory is given back", async || {
            scp.count("signalbox_scp_feed_buffered_bytes", "") == 0.0
        })
        .await;

        // It comes back, and so does the feed.
        broker.run();
        broker.client().await;
        until("copies are delivered again", async || {
            assert_eq!(scp.get(&well).await.status, StatusCode::OK);
            scp.count(DELIVERED, "") > 6.0
        })
        .await;
    });
}

/// What distinguishes a copy from all others.
fn identity(message: &Value) -> String {
    let metadata = &message["metadata-list"];
    format!(
        "{} {} {}",
        metadata["correlation-id"], metadata["hop-by-hop-id"], metadata["message-direction"]
    )
}

/// A bootstrap broker that is silent delays nothing. A broker that dies takes no copies with it: those for its
/// partitions go to others, and to the same ones again when another broker leads them.
#[test]
fn a_broker_of_several_may_be_silent_or_die() {
    local(async {
        let Some(first) = Broker::start(None) else {
            return;
        };
        let mut second = first.second();
        first.replicated_topic("scp", 4, 2).await;
        // Takes connections into its backlog and says nothing.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let producer = Producer::start(1);
        let scp = knowing(&[&producer], |config| {
            config.workers = 2;
            config.feed = Feed {
                brokers: [silent.local_addr().unwrap().port(), second.port, first.port]
                    .map(|port| HostPort {
                        host: "127.0.0.1".into(),
                        port,
                    })
                    .to_vec(),
                acks: Acks::Leader,
                compression: Compression::Lz4,
                senders: 2,
                retry_count: 100,
                ..to(first.port, "scp")
            };
        });
        for _ in 0..20 {
            assert_eq!(scp.get(&producer).await.status, StatusCode::OK);
        }
        until("all are delivered", async || scp.count(DELIVERED, "") == 80.0).await;
        // What consumers may read is on both brokers.
        until("both brokers have them", async || {
            first.read("scp", 4).await.len() == 80
        })
        .await;
        let got = first.read("scp", 4).await;
        for partition in 0..4 {
            let count = got.iter().filter(|one| one.0 == partition).count();
            assert_eq!(count, 20, "of partition {partition}");
        }

        second.kill();
        for _ in 0..20 {
            assert_eq!(scp.get(&producer).await.status, StatusCode::OK);
        }
        until("all are delivered", async || scp.count(DELIVERED, "") == 160.0).await;
        assert_eq!(scp.count(LOST, ""), 0.0);
        // The other broker leads all partitions after a while, and all of them get copies again.
        let all = async {
            loop {
                assert_eq!(scp.get(&producer).await.status, StatusCode::OK);
                let got = first.read("scp", 4).await;
                let news = |partition| got.iter().filter(|one| one.0 == partition).count() > 20;
                if (0..4).all(news) {
                    break;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(240), all).await.unwrap();
        assert_eq!(scp.count(LOST, ""), 0.0);
        let delivered = scp.count("signalbox_scp_feed_copied_total", "");
        until("all are delivered", async || {
            scp.count(DELIVERED, "") == delivered
        })
        .await;
        let got = first.read("scp", 4).await;
        let distinct: BTreeSet<String> = got.iter().map(|one| identity(&one.1)).collect();
        assert_eq!(distinct.len() as f64, delivered, "{} are there", got.len());
    });
}

/// The broker checks each batch, and another program's consumer reads it, however it was sent.
#[test]
fn copies_are_read_back_whatever_acks_and_compression_are() {
    local(async {
        let Some(broker) = Broker::start(None) else {
            return;
        };
        let producer = Producer::start(1);
        for (acks, compression) in [
            (Acks::None, Compression::None),
            (Acks::None, Compression::Gzip),
            (Acks::Leader, Compression::Gzip),
            (Acks::All, Compression::Lz4),
        ] {
            let topic = format!("{acks:?}-{compression:?}");
            broker.topic(&topic, 2).await;
            let scp = knowing(&[&producer], |config| {
                config.feed = Feed {
                    acks,
                    compression,
                    ..to(broker.port, &topic)
                };
            });
            // A body that takes several blocks of every compression.
            let body = serde_json::json!({"text": "0123456789".repeat(20_000)}).to_string();
            let request = http::Request::builder()
                .method(Method::PUT)
                .uri(PATH)
                .header("3gpp-sbi-target-apiroot", producer.root())
                .body(body.into())
                .unwrap();
            assert_eq!(scp.send(request).await.status, StatusCode::OK);
            until("all are delivered", async || scp.count(DELIVERED, "") == 4.0).await;
            let mut got = broker.read(&topic, 2).await;
            while got.len() < 4 && acks == Acks::None {
                tokio::time::sleep(Duration::from_millis(50)).await;
                got = broker.read(&topic, 2).await;
            }
            let points: Vec<&str> = ["RxRequest", "TxRequest", "RxResponse", "TxResponse"]
                .into_iter()
                .filter(|point| {
                    got.iter()
                        .any(|one| one.1["metadata-list"]["message-direction"] == *point)
                })
                .collect();
            assert_eq!((got.len(), points.len()), (4, 4), "{topic}");
            let length = |one: &(i32, Value)| one.1["5g-sbi-message"]["text"].as_str().map(str::len);
            assert_eq!(got.iter().filter_map(length).collect::<Vec<_>>(), [200_000; 2]);
            assert_eq!(scp.count(LOST, ""), 0.0, "{topic}");
        }
    });
}

#[test]
fn brokers_are_spoken_to_over_tls() {
    local(async {
        let authority = tls::authority::Authority::new("kafka test").unwrap();
        let Some(broker) = Broker::start(Some(&authority)) else {
            return;
        };
        broker.topic("scp", 1).await;
        let producer = Producer::start(1);
        let files = sbi::tls::TlsFiles {
            authorities: Some(broker.directory.path().join("authority.crt")),
            ..sbi::tls::TlsFiles::default()
        };
        let scp = knowing(&[&producer], |config| {
            config.feed = Feed {
                security_protocol: SecurityProtocol::Ssl,
                tls: Some(files),
                trigger_points: vec![FeedPoint::TxResponse],
                ..to(broker.port + 1, "scp")
            };
        });
        assert_eq!(scp.get(&producer).await.status, StatusCode::OK);
        until("it is delivered", async || scp.count(DELIVERED, "") == 1.0).await;
        assert_eq!(broker.read("scp", 1).await.len(), 1);
    });
}

#[test]
fn without_any_broker_signalling_is_untouched_and_the_loss_is_told() {
    local(async {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = silent.local_addr().unwrap().port();
        let producer = Producer::start(1);
        let mut scp = knowing(&[&producer], |config| {
            // Accepts connections and says nothing.
            config.feed = Feed {
                request_timeout: Period::from_millis(100),
                ..to(port, "scp")
            };
        });
        for _ in 0..20 {
            assert_eq!(scp.get(&producer).await.status, StatusCode::OK);
        }
        until("the feed pauses", async || {
            scp.count("signalbox_scp_feed_pauses_total", "") >= 1.0
        })
        .await;
        until("the loss is counted", async || scp.count(LOST, "paused") == 80.0).await;
        assert_eq!(scp.count(DELIVERED, ""), 0.0);
        scp.running.take().unwrap().stop().unwrap();
    });
}

#[test]
fn the_feed_changes_while_it_runs() {
    local(async {
        let producer = Producer::start(1);
        let to = |points: &[FeedPoint]| Feed {
            trigger_points: points.to_vec(),
            ..to(1, "scp")
        };
        let scp = knowing(&[&producer], |_| {});
        let configured = |feed: Feed| {
            let mut config = crate::support::config();
            config.producers = vec![producer.profile(&serde_json::json!({}))];
            config.feed = feed;
            config
        };
        let running = scp.running.as_ref().unwrap();
        let copied = |point: &str| scp.count("signalbox_scp_feed_copied_total", point);
        let get = async || assert_eq!(scp.get(&producer).await.by(), producer.id);

        get().await;
        assert_eq!(copied(""), 0.0);
        // Where no broker is, a feed pauses soon: only its first copy is sure to be made, the others are lost at once.
        let requests = configured(to(&[FeedPoint::RxRequest]));
        running.reload(&requests).unwrap();
        get().await;
        assert_eq!((copied("RxRequest"), copied("TxResponse")), (1.0, 0.0));
        running.reload(&requests).unwrap();
        get().await;
        let before = copied("RxRequest");
        running.reload(&configured(to(&[FeedPoint::TxResponse]))).unwrap();
        get().await;
        assert_eq!((copied("RxRequest"), copied("TxResponse")), (before, 1.0));
        // What cannot be used changes nothing.
        let faulty = configured(Feed {
            security_protocol: SecurityProtocol::Ssl,
            tls: Some(sbi::tls::TlsFiles {
                authorities: Some("/nowhere/authority.crt".into()),
                ..sbi::tls::TlsFiles::default()
            }),
            ..to(&[FeedPoint::RxRequest])
        });
        let reason = running.reload(&faulty).unwrap_err();
        assert!(reason.contains("/nowhere/authority.crt"), "{reason}");
        get().await;
        running.reload(&configured(Feed::default())).unwrap();
        get().await;
        assert_eq!(copied("RxRequest"), before);
        // Every copy ends somewhere: here they are lost with the feeds that had them.
        until("all four are counted", async || scp.count(LOST, "") == 4.0).await;
        assert_eq!(scp.count("signalbox_scp_feed_buffered_bytes", ""), 0.0);
        assert_eq!(producer.count(), 6);
    });
}
