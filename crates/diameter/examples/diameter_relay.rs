//! A bare relay on one worker, to measure the driver: `diameter_relay LISTEN HOST=ADDRESS…`.
//!
//! Requests from anywhere go to the listed peers in turn; answers go back. Prints its figures when its
//! standard input ends.

use std::cell::{Cell, RefCell};
use std::io::Write;
use std::rc::Rc;
use std::time::Duration;

use diameter::proto::peer::{ApplicationId, Capabilities, DownReason, Health};
use diameter::proto::{Fault, MessageBuilder, MessageMut, Origin, ResultCode, Routing};
use diameter::{
    Application, BoundListener, Connection, ConnectionId, DynamicPeers, Forward, Node, NodeConfig,
    PeerConfig, PeerUp, Security, Transport, Unanswered,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const HOST: &str = "relay.example";

struct Relay {
    servers: RefCell<Vec<Rc<Connection<()>>>>,
    next: Cell<usize>,
}

struct Transit {
    from: ConnectionId,
    hop_by_hop: u32,
}

impl Application for Relay {
    type Context = Transit;
    type State = ();

    fn peer_up(&self, _: &Node<Self>, _: &Rc<Connection<()>>, _: &PeerUp) {}

    fn peer_down(&self, _: &Node<Self>, connection: &Rc<Connection<()>>, _: DownReason) {
        self.servers
            .borrow_mut()
            .retain(|server| server.id() != connection.id());
    }

    fn peer_health(&self, _: &Node<Self>, connection: &Rc<Connection<()>>, health: Health) {
        if health == Health::Okay && connection.peer().is_some_and(|up| up.configured) {
            self.servers.borrow_mut().push(connection.clone());
        }
    }

    fn request(&self, node: &Node<Self>, from: &Rc<Connection<()>>, message: MessageMut) {
        let fault = match Routing::scan(&message, HOST.as_bytes()) {
            Ok(routing) if routing.loops => Some(Fault::new(ResultCode::LOOP_DETECTED, "been here")),
            Ok(_) => None,
            Err(error) => Some(error.into()),
        };
        let hop_by_hop = message.hop_by_hop();
        let turn = self.next.get();
        self.next.set(turn.wrapping_add(1));
        let servers = self.servers.borrow();
        let server = servers.get(turn % servers.len().max(1));
        if let (None, Some(server)) = (&fault, server) {
            let how = Forward {
                deadline: node.now() + Duration::from_secs(5),
                append: from.route_record(),
                keep: true,
            };
            let transit = Transit {
                from: from.id(),
                hop_by_hop,
            };
            let Err(refused) = node.forward(server, message, how, transit) else {
                return;
            };
            let fault = Fault::new(ResultCode::TOO_BUSY, refused.why.to_string());
            let answer =
                MessageBuilder::error_answer(&refused.message, &Origin::new(HOST, "example"), &fault);
            node.answer(from, answer, hop_by_hop);
            return;
        }
        let fault = fault.unwrap_or_else(|| Fault::new(ResultCode::UNABLE_TO_DELIVER, "no server"));
        let answer = MessageBuilder::error_answer(&message, &Origin::new(HOST, "example"), &fault);
        node.answer(from, answer, hop_by_hop);
    }

    fn answer(&self, node: &Node<Self>, _: &Rc<Connection<()>>, transit: Transit, message: MessageMut) {
        if let Some(client) = node.connection(transit.from) {
            node.answer(&client, message, transit.hop_by_hop);
        }
    }

    fn unanswered(&self, _: &Node<Self>, _: Unanswered<Transit, ()>) {}
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let listen = arguments
        .next()
        .ok_or("usage: diameter_relay LISTEN HOST=ADDRESS…")?
        .parse()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let local = Capabilities::new(HOST, "example").with_applications([ApplicationId::RELAY]);
        let config = NodeConfig {
            dynamic: vec![DynamicPeers::default()],
            ..NodeConfig::new(local)
        };
        let relay = Relay {
            servers: RefCell::default(),
            next: Cell::new(0),
        };
        let node = Node::new(config, relay, None, u64::from(std::process::id()));
        let listener = BoundListener::bind(listen, Transport::Tcp)?;
        writeln!(std::io::stdout(), "listening on {}", listener.address())?;
        node.listen(listener, Security::None)?;
        for peer in arguments {
            let (host, address) = peer.split_once('=').ok_or("a peer is HOST=ADDRESS")?;
            node.add_peer(PeerConfig::connect(host, [address.parse()?]))?;
        }
        let mut line = String::new();
        tokio::task::spawn_blocking(move || std::io::stdin().read_line(&mut line)).await??;
        for connection in node.connections() {
            let figures = connection.figures();
            writeln!(
                std::io::stdout(),
                "{connection:?}: {} messages in {} reads, {} out in {} writes, unmatched {}, refused {}",
                figures.messages_in.get(),
                figures.reads.get(),
                figures.messages_out.get(),
                figures.writes.get(),
                figures.answers_unmatched.get(),
                figures.queue_full.get(),
            )?;
        }
        Ok(())
    })
}
