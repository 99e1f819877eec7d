//! The way of a message.
//!
//! ```text
//!  request ─► on_request                                            answer ─► on_answer
//!               look at it: one pass over its AVPs                               look at it
//!               route: rules, then a hop of the list       ┌── elsewhere ◄───────  reroute?
//!               dispatch ──────────┐                       │                      deliver ──────┐
//!                 here │     there │                       │                   here │     there │
//!                      ▼           ▼                       ▼                        ▼           ▼
//!               send: pending    mailbox of the    ◄── try_again            answer on the    mailbox of the
//!               table, socket    hop's worker                               connection       origin's worker
//! ```
//!
//! | file | what happens there |
//! |---|---|
//! | `mod` (this) | a worker's [`Core`], and what the driver calls |
//! | `request` | a request: looked at, routed, dispatched |
//! | `again` | a request that goes elsewhere, after a failure or an answer that says so |
//! | `answer` | an answer: rerouted or delivered; requests that get none |
//! | `guard` | what is let in: rates, overload, trace points |
//! | `heed` | what servers report of their load |
//! | `links` | peers that come and go |
//! | `mailbox` | messages between workers |

mod again;
mod answer;
mod guard;
mod heed;
mod links;
mod mailbox;
mod request;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use diameter::proto::overload::doic::Reactions;
use diameter::proto::peer::{DownReason, Health};
use diameter::proto::{Fault, Message, MessageBuilder, MessageMut, Origin as Names, ResultCode};
use diameter::{Application, Connection, ConnectionId, Kept, Node, NodeEvent, PeerUp, Unanswered};
use smallvec::SmallVec;
use telemetry::Histogram;

use crate::config::{AnswerRule, Exception};
use crate::congestion::Congestion;
use crate::events::{Counters, Event};
use crate::gate::Throttle;
use crate::registry::Registry;
use crate::snapshot::Snapshot;
use crate::telling::Telling;
use crate::trace::Record;

pub(crate) use guard::Gauges;
pub use links::Link;
pub(crate) use mailbox::{Mailbox, Post};

/// The owner of one node: a local node on one worker.
#[derive(Clone)]
pub struct Router {
    core: Rc<Core>,
    /// Position of the local node.
    node: u8,
}

/// The configuration as one worker holds it. All workers share the inner count; a worker that touched it with
/// every message would have the others wait for the cache line, so each counts its own holders.
#[allow(clippy::redundant_allocation)]
type Held = Rc<Arc<Snapshot>>;

/// What the nodes of one worker share.
pub struct Core {
    /// Position of the worker.
    worker: usize,
    nodes: RefCell<Vec<Node<Router>>>,
    names: Vec<Names>,
    snapshot: RefCell<Held>,
    registry: Arc<Registry>,
    hops: RefCell<links::ByHostCache>,
    links: RefCell<links::Links>,
    post: Post,
    counters: Arc<Counters>,
    random: Cell<u64>,
    congestion: RefCell<Congestion>,
    /// What neighbours are told of our load.
    telling: RefCell<Telling>,
    /// Overload reports of servers.
    heeds: RefCell<Reactions>,
    throttles: RefCell<Vec<Throttle>>,
    tools: Tools,
}

/// What a worker is given to tell what it does.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    /// One per worker.
    pub(crate) gauges: Arc<Vec<Gauges>>,
    /// Time from request to answer.
    pub(crate) hold: Histogram,
    /// Who writes traces.
    pub(crate) tracer: SyncSender<Record>,
}

/// Something true of a request, remembered where its answer goes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks(u8);

impl Marks {
    /// The client takes overload reports.
    const DOIC: u8 = 1;
    /// The request named a host.
    const HOST_ROUTED: u8 = 2;
    /// The answer says which overload features its server has.
    const ANSWER_FEATURES: u8 = 4;
    /// The answer reports an overload itself.
    const ANSWER_REPORT: u8 = 8;
    /// It is a copy: nobody waits for the answer.
    const COPY: u8 = 16;
    /// It came from another message processor of this router.
    const SIBLING: u8 = 32;
    /// We ask the server for overload reports, the client does not.
    const ASKED: u8 = 64;

