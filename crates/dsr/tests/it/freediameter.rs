//! Real freeDiameter processes around the router: as client side, server side and next hop.

use std::net::SocketAddr;

use diameter::PeerConfig;
use diameter::endpoint::{Endpoint, Request, SendOptions, Service, To};
use diameter::proto::known::{self, application, command};
use diameter::proto::peer::Capabilities;
use diameter::proto::{MessageBuilder, MessageMut, ResultCode};
use diameter::{BoundListener, DynamicPeers, NodeConfig, Security, Transport};
use std::rc::Rc;
use std::time::Duration;
use testpeer::freediameter::{FreeDiameter, Setup};

use crate::support::{APPLICATIONS, DSR, MME, REALM, available, config, one_list, routing, run, ulr};

const FD: &str = "fd.example";
const HSS: &str = "hss.example";

/// Answers every request with success.
struct Hss;

impl Service for Hss {
    async fn call(self: Rc<Self>, request: Request) -> MessageMut {
        let mut answer = request.answer(ResultCode::SUCCESS);
        answer.maybe(known::USER_NAME, request.message.get(known::USER_NAME).unwrap());
        answer.finish().unwrap()
    }
}

fn endpoint(host: &str) -> (Endpoint<Hss>, SocketAddr) {
    let local = Capabilities::new(host, REALM).with_applications(APPLICATIONS.iter().copied());
    let node = NodeConfig {
        dynamic: vec![DynamicPeers::default()],
        ..NodeConfig::new(local)
    };
    let endpoint = Endpoint::new(node, Hss, None, 7);
    let listener = BoundListener::bind("127.0.0.1:0".parse().unwrap(), Transport::Tcp).unwrap();
    let address = listener.address();
    endpoint.node().listen(listener, Security::None).unwrap();
    (endpoint, address)
}

async fn freediameter(peers: &[(&str, SocketAddr)]) -> Option<FreeDiameter> {
    FreeDiameter::start(Setup {
        identity: FD,
        realm: "fd.epc.example",
        port: 0,
        peers,
    })
    .await
}

/// An AA-Request of Rx.
fn aar(n: usize) -> MessageMut {
    let mut builder = MessageBuilder::request(command::AA, application::RX);
    builder
        .put(known::SESSION_ID, &format!("{MME};2;{n}"))
        .put(known::AUTH_APPLICATION_ID, application::RX)
        .put(known::ORIGIN_HOST, MME)
        .put(known::ORIGIN_REALM, REALM)
        .put(known::DESTINATION_REALM, REALM)
        .put(known::FRAMED_IP_ADDRESS, &[10, 0, 0, 1]);
    builder.finish().unwrap()
}

/// Asks through `next` on S6a and Rx; the HSS answers.
async fn ask(client: &Endpoint<Hss>, next: &str) {
    let options = SendOptions {
        deadline: Duration::from_secs(20),
        failover: false,
    };
    for n in 0..20 {
        let user = format!("{n:015}");
        let answer = client.request(To::Peer(next), ulr(&user), options).await.unwrap();
        assert_eq!(answer.require(known::RESULT_CODE).unwrap(), 2001);
        assert_eq!(answer.require(known::ORIGIN_HOST).unwrap(), HSS);
        assert_eq!(answer.require(known::USER_NAME).unwrap(), user);
        let answer = client.request(To::Peer(next), aar(n), options).await.unwrap();
        assert_eq!(answer.require(known::RESULT_CODE).unwrap(), 2001);
    }
}

fn peer(host: &str, address: SocketAddr) -> dsr::config::Peer {
    dsr::config::Peer {
        host: host.to_owned(),
        addresses: vec![address],
        ..dsr::config::Peer::default()
    }
}

#[test]
fn it_is_the_next_hop() {
    run(async {
        let (hss, hss_address) = endpoint(HSS);
        let Some(fd) = freediameter(&[(HSS, hss_address)]).await else {
            return;
        };
        hss.available(FD).await;
        let mut config = config();
        config.peers = vec![peer(FD, fd.address())];
        // What names its destination goes there; only the rest goes by the list.
        let named = "when: {destinationHost: {present: false}}, action";
        routing(&mut config, &one_list(&[FD]).replace("action", named));
        let dsr = dsr::start(config).unwrap();
        available(&dsr, FD).await;
        let (mme, _) = endpoint(MME);
        mme.node()
            .add_peer(PeerConfig::connect(DSR, [dsr.addresses()[0]]))
            .unwrap();
        mme.available(DSR).await;
        ask(&mme, DSR).await;
        // And the other way: a request of the server, through freeDiameter and the router, to the client.
        let mut builder = MessageBuilder::request(command::CANCEL_LOCATION, application::S6A);
        builder
            .put(known::SESSION_ID, "hss.example;1;1")
            .put(known::AUTH_SESSION_STATE, 1)
            .put(known::ORIGIN_HOST, HSS)
            .put(known::ORIGIN_REALM, REALM)
            .put(known::DESTINATION_HOST, MME)
            .put(known::DESTINATION_REALM, REALM)
            .put(known::USER_NAME, "001010000000001");
        let options = SendOptions {
            deadline: Duration::from_secs(20),
            failover: false,
        };
        let answer = hss
            .request(To::Peer(FD), builder.finish().unwrap(), options)
            .await
            .unwrap();
        assert_eq!(answer.require(known::ORIGIN_HOST).unwrap(), MME);
        dsr.stop().unwrap();
    });
}

#[test]
fn it_is_the_previous_hop() {
    run(async {
        let (hss, hss_address) = endpoint(HSS);
        let mut config = config();
        config.peers = vec![peer(HSS, hss_address)];
        routing(&mut config, &one_list(&[HSS]));
        let dsr = dsr::start(config).unwrap();
        available(&dsr, HSS).await;
        hss.available(DSR).await;
        let Some(fd) = freediameter(&[(DSR, dsr.addresses()[0])]).await else {
            return;
        };
        available(&dsr, FD).await;
        let (mme, _) = endpoint(MME);
        mme.node()
            .add_peer(PeerConfig::connect(FD, [fd.address()]))
            .unwrap();
        mme.available(FD).await;
        ask(&mme, FD).await;
        // It leaves in order, and is forgotten.
        fd.terminate();
        crate::support::until(|| dsr.hops().get(FD.as_bytes()).is_none()).await;
        dsr.stop().unwrap();
    });
}
