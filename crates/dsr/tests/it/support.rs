//! A router to test, and the peers around it.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use diameter::proto::known::{self, application, command};
use diameter::proto::peer::ApplicationId;
use diameter::proto::{MessageBuilder, MessageMut, ResultCode};
use dsr::config::{DynamicPeers, LocalNode, Overload, Peer as PeerConfig};
use dsr::{Config, Event, Running};
use testpeer::diameter::Peer;
pub(crate) use testpeer::local as run;
use tokio::net::TcpListener;

pub(crate) const DSR: &str = "dsr.example";
pub(crate) const REALM: &str = "epc.example";
pub(crate) const MME: &str = "mme.example";
pub(crate) const APPLICATIONS: &[ApplicationId] = &[
    ApplicationId::tgpp(application::S6A),
    ApplicationId::tgpp(application::RX),
];

/// A configuration with one worker that listens at a port of the system's choice.
///
/// It is never overloaded except where a test sets an assumed load: an unoptimised worker on a busy machine would be
/// overloaded at once, and refuse requests that a test expects at a server.
pub(crate) fn config() -> Config {
    Config {
        overload: Overload {
            assumed_load: Some(settings::Percent::new(0.0)),
            ..Overload::default()
        },
        workers: 1,
        local_nodes: vec![LocalNode {
            host: DSR.to_owned(),
            realm: REALM.to_owned(),
            listen: "127.0.0.1:0".parse::<SocketAddr>().unwrap().into(),
            ..LocalNode::default()
        }],
        dynamic_peers: vec![DynamicPeers::default()],
        drain: settings::Period::from_millis(100),
        ..Config::default()
    }
}

/// The configuration with this section of routing, as YAML.
pub(crate) fn routing(config: &mut Config, yaml: &str) {
    let read = parse(&format!("routing:\n{yaml}"), config);
    config.routing = read.routing;
    let mut faults = settings::Faults::default();
    settings::Validate::validate(config, &mut faults);
    assert!(faults.is_empty(), "{:?}", faults.into_vec());
}

/// The configuration with these sections, as YAML: those below `routing` in the file's order of keys.
pub(crate) fn read(base: Config, yaml: &str) -> Config {
    let read = parse(yaml, &base);
    Config {
        routing: read.routing,
        applications: read.applications,
        overload: Overload {
            assumed_load: read.overload.assumed_load.or(base.overload.assumed_load),
            ..read.overload
        },
        topology_hiding: read.topology_hiding,
        indicators: read.indicators,
        trace: read.trace,
        ..base
    }
}

/// Parses sections, with peers by name only.
fn parse(yaml: &str, base: &Config) -> Config {
    let named = base
        .peers
        .iter()
        .map(|peer| format!("\n  - {{host: {}}}", peer.host));
    let peers: String = match yaml.starts_with("peers:") || base.peers.is_empty() {
        true => String::new(),
        false => format!("peers:{}\n", named.collect::<String>()),
    };
    settings::from_str(&format!("{peers}{yaml}"), "test").unwrap_or_else(|report| panic!("{report}"))
}

/// A server that waits for the router's connection.
pub(crate) struct Waiting {
    pub(crate) host: String,
    listener: TcpListener,
}

impl Waiting {
    pub(crate) async fn new(host: &str) -> Self {
        Self {
            host: host.to_owned(),
            listener: TcpListener::bind("127.0.0.1:0").await.unwrap(),
        }
    }

    /// Its entry in the router's settings.
    pub(crate) fn peer(&self) -> PeerConfig {
        PeerConfig {
            host: self.host.clone(),
            addresses: vec![self.listener.local_addr().unwrap()],
            timers: dsr::config::Timers {
                reconnect_min: settings::Period::from_millis(50),
                // The watchdogs of state REOPEN take two intervals.
                reopen: dsr::config::ReopenPolicy::Never,
                ..dsr::config::Timers::default()
            },
            ..PeerConfig::default()
        }
    }

    /// Where it listens, on loopback.
    pub(crate) fn port(&self) -> u16 {
        self.listener.local_addr().unwrap().port()
    }

