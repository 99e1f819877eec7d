//! The path of a message through a worker.
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
//! | `request` | a request: examined, admitted, dispatched |
//! | `chain` | a request and the applications that a rule leads it to |
//! | `route` | where a request goes |
//! | `again` | a request that goes elsewhere, after a failure or by its answer |
//! | `answer` | an answer: rerouted or delivered; requests that get none |
//! | `followed` | answers and losses, for applications that follow their request |
//! | `parked` | transactions that applications have parked |
//! | `guard` | what is let in: rates, overload, trace points |
//! | `reports` | what servers report of their load |
//! | `administer` | what an operator asks of a worker |
//! | `links` | peers that come and go |
//! | `mailbox` | messages between workers |
//! | `stopping` | the end of a worker |

mod administer;
mod again;
mod answer;
mod chain;
mod followed;
mod guard;
mod links;
mod mailbox;
mod parked;
mod reports;
mod request;
mod route;
mod stopping;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use diameter::proto::overload::doic::{Reactions, ReportNumbers};
use diameter::proto::peer::{DownReason, Health};
use diameter::proto::{
    CommandFlags, Fault, Message, MessageBuilder, MessageMut, Origin as Names, ResultCode,
};
use diameter::{Application, Connection, ConnectionId, Kept, Node, NodeEvent, PeerUp, Unanswered};
use dsr_app::Memo;
use smallvec::SmallVec;
use telemetry::Histogram;
use tokio::sync::mpsc;
use worker::Random;

use crate::config::{AnswerRule, Exception};
use crate::congestion::Congestion;
use crate::demands::Demands;
use crate::events::{Counters, Event};
use crate::gate::Throttle;
use crate::hosting::Hosting;
use crate::incidents::Incidents;
use crate::load_report::LoadReporter;
use crate::measures::{Count, Measures, Published, Transaction};
use crate::redirects::Redirects;
use crate::registry::Registry;
use crate::snapshot::{AnswerCopy, Snapshot};
use crate::trace::Record;

use chain::Local;
use followed::Followed;
use parked::Parked;

pub(crate) use guard::Gauges;
pub(crate) use links::Link;
pub(crate) use mailbox::{Mailbox, Post};

/// The owner of one node: a local node on one worker.
#[derive(Clone)]
pub(crate) struct Router {
    core: Rc<Core>,
    /// Position of the local node.
    node: u8,
}

/// The configuration as one worker holds it. All workers share the count of the snapshot; a worker that touched it with every
/// message would have the others wait for the cache line, so each counts its own holders.
type LocalSnapshot = Rc<Local>;

/// What the nodes of one worker share.
pub struct Core {
    /// Position of the worker.
    worker: usize,
    nodes: RefCell<Vec<Node<Router>>>,
    names: Vec<Names>,
    snapshot: RefCell<LocalSnapshot>,
    registry: Arc<Registry>,
    hops: RefCell<links::ByHostCache>,
    links: RefCell<links::Links>,
    post: Post,
    counters: Arc<Counters>,
    random: Random,
    congestion: RefCell<Congestion>,
    /// Reports our load to neighbours.
    load_reporter: RefCell<LoadReporter>,
    /// Overload reports in effect, of servers and realms.
    reactions: RefCell<Reactions>,
    /// Routes of redirect indications.
    redirects: RefCell<Redirects>,
    throttles: RefCell<Vec<Throttle>>,
    measures: RefCell<Measures>,
    parked: Parked,
    /// Requests of applications' own that are to be sent, with the id of the application.
    own: RefCell<Vec<(u32, MessageMut, Memo)>>,
    tools: Tools,
}

/// What a worker reports with.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    /// One per worker.
    pub(crate) gauges: Arc<Vec<Gauges>>,
    /// Time from request to answer.
    pub(crate) hold: Histogram,
    /// The last number of an overload report of ours, of all workers.
    pub(crate) report_numbers: Arc<ReportNumbers>,
    /// Demand on throttle groups, of all workers and of siblings.
    pub(crate) demands: Arc<Demands>,
    /// Connections that were refused, cut off or could not be made, of all workers.
    pub(crate) incidents: Arc<Incidents>,
    /// To the control thread, which writes traces.
    pub(crate) tracer: mpsc::Sender<Record>,
    /// What applications need of the router.
    pub(crate) hosting: Arc<Hosting>,
}

/// Properties of a request, kept for its answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestFlags(u16);

