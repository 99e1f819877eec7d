//! Nodes for tests: an HSS that answers, an MME that sends requests, a relay between them.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use diameter::endpoint::{ClientOnly, Endpoint, Request, Service};
use diameter::proto::known::{self, application, command};
use diameter::proto::peer::{ApplicationId, Capabilities, DownReason, Health};
use diameter::proto::{MessageBuilder, MessageMut, Origin, ResultCode, Routing};
use diameter::{
    Application, BoundListener, Connection, ConnectionId, DynamicPeers, Forward, Node, NodeConfig, PeerUp,
    Security, Transport, Unanswered, UnansweredReason,
};

pub(crate) use testpeer::local as run;

pub(crate) const REALM: &str = "epc.example";

/// A node of this name that serves S6a (or relays) and admits all peers.
pub(crate) fn config(host: &str, applications: &[ApplicationId]) -> NodeConfig {
    let local = Capabilities::new(host, REALM).with_applications(applications.iter().copied());
    NodeConfig {
        dynamic: vec![DynamicPeers::default()],
        ..NodeConfig::new(local)
    }
}

pub(crate) const S6A: &[ApplicationId] = &[ApplicationId::tgpp(application::S6A)];

pub(crate) fn listener() -> BoundListener {
    BoundListener::bind("127.0.0.1:0".parse().unwrap(), Transport::Tcp).unwrap()
}

/// Listens on a port of the system's choice.
pub(crate) fn listen<A: Application>(node: &Node<A>, security: Security) -> SocketAddr {
    let listener = listener();
    let address = listener.address();
    node.listen(listener, security).unwrap();
    address
}

/// Answers every request with success, and counts them by User-Name.
#[derive(Debug, Default)]
pub(crate) struct Hss {
    pub(crate) seen: RefCell<Vec<(String, bool)>>,
    /// Requests with this User-Name are never answered.
    pub(crate) ignore: Option<&'static str>,
    /// Requests that lay unread after a turn of their connection had ended.
    pub(crate) unread: Cell<usize>,
}

impl Service for Hss {
    async fn call(self: Rc<Self>, request: Request) -> MessageMut {
        let user = request
            .message
            .get(known::USER_NAME)
            .unwrap()
            .unwrap_or_default()
            .to_owned();
        let again = request
            .message
            .flags()
            .contains(diameter::proto::CommandFlags::RETRANSMITTED);
        self.seen.borrow_mut().push((user.clone(), again));
        if request.from.unread_since().is_some() {
            self.unread.set(self.unread.get() + 1);
        }
        if self.ignore == Some(&user) {
            std::future::pending::<()>().await;
        }
        let mut answer = request.answer(ResultCode::SUCCESS);
        answer.put(known::USER_NAME, &user);
        answer.finish().unwrap()
    }
}

pub(crate) fn hss(host: &str) -> (Endpoint<Hss>, SocketAddr) {
    let endpoint = Endpoint::new(config(host, S6A), Hss::default(), None, 1);
    let address = listen(endpoint.node(), Security::None);
    (endpoint, address)
}

pub(crate) fn client(host: &str) -> Endpoint<ClientOnly> {
    Endpoint::new(config(host, S6A), ClientOnly, None, 2)
}

/// An Update-Location-Request for this subscriber.
pub(crate) fn ulr(origin: &str, user: &str) -> MessageMut {
    let mut builder = MessageBuilder::request(command::UPDATE_LOCATION, application::S6A);
    builder
        .put(known::SESSION_ID, &format!("{origin};1;{user}"))
        .put(known::AUTH_SESSION_STATE, 1)
        .put(known::ORIGIN_HOST, origin)
        .put(known::ORIGIN_REALM, REALM)
        .put(known::DESTINATION_REALM, REALM)
        .put(known::USER_NAME, user)
        .put(known::RAT_TYPE, 1004)
        .put(known::ULR_FLAGS, 34)
        .put(known::VISITED_PLMN_ID, &[0x00, 0xf1, 0x10]);
    builder.finish().unwrap()
}

/// A relay that sends requests to any peer but their sender, and once more if that fails.
#[derive(Debug, Default)]
pub(crate) struct Relay {
    /// Requests go to peers whose name begins with this.
    towards: Option<&'static str>,
    available: RefCell<Vec<Rc<Connection<()>>>>,
    pub(crate) down: RefCell<Vec<DownReason>>,
}

