//! Real freeDiameter processes as client, server, next hop and previous hop (Debian: `freediameterd`,
//! `freediameter-extensions`). Where the program is missing, each test says so and passes.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use diameter::endpoint::{Endpoint, SendOptions, To};
use diameter::proto::known::{self, application, disconnect_cause};
use diameter::proto::peer::{ApplicationId, DownReason, Health, State};
use diameter::proto::{MessageBuilder, MessageMut};
use diameter::{Node, NodeConfig, PeerConfig, Security};
use tempfile::TempDir;

use crate::support::{Hss, REALM, Relay, config, listen, run, ulr, until};

const FD: &str = "fd.example";
const HSS: &str = "hss.example";
const MME: &str = "mme.example";
const APPLICATIONS: &[ApplicationId] = &[
    ApplicationId::tgpp(application::S6A),
    ApplicationId::tgpp(application::RX),
];
/// freeDiameter's watchdog interval; 6 s is the least it takes.
const FD_WATCHDOG: Duration = Duration::from_secs(6);

/// A running freeDiameter.
struct FreeDiameter {
    child: Child,
    address: SocketAddr,
    _folder: TempDir,
}

impl FreeDiameter {
    /// Starts one that lets everybody in without TLS and connects to `peers`. None when there is none to
    /// start.
    async fn start(peers: &[(&str, SocketAddr)]) -> Option<Self> {
        Self::start_on(free_port(), peers).await
    }

    async fn start_on(port: u16, peers: &[(&str, SocketAddr)]) -> Option<Self> {
        if Command::new("freeDiameterd")
            .arg("--version")
            .stdout(Stdio::null())
            .status()
            .is_err()
        {
            eprintln!("skipped: freeDiameterd is not installed");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();

        let file = |name: &str| folder.path().join(name);
        let certificate = rcgen::generate_simple_self_signed(vec![FD.to_owned()]).unwrap();
        std::fs::write(file("cert.pem"), certificate.cert.pem()).unwrap();
        std::fs::write(file("key.pem"), certificate.signing_key.serialize_pem()).unwrap();
        let dh = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ffdhe2048.pem");
        std::fs::write(file("acl.conf"), "ALLOW_IPSEC *.example\n").unwrap();
        let mut conf = format!(
            "Identity = \"{FD}\";\nRealm = \"fd.{REALM}\";\nPort = {port};\nSecPort = {};\nNo_SCTP;\n\
             ListenOn = \"127.0.0.1\";\nTwTimer = {};\nTcTimer = 1;\n\
             TLS_Cred = \"{}\", \"{}\";\nTLS_CA = \"{}\";\nTLS_DH_File = \"{}\";\n\
             LoadExtension = \"acl_wl.fdx\" : \"{}\";\nLoadExtension = \"dict_nasreq.fdx\";\n\
             LoadExtension = \"dict_dcca.fdx\";\nLoadExtension = \"dict_dcca_3gpp.fdx\";\n",
            free_port(),
            FD_WATCHDOG.as_secs(),
            file("cert.pem").display(),
            file("key.pem").display(),
            file("cert.pem").display(),
            dh.display(),
            file("acl.conf").display(),
        );
        for (host, address) in peers {
            let _ = writeln!(
                conf,
                "ConnectPeer = \"{host}\" {{ ConnectTo = \"{}\"; Port = {}; No_TLS; No_SCTP; }};",
                address.ip(),
                address.port()
            );
        }
        std::fs::write(file("fd.conf"), conf).unwrap();
        let log = std::fs::File::create(file("log")).unwrap();
        let child = Command::new("freeDiameterd")
            .arg("-c")
            .arg(file("fd.conf"))
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut running = Self {
            child,
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            _folder: folder,
        };
        while tokio::net::TcpStream::connect(running.address).await.is_err() {
            if let Some(status) = running.child.try_wait().unwrap() {
                let log = std::fs::read_to_string(running._folder.path().join("log")).unwrap();
                panic!("freeDiameterd ended with {status}:\n{log}");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Some(running)
    }

    /// Asks it to leave in order.
    fn terminate(&self) {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &pid])
                .status()
                .unwrap()
                .success()
        );
    }
}