impl RequestFlags {
    /// The client supports overload reports.
    const DOIC: u16 = 1;
    /// The request named a host.
    const HOST_ROUTED: u16 = 2;
    /// The answer says which overload features its server has.
    const ANSWER_FEATURES: u16 = 4;
    /// The answer reports an overload itself.
    const ANSWER_REPORT: u16 = 8;
    /// It is a copy: its answer is dropped.
    const COPY: u16 = 16;
    /// It came from another message processor of this router.
    const SIBLING: u16 = 32;
    /// We ask the server for overload reports, the client does not.
    const ASKED: u16 = 64;
    /// A server got it and gave no answer: it may have been processed (RFC 6733 §3, T flag).
    const LOST: u16 = 128;
    /// It was beyond the reserved rate of its connection.
    const YELLOW: u16 = 256;
    /// An application of the router sent it: no peer waits for its answer.
    const OWN: u16 = 512;

    fn set(&mut self, mark: u16, on: bool) {
        if on {
            self.0 |= mark;
        }
    }

    const fn has(self, mark: u16) -> bool {
        self.0 & mark != 0
    }
}

/// Origin of a request: where its answer goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    worker: u16,
    node: u8,
    connection: ConnectionId,
    hop_by_hop: u32,
    flags: RequestFlags,
    /// Trigger point of its trace, counted from 1.
    trace: u8,
    /// Scope of topology hiding of its client, counted from 1.
    scope: u8,
}

/// State of a request in flight.
#[derive(Debug)]
pub(crate) struct Transit {
    origin: Origin,
    /// Arrival.
    since: Instant,
    /// Deadline.
    until: Instant,
    /// Hops it was sent to, or would have been.
    tried: SmallVec<[u32; 4]>,
    /// Attempts: how often it was sent, siblings that do not have the peer left out.
    sent: u8,
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
    /// The copy that is made after its answer.
    copy: Option<Arc<AnswerCopy>>,
    /// The applications that see what comes of it.
    followed: Option<Box<Followed>>,
}

