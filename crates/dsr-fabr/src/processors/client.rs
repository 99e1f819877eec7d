//! The queries of a worker. They are shared among the processors that answer (N+0): one that is lost or silent is left out,
//! and its queries are sent to another one within their deadline.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use dp_proto::{Answer, Bundle, Outcome};
use dsr_app::{Resume, Ticket};
use smallvec::SmallVec;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::connection::keep;
use super::{Names, Place, Processors, Queries, Replies, Reply, push};
use crate::address::Address;
use crate::config::Service;
use crate::events::Event;

/// Requests that wait for answers, at most.
const MOST_PENDING: usize = 10_000;
/// Queries of a request are the low bits of an id.
const QUERY_BITS: u32 = 2;
/// Shortest interval at which silence is looked for.
const LEAST_SWEEP: Duration = Duration::from_millis(10);
/// Parts of the deadline: after one of silence a processor is left out.
const PATIENCE: u32 = 3;

/// Events with their counts.
pub(crate) type Happened = SmallVec<[(Event, u64); 8]>;

/// Why nothing was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No processor answers.
    Unreachable,
    /// Too many requests wait for answers.
    Full,
}

/// The queries of a worker, and its connections. They end with it.
#[derive(Debug)]
pub(crate) struct Client {
    shared: Rc<Shared>,
    tasks: Vec<JoinHandle<()>>,
}

/// What the tasks of the connections share with the worker.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) peers: Vec<Peer>,
    pub(super) settings: Processors,
    pending: RefCell<AHashMap<u32, Pending>>,
    next: Cell<u32>,
    turn: Cell<usize>,
    names: RefCell<Names>,
    resume: RefCell<Resume<Replies>>,
    /// Events that the worker has not counted yet.
    happened: RefCell<Happened>,
}

/// A processor, as the worker sees it.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) place: Place,
    /// It has answered on this connection.
    is_up: Cell<bool>,
    /// What is to be sent.
    pub(super) out: RefCell<Bundle>,
    pub(super) written: Notify,
    /// Whether the connection has to end, and its wake-up.
    is_ending: Cell<bool>,
    ending: Notify,
    /// Since when it owes an answer.
    silent_since: Cell<Option<Instant>>,
    /// Requests that wait for its answers.
    pending: Cell<usize>,
}

/// A request that waits for answers.
#[derive(Debug)]
struct Pending {
    ticket: Ticket,
    queries: SmallVec<[Asked; 1]>,
    at: usize,
    tried: u32,
    /// When the present processor was asked.
    sent: Instant,
    until: Instant,
}

#[derive(Debug)]
struct Asked {
    address: Address,
    service: Option<Service>,
    reply: Option<Reply>,
    /// A processor has a damaged entry: the reply where no other one has any.
    is_damaged: bool,
}

impl Client {
    /// Connects to the processors. It needs the local tasks of a worker; elsewhere nothing is reachable.
    pub(crate) fn new(settings: &Processors, names: &Names, resume: Resume<Replies>) -> Self {
        let peer = |place: &Place| Peer {
            place: place.clone(),
            is_up: Cell::new(false),
            out: RefCell::default(),
            written: Notify::new(),
            is_ending: Cell::new(false),
            ending: Notify::new(),
            silent_since: Cell::new(None),
            pending: Cell::new(0),
        };
        let shared = Rc::new(Shared {
            peers: settings.places.iter().map(peer).collect(),
            settings: settings.clone(),
            pending: RefCell::default(),
            next: Cell::new(0),
            turn: Cell::new(0),
            names: RefCell::new(names.clone()),
            resume: RefCell::new(resume),
            happened: RefCell::default(),
        });
        let mut tasks = Vec::new();
        if tokio::runtime::Handle::try_current().is_ok() {
            let peers = 0..shared.peers.len();
            tasks.extend(peers.map(|at| tokio::task::spawn_local(keep(shared.clone(), at))));
            tasks.push(tokio::task::spawn_local(sweep(shared.clone())));
        }
        shared.note(Event::ServiceLost, 1);
        Self { shared, tasks }
    }

    /// Whether it has these settings.
    pub(crate) fn follows(&self, settings: &Processors) -> bool {
        self.shared.settings == *settings
    }

    /// Takes other names of destinations, and another handle.
    pub(crate) fn update(&self, names: &Names, resume: Resume<Replies>) {
        self.shared.names.replace(names.clone());
        self.shared.resume.replace(resume);
    }

