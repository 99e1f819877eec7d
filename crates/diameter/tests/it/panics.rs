//! An application that panics: the connection concerned is closed and counted, the other peers are served.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use diameter::proto::known::{self, command};
use diameter::proto::peer::{DownReason, Health};
use diameter::proto::{Fault, MessageBuilder, MessageMut, Origin, ResultCode};
use diameter::{Application, Connection, Forward, Node, NodeEvent, PeerUp, Security, Unanswered};
use testpeer::diameter::Peer;

use crate::support::{REALM, S6A, config, listen, run, ulr, until};

/// An application that answers requests, or panics where the peer's name or the User-Name says so.
#[derive(Debug, Default)]
struct Fragile {
    panics: Cell<usize>,
    /// A peer that requests for `forward` go to.
    server: RefCell<Option<Rc<Connection<()>>>>,
    unanswered: Cell<usize>,
}

fn is_named(connection: &Connection<()>, name: &str) -> bool {
    connection
        .peer()
        .is_some_and(|up| up.remote.origin.host.starts_with(name))
}

impl Application for Fragile {
    type Context = ();
    type State = ();

    fn peer_up(&self, _: &Node<Self>, connection: &Rc<Connection<()>>, peer: &PeerUp) {
        assert!(!peer.remote.origin.host.starts_with("up"), "on purpose");
        if peer.remote.origin.host.starts_with("server") {
            self.server.replace(Some(connection.clone()));
        }
    }

    fn peer_down(&self, _: &Node<Self>, connection: &Rc<Connection<()>>, _: DownReason) {
        assert!(!is_named(connection, "down"), "on purpose");
    }

    fn peer_health(&self, _: &Node<Self>, connection: &Rc<Connection<()>>, _: Health) {
        assert!(!is_named(connection, "health"), "on purpose");
    }

    fn request(&self, node: &Node<Self>, from: &Rc<Connection<()>>, message: MessageMut) {
        let user = message.get(known::USER_NAME).unwrap().unwrap_or_default();
        assert_ne!(user, "panic", "on purpose");
        if user == "forward" {
            let server = self.server.borrow().clone().expect("a server");
            let how = Forward {
                deadline: node.now() + Duration::from_secs(60),
                append: from.route_record(),
                keep: false,
            };
            assert!(node.forward(&server, message, how, ()).is_ok());
            return;
        }
        let fault = Fault::new(ResultCode::UNABLE_TO_DELIVER, "as always");
        let answer = MessageBuilder::error_answer(&message, &Origin::new("fragile.example", REALM), &fault);
        node.answer(from, answer, message.hop_by_hop());
    }

    fn answer(&self, _: &Node<Self>, _: &Rc<Connection<()>>, (): (), _: MessageMut) {}

    fn unanswered(&self, _: &Node<Self>, _: Unanswered<(), ()>) {
        self.unanswered.set(self.unanswered.get() + 1);
        panic!("on purpose");
    }

    fn event(&self, _: &Node<Self>, event: NodeEvent<'_>) {
        if matches!(event, NodeEvent::Panicked { .. }) {
            self.panics.set(self.panics.get() + 1);
        }
    }
}

fn fragile() -> (Node<Fragile>, SocketAddr) {
    let node = Node::new(config("fragile.example", S6A), Fragile::default(), None, 1);
    let address = listen(&node, Security::None);
    (node, address)
}

async fn connected(address: SocketAddr, host: &str) -> Peer {
    let mut peer = Peer::connect(address).await;
    peer.capabilities(host, S6A).await;
    peer
}

async fn assert_served(peer: &mut Peer) {
    peer.send(ulr("good.example", "1").as_bytes()).await;
    peer.expect_result(command::UPDATE_LOCATION, ResultCode::UNABLE_TO_DELIVER)
        .await;
}

#[test]
fn a_panic_closes_the_connection_of_the_request_alone() {
    run(async {
        let (node, address) = fragile();
        let mut good = connected(address, "good.example").await;
        let mut bad = connected(address, "bad.example").await;
        bad.send(ulr("bad.example", "panic").as_bytes()).await;
        bad.expect_close().await;
        until(|| node.connections().len() == 1).await;
        assert_eq!(node.app().panics.get(), 1);
        assert_served(&mut good).await;
        // The peer may connect again.
        let mut bad = connected(address, "bad.example").await;
        assert_served(&mut bad).await;
    });
}

/// Also the changes of peers that follow the panic are reported, in this node and of other peers.
#[test]
fn a_panic_about_a_change_of_a_peer_stops_no_other_change() {
    run(async {
        let (node, address) = fragile();
        let mut good = connected(address, "good.example").await;
        for host in ["up.example", "health.example"] {
            let mut bad = Peer::connect(address).await;
            bad.send_cer(host, S6A).await;
            while bad.next().await.is_some() {}
            until(|| node.connections().len() == 1).await;
            assert_served(&mut good).await;
        }
        let bad = connected(address, "down.example").await;
        bad.break_off();
        until(|| node.connections().len() == 1).await;
        assert!(node.app().panics.get() >= 3);
        assert_served(&mut connected(address, "later.example").await).await;
        assert_served(&mut good).await;
    });
}

#[test]
fn a_panic_about_one_lost_request_leaves_no_other_pending() {
    run(async {
        let (node, address) = fragile();
        let mut server = connected(address, "server.example").await;
        let mut good = connected(address, "good.example").await;
        for _ in 0..3 {
            good.send(ulr("good.example", "forward").as_bytes()).await;
            server.expect(command::UPDATE_LOCATION).await;
        }
        assert_eq!(node.pending(), 3);
        server.break_off();
        until(|| node.connections().len() == 1).await;
        assert_eq!(
            (
                node.pending(),
                node.app().unanswered.get(),
                node.app().panics.get()
            ),
            (0, 3, 3)
        );
        assert_served(&mut good).await;
    });
}
