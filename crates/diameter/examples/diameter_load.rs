//! Load for a relay: `diameter_load serve ADDRESS HOST` is an HSS; `diameter_load ask RELAY CONNECTIONS WINDOW SECONDS
//! BYTES [RATE]` is a number of MMEs (CONNECTIONS), each with WINDOW requests of BYTES in flight (or all together
//! sending RATE requests per second), and prints the answers and latencies.

use std::cell::{Cell, RefCell};
use std::io::Write;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use diameter::proto::known::{self, application, command};
use diameter::proto::peer::{ApplicationId, Capabilities, DownReason, Health};
use diameter::proto::{
    AvpFlags, AvpKey, CommandFlags, Message, MessageBuilder, MessageMut, Origin, ResultCode,
};
use diameter::{
    Application, BoundListener, Connection, DynamicPeers, Limits, Node, NodeConfig, PeerConfig, PeerUp,
    Security, Transport, Unanswered,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const S6A: [ApplicationId; 1] = [ApplicationId::tgpp(application::S6A)];

fn config(host: &str) -> NodeConfig {
    let local = Capabilities::new(host, "example").with_applications(S6A);
    // Simulators answer at once, so the figures are those of the relay.
    let limits = Limits {
        gather: Duration::ZERO,
        ..Limits::default()
    };
    NodeConfig {
        limits,
        dynamic: vec![DynamicPeers::default()],
        ..NodeConfig::new(local)
    }
}

fn pad(builder: &mut MessageBuilder, bytes: usize) {
    let so_far = builder.as_bytes().len();
    if bytes > so_far + 12 {
        // An AVP of an unknown vendor: a relay has to forward it unchanged.
        let key = AvpKey {
            vendor: 99_999,
            code: 1,
        };
        builder.put_raw(key, AvpFlags::default(), &vec![0x55; bytes - so_far - 12]);
    }
}

/// Answers everything with an answer of the request's size.
struct Server {
    origin: Origin,
    answer: RefCell<Option<BytesMut>>,
}

impl Application for Server {
    type Context = ();
    type State = ();

    fn peer_up(&self, _: &Node<Self>, _: &Rc<Connection<()>>, _: &PeerUp) {}
    fn peer_down(&self, _: &Node<Self>, _: &Rc<Connection<()>>, _: DownReason) {}

    fn request(&self, node: &Node<Self>, from: &Rc<Connection<()>>, message: MessageMut) {
        let mut template = self.answer.borrow_mut();
        let template = template.get_or_insert_with(|| {
            let mut builder = MessageBuilder::answer(&message);
            builder.result(ResultCode::SUCCESS, &self.origin);
            pad(&mut builder, message.as_bytes().len());
            builder.finish().map(Message::into_bytes).unwrap_or_default()
        });
        let Ok(mut answer) = Message::parse(template.clone()) else {
            return;
        };
        answer.set_end_to_end(message.end_to_end());
        node.answer(from, answer, message.hop_by_hop());
    }

    fn answer(&self, _: &Node<Self>, _: &Rc<Connection<()>>, (): (), _: MessageMut) {}
    fn unanswered(&self, _: &Node<Self>, _: Unanswered<(), ()>) {}
}

/// Sends a request, and the next one after each answer.
struct Client {
    template: BytesMut,
    window: usize,
    up: RefCell<Vec<Rc<Connection<()>>>>,
    sent: Cell<u64>,
    good: Cell<u64>,
    bad: Cell<u64>,
    lost: Cell<u64>,
    times: RefCell<Vec<u32>>,
    closed_loop: bool,
}

impl Client {
    fn ask(&self, node: &Node<Self>, to: &Rc<Connection<()>>, at: Instant) {
        let Ok(mut message) = Message::parse(self.template.clone()) else {
            return;
        };
        message.set_flags(CommandFlags::REQUEST.with(CommandFlags::PROXIABLE));
        self.sent.set(self.sent.get() + 1);
        if node
            .request(to, message, at + Duration::from_secs(5), at)
            .is_err()
        {
            self.lost.set(self.lost.get() + 1);
        }
    }
}

impl Application for Client {
    type Context = Instant;
    type State = ();

    fn peer_up(&self, _: &Node<Self>, _: &Rc<Connection<()>>, _: &PeerUp) {}
    fn peer_down(&self, _: &Node<Self>, _: &Rc<Connection<()>>, _: DownReason) {}

    fn peer_health(&self, node: &Node<Self>, connection: &Rc<Connection<()>>, health: Health) {
        if health == Health::Okay {
            self.up.borrow_mut().push(connection.clone());
            if self.closed_loop {
                for _ in 0..self.window {
                    self.ask(node, connection, Instant::now());
                }
            }
        }
    }

    fn request(&self, _: &Node<Self>, _: &Rc<Connection<()>>, _: MessageMut) {}

    fn answer(&self, node: &Node<Self>, from: &Rc<Connection<()>>, sent: Instant, message: MessageMut) {
        let good = message
            .get(known::RESULT_CODE)
            .is_ok_and(|code| code == Some(2001));
        let counter = if good { &self.good } else { &self.bad };
        counter.set(counter.get() + 1);
        self.times
            .borrow_mut()
            .push((node.now() - sent).as_micros() as u32);
        if self.closed_loop {
            self.ask(node, from, node.now());
        }
    }

    fn unanswered(&self, _: &Node<Self>, _: Unanswered<Instant, ()>) {
        self.lost.set(self.lost.get() + 1);
    }
}

async fn serve(address: &str, host: &str) -> Result<(), Box<dyn std::error::Error>> {
    let server = Server {
        origin: Origin::new(host, "example"),
        answer: RefCell::default(),
    };
    let node = Node::new(config(host), server, None, 1);
    let listener = BoundListener::bind(address.parse()?, Transport::Tcp)?;
    writeln!(std::io::stdout(), "listening on {}", listener.address())?;
    node.listen(listener, Security::None)?;
    std::future::pending().await
}

async fn ask(arguments: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let [relay, connections, window, seconds, bytes, rest @ ..] = arguments else {
        return Err("usage: diameter_load ask RELAY CONNECTIONS WINDOW SECONDS BYTES [RATE]".into());
    };
    let rate: Option<f64> = rest.first().map(|rate| rate.parse()).transpose()?;
    let mut nodes = Vec::new();
    for n in 0..connections.parse::<usize>()? {
        let host = format!("mme{n}.example");
        let mut request = MessageBuilder::request(command::UPDATE_LOCATION, application::S6A);
        request
            .put(known::SESSION_ID, &format!("{host};1;1"))
            .put(known::AUTH_SESSION_STATE, 1)
            .put(known::ORIGIN_HOST, &host)
            .put(known::ORIGIN_REALM, "example")
            .put(known::DESTINATION_REALM, "example")
            .put(known::USER_NAME, "001010000000001")
            .put(known::ULR_FLAGS, 34)
            .put(known::VISITED_PLMN_ID, &[0x00, 0xf1, 0x10]);
        pad(&mut request, bytes.parse()?);
        let client = Client {
            template: request.finish()?.into_bytes(),
            window: window.parse()?,
            up: RefCell::default(),
            sent: Cell::new(0),
            good: Cell::new(0),
            bad: Cell::new(0),
            lost: Cell::new(0),
            times: RefCell::default(),
            closed_loop: rate.is_none(),
        };
        let node = Node::new(config(&host), client, None, n as u64 + 7);
        node.add_peer(PeerConfig::connect("relay.example", [relay.parse()?]))?;
        nodes.push(node);
    }
    let start = Instant::now();
    let duration = Duration::from_secs(seconds.parse()?);
    if let Some(rate) = rate {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let start = Instant::now();
        let mut sent = 0u64;
        while start.elapsed() < duration {
            let due = (start.elapsed().as_secs_f64() * rate) as u64;
            while sent < due {
                let node = &nodes[sent as usize % nodes.len()];
                let to = node.app().up.borrow().first().cloned();
                if let Some(to) = to {
                    node.app()
                        .ask(node, &to, start + Duration::from_secs_f64(sent as f64 / rate));
                }
                sent += 1;
            }
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    } else {
        tokio::time::sleep(duration).await;
    }
    let elapsed = start.elapsed().as_secs_f64();
    let sum = |of: fn(&Client) -> &Cell<u64>| nodes.iter().map(|node| of(node.app()).get()).sum::<u64>();
    let mut times: Vec<u32> = nodes
        .iter()
        .flat_map(|node| node.app().times.borrow().clone())
        .collect();
    times.sort_unstable();
    let at = |share: f64| {
        times
            .get((times.len() as f64 * share) as usize)
            .copied()
            .unwrap_or_default()
    };
    writeln!(
        std::io::stdout(),
        "good {} bad {} lost {} in {elapsed:.2} s: {:.0} per second; us p50 {} p99 {} max {}",
        sum(|client| &client.good),
        sum(|client| &client.bad),
        sum(|client| &client.lost),
        sum(|client| &client.good) as f64 / elapsed,
        at(0.5),
        at(0.99),
        times.last().copied().unwrap_or_default(),
    )?;
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    tokio::task::LocalSet::new().block_on(&runtime, async {
        match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["serve", address, host] => serve(address, host).await,
            ["ask", ..] => ask(&arguments[1..]).await,
            _ => Err("usage: diameter_load serve ADDRESS HOST | diameter_load ask …".into()),
        }
    })
}
