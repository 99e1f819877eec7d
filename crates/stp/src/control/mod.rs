//! The control side: states of ASPs, application servers, link sets and destinations (RFC 4666 §4.3, §4.5). It has one lock,
//! which management messages and pages take, and messages only while their application server is pending.

mod alarms;
mod allowed;
mod answers;
mod available;
mod congestion;
mod inhibit;
mod links;
mod mailbox;
mod moves;
mod restart;
mod rows;
mod segments;
mod ssnm;
mod status;
mod transfers;

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use ss7_proto::PointCode;
use ss7_proto::asp::{AsSettings, Asp, AspId, AspSettings, Gateway, GatewayEvent};
use ss7_proto::m3ua::{Message, TrafficMode};
use ss7_proto::mtp3::Congestion;
use ss7_proto::sccp::{Management, ManagementType};
use telemetry::{Alarms, Registry};

use crate::cause::Cause;
use crate::config::{Config, Role};
use crate::metrics::{EVICTED, Meters};
use crate::path::{Segments, Transactions};
use crate::state::{State, Target};
use crate::tables::{Cluster, Tables};

pub(crate) use alarms::{DESTINATION_UNREACHABLE, HOP_DOWN, LINK_DOWN, LINK_INHIBITED};
use allowed::Allowed;
pub(crate) use answers::{beat, registration};
pub(crate) use inhibit::Request;
pub(crate) use links::Remains;
pub(crate) use mailbox::{Frame, Mailbox, Put};
pub(crate) use ssnm::notice;

/// T(stat info): how often the state of a prohibited subsystem is tested (Q.714 §5.3.4, 30 s at first).
const SUBSYSTEM_TEST: Duration = Duration::from_secs(30);

/// What the threads of an STP share.
pub(crate) struct Control {
    inner: Mutex<Inner>,
    pub(crate) state: Arc<ArcSwap<State>>,
    pub(crate) mailboxes: Vec<Mailbox>,
    /// By hop.
    pub(crate) segments: Vec<Segments>,
    /// Nodes of transactions.
    pub(crate) transactions: Transactions,
    registry: Registry,
    alarms: Alarms,
}

/// What the lock protects.
struct Inner {
    tables: Arc<Tables>,
    meters: Arc<Meters>,
    gateway: Gateway,
    /// Of each link on which this STP asks.
    asps: Vec<Option<Asp>>,
    links: Vec<LinkStatus>,
    /// Link sets of M2PA.
    sets: links::Sets,
    /// What moves between them.
    moves: moves::Moves,
    /// Which of them carry no traffic yet.
    restarts: restart::Restarts,
    transfers: transfers::Transfers,
    congestion: Congestion,
    /// None once it is over.
    grace: Option<alarms::Grace>,
    /// The number of the last state.
    number: u64,
    /// Destinations that a signalling gateway or an adjacent node has called unavailable, by hop; of the latter with the time of the
    /// next test.
    barred: HashMap<(usize, Cluster), Option<Instant>>,
    /// Prohibited subsystems, and when the next test is due.
    prohibited: HashMap<(PointCode, u8), Instant>,
    /// By hop.
    pending: Vec<VecDeque<Frame>>,
    most_pending: usize,
    /// What peers are notified of together.
    allowed: Allowed,
    /// Frames that are sent after the next state is published.
    sends: Vec<(usize, Vec<u8>)>,
}

/// A link as the control side sees it.
#[derive(Clone, Debug, Default)]
struct LinkStatus {
    peer: Option<SocketAddr>,
    /// Why there is no association.
    failure: Option<String>,
    /// How far a link of M2PA has come.
    stage: &'static str,
}