    /// Whether no connection comes within that time.
    pub(crate) async fn is_left_alone(&self, time: Duration) -> bool {
        tokio::time::timeout(time, self.listener.accept()).await.is_err()
    }

    /// The connection, once the router has made it; its CER is not answered.
    pub(crate) async fn accepted(&self) -> Peer {
        Peer::accept(&self.listener).await
    }

    /// The connection, once the router has made it.
    pub(crate) async fn reconnected(&self) -> Peer {
        let mut peer = Peer::accept(&self.listener).await;
        peer.answer_capabilities(&self.host, APPLICATIONS).await;
        peer
    }

    /// The connection of a server of all applications.
    pub(crate) async fn relay(&self, dsr: &Running) -> Peer {
        let mut peer = Peer::accept(&self.listener).await;
        let relay = [ApplicationId::auth(0xffff_ffff)];
        peer.answer_capabilities(&self.host, &relay).await;
        available(dsr, &self.host).await;
        peer
    }

    /// The connection, once the router has made it and considers it available.
    pub(crate) async fn connected(&self, dsr: &Running) -> Peer {
        let peer = self.reconnected().await;
        available(dsr, &self.host).await;
        peer
    }
}

/// Waits until the router considers this peer available.
pub(crate) async fn available(dsr: &Running, host: &str) {
    let key = host.to_ascii_lowercase().into_bytes();
    until(|| {
        dsr.hops()
            .get(&key[..])
            .is_some_and(|hops| hops.iter().any(|hop| hop.state() == dsr::HopState::Available))
    })
    .await;
}

/// A client that has exchanged capabilities.
pub(crate) async fn client(dsr: &Running, host: &str) -> Peer {
    let mut peer = Peer::connect(dsr.addresses()[0]).await;
    peer.capabilities(host, APPLICATIONS).await;
    available(dsr, host).await;
    peer
}

/// Servers of these names, a router that knows them, the connections.
pub(crate) async fn world<const N: usize>(
    mut config: Config,
    hosts: [&str; N],
    routing_yaml: &str,
) -> (Running, Vec<Waiting>, Vec<Peer>) {
    let mut servers = Vec::new();
    for host in hosts {
        let server = Waiting::new(host).await;
        config.peers.push(server.peer());
        servers.push(server);
    }
    if !routing_yaml.is_empty() {
        routing(&mut config, routing_yaml);
    }
    let dsr = dsr::start(config).unwrap();
    let mut peers = Vec::new();
    for server in &servers {
        peers.push(server.connected(&dsr).await);
    }
    (dsr, servers, peers)
}

/// Every request to one list of one group with these peers, in this order.
pub(crate) fn one_list(hosts: &[&str]) -> String {
    let groups: String = hosts
        .iter()
        .map(|host| format!("    - {{name: {host}, peers: [{{host: {host}}}]}}\n"))
        .collect();
    let names = hosts.join(", ");
    format!(
        "  peerRouteTables:\n    - {{name: default, rules: [{{action: {{routeList: all}}}}]}}\n  \
         routeLists:\n    - {{name: all, groups: [{names}]}}\n  routeGroups:\n{groups}"
    )
}

/// Has a router write every message to a file in this folder; the file.
pub(crate) fn trace_all(config: &mut Config, directory: &Path) -> std::path::PathBuf {
    std::fs::create_dir_all(directory).unwrap();
    config.trace = dsr::config::Trace {
        directory: directory.to_owned(),
        points: vec![dsr::config::TracePoint {
            name: "all".to_owned(),
            ..dsr::config::TracePoint::default()
        }],
        ..dsr::config::Trace::default()
    };
    directory.join("all.pcapng")
}

/// The settings that are wrong.
pub(crate) fn invalid_settings(config: &Config) -> Vec<String> {
    let mut faults = settings::Faults::default();
    settings::Validate::validate(config, &mut faults);
    faults.into_vec().into_iter().map(|fault| fault.path).collect()
}