    fn set(&mut self, mark: u8, on: bool) {
        if on {
            self.0 |= mark;
        }
    }

    const fn has(self, mark: u8) -> bool {
        self.0 & mark != 0
    }
}

/// Where a request came from: where its answer goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    worker: u16,
    node: u8,
    connection: ConnectionId,
    hop_by_hop: u32,
    marks: Marks,
    /// Trigger point of its trace, counted from 1.
    trace: u8,
}

/// What is remembered of a request that is under way.
#[derive(Debug)]
pub struct Transit {
    origin: Origin,
    /// When it came.
    since: Instant,
    /// When it is given up.
    until: Instant,
    /// Hops it was sent to, or would have been.
    tried: SmallVec<[u32; 4]>,
    /// The table it is looked up in, of this version of the configuration.
    table: Option<u16>,
    version: u32,
    application: u32,
    /// The hop it came from.
    from: Option<u32>,
    /// DRMP priority.
    priority: u8,
    /// The request as it was before names were hidden in it.
    original: Option<Box<Kept>>,
}

/// A hop that was chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    hop: u32,
    worker: usize,
}

impl Core {
    /// The state of a worker without nodes yet.
    pub(crate) fn new(
        worker: usize,
        snapshot: Arc<Snapshot>,
        registry: Arc<Registry>,
        post: Post,
        counters: Arc<Counters>,
        tools: Tools,
        seed: u64,
    ) -> Rc<Self> {
        // RFC 7683 §7.4: sequence numbers of a new run are above those of the last.
        let congestion = Congestion::new(&snapshot.config.overload, seed / 1_000_000_000);
        let throttles = snapshot.throttles(worker);
        let nodes = snapshot.config.local_nodes.iter();
        let hosts = nodes.map(|node| node.host.clone()).collect();
        let telling = Telling::new(&snapshot.config.overload.tell_load, hosts);
        let names = snapshot
            .config
            .local_nodes
            .iter()
            .map(|node| Names::new(node.host.clone(), node.realm.clone()))
            .collect();
        Rc::new(Self {
            worker,
            nodes: RefCell::default(),
            names,
            snapshot: RefCell::new(Rc::new(snapshot)),
            hops: RefCell::new(links::ByHostCache::new(registry.published())),
            registry,
            links: RefCell::default(),
            post,
            counters,
            random: Cell::new(seed | 1),
            congestion: RefCell::new(congestion),
            telling: RefCell::new(telling),
            heeds: RefCell::default(),
            throttles: RefCell::new(throttles),
            tools,
        })
    }

    /// The owner of the node at this position.
    pub(crate) fn router(self: &Rc<Self>, node: usize) -> Router {
        Router {
            core: self.clone(),
            node: node as u8,
        }
    }

    /// Takes the worker's nodes, in the order of the local nodes.
    pub(crate) fn adopt(&self, nodes: Vec<Node<Router>>) {
        *self.nodes.borrow_mut() = nodes;
    }

    /// The worker's nodes.
    pub(crate) fn nodes(&self) -> Vec<Node<Router>> {
        self.nodes.borrow().clone()
    }

    /// Lets go of the nodes, which refer back to this.
    pub(crate) fn disband(&self) {
        self.nodes.borrow_mut().clear();
        self.links.borrow_mut().clear();
    }

    /// The configuration. Counted on this thread alone: no other sees the count.
    #[inline]
    fn snapshot(&self) -> Held {
        self.snapshot.borrow().clone()
    }

    /// A new configuration.
    pub(crate) fn reconfigure(&self, snapshot: Arc<Snapshot>) {
        self.congestion
            .borrow_mut()
            .configure(&snapshot.config.overload, self.now());
        self.telling
            .borrow_mut()
            .configure(&snapshot.config.overload.tell_load);
        *self.throttles.borrow_mut() = snapshot.throttles(self.worker);
        *self.snapshot.borrow_mut() = Rc::new(snapshot);
        self.refresh_links();
    }

    #[inline]
    fn count(&self, event: Event) {
        self.counters.count(event);
    }

