//! Diameter Rx through the BSF, with real Diameter peers on both sides.

mod ending;
mod relays;
mod secured;
mod sessions;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use bsf::Event;
use bsf::config::{NoBinding, RxMode, RxPeer, RxTransport};
use diameter::endpoint::{Endpoint, Request, SendOptions, Service, To};
use diameter::proto::known::{self, application, command};
use diameter::proto::peer::{ApplicationId, Capabilities};
use diameter::proto::{Message, MessageBuilder, MessageMut, ResultCode};
use diameter::{BoundListener, NodeConfig, PeerConfig, Security, Transport};
use serde_json::json;
use testpeer::freediameter::{FreeDiameter, Setup};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{Bsf, binding, local, start};

pub const BSF: &str = "bsf.example.org";
pub const AF: &str = "af.example";
pub const PCF: &str = "pcf1.example.org";

/// Answers every request with success; remembers command and Destination-Host.
#[derive(Default)]
pub struct Peer {
    pub seen: RefCell<Vec<(u32, Option<String>)>>,
}

impl Service for Peer {
    async fn call(self: Rc<Self>, request: Request) -> MessageMut {
        let host = request.message.get(known::DESTINATION_HOST).ok().flatten();
        let seen = (request.message.command(), host.map(str::to_owned));
        self.seen.borrow_mut().push(seen);
        let mut answer = request.answer(ResultCode::SUCCESS);
        // As the request: whether its session has a state (RFC 6733 §8.11).
        if let Ok(Some(state)) = request.message.get(known::AUTH_SESSION_STATE) {
            answer.put(known::AUTH_SESSION_STATE, state);
        }
        answer.finish().unwrap()
    }
}

pub fn peer(host: &str) -> (Endpoint<Peer>, SocketAddr) {
    let local =
        Capabilities::new(host, "example.org").with_applications([ApplicationId::tgpp(application::RX)]);
    let config = NodeConfig {
        dynamic: vec![diameter::DynamicPeers::default()],
        ..NodeConfig::new(local)
    };
    let endpoint = Endpoint::new(config, Peer::default(), None, 1);
    let listener = BoundListener::bind("127.0.0.1:0".parse().unwrap(), Transport::Tcp).unwrap();
    let address = listener.address();
    endpoint.node().listen(listener, Security::None).unwrap();
    (endpoint, address)
}

pub async fn connect(af: &Endpoint<Peer>, bsf: &Bsf) {
    let address = bsf.running.as_ref().unwrap().diameter_addresses()[0];
    af.node().add_peer(PeerConfig::connect(BSF, [address])).unwrap();
    af.available(BSF).await;
}

pub fn begun(code: u32, session: &str, origin: &str) -> MessageBuilder {
    let mut builder = MessageBuilder::request(code, application::RX);
    builder
        .put(known::SESSION_ID, session)
        .put(known::AUTH_APPLICATION_ID, application::RX)
        .put(known::ORIGIN_HOST, origin)
        .put(known::ORIGIN_REALM, "example.org")
        .put(known::DESTINATION_REALM, "example.org");
    builder
}

pub fn aar(session: &str, address: [u8; 4]) -> MessageBuilder {
    let mut builder = begun(command::AA, session, AF);
    builder.put(known::FRAMED_IP_ADDRESS, &address);
    builder
}

pub async fn ask(from: &Endpoint<Peer>, to: &str, message: MessageBuilder) -> Message {
    let options = SendOptions {
        deadline: Duration::from_secs(20),
        failover: false,
    };
    from.request(To::Peer(to), message.finish().unwrap(), options)
        .await
        .unwrap()
}

pub fn result(answer: &Message) -> u32 {
    answer.get(known::RESULT_CODE).unwrap().unwrap_or_default()
}

/// A BSF that is connected to a PCF, the PCF, and an AF that is connected to the BSF.
async fn connected() -> (Bsf, Endpoint<Peer>, Endpoint<Peer>) {
    let (pcf, address) = peer(PCF);
    let bsf = start(|config| config.rx.peers = vec![rx_peer(PCF, address)]);
    let (af, _) = peer(AF);
    connect(&af, &bsf).await;
    pcf.available(BSF).await;
    (bsf, pcf, af)
}

pub fn rx_peer(host: &str, address: SocketAddr) -> RxPeer {
    RxPeer {
        host: host.to_owned(),
        addresses: vec![address],
        transport: RxTransport::Tcp,
        names: Vec::new(),
    }
}