impl Transit {
    /// That of a copy, which is sent once and whose answer is dropped.
    #[cold]
    fn for_copy(&self) -> Self {
        let mut origin = self.origin;
        origin.flags.set(RequestFlags::COPY, true);
        Self {
            origin,
            sent: u8::MAX,
            tried: SmallVec::new(),
            original: None,
            copy: None,
            followed: None,
            ..*self
        }
    }
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
        let congestion = Congestion::new(&snapshot.config.overload, tools.report_numbers.clone());
        let throttles = snapshot.throttles(worker);
        let mut measures = Measures::default();
        measures.configure(&snapshot.measured);
        let nodes = snapshot.config.local_nodes.iter();
        let hosts = nodes.map(|node| node.host.clone()).collect();
        let load_reporter = LoadReporter::new(&snapshot.config.overload.advertise_load, hosts);
        let names = snapshot
            .config
            .local_nodes
            .iter()
            .map(|node| Names::new(node.host.clone(), node.realm.clone()))
            .collect();
        let redirects = Redirects::new(snapshot.config.routing.redirect_cache);
        Rc::new(Self {
            worker,
            nodes: RefCell::default(),
            names,
            snapshot: RefCell::new(Rc::new(Local::new(snapshot, worker, &tools, None))),
            hops: RefCell::new(links::ByHostCache::new(registry.published())),
            registry,
            links: RefCell::default(),
            post,
            counters,
            random: Random::seeded(seed | 1),
            congestion: RefCell::new(congestion),
            load_reporter: RefCell::new(load_reporter),
            reactions: RefCell::default(),
            redirects: RefCell::new(redirects),
            throttles: RefCell::new(throttles),
            measures: RefCell::new(measures),
            parked: Parked::new(worker),
            own: RefCell::default(),
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

    /// Drops the nodes, which refer back to this.
    pub(crate) fn disband(&self) {
        self.nodes.borrow_mut().clear();
        self.links.borrow_mut().clear();
    }

    /// The configuration. Counted on this thread alone: no other sees the count.
    #[inline]
    fn snapshot(&self) -> LocalSnapshot {
        self.snapshot.borrow().clone()
    }

    /// A new configuration.
    pub(crate) fn reconfigure(&self, snapshot: Arc<Snapshot>) {
        self.congestion.borrow_mut().configure(&snapshot.config.overload);
        self.load_reporter
            .borrow_mut()
            .configure(&snapshot.config.overload.advertise_load);
        let routing = &snapshot.config.routing;
        let max = if routing.follow_redirects {
            routing.redirect_cache
        } else {
            0
        };
        self.redirects.borrow_mut().configure(max);
        let before = std::mem::take(&mut *self.throttles.borrow_mut()).into_iter();
        let mut before: Vec<Option<Throttle>> = before.map(Some).collect();
        *self.throttles.borrow_mut() = snapshot
            .throttles(self.worker)
            .into_iter()
            .map(|new| {
                let same =
                    |old: &&mut Option<Throttle>| old.as_ref().is_some_and(|old| old.name() == new.name());
                let old = before.iter_mut().find(same).and_then(Option::take);
                new.after(old)
            })
            .collect();
        self.measures.borrow_mut().configure(&snapshot.measured);
        let local = Local::new(snapshot, self.worker, &self.tools, Some(&self.snapshot()));
        *self.snapshot.borrow_mut() = Rc::new(local);
        self.refresh_links();
        self.wake_time();
    }

    #[inline]
    fn count(&self, event: Event) {
        self.counters.count(event);
    }

    /// Counts what a position of the snapshot in effect is about.
    #[inline]
    fn measure(&self, at: Count) {
        self.measures.borrow_mut().count(at);
    }

    /// A copy of what this worker measured.
    pub(crate) fn measured(&self) -> Published {
        self.measures.borrow().publish()
    }

    /// Uniform over all of `u32`.
    fn dice(&self) -> u32 {
        (self.random.next() >> 32) as u32
    }

    /// The time, as of the last read or tick.
    fn now(&self) -> Instant {
        self.nodes.borrow().first().map_or_else(Instant::now, Node::now)
    }

    /// Our names towards a peer of this node.
    fn names(&self, node: u8) -> &Names {
        static NAMELESS: std::sync::LazyLock<Names> = std::sync::LazyLock::new(|| Names::new("", ""));
        self.names.get(usize::from(node)).unwrap_or(&NAMELESS)
    }

    /// Answers a request with an error of the router itself.
    #[cold]
    fn refuse<B: AsRef<[u8]>>(&self, origin: Origin, request: &Message<B>, fault: &Fault) {
        let answer = self.refusal(origin, request, fault);
        self.deliver(origin, answer);
    }

    /// The answer to a request that the router refuses.
    #[cold]
    fn refusal<B: AsRef<[u8]>>(&self, origin: Origin, request: &Message<B>, fault: &Fault) -> MessageMut {
        self.count(Event::Refused);
        let (application, command) = (request.application(), request.command());
        let transaction = Transaction::refused(application, command, fault.vendor, fault.code);
        self.measures.borrow_mut().answered(transaction);
        let mut answer = MessageBuilder::error_answer(request, self.names(origin.node), fault);
        // RFC 6733 §7.1.5, §7.2: a relay does not know the grammar of the command, so its own errors take that of
        // `answer-message`. An Experimental-Result belongs to the command's application.
        if fault.vendor == 0 && !fault.code.is_success() {
            answer.set_flags(answer.flags().with(CommandFlags::ERROR));
        }
        answer
    }

    /// Answers a request that could not be routed, by the configuration.
    #[cold]
    fn except<B: AsRef<[u8]>>(&self, origin: Origin, request: &Message<B>, why: Exception) {
        if origin.flags.has(RequestFlags::COPY) {
            return;
        }
        self.count(match why {
            Exception::NoRoute => Event::NoRoute,
            Exception::LoopDetected => Event::Loop,
            Exception::Exhausted => Event::Exhausted,
            Exception::NoAnswer => Event::Timeout,
            Exception::ConnectionFailure => Event::ConnectionLost,
        });
        if origin.flags.has(RequestFlags::OWN) {
            return;
        }
        let snapshot = self.snapshot();
        self.answer_by(origin, request, snapshot.exception(why));
    }

    /// Answers a request by a setting, or drops it.
    fn answer_by<B: AsRef<[u8]>>(&self, origin: Origin, request: &Message<B>, rule: &AnswerRule) {
        if rule.result_code == 0 {
            return self.count(Event::Abandoned);
        }
        let fault = Fault::new(ResultCode(rule.result_code), rule.message.clone()).of_vendor(rule.vendor_id);
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

    fn has_alternative(&self, transit: &Transit, kept: Option<&Kept>) -> bool {
        kept.is_some_and(|kept| self.core.has_alternative(kept, transit))
    }

    fn awaits_answers(&self, connection: &Connection<Link>) -> bool {
        self.core.awaits_answers(connection)
    }

    fn place(&self, _: &Node<Self>, _: &str) -> Option<usize> {
        self.core.place()
    }

    fn event(&self, _: &Node<Self>, event: NodeEvent<'_>) {
        self.core.on_event(self.node, &event);
    }
}

/// Shortest time between sending a request and its deadline: a deadline that has passed already would hide that it was
/// sent.
const LEAST_WAIT: Duration = Duration::from_millis(10);
