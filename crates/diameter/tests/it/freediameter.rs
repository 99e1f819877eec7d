//! Real freeDiameter processes as client, server, next hop and previous hop (Debian: `freediameterd`,
//! `freediameter-extensions`). Where the program is missing, each test says so and passes.

use std::net::SocketAddr;
use std::time::Duration;

use diameter::endpoint::{Endpoint, SendOptions, To};
use diameter::proto::known::{self, application, disconnect_cause};
use diameter::proto::peer::{ApplicationId, DownReason, Health, State};
use diameter::proto::{MessageBuilder, MessageMut};
use diameter::{Node, NodeConfig, PeerConfig, Security};
use testpeer::freediameter::{FreeDiameter, Setup, WATCHDOG};

use crate::support::{Hss, REALM, Relay, config, listen, run, ulr, until};

const FD: &str = "fd.example";
const HSS: &str = "hss.example";
const MME: &str = "mme.example";
const APPLICATIONS: &[ApplicationId] = &[
    ApplicationId::tgpp(application::S6A),
    ApplicationId::tgpp(application::RX),
];
async fn start(peers: &[(&str, SocketAddr)]) -> Option<FreeDiameter> {
    start_on(0, peers).await
}

async fn start_on(port: u16, peers: &[(&str, SocketAddr)]) -> Option<FreeDiameter> {
    let realm = &format!("fd.{REALM}");
    FreeDiameter::start(Setup {
        identity: FD,
        realm,
        port,
        peers,
    })
    .await
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
        let Some(fd) = start(&[]).await else {
            return;
        };
        let (client, peer) = client(Duration::from_millis(300));
        let id = client.node().add_peer(peer(fd.address())).unwrap();
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
        let Some(fd) = start(&[(HSS, address)]).await else {
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
        let port = free_ports::port().unwrap();
        let fd_address = SocketAddr::from(([127, 0, 0, 1], port));
        server
            .node()
            .add_peer(PeerConfig::connect(FD, [fd_address]))
            .unwrap();
        let Some(_fd) = start_on(port, &[(HSS, address)]).await else {
            return;
        };
        server.available(FD).await;
        // Whichever side won the election: one connection, and it lasts.
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(server.node().connections().len(), 1);
        assert!(server.node().connections()[0].is_available());
    });
}

#[test]
fn s6a_and_rx_through_it_to_us() {
    run(async {
        let (server, address) = server();
        let Some(fd) = start(&[(HSS, address)]).await else {
            return;
        };
        server.available(FD).await;
        let (client, peer) = client(WATCHDOG);
        client.node().add_peer(peer(fd.address())).unwrap();
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
        let Some(fd) = start(&[(HSS, address)]).await else {
            return;
        };
        server.available(FD).await;
        // The relay's only way on is freeDiameter; its name decides, see Relay::target.
        let relay = Node::new(relay_config(), Relay::towards(FD), None, 3);
        let relay_address = listen(&relay, Security::None);
        relay.add_peer(PeerConfig::connect(FD, [fd.address()])).unwrap();
        let (client, _) = client(WATCHDOG);
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
        let Some(fd) = start(&[("relay.example", relay_address)]).await else {
            return;
        };
        let peer = || relay.peer(FD).and_then(|peer| relay.open_connection(peer));
        until(|| peer().is_some()).await;
        let (client, config) = client(WATCHDOG);
        client.node().add_peer(config(fd.address())).unwrap();
        client.available(FD).await;
        ask_both(&client).await;
    });
}
