//! Link sets of M2PA: changeover and changeback, and the MSUs that a failed link leaves (Q.704 §5, §6; RFC 4165 §4.2.1).

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use ss7_proto::PointCode;
use ss7_proto::m2pa::{forward_number, messages_behind};
use ss7_proto::mtp3::{Carrier, Inhibited, LinkSet, LinkSetEvent, Management};

use super::{Control, Frame, Inner};
use crate::cause::Cause;
use crate::config::Config;
use crate::path::management_frame;
use crate::state::{State, Target};
use crate::tables::{Cluster, Tables};

/// What a failed link leaves.
pub(crate) struct Remains {
    /// FSN of the last MSU that was accepted from the peer.
    pub(crate) accepted: u32,
    /// MSUs that were sent and not acknowledged.
    pub(crate) sent: VecDeque<Frame>,
    /// MSUs that were not sent.
    pub(crate) unsent: Vec<Frame>,
}

/// The link sets of M2PA.
pub(super) struct Sets {
    /// By hop.
    all: Vec<Option<LinkSet>>,
    /// By link, until the peer says what it has accepted.
    remains: HashMap<usize, Remains>,
    /// MSUs for the carriers of the next state, by hop.
    diverted: Vec<(usize, Frame)>,
    /// Links that carry MSUs from the next state on.
    opened: Vec<usize>,
    /// Messages that do not have to stay behind the queue of their link: MSUs are held until they arrive.
    urgent: Vec<(usize, Vec<u8>)>,
    /// Links whose associations have to end.
    ordered: Vec<usize>,
}

impl Sets {
    pub(super) fn new(config: &Config, tables: &Tables) -> Self {
        let selections = 1 << tables.points.plan.sls_bits();
        let hops = tables.hops.iter().map(|hop| {
            hop.adjacent?;
            let codes: Vec<u8> = (0..hop.links.len() as u8).collect();
            Some(LinkSet::new(config.mtp.timers(), &codes, selections))
        });
        Self {
            all: hops.collect(),
            remains: HashMap::new(),
            diverted: Vec::new(),
            opened: Vec::new(),
            urgent: Vec::new(),
            ordered: Vec::new(),
        }
    }

    fn get(&self, hop: usize) -> Option<&LinkSet> {
        self.all.get(hop)?.as_ref()
    }

    pub(super) fn wake(&self) -> Option<Instant> {
        self.all.iter().flatten().filter_map(LinkSet::wake).min()
    }

    /// Whether a link of a hop is available.
    pub(super) fn has_link(&self, hop: usize) -> bool {
        self.get(hop).is_some_and(|set| set.up().next().is_some())
    }

    /// Whether a link of a hop is in service, tested or not.
    pub(super) fn is_in_service(&self, hop: usize) -> bool {
        self.get(hop).is_some_and(LinkSet::is_in_service)
    }

    /// Whether a link of a hop carries its traffic; `None` for a hop of M3UA.
    pub(super) fn is_up(&self, hop: usize, link: usize, tables: &Tables) -> Option<bool> {
        let set = self.get(hop)?;
        let at = position(tables, hop, link);
        Some(at.is_some_and(|at| set.up().any(|up| up == at)))
    }

    /// Who inhibits a link of a hop.
    pub(super) fn inhibited(&self, hop: usize, link: usize, tables: &Tables) -> Inhibited {
        let set = self.get(hop).zip(position(tables, hop, link));
        set.map_or(Inhibited::No, |(set, at)| set.inhibited(at))
    }

    /// By link selection; none for a hop of M3UA.
    pub(super) fn carriers(&self, hop: usize) -> Vec<Carrier> {
        self.get(hop)
            .map_or_else(Vec::new, |set| set.carriers().collect())
    }
}

/// The position of a link in its hop.
fn position(tables: &Tables, hop: usize, link: usize) -> Option<usize> {
    tables.hops.get(hop)?.links.iter().position(|one| *one == link)
}

impl Control {
    /// Whether a link may be aligned, and then whether it is the first of its set: an emergency.
    pub(crate) fn may_align(&self, link: usize) -> Option<bool> {
        let inner = self.inner.lock();
        let hop = inner.tables.set_of(link)?;
        let set = inner.sets.get(hop)?;
        let at = position(&inner.tables, hop, link)?;
        set.may_start(at).then(|| set.up().next().is_none())
    }

    /// How far a link has come.
    pub(crate) fn stage(&self, link: usize, stage: &'static str) {
        if let Some(status) = self.inner.lock().links.get_mut(link) {
            status.stage = stage;
        }
    }

    /// A link is in service; its test follows.
    pub(crate) fn in_service(&self, link: usize) {
        self.stage(link, "which has not acknowledged a link test (SLTM)");
        self.inner.lock().with_set(link, |set, at, _| set.in_service(at));
    }

