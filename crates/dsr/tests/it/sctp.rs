//! The router over SCTP, on several workers and at several addresses; where the kernel has none, in one that the test boots.

use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use diameter::endpoint::{ClientOnly, Endpoint, Request, SendOptions, Service, To};
use diameter::proto::known;
use diameter::proto::peer::Capabilities;
use diameter::proto::{MessageMut, ResultCode};
use diameter::{BoundListener, DynamicPeers, NodeConfig, PeerConfig, Security, Transport};
use dsr::config::{Peer, TransportKind};
use dsr::{Event, Running};

use crate::support::{APPLICATIONS, DSR, REALM, available, config, one_list, routing, run, ulr};

/// Two networks; a side has an address in each.
const ROUTER: [&str; 2] = ["10.78.1.1", "10.78.2.1"];
const SERVER: [&str; 2] = ["10.78.1.2", "10.78.2.2"];
const CLIENT: [&str; 2] = ["10.78.1.3", "10.78.2.3"];

struct Success;

impl Service for Success {
    async fn call(self: Rc<Self>, request: Request) -> MessageMut {
        request.answer(ResultCode::SUCCESS).finish().unwrap()
    }
}

fn ips(addresses: [&str; 2]) -> [IpAddr; 2] {
    addresses.map(|address| address.parse().unwrap())
}

fn at(addresses: [&str; 2], port: u16) -> Vec<SocketAddr> {
    ips(addresses).map(|ip| SocketAddr::new(ip, port)).to_vec()
}

fn ip(arguments: &str) {
    let done = Command::new("ip").args(arguments.split(' ')).status().unwrap();
    assert!(done.success(), "ip {arguments}");
}

fn node(host: &str) -> NodeConfig {
    NodeConfig {
        dynamic: vec![DynamicPeers::default()],
        ..NodeConfig::new(Capabilities::new(host, REALM).with_applications(APPLICATIONS.iter().copied()))
    }
}

/// An HSS to which the router connects.
fn server(host: &str) -> (Endpoint<Success>, Peer) {
    let server = Endpoint::new(node(host), Success, None, 1);
    let [first, second] = ips(SERVER);
    let listener = BoundListener::bind_all(SocketAddr::new(first, 0), &[second], Transport::Sctp).unwrap();
    let port = listener.address().port();
    server.node().listen(listener, Security::None).unwrap();
    let [bind, other] = ips(ROUTER);
    let peer = Peer {
        host: host.to_owned(),
        addresses: at(SERVER, port),
        bind: Some(bind),
        bind_also: vec![other],
        transport: TransportKind::Sctp,
        ..Peer::default()
    };
    (server, peer)
}

async fn client(dsr: &Running, host: &str) -> Endpoint<ClientOnly> {
    let client = Endpoint::new(node(host), ClientOnly, None, 2);
    let mut peer = PeerConfig::connect(DSR, at(ROUTER, dsr.addresses()[0].port()));
    (peer.transport, peer.bind) = (Transport::Sctp, ips(CLIENT).to_vec());
    client.node().add_peer(peer).unwrap();
    available(dsr, host).await;
    client
}

async fn ask_all(clients: &[Endpoint<ClientOnly>]) {
    for client in clients {
        for user in 0..20 {
            let patient = SendOptions {
                deadline: Duration::from_secs(60),
                ..SendOptions::default()
            };
            let request = ulr(&format!("00101{user:010}"));
            let answer = client.request(To::Peer(DSR), request, patient).await.unwrap();
            assert_eq!(answer.require(known::RESULT_CODE).unwrap(), 2001);
        }
    }
}

#[test]
fn several_workers_at_several_addresses_outlive_one_of_them() {
    if !testpeer::sctp::is_here("sctp::several_workers_at_several_addresses_outlive_one_of_them") {
        return;
    }
    if !testpeer::sctp::is_booted() {
        return testpeer::skip::unavailable("addresses are added to a kernel of the test's own only");
    }
    for address in [ROUTER, SERVER, CLIENT].concat() {
        ip(&format!("addr add {address}/32 dev lo"));
    }
    run(async {
        let hosts = ["hss1.example", "hss2.example"];
        let (_servers, peers): (Vec<_>, Vec<_>) = hosts.into_iter().map(server).unzip();
        let mut config = config();
        config.workers = 2;
        config.peers = peers;
        config.local_nodes[0].transport = TransportKind::Sctp;
        config.local_nodes[0].listen = settings::Listen(at(ROUTER, 0));
        config.dynamic_peers[0].networks = vec!["10.78.0.0/16".parse().unwrap()];
        config.routing.transaction.answer = settings::Period::from_millis(30_000);
        routing(&mut config, &one_list(&hosts));
        let dsr = dsr::start(config).unwrap();
        for host in hosts {
            available(&dsr, host).await;
        }
        let mut clients = Vec::new();
        for n in 0..4 {
            clients.push(client(&dsr, &format!("mme{n}.example")).await);
        }
        ask_all(&clients).await;
        assert!(dsr.count(Event::HandedOver) > 0, "peers live on both workers");
        for side in [ROUTER, SERVER, CLIENT] {
            ip(&format!("addr del {}/32 dev lo", side[0]));
        }
        ask_all(&clients).await;
        for client in &clients {
            assert_eq!(client.node().peers()[0].totals.connections, 1);
        }
        dsr.stop().unwrap();
    });
}