/// Another program as a peer, which waits for the router at this address.
pub(crate) fn program(host: &str, address: SocketAddr) -> PeerConfig {
    PeerConfig {
        host: host.to_owned(),
        addresses: vec![address],
        timers: dsr::config::Timers {
            reconnect_min: settings::Period::from_millis(50),
            reconnect_max: settings::Period::from_millis(500),
            reopen: dsr::config::ReopenPolicy::Never,
            ..dsr::config::Timers::default()
        },
        ..PeerConfig::default()
    }
}

/// Waits until `done`; the test's own deadline bounds the wait.
pub(crate) async fn until(mut done: impl FnMut() -> bool) {
    while !done() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Lets the connection of a peer end, and waits until the router has noticed.
pub(crate) async fn lost(dsr: &Running, peer: &mut Peer, host: &str) {
    let unused = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = unused.local_addr().unwrap();
    let (other, accepted) = tokio::join!(Peer::connect(address), unused.accept());
    drop(accepted);
    std::mem::replace(peer, other).break_off();
    until(|| {
        let hops = dsr.hops();
        let all = hops.get(host.as_bytes());
        all.is_none_or(|hops| hops.iter().all(|hop| hop.state() != dsr::HopState::Available))
    })
    .await;
}

/// Copies the files of a store as a process leaves them that is killed now.
pub(crate) fn copy_store(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// Waits until an event has been counted this many times.
pub(crate) async fn counted(dsr: &Running, event: Event, count: u64) {
    until(|| dsr.count(event) >= count).await;
}

/// The server answers the next request; the client gets the answer. The request as the server saw it.
pub(crate) async fn answered(client: &mut Peer, server: &mut Peer) -> MessageMut {
    let request = server.expect(command::UPDATE_LOCATION).await;
    server.answer(&request, ResultCode::SUCCESS).await;
    client
        .expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
        .await;
    request
}

/// The request of a subscriber is led to this server, which answers it. The request as the server saw it.
pub(crate) async fn is_led(client: &mut Peer, user: &str, server: &mut Peer, host: &str) -> MessageMut {
    client.send(ulr(user).as_bytes()).await;
    let request = answered(client, server).await;
    assert_eq!(request.require(known::DESTINATION_HOST).unwrap(), host, "{user}");
    request
}

/// An Update-Location-Request for this subscriber, to be completed.
pub(crate) fn ulr_with(user: &str, fill: impl FnOnce(&mut MessageBuilder)) -> MessageMut {
    let mut builder = MessageBuilder::request(command::UPDATE_LOCATION, application::S6A);
    builder
        .put(known::SESSION_ID, &format!("{MME};1;{user}"))
        .put(known::AUTH_SESSION_STATE, 1)
        .put(known::ORIGIN_HOST, MME)
        .put(known::ORIGIN_REALM, REALM)
        .put(known::DESTINATION_REALM, REALM)
        .put(known::USER_NAME, user)
        .put(known::RAT_TYPE, 1004)
        .put(known::ULR_FLAGS, 34)
        .put(known::VISITED_PLMN_ID, &[0x00, 0xf1, 0x10]);
    fill(&mut builder);
    builder.finish().unwrap()
}

/// An Update-Location-Request for this subscriber.
pub(crate) fn ulr(user: &str) -> MessageMut {
    ulr_with(user, |_| ())
}

/// An Update-Location-Request for this host.
pub(crate) fn ulr_to(host: &str) -> MessageMut {
    ulr_with("001010000000001", |b| {
        b.put(known::DESTINATION_HOST, host);
    })
}

/// Serves the pages of a router as its admin endpoint does.
pub(crate) fn serve(listener: std::net::TcpListener, dsr: &Running) {
    listener.set_nonblocking(true).unwrap();
    let routes = dsr.handle().routes();
    tokio::task::spawn_local(async move {
        let listener = TcpListener::from_std(listener).unwrap();
        axum::serve(listener, routes).await.unwrap();
    });
}

/// Where an admin endpoint will be.
pub(crate) fn admin() -> (std::net::TcpListener, SocketAddr) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}