    /// A link has passed its test.
    pub(crate) fn restored(&self, link: usize) {
        self.change(|inner| {
            inner.with_set(link, |set, at, events| set.restored(at, Instant::now(), events));
            if inner.carries(link) {
                inner.sets.opened.push(link);
            }
        });
    }

    /// A link has failed; nothing is put into its mailbox any more.
    pub(crate) fn failed(&self, link: usize, mut remains: Remains) {
        self.change(|inner| {
            let accepted = remains.accepted;
            // Until now the set had it as up: what a changeover or changeback has diverted to it since its end comes last.
            if let Some(mailbox) = self.mailboxes.get(link) {
                remains.unsent.append(&mut mailbox.take_diverted());
            }
            // An association that ends before its link carries anything leaves nothing, while the changeover of the one before
            // may be in progress.
            if inner.carries(link) {
                inner.sets.remains.insert(link, remains);
            }
            inner.with_set(link, |set, at, events| {
                set.failed(at, accepted, Instant::now(), events);
            });
        });
    }

    /// A message of network management from the node behind a link.
    pub(crate) fn network_management(&self, link: usize, code: u8, message: Management) {
        let now = Instant::now();
        // Traffic of this STP has no better route while this one is restricted: it is used.
        let transfer = match message {
            Management::TransferProhibited(code) => Some((Cluster::new(code, 0), true)),
            Management::TransferAllowed(code) | Management::TransferRestricted(code) => {
                Some((Cluster::new(code, 0), false))
            }
            Management::ClusterProhibited(code) => Some((Cluster::of_ansi(code), true)),
            Management::ClusterAllowed(code) | Management::ClusterRestricted(code) => {
                Some((Cluster::of_ansi(code), false))
            }
            _ => None,
        };
        if let Some((cluster, prohibits)) = transfer {
            return self.transfer(link, cluster, prohibits, now);
        }
        let state = self.state.load();
        // Tests change nothing.
        let answer = match message {
            Management::RouteSetTest(code) if state.is_reachable(code) => Management::TransferAllowed(code),
            Management::ClusterTest(code) if state.reaches(Cluster::of_ansi(code)) => {
                Management::ClusterAllowed(code)
            }
            Management::RouteSetTest(_) | Management::ClusterTest(_) => return,
            _ => return self.change(|inner| inner.follow_message(link, code, message, now)),
        };
        let send = to_peer(&state, state.tables.set_of(link), answer);
        self.send(send.into_iter().collect());
    }

    /// Notifies the node behind a hop that a destination cannot be reached by this STP (Q.704 §13.2.2 iii).
    pub(crate) fn prohibit(&self, state: &State, hop: usize, code: PointCode) {
        self.send(
            to_peer(state, Some(hop), Management::TransferProhibited(code))
                .into_iter()
                .collect(),
        );
    }

    /// Sends an MSU of a failed link, or one that was held, by the link that carries its link selection now. The queue has room
    /// for all of them: they were in another one before.
    pub(super) fn forward(&self, target: &Target, frame: Frame) {
        if let Target::Link(link) = target
            && let Some(mailbox) = self.mailboxes.get(usize::from(*link))
        {
            mailbox.put_diverted(frame);
        }
    }
}

impl Inner {
    pub(super) fn tick_sets(&mut self, now: Instant) {
        for hop in 0..self.sets.all.len() {
            let mut events = Vec::new();
            if let Some(Some(set)) = self.sets.all.get_mut(hop) {
                set.tick(now, &mut events);
            }
            self.follow(hop, events);
        }
    }

    fn follow_message(&mut self, link: usize, code: u8, message: Management, now: Instant) {
        match message {
            Management::TrafficRestartAllowed => self.traffic_restart(link, now),
            Management::TrafficRestartWaiting => self.traffic_restart_waiting(link, now),
            Management::Inhibiting(message) => self.with_set(link, |set, _, events| {
                set.inhibiting(code, message, now, events);
            }),
            _ => self.with_set(link, |set, _, events| set.received(code, message, events)),
        }
    }

    /// Whether a link carries the traffic of its set.
    fn carries(&self, link: usize) -> bool {
        let hop = self.tables.set_of(link);
        hop.and_then(|hop| self.sets.is_up(hop, link, &self.tables)) == Some(true)
    }

    pub(super) fn with_set(
        &mut self,
        link: usize,
        act: impl FnOnce(&mut LinkSet, usize, &mut Vec<LinkSetEvent>),
    ) {
        let Some(hop) = self.tables.set_of(link) else {
            return;
        };
        let at = position(&self.tables, hop, link);
        let mut events = Vec::new();
        if let (Some(Some(set)), Some(at)) = (self.sets.all.get_mut(hop), at) {
            act(set, at, &mut events);
        }
        self.follow(hop, events);
    }