#[derive(Debug)]
pub(crate) struct Transit {
    from: ConnectionId,
    hop_by_hop: u32,
}

impl Relay {
    pub(crate) fn towards(name: &'static str) -> Self {
        Self {
            towards: Some(name),
            ..Self::default()
        }
    }

    fn target(&self, not: ConnectionId, host: Option<&[u8]>) -> Option<Rc<Connection<()>>> {
        let available = self.available.borrow();
        let named = |connection: &&Rc<Connection<()>>| {
            host.is_some_and(|host| {
                connection
                    .peer()
                    .is_some_and(|up| up.remote.origin.host.as_bytes() == host)
            })
        };
        let other = |connection: &&Rc<Connection<()>>| {
            connection.id() != not
                && connection
                    .peer()
                    .is_some_and(|up| up.remote.origin.host.starts_with(self.towards.unwrap_or("hss")))
        };
        available
            .iter()
            .find(named)
            .or_else(|| available.iter().find(other))
            .cloned()
    }

    fn refuse(node: &Node<Self>, to: &Connection<()>, request: &MessageMut) {
        let fault = diameter::proto::Fault::new(ResultCode::UNABLE_TO_DELIVER, "no route");
        let answer = MessageBuilder::error_answer(request, &Origin::new("relay.example", REALM), &fault);
        node.answer(to, answer, request.hop_by_hop());
    }
}

impl Application for Relay {
    type Context = Transit;
    type State = ();

    fn peer_up(&self, _: &Node<Self>, _: &Rc<Connection<()>>, _: &PeerUp) {}

    fn peer_down(&self, _: &Node<Self>, connection: &Rc<Connection<()>>, reason: DownReason) {
        self.down.borrow_mut().push(reason);
        self.available
            .borrow_mut()
            .retain(|other| other.id() != connection.id());
    }

    fn peer_health(&self, _: &Node<Self>, connection: &Rc<Connection<()>>, health: Health) {
        self.available
            .borrow_mut()
            .retain(|other| other.id() != connection.id());
        if health == Health::Okay {
            self.available.borrow_mut().push(connection.clone());
        }
    }

    fn request(&self, node: &Node<Self>, from: &Rc<Connection<()>>, message: MessageMut) {
        let target = match Routing::scan(&message, b"relay.example") {
            Ok(routing) if !routing.loops => self.target(from.id(), routing.destination_host),
            _ => None,
        };
        let Some(target) = target else {
            return Self::refuse(node, from, &message);
        };
        let transit = Transit {
            from: from.id(),
            hop_by_hop: message.hop_by_hop(),
        };
        let deadline = node.now() + Duration::from_secs(5);
        let how = Forward {
            deadline,
            append: from.route_record(),
            keep: true,
        };
        if let Err(refused) = node.forward(&target, message, how, transit) {
            Self::refuse(node, from, &refused.message);
        }
    }

    fn answer(&self, node: &Node<Self>, _: &Rc<Connection<()>>, transit: Transit, message: MessageMut) {
        if let Some(client) = node.connection(transit.from) {
            node.answer(&client, message, transit.hop_by_hop);
        }
    }

    fn unanswered(&self, node: &Node<Self>, lost: Unanswered<Transit, ()>) {
        let Unanswered {
            context, why, kept, ..
        } = lost;
        if why == UnansweredReason::ConnectionLost
            && let Some(kept) = kept
            && let Some(other) = self.target(context.from, None)
        {
            let deadline = node.now() + Duration::from_secs(5);
            let _ = node.forward_again(&other, kept, deadline, context);
        }
    }
}

pub(crate) fn relay() -> (Node<Relay>, SocketAddr) {
    let node = Node::new(
        config("relay.example", &[ApplicationId::RELAY]),
        Relay::default(),
        None,
        3,
    );
    let address = listen(&node, Security::None);
    (node, address)
}

/// Waits until `done`; the test's own deadline bounds the wait.
pub(crate) async fn until(mut done: impl FnMut() -> bool) {
    while !done() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A client and server of this name.
pub(crate) fn endpoint(host: &str) -> Endpoint<Hss> {
    Endpoint::new(config(host, S6A), Hss::default(), None, 5)
}