impl Control {
    pub(crate) fn new(config: &Config, tables: Arc<Tables>, registry: &Registry, alarms: &Alarms) -> Self {
        let meters = Arc::new(Meters::new(registry, &tables));
        let inner = Inner {
            gateway: Gateway::new(servers(config, &tables)),
            asps: (0..tables.links.len()).map(|link| asp(&tables, link)).collect(),
            links: vec![LinkStatus::default(); tables.links.len()],
            sets: links::Sets::new(config, &tables),
            moves: moves::Moves::new(&config.mtp, config.pending),
            restarts: restart::Restarts::new(&config.mtp, &tables),
            transfers: transfers::Transfers::default(),
            congestion: Congestion::new(config.mtp.congestion_timers(), congestion::MOST),
            grace: Some(alarms::Grace::new()),
            number: 0,
            barred: HashMap::new(),
            prohibited: HashMap::new(),
            pending: tables.hops.iter().map(|_| VecDeque::new()).collect(),
            most_pending: config.pending,
            allowed: Allowed::default(),
            sends: Vec::new(),
            tables,
            meters,
        };
        let state = Arc::new(ArcSwap::from_pointee(inner.state()));
        let control = Self {
            mailboxes: inner
                .tables
                .links
                .iter()
                .map(|link| Mailbox::new(config.queue, link.role == Role::M2pa))
                .collect(),
            transactions: Transactions::new(&config.transactions, registry.counter(&EVICTED)),
            segments: inner.tables.hops.iter().map(|_| segments::new(config)).collect(),
            inner: Mutex::new(inner),
            state,
            registry: registry.clone(),
            alarms: alarms.clone(),
        };
        control.change(|_| {});
        control
    }

    /// An association is up.
    pub(crate) fn associated(&self, link: usize, peer: SocketAddr) {
        let now = Instant::now();
        self.change(|inner| {
            if let Some(status) = inner.links.get_mut(link) {
                *status = LinkStatus {
                    peer: Some(peer),
                    failure: None,
                    stage: "",
                };
            }
            if inner.tables.grants(link) {
                inner.gateway.associated(id(link));
            }
            let mut sends = Vec::new();
            if let Some(Some(asp)) = inner.asps.get_mut(link) {
                asp.associated(now, &mut sends);
            }
            inner.sends.extend(sends.into_iter().map(|octets| (link, octets)));
        });
    }

    /// An association has ended, or could not be made.
    pub(crate) fn disassociated(&self, link: usize, failure: &str) {
        let now = Instant::now();
        self.change(|inner| {
            if let Some(status) = inner.links.get_mut(link) {
                *status = LinkStatus {
                    peer: None,
                    failure: Some(failure.to_owned()),
                    stage: "",
                };
            }
            inner.gateway.disassociated(id(link), now);
            if let Some(Some(asp)) = inner.asps.get_mut(link) {
                asp.disassociated(&mut Vec::new());
            }
        });
    }

    /// A message of MGMT, ASPSM or ASPTM.
    pub(crate) fn received(&self, link: usize, stream: u16, message: &Message<'_>) {
        let now = Instant::now();
        self.change(|inner| {
            if inner.tables.grants(link) {
                inner.gateway.received(id(link), stream, message, now);
            }
            let (mut sends, mut events) = (Vec::new(), Vec::new());
            if let Some(Some(asp)) = inner.asps.get_mut(link) {
                asp.received(message, now, &mut sends, &mut events);
            }
            for event in events {
                tracing::debug!(link, ?event, "state of an ASP");
            }
            inner.sends.extend(sends.into_iter().map(|octets| (link, octets)));
        });
    }

    /// Time passes.
    pub(crate) fn tick(&self, now: Instant) {
        self.change(|inner| {
            inner.gateway.tick(now);
            for (link, asp) in inner.asps.iter_mut().enumerate() {
                let mut sends = Vec::new();
                if let Some(asp) = asp {
                    asp.tick(now, &mut sends, &mut Vec::new());
                }
                inner.sends.extend(sends.into_iter().map(|octets| (link, octets)));
            }
            inner.tick_sets(now);
            inner.moves.tick(now);
            inner.tick_transfers(now);
            inner.restarts.tick(now);
            inner.test_subsystems(now);
            inner.announce(now);
            inner.tick_grace(now);
        });
        self.tick_congestion(now);
        self.return_late(now);
    }