    /// Uniform over all of `u32` (xorshift64*).
    fn dice(&self) -> u32 {
        let mut random = self.random.get();
        random ^= random >> 12;
        random ^= random << 25;
        random ^= random >> 27;
        self.random.set(random);
        (random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    }

    /// The time, as of the last read or tick.
    fn now(&self) -> Instant {
        self.nodes.borrow().first().map_or_else(Instant::now, Node::now)
    }

    /// Our names towards a peer of this node.
    fn names(&self, node: u8) -> &Names {
        static NOBODY: std::sync::LazyLock<Names> = std::sync::LazyLock::new(|| Names::new("", ""));
        self.names.get(usize::from(node)).unwrap_or(&NOBODY)
    }

    /// Answers a request for the router's own reasons.
    #[cold]
    fn refuse<B: AsRef<[u8]>>(&self, origin: Origin, request: &Message<B>, fault: &Fault) {
        self.count(Event::Refused);
        let answer = MessageBuilder::error_answer(request, self.names(origin.node), fault);
        self.deliver(origin, answer);
    }

    /// Answers a request that could not be routed, as the configuration says.
    #[cold]
    fn except<B: AsRef<[u8]>>(&self, origin: Origin, request: &Message<B>, why: Exception) {
        if origin.marks.has(Marks::COPY) {
            return;
        }
        self.count(match why {
            Exception::NoRoute => Event::NoRoute,
            Exception::LoopDetected => Event::Loop,
            Exception::Exhausted => Event::Exhausted,
            Exception::NoAnswer => Event::Timeout,
            Exception::ConnectionFailure => Event::ConnectionLost,
        });
        let snapshot = self.snapshot();
        self.answer_by(origin, request, snapshot.exception(why));
    }

    /// Answers a request as a setting says, or not at all.
    fn answer_by<B: AsRef<[u8]>>(&self, origin: Origin, request: &Message<B>, rule: &AnswerRule) {
        if rule.result_code == 0 {
            return self.count(Event::Abandoned);
        }
        let fault = Fault::new(ResultCode(rule.result_code), rule.message.clone());
        self.refuse(origin, request, &fault);
    }
}

impl Application for Router {
    type Context = Transit;
    type State = Link;

    fn peer_up(&self, _: &Node<Self>, connection: &Rc<Connection<Link>>, peer: &PeerUp) -> Link {
        self.core.peer_up(self.node, connection, peer)
    }

    fn peer_down(&self, _: &Node<Self>, connection: &Rc<Connection<Link>>, reason: DownReason) {
        self.core.peer_down(connection, reason);
    }

    fn peer_health(&self, _: &Node<Self>, connection: &Rc<Connection<Link>>, health: Health) {
        self.core.peer_health(connection, health);
    }

    #[inline]
    fn request(&self, node: &Node<Self>, from: &Rc<Connection<Link>>, message: MessageMut) {
        self.core.on_request(self.node, node, from, message);
    }

    /// Not called: [`Application::answer_to`] is.
    fn answer(&self, node: &Node<Self>, from: &Rc<Connection<Link>>, transit: Transit, message: MessageMut) {
        self.answer_to(node, from, transit, None, message);
    }

    #[inline]
    fn answer_to(
        &self,
        _: &Node<Self>,
        from: &Rc<Connection<Link>>,
        transit: Transit,
        kept: Option<Kept>,
        message: MessageMut,
    ) {
        self.core.on_answer(from, transit, kept, message);
    }

    fn unanswered(&self, _: &Node<Self>, lost: Unanswered<Transit, Link>) {
        self.core.on_unanswered(lost);
    }

    fn place(&self, _: &Node<Self>, _: &str) -> Option<usize> {
        self.core.place()
    }

    fn event(&self, _: &Node<Self>, event: NodeEvent<'_>) {
        self.core.count(Event::ConnectionRefused);
        if matches!(event, NodeEvent::Flooded { .. }) {
            self.core.count(Event::Flooded);
        }
        tracing::info!(?event, "connection refused, cut off or not made");
    }
}

/// A request is given up at least so long after it was sent: a deadline that has passed already would hide
/// that it was sent at all.
const LEAST_WAIT: Duration = Duration::from_millis(10);
