//! Diameter clients against simulated servers: over sockets, without a router between them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use lab::callmodel::dsr::{Destination, DsrModel, Mix};
use lab::loadgen::diameter::{Clients, Introduction, Next, Peer, Requests, Turn, result_of};
use lab::loadgen::{FailureKind, Fault, Ticket};
use lab::sim::diameter::{DiameterServer, DiameterSettings};
use lab::sim::{Handle, Misbehaviour, RoleName, Settings, Stats};
use lab::workload::dsr::{Mmes, Plan, mme};
use lab::workload::rx::{AfPlan, Afs, Shares, UePool, af};
use rand::rngs::SmallRng;
use settings::{Percent, Period};

use crate::support::{load_traffic as load, plan};

/// Simulated Diameter servers on a thread of this process.
struct Servers {
    addresses: Vec<SocketAddr>,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Servers {
    fn start(settings: &Settings) -> Self {
        let server = DiameterServer::bind(settings).unwrap();
        let (addresses, handle) = (server.addresses().to_vec(), server.handle());
        let thread = std::thread::spawn(move || server.run().unwrap());
        Self {
            addresses,
            handle,
            thread: Some(thread),
        }
    }

    /// Stops the servers, and returns their counters.
    fn stop(mut self) -> Stats {
        self.handle.stop();
        self.thread.take().unwrap().join().unwrap();
        self.handle.stats()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.handle.stop();
    }
}

fn hss(model: &DsrModel) -> Settings {
    Settings {
        role: RoleName::Hss,
        ports: model.hss,
        diameter: DiameterSettings {
            answer_bytes: model.message_bytes,
            subscribers: model.subscribers(),
            ..DiameterSettings::default()
        },
        ..Settings::default()
    }
}

/// One HSS that MMEs query directly.
fn model() -> DsrModel {
    DsrModel {
        hss: 1,
        mix: Mix {
            update_location: Percent::new(60.0),
            authentication_information: Percent::new(20.0),
            purge: Percent::new(20.0),
        },
        ..DsrModel::default()
    }
}

fn mmes(model: &DsrModel, servers: &Servers, count: u16, timeout: Duration) -> (Clients, Arc<AtomicU64>) {
    let answered = Arc::new(AtomicU64::new(0));
    let plan = Arc::new(Plan::new(model).unwrap());
    let requests = Mmes::new(plan, (0..count).collect(), answered.clone());
    let peers = (0..count).map(|number| Peer {
        address: servers.addresses[0],
        other: None,
        introduction: mme(usize::from(number)),
    });
    (
        Clients::new(peers.collect(), Box::new(requests), timeout),
        answered,
    )
}

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn mmes_ask_an_hss_and_every_answer_is_right() {
    for destination in [Destination::Host, Destination::Subscriber] {
        let model = DsrModel {
            destination,
            ..model()
        };
        let servers = Servers::start(&hss(&model));
        let (clients, answered) = mmes(&model, &servers, 5, PATIENCE);
        let record = load(&plan(servers.addresses[0]), clients, 5000.0, 5000);
        let total = record.total();
        assert_eq!(total.succeeded, total.offered, "{:?}", record.examples);
        assert_eq!(answered.load(Ordering::Relaxed), total.offered);
        let by_operation: Vec<u64> = record.operations.iter().map(|o| o.succeeded).collect();
        assert!(
            by_operation.iter().all(|count| *count > total.offered / 10),
            "{by_operation:?}"
        );
        let stats = servers.stop();
        assert_eq!((stats.requests, stats.answered), (total.offered, total.offered));
        assert_eq!((stats.bad_requests, stats.accepted), (0, 5));
    }
}

#[test]
fn updates_of_locations_have_the_average_size_both_ways() {
    let model = DsrModel {
        hss: 1,
        ..DsrModel::default()
    };
    let servers = Servers::start(&hss(&model));
    let (clients, _) = mmes(&model, &servers, 2, PATIENCE);
    let record = load(&plan(servers.addresses[0]), clients, 4000.0, 4000);
    let requests = record.total().succeeded as f64;
    let stats = servers.stop();
    for bytes in [stats.bytes_in, stats.bytes_out] {
        let each = bytes as f64 / requests;
        assert!((each / 2200.0 - 1.0).abs() < 0.03, "{each} bytes");
    }
}

#[test]
fn an_hss_refuses_the_subscribers_of_another() {
    let model = DsrModel {
        hss: 2,
        destination: Destination::Subscriber,
        ..model()
    };
    let servers = Servers::start(&hss(&model));
    // All requests go to the first HSS, which knows every other range.
    let (clients, _) = mmes(&model, &servers, 1, PATIENCE);
    let total = load(&plan(servers.addresses[0]), clients, 2000.0, 1000).total();
    let refused = total.failed[FailureKind::Status as usize];
    assert_eq!(refused + total.succeeded, total.offered);
    assert!(
        refused > total.offered / 3 && total.succeeded > total.offered / 3,
        "{refused}"
    );
}

#[test]
fn each_kind_of_wrong_answer_has_its_own_count() {
    let model = model();
    let mut settings = hss(&model);
    settings.misbehave = Misbehaviour {
        error: Percent::new(10.0),
        silence: Percent::new(10.0),
        ..Misbehaviour::default()
    };
    settings.latency = Period::from_millis(5);
    let servers = Servers::start(&settings);
    let (clients, answered) = mmes(&model, &servers, 2, Duration::from_secs(1));
    let record = load(&plan(servers.addresses[0]), clients, 2000.0, 2000);
    let total = record.total();
    let (status, late) = (
        total.failed[FailureKind::Status as usize],
        total.failed[FailureKind::Timeout as usize],
    );
    assert_eq!(status + late + total.succeeded, total.offered);
    assert!(status > 100 && late > 100, "{status} refused, {late} late");
    assert_eq!(answered.load(Ordering::Relaxed), total.succeeded);
    assert!(
        record.examples.iter().any(|e| e.contains("3004")),
        "{:?}",
        record.examples
    );
}

#[test]
fn lost_connections_are_reconnected() {
    let model = model();
    let mut settings = hss(&model);
    settings.misbehave.close = Percent::new(0.5);
    let servers = Servers::start(&settings);
    let (clients, _) = mmes(&model, &servers, 4, PATIENCE);
    let total = load(&plan(servers.addresses[0]), clients, 2000.0, 4000).total();
    assert!(total.failed[FailureKind::Connection as usize] > 0);
    assert!(total.succeeded > 100, "{} of {}", total.succeeded, total.offered);
    assert!(servers.stop().accepted > 4);
}

#[test]
fn a_peer_without_the_application_is_refused() {
    /// Sends requests once connected.
    struct Silent;
    impl Requests for Silent {
        fn operations(&self) -> Vec<String> {
            vec!["none".to_owned()]
        }
        fn next(&mut self, _: &mut SmallRng, turn: Turn<'_>, _: &mut Vec<u8>) -> Next {
            Next {
                ticket: Ticket::default(),
                line: turn.line,
            }
        }
        fn judge(&mut self, _: &Ticket, answer: diameter_proto::MessageRef<'_>) -> Result<(), Fault> {
            Err(Fault::Body(format!("answered {}", result_of(answer))))
        }
    }
    let servers = Servers::start(&hss(&model()));
    let peer = Peer {
        address: servers.addresses[0],
        other: None,
        introduction: Introduction::new("x.example", "example", diameter_proto::known::application::RX),
    };
    let clients = Clients::new(vec![peer], Box::new(Silent), PATIENCE);
    let total = load(&plan(servers.addresses[0]), clients, 1000.0, 100).total();
    assert_eq!(total.failed[FailureKind::Connection as usize], total.offered);
    let stats = servers.stop();
    assert_eq!((stats.requests, stats.connections), (0, 0));
}

#[test]
fn afs_and_a_pcf_talk_both_ways() {
    let servers = Servers::start(&Settings {
        role: RoleName::PcfRx,
        latency: Period::from_millis(2),
        diameter: DiameterSettings {
            prefix: "pcf".to_owned(),
            realm: "pcf.example".to_owned(),
            rar: Percent::new(30.0),
            rar_after: Period::from_millis(1),
            asr: Percent::new(20.0),
            asr_after: Period::from_millis(1),
            ..DiameterSettings::default()
        },
        ..Settings::default()
    });
    let shares = Shares {
        initial: 1.0,
        update: 1.0,
        termination: 1.0,
    };
    let afs = Afs::new(
        AfPlan {
            realm: "pcf.example".to_owned(),
            shares,
            most_sessions: 1000,
            priorities: Vec::new(),
            before: Vec::new(),
            first: 3,
        },
        Box::new(UePool::default()),
    );
    let peers = (3..6).map(|number| Peer {
        address: servers.addresses[0],
        other: None,
        introduction: af(number, "ims.example"),
    });
    let clients = Clients::new(peers.collect(), Box::new(afs), PATIENCE);
    let record = load(&plan(servers.addresses[0]), clients, 3000.0, 3000);
    let total = record.total();
    assert_eq!(total.succeeded, total.offered, "{:?}", record.examples);
    let stats = servers.stop();
    assert_eq!(stats.bad_requests, 0);
    assert!(stats.asked > 100 && stats.asked_answered > 0, "{stats:?}");
}