    /// Asks about the addresses of a request, which is resumed by its ticket with the answers.
    pub(crate) fn ask(&self, ticket: Ticket, queries: Queries, now: Instant) -> Result<(), Refusal> {
        let shared = &self.shared;
        if shared.pending.borrow().len() >= MOST_PENDING {
            return Err(Refusal::Full);
        }
        let at = shared.choose(0).ok_or(Refusal::Unreachable)?;
        let queries = queries.into_iter().map(|(address, service)| Asked {
            address,
            service,
            reply: None,
            is_damaged: false,
        });
        let pending = Pending {
            ticket,
            queries: queries.collect(),
            at,
            tried: 1 << at,
            sent: now,
            until: now + shared.settings.deadline,
        };
        let number = shared.next.get();
        // Its high bits are the number of a request.
        shared.next.set(number.wrapping_add(1) & (u32::MAX >> QUERY_BITS));
        shared.send(number, &pending, now);
        shared.pending.borrow_mut().insert(number, pending);
        Ok(())
    }

    /// Whether no processor answers.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.shared.is_cut_off()
    }

    /// Whether no request waits for an answer.
    pub(crate) fn is_idle(&self) -> bool {
        self.shared.pending.borrow().is_empty()
    }

    /// What has happened since the last call.
    pub(crate) fn happened(&self) -> Happened {
        self.shared.happened.take()
    }

    /// Ends it; what has happened, so that no service counts as lost that is not asked any more.
    pub(crate) fn end(self) -> Happened {
        if self.is_cut_off() {
            self.shared.note(Event::ServiceRestored, 1);
        }
        self.happened()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Shared {
    fn note(&self, event: Event, count: u64) {
        let mut happened = self.happened.borrow_mut();
        match happened.iter_mut().find(|(known, _)| *known == event) {
            Some((_, sum)) => *sum += count,
            None => happened.push((event, count)),
        }
    }

    fn is_cut_off(&self) -> bool {
        !self.peers.iter().any(|peer| peer.is_up.get())
    }

    /// The processor whose turn it is, among those that answer and were not tried.
    fn choose(&self, tried: u32) -> Option<usize> {
        let at = self.other(tried)?;
        self.turn.set((at + 1) % self.peers.len());
        Some(at)
    }

    /// The same, whose turn it still is afterwards.
    fn other(&self, tried: u32) -> Option<usize> {
        let count = self.peers.len();
        let turn = self.turn.get();
        let mut all = (0..count).map(|step| (turn + step) % count);
        all.find(|at| tried >> at & 1 == 0 && self.peers.get(*at).is_some_and(|peer| peer.is_up.get()))
    }

    /// Bundles the queries of a request that have no reply with those that its processor is sent next.
    fn send(&self, number: u32, pending: &Pending, now: Instant) {
        let Some(peer) = self.peers.get(pending.at) else {
            return;
        };
        let mut out = peer.out.borrow_mut();
        for (index, asked) in (0..).zip(&pending.queries) {
            if asked.reply.is_none() {
                push(
                    &mut out,
                    number << QUERY_BITS | index,
                    &asked.address,
                    asked.service,
                );
            }
        }
        drop(out);
        peer.pending.set(peer.pending.get() + 1);
        peer.owes(now);
        peer.written.notify_one();
    }

    /// Sends a frame without queries to a processor.
    pub(super) fn probe(&self, at: usize, now: Instant) {
        if let Some(peer) = self.peers.get(at) {
            peer.out.borrow_mut().probe::<dp_proto::Query<'_>>();
            peer.owes(now);
            peer.written.notify_one();
        }
    }

    /// Notes that a processor has sent a whole frame.
    pub(super) fn heard(&self, at: usize, now: Instant) {
        let Some(peer) = self.peers.get(at) else { return };
        peer.silent_since.set((peer.pending.get() > 0).then_some(now));
        if !peer.is_up.get() {
            if self.is_cut_off() {
                self.note(Event::ServiceRestored, 1);
            }
            peer.is_up.set(true);
            self.note(Event::ProcessorConnected, 1);
            tracing::info!(processor = %peer.place.address, "database processor answers");
        }
    }

    /// Takes an answer of a processor. One that is not expected any more is dropped.
    pub(super) fn answer(&self, at: usize, answer: &Answer<'_>, now: Instant) {
        let number = answer.id >> QUERY_BITS;
        let index = (answer.id & ((1 << QUERY_BITS) - 1)) as usize;
        let mut all = self.pending.borrow_mut();
        let Some(pending) = all.get_mut(&number).filter(|pending| pending.at == at) else {
            return;
        };
        if answer.outcome == Outcome::Congested {
            self.note(Event::ProcessorCongested, 1);
        }
        if answer.outcome == Outcome::Unavailable {
            return self.again(&mut all, number, now);
        }
        if let Some(asked) = pending.queries.get_mut(index) {
            // Another one may have the entry whole.
            asked.is_damaged |= answer.outcome == Outcome::Damaged;
            if answer.outcome == Outcome::Damaged && self.other(pending.tried).is_some() {
                return self.again(&mut all, number, now);
            }
            asked.reply = Some(Reply::new(answer, &self.names.borrow()));
        }
        if pending.queries.iter().all(|asked| asked.reply.is_some())
            && let Some(pending) = all.remove(&number)
        {
            self.settle(at);
            self.finish(pending);
        }
    }

    /// Asks another processor; where none is left, the request goes on without an answer.
    fn again(&self, all: &mut AHashMap<u32, Pending>, number: u32, now: Instant) {
        let Some(mut pending) = all.remove(&number) else {
            return;
        };
        self.settle(pending.at);
        let Some(at) = self.choose(pending.tried) else {
            return self.finish(pending);
        };
        pending.at = at;
        pending.tried |= 1 << at;
        pending.sent = now;
        self.note(Event::Repeated, 1);
        self.send(number, &pending, now);
        all.insert(number, pending);
    }

    /// One request less waits for a processor.
    fn settle(&self, at: usize) {
        if let Some(peer) = self.peers.get(at) {
            peer.pending.set(peer.pending.get().saturating_sub(1));
        }
    }

    fn finish(&self, pending: Pending) {
        let replies = pending
            .queries
            .into_iter()
            .map(|asked| (asked.address, asked.reply.unwrap_or(none(asked.is_damaged))));
        // A request that is not parked any more, or whose worker has too much to do, has its deadline.
        let _ = self
            .resume
            .borrow()
            .resume(pending.ticket, Replies(replies.collect()));
    }

    /// Leaves a processor out until it answers again, and asks others what it was asked.
    pub(super) fn lost(&self, at: usize, why: &str) {
        let Some(peer) = self.peers.get(at) else { return };
        peer.out.take();
        peer.silent_since.set(None);
        if peer.is_up.replace(false) {
            self.note(Event::ProcessorLost, 1);
            tracing::warn!(processor = %peer.place.address, why, "database processor lost");
            if self.is_cut_off() {
                self.note(Event::ServiceLost, 1);
            }
        }
        let now = Instant::now();
        let mut all = self.pending.borrow_mut();
        let asked: Vec<u32> = all
            .iter()
            .filter(|(_, pending)| pending.at == at)
            .map(|(number, _)| *number)
            .collect();
        for number in asked {
            self.again(&mut all, number, now);
        }
    }
}

/// The reply where no processor has a better one.
const fn none(is_damaged: bool) -> Reply {
    if is_damaged {
        Reply::Damaged
    } else {
        Reply::Nothing
    }
}

impl Peer {
    /// Ends the connection.
    fn end(&self) {
        self.is_ending.set(true);
        self.ending.notify_one();
    }

    /// Waits until a connection that begins now has to end. A wake-up that was for the one before is passed over.
    pub(super) async fn ended(&self) {
        self.is_ending.set(false);
        while !self.is_ending.get() {
            self.ending.notified().await;
        }
    }

    /// Notes that it owes an answer from now on, unless it does already.
    fn owes(&self, now: Instant) {
        if self.silent_since.get().is_none() {
            self.silent_since.set(Some(now));
        }
    }
}

/// Ends connections to processors that are silent, and drops requests whose time is over, until the task is aborted.
async fn sweep(shared: Rc<Shared>) {
    let deadline = shared.settings.deadline;
    let patience = deadline / PATIENCE;
    let mut interval = tokio::time::interval((patience / 2).max(LEAST_SWEEP));
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let now = Instant::now();
        let is_late = |since: Instant| now.saturating_duration_since(since) > patience;
        for peer in &shared.peers {
            if peer.silent_since.get().is_some_and(is_late) {
                peer.end();
            }
        }
        shared.pending.borrow_mut().retain(|_, pending| {
            // It may answer others, or probes, and not this one.
            if let Some(peer) = shared.peers.get(pending.at).filter(|_| is_late(pending.sent)) {
                peer.end();
            }
            let stays = pending.until > now;
            if !stays {
                shared.settle(pending.at);
            }
            stays
        });
    }
}