impl Drop for FreeDiameter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

fn server() -> (Endpoint<Hss>, SocketAddr) {
    let endpoint = Endpoint::new(config(HSS, APPLICATIONS), Hss::default(), None, 1);
    let address = listen(endpoint.node(), Security::None);
    (endpoint, address)
}

fn client(watchdog: Duration) -> (Endpoint<Hss>, impl Fn(SocketAddr) -> PeerConfig) {
    let endpoint = Endpoint::new(config(MME, APPLICATIONS), Hss::default(), None, 2);
    let peer = move |address| {
        let mut peer = PeerConfig::connect(FD, [address]);
        peer.settings.watchdog = watchdog;
        peer
    };
    (endpoint, peer)
}

/// An AA-Request of Rx to this realm.
fn aar(n: usize) -> MessageMut {
    let mut builder = MessageBuilder::request(known::command::AA, application::RX);
    builder
        .put(known::SESSION_ID, &format!("{MME};2;{n}"))
        .put(known::AUTH_APPLICATION_ID, application::RX)
        .put(known::ORIGIN_HOST, MME)
        .put(known::ORIGIN_REALM, REALM)
        .put(known::DESTINATION_REALM, REALM)
        .put(known::USER_NAME, "rx")
        .put(known::FRAMED_IP_ADDRESS, &[10, 0, 0, 1]);
    builder.finish().unwrap()
}

async fn ask_both(client: &Endpoint<Hss>) {
    for n in 0..20 {
        let user = format!("{n:015}");
        let to_fd = SendOptions {
            deadline: Duration::from_secs(20),
            failover: false,
        };
        let answer = client
            .request(To::Peer(client_peer(client)), ulr(MME, &user), to_fd)
            .await
            .unwrap();
        assert_eq!(answer.require(known::RESULT_CODE).unwrap(), 2001);
        assert_eq!(answer.require(known::ORIGIN_HOST).unwrap(), HSS);
        assert_eq!(answer.require(known::USER_NAME).unwrap(), user);
        let answer = client
            .request(To::Peer(client_peer(client)), aar(n), to_fd)
            .await
            .unwrap();
        assert_eq!(answer.require(known::RESULT_CODE).unwrap(), 2001);
        assert_eq!(
            (answer.command(), answer.application()),
            (known::command::AA, application::RX)
        );
    }
}

fn client_peer(client: &Endpoint<Hss>) -> &'static str {
    if client.node().peer(FD).is_some() {
        FD
    } else {
        "relay.example"
    }
}

#[test]
fn capabilities_watchdog_and_disconnect_as_client() {
    run(async {
        let Some(fd) = FreeDiameter::start(&[]).await else {
            return;
        };
        let (client, peer) = client(Duration::from_millis(300));
        let id = client.node().add_peer(peer(fd.address)).unwrap();
        client.available(FD).await;
        let up = client.node().open_connection(id).unwrap();
        assert!(up.peer().unwrap().remote.is_relay());
        // Ten of our watchdogs, each answered in time, or the peer would be suspect.
        let answered = up.figures().messages_in.get();
        until(|| up.figures().messages_in.get() >= answered + 10).await;
        assert_eq!(up.health(), Health::Okay);
        client.node().disconnect(id, disconnect_cause::REBOOTING);
        until(|| client.node().peers()[0].state == State::Closed).await;
        until(|| client.node().connections().is_empty()).await;
        client.node().connect(id);
        client.available(FD).await;
    });
}