    /// When [`Self::tick`] has something to do.
    pub(crate) fn wake(&self) -> Option<Instant> {
        let inner = self.inner.lock();
        let asps = inner.asps.iter().flatten().filter_map(Asp::wake);
        let segments = self.segments.iter().filter_map(|segments| segments.lock().wake());
        asps.chain(inner.gateway.wake())
            .chain(segments)
            .chain(inner.prohibited.values().copied())
            .chain(inner.sets.wake())
            .chain(inner.moves.wake())
            .chain(inner.transfers.wake())
            .chain(inner.barred.values().flatten().copied())
            .chain(inner.restarts.wake())
            .chain(inner.congestion.wake())
            .chain(inner.allowed.wake())
            .chain(inner.grace.as_ref().and_then(alarms::Grace::wake))
            .min()
    }

    /// Other routes, screening lists or translations; links and hops are the same.
    pub(crate) fn replace(&self, tables: Arc<Tables>) {
        let meters = Arc::new(Meters::new(&self.registry, &tables));
        self.change(|inner| {
            inner.moves.end();
            inner.tables = tables;
            inner.meters = meters;
        });
    }

    /// Management of a subsystem at a node: the node itself must say it, and a translation must lead there.
    pub(crate) fn subsystem(&self, from: PointCode, message: Management) {
        let key = (message.point_code, message.ssn);
        let prohibit = match message.management_type {
            ManagementType::Ssp => true,
            ManagementType::Ssa => false,
            _ => return,
        };
        if from != message.point_code {
            return;
        }
        // What is known already costs no change of states.
        let is_known = |inner: &Inner| inner.prohibited.contains_key(&key) == prohibit;
        let has_member = |inner: &Inner| inner.tables.translations.has_member(key.0, key.1);
        {
            let inner = self.inner.lock();
            if is_known(&inner) || prohibit && !has_member(&inner) {
                return;
            }
        }
        let now = Instant::now();
        self.change(|inner| {
            if !prohibit {
                inner.prohibited.remove(&key);
            } else if has_member(inner) {
                inner.prohibited.entry(key).or_insert(now + SUBSYSTEM_TEST);
            }
        });
    }

    /// Sends a frame that a worker has decided on; returns the congestion level of its link, 3 when the queue is full.
    pub(crate) fn deliver(&self, state: &State, hop: usize, target: &Target, frame: Frame) -> u8 {
        match target {
            Target::Pending => {
                self.queue(hop, frame);
                return 0;
            }
            Target::Held => {
                self.keep(frame);
                return 0;
            }
            Target::Link(_) | Target::Each(_) => {}
        }
        match self.post(state, target, frame) {
            Put::Taken(level) => level,
            Put::Full | Put::Pending => 3,
            Put::Stale(frame) => {
                self.queue(hop, frame);
                0
            }
        }
    }

    /// Queues a message for a hop that is pending; sends it when a peer has become active meanwhile.
    fn queue(&self, hop: usize, mut frame: Frame) {
        let mut inner = self.inner.lock();
        let state = self.state.load();
        let target = state.target(hop, frame.sls, 1);
        if let Some(target) = target.as_ref().filter(|target| **target != Target::Pending) {
            match self.post(&state, target, frame) {
                // The link has failed a moment ago: its changeover follows.
                Put::Stale(stale) => frame = stale,
                Put::Taken(_) | Put::Full | Put::Pending => return,
            }
        } else if target.is_none() && frame.is_m2pa() {
            return self.keep_within(&mut inner, &state, frame);
        }
        if target.is_some() {
            inner.wait(hop, frame);
        } else {
            inner.meters.dropped(Cause::Recovery);
        }
    }

    /// Puts a frame into the queues of its links.
    fn post(&self, state: &State, target: &Target, frame: Frame) -> Put {
        let put = |link: u16, frame: Frame| {
            let mailbox = self.mailboxes.get(usize::from(link));
            let put = mailbox.map_or(Put::Full, |mailbox| mailbox.put(frame, state.number));
            if matches!(put, Put::Full) {
                state.meters.dropped(Cause::Congested);
            }
            put
        };
        match target {
            Target::Link(link) => put(*link, frame),
            // Each takes what it can.
            Target::Each(links) => {
                let mut worst = Some(0);
                for link in links {
                    worst = match (put(*link, frame.clone()), worst) {
                        (Put::Taken(level), Some(worst)) => Some(level.max(worst)),
                        _ => None,
                    };
                }
                worst.map_or(Put::Full, Put::Taken)
            }
            Target::Pending | Target::Held => Put::Pending,
        }
    }