    fn follow(&mut self, hop: usize, events: Vec<LinkSetEvent>) {
        let tables = self.tables.clone();
        let link = |at: usize| tables.hops.get(hop)?.links.get(at).copied();
        for event in events {
            match event {
                LinkSetEvent::Send { by, code, message } => {
                    let frame = management_frame(&tables, hop, code, message);
                    let send = link(by).zip(frame);
                    if matches!(message, Management::ChangebackDeclaration(_)) {
                        self.sends.extend(send);
                    } else {
                        self.sets.urgent.extend(send);
                    }
                }
                LinkSetEvent::Fail(at) => self.sets.ordered.extend(link(at)),
                LinkSetEvent::Inhibition { link: at, outcome } => {
                    let link = link(at).and_then(|link| tables.links.get(link));
                    let link = link.map_or("", |link| link.name.as_str());
                    tracing::info!(link, ?outcome, "inhibition of a link");
                }
                LinkSetEvent::Divert { link: at, accepted } => {
                    if let Some(link) = link(at) {
                        self.retrieve(hop, link, accepted);
                    }
                }
            }
        }
    }

    /// Takes what a failed link has left, without what the peer has accepted.
    fn retrieve(&mut self, hop: usize, link: usize, accepted: Option<u32>) {
        let Some(remains) = self.sets.remains.remove(&link) else {
            return;
        };
        let count = remains.sent.len();
        let first = remains
            .sent
            .front()
            .and_then(|frame| forward_number(&frame.octets));
        let behind = match (first, accepted) {
            (None, _) => Some(0),
            (Some(first), Some(accepted)) => messages_behind(first, count, accepted),
            // Unknown: what the peer may have accepted is not sent twice.
            (Some(_), None) => None,
        };
        let lost = remains
            .sent
            .iter()
            .filter(|frame| behind.is_none() && frame.is_data)
            .count();
        (0..lost).for_each(|_| self.meters.dropped(Cause::Association));
        tracing::info!(
            link,
            sent = count,
            ?behind,
            unsent = remains.unsent.len(),
            lost,
            "messages of a failed link"
        );
        let sent = remains.sent.into_iter().skip(behind.unwrap_or(count));
        let all = sent.chain(remains.unsent).filter(|frame| frame.is_data);
        self.sets.diverted.extend(all.map(|frame| (hop, frame)));
    }

    /// Sends what is urgent, and ends the associations of links whose changeover the peer has ordered.
    pub(super) fn obey(&mut self, control: &Control) {
        for (link, octets) in std::mem::take(&mut self.sets.urgent) {
            if let Some(mailbox) = control.mailboxes.get(link) {
                mailbox.put_diverted(Frame::management(octets));
            }
        }
        for link in std::mem::take(&mut self.sets.ordered) {
            if let Some(mailbox) = control.mailboxes.get(link) {
                mailbox.order();
            }
        }
    }

    /// The queues of links that carry MSUs take those of the next state only: what older ones had for a link is behind what the
    /// link has in its queue already.
    pub(super) fn admit_since(&mut self, control: &Control, next: &State) {
        let opened = std::mem::take(&mut self.sets.opened);
        for (link, mailbox) in control.mailboxes.iter().enumerate() {
            if opened.contains(&link) {
                mailbox.open(next.number);
            } else {
                mailbox.advance(next.number);
            }
        }
    }

    /// Sends what failed links have left, before what was held.
    pub(super) fn divert(&mut self, control: &Control, next: &State) {
        let mut held: Vec<VecDeque<Frame>> = Vec::new();
        held.resize_with(self.pending.len(), VecDeque::new);
        for (hop, frame) in std::mem::take(&mut self.sets.diverted) {
            match next.target(hop, frame.sls, 1) {
                Some(Target::Pending) => {
                    if let Some(queue) = held.get_mut(hop) {
                        queue.push_back(frame);
                    }
                }
                Some(target) => control.forward(&target, frame),
                None => control.keep_within(self, next, frame),
            }
        }
        for (queue, mut before) in self.pending.iter_mut().zip(held) {
            before.append(queue);
            *queue = before;
        }
    }
}

/// A message to the node behind a hop, by one of its links.
pub(super) fn to_peer(state: &State, hop: Option<usize>, message: Management) -> Option<(usize, Vec<u8>)> {
    let hop = hop?;
    let link = state.forward.hops.get(hop)?.up.first()?;
    Some((
        usize::from(*link),
        management_frame(&state.tables, hop, 0, message)?,
    ))
}