#[test]
fn capabilities_watchdog_and_disconnect_as_server() {
    run(async {
        let node = Node::new(config(HSS, APPLICATIONS), Relay::default(), None, 1);
        let address = listen(&node, Security::None);
        let Some(fd) = FreeDiameter::start(&[(HSS, address)]).await else {
            return;
        };
        let open = || node.peer(FD).and_then(|peer| node.open_connection(peer));
        until(|| open().is_some()).await;
        let connection = open().unwrap();
        // Its watchdogs, which we answer, else it would leave us after two.
        let seen = connection.figures().messages_in.get();
        until(|| connection.figures().messages_in.get() >= seen + 2).await;
        assert!(connection.is_available());
        fd.terminate();
        until(|| !connection.is_open()).await;
        assert_eq!(
            node.app().down.borrow()[..],
            [DownReason::PeerSaid(disconnect_cause::REBOOTING)]
        );
        until(|| node.connections().is_empty()).await;
    });
}

#[test]
fn both_connect_to_one_another() {
    run(async {
        let (server, address) = server();
        let port = free_port();
        let fd_address = SocketAddr::from(([127, 0, 0, 1], port));
        server
            .node()
            .add_peer(PeerConfig::connect(FD, [fd_address]))
            .unwrap();
        let Some(_fd) = FreeDiameter::start_on(port, &[(HSS, address)]).await else {
            return;
        };
        server.available(FD).await;
        // Whoever won the election: one connection, and it lasts.
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(server.node().connections().len(), 1);
        assert!(server.node().connections()[0].is_available());
    });
}

#[test]
fn s6a_and_rx_through_it_to_us() {
    run(async {
        let (server, address) = server();
        let Some(fd) = FreeDiameter::start(&[(HSS, address)]).await else {
            return;
        };
        server.available(FD).await;
        let (client, peer) = client(FD_WATCHDOG);
        client.node().add_peer(peer(fd.address)).unwrap();
        client.available(FD).await;
        ask_both(&client).await;
    });
}

fn relay_config() -> NodeConfig {
    config("relay.example", &[ApplicationId::RELAY])
}

#[test]
fn s6a_and_rx_with_it_as_our_next_hop() {
    run(async {
        let (server, address) = server();
        let Some(fd) = FreeDiameter::start(&[(HSS, address)]).await else {
            return;
        };
        server.available(FD).await;
        // The relay's only way on is freeDiameter; its name decides, see Relay::target.
        let relay = Node::new(relay_config(), Relay::towards(FD), None, 3);
        let relay_address = listen(&relay, Security::None);
        relay.add_peer(PeerConfig::connect(FD, [fd.address])).unwrap();
        let (client, _) = client(FD_WATCHDOG);
        client
            .node()
            .add_peer(PeerConfig::connect("relay.example", [relay_address]))
            .unwrap();
        client.available("relay.example").await;
        let peer = relay.peer(FD).unwrap();
        until(|| {
            relay
                .open_connection(peer)
                .is_some_and(|connection| connection.is_available())
        })
        .await;
        ask_both(&client).await;
    });
}

#[test]
fn s6a_and_rx_with_it_as_our_previous_hop() {
    run(async {
        let (server, hss_address) = server();
        let relay = Node::new(relay_config(), Relay::towards("hss"), None, 3);
        let relay_address = listen(&relay, Security::None);
        relay.add_peer(PeerConfig::connect(HSS, [hss_address])).unwrap();
        server.available("relay.example").await;
        // To freeDiameter, the relay is the peer that a Destination-Host of its name leads to; requests
        // without one go to any peer that relays.
        let Some(fd) = FreeDiameter::start(&[("relay.example", relay_address)]).await else {
            return;
        };
        let peer = || relay.peer(FD).and_then(|peer| relay.open_connection(peer));
        until(|| peer().is_some()).await;
        let (client, config) = client(FD_WATCHDOG);
        client.node().add_peer(config(fd.address)).unwrap();
        client.available(FD).await;
        ask_both(&client).await;
    });
}