    /// Changes the states, publishes what follows and sends what is due, in the order in which peers may rely on it: DATA
    /// is admitted before the acknowledgement leaves, the acknowledgement leaves before the first DATA.
    fn change(&self, change: impl FnOnce(&mut Inner)) {
        let mut inner = self.inner.lock();
        change(&mut inner);
        inner.obey(self);
        let before = self.state.load_full();
        inner.follow_restarts(&before, Instant::now());
        inner.number += 1;
        let mut next = inner.state();
        inner.hold(&before, &mut next, Instant::now());
        let mut sends = std::mem::take(&mut inner.sends);
        for event in inner.gateway.events() {
            match event {
                GatewayEvent::Send(asp, octets) => sends.push((asp.0 as usize, octets)),
                GatewayEvent::Refused(asp, fault) => {
                    inner.meters.refused(fault.code);
                    tracing::debug!(link = asp.0, %fault, "message refused");
                }
                GatewayEvent::State(server, state) => {
                    let name = inner
                        .tables
                        .hops
                        .get(server.0)
                        .map_or("", |hop| hop.name.as_str());
                    tracing::info!(name, ?state, "state of an application server or link set");
                }
            }
        }
        sends.append(&mut inner.restart_notices(&next));
        let allowed = inner.take_allowed(&next);
        if next.is_as(&before) {
            self.send(sends);
            self.send(inner.transfers_to(&allowed, &next, &[]));
            // A link may be inactive for another reason.
            inner.alarm(&self.alarms, &before, &next);
            return;
        }
        self.state.store(Arc::new(next.without_new(&before)));
        inner.admit_since(self, &next);
        self.send(sends);
        inner.divert(self, &next);
        inner.release(self, &before, &next);
        inner.let_go(self, &before, &next);
        self.state.store(Arc::new(next.clone()));
        let notices = inner.changes(&before, &next, &allowed);
        self.send(notices);
        inner.forget(&self.alarms, &before);
        inner.alarm(&self.alarms, &before, &next);
    }

    fn send(&self, frames: Vec<(usize, Vec<u8>)>) {
        for (link, octets) in frames {
            let mailbox = self.mailboxes.get(link);
            if mailbox.is_some_and(|mailbox| !mailbox.put_management(octets)) {
                self.state.load().meters.dropped(Cause::Congested);
            }
        }
    }
}

pub(super) fn id(link: usize) -> AspId {
    AspId(link as u32)
}

/// Application servers and link sets as the granting side sees them, by hop.
fn servers(config: &Config, tables: &Tables) -> Vec<AsSettings> {
    let hops = tables.hops.iter().enumerate();
    let settings = hops.map(|(index, hop)| {
        let server = config.application_servers.get(index);
        AsSettings {
            routing_context: hop.key,
            traffic_mode: Some(hop.mode),
            wanted: server.map_or(1, |server| server.wanted),
            recovery: server.map_or(Duration::ZERO, |server| server.recovery.duration()),
            asps: hop
                .links
                .iter()
                .filter(|link| tables.grants(**link))
                .map(|link| id(*link))
                .collect(),
        }
    });
    settings.collect()
}

fn asp(tables: &Tables, link: usize) -> Option<Asp> {
    if !tables.asks(link) {
        return None;
    }
    let mine = tables.hops.iter().filter(|hop| hop.links.contains(&link));
    let settings = AspSettings {
        routing_contexts: mine.filter_map(|hop| hop.context).collect(),
        traffic_mode: Some(TrafficMode::Loadshare),
        // The link has heartbeats of its own, in every role.
        heartbeat_interval: Duration::ZERO,
        ..AspSettings::default()
    };
    Some(Asp::new(settings))
}
