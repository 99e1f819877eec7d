//! What peers are notified of the network, and what they ask (RFC 4666 §3.4, §4.5).

use std::cmp::Reverse;
use std::time::Instant;

use ahash::{AHashMap, AHashSet};
use ss7_proto::m3ua::{AffectedPointCode, Builder, ErrorCode, Fault, Message, MessageType, Tag};
use ss7_proto::mtp3::Management;
use ss7_proto::{Plan, PointCode};

use super::links::to_peer;
use super::transfers::Report;
use super::{Control, Inner, Mailbox};
use crate::cause::Cause;
use crate::path::Notice;
use crate::state::State;
use crate::tables::{Cluster, Destination, Via};

/// Point codes of one message: it stays below 512 octets.
const CODES: usize = 100;
/// Cause and user of DUPU: "unequipped remote user" (RFC 4666 §3.4.5).
const UNEQUIPPED: u32 = 1;

impl Control {
    /// A message of SSNM: it counts for those of its routing contexts for which the peer is active, and is refused for the
    /// others, by kind.
    pub(crate) fn ssnm(&self, link: usize, message: &Message<'_>) -> Vec<Fault> {
        let state = self.state.load();
        let kind = message.message_type();
        let may = match kind {
            MessageType::Daud => state.tables.grants(link),
            // Congestion goes either way, and is for the peer's own flow control: this STP has its queues.
            MessageType::Scon => true,
            _ => state.tables.asks(link),
        };
        if !may {
            return vec![unexpected("the role of the peer does not have this message")];
        }
        if let Err(fault) = state.network(message.word(Tag::NETWORK_APPEARANCE)) {
            return vec![fault];
        }
        let contexts: Vec<u32> = message.routing_contexts().collect();
        let concerned = state.concerned(link, &contexts);
        let mut faults = Vec::new();
        if contexts.is_empty() && concerned.hops.is_empty() {
            return vec![unexpected("the peer is not active")];
        }
        if !concerned.foreign.is_empty() {
            let reason = "the link has no such routing context";
            faults.push(Fault::about(
                ErrorCode::InvalidRoutingContext,
                concerned.foreign,
                reason,
            ));
        }
        if !concerned.inactive.is_empty() {
            let reason = "the peer is not active for the routing context";
            faults.push(Fault::about(
                ErrorCode::UnexpectedMessage,
                concerned.inactive,
                reason,
            ));
        }
        if concerned.hops.is_empty() {
            return faults;
        }
        let codes = AffectedPointCode::list(message.get(Tag::AFFECTED_POINT_CODE).unwrap_or_default());
        match kind {
            // What the peer has not read yet leaves no room for an answer.
            MessageType::Daud if !self.mailboxes.get(link).is_some_and(Mailbox::has_room) => {
                state.meters.dropped(Cause::Congested);
            }
            MessageType::Daud => self.send(audit(&state, link, &concerned.hops, codes)),
            MessageType::Duna | MessageType::Dava | MessageType::Drst => {
                let hops = concerned.hops.iter().map(|hop| usize::from(*hop));
                let codes: Vec<AffectedPointCode> = codes.collect();
                let reports = hops.flat_map(|hop| {
                    let report = move |code: &AffectedPointCode| Report {
                        hop,
                        cluster: Cluster::new(code.code, code.mask),
                        prohibits: kind == MessageType::Duna,
                    };
                    codes.iter().map(report)
                });
                self.report(reports, Instant::now());
            }
            _ => {}
        }
        faults
    }
}

fn unexpected(reason: &'static str) -> Fault {
    Fault::new(ErrorCode::UnexpectedMessage, reason)
}

impl Inner {
    /// What follows from a change of states: notices for peers, and what is known of links that are down no longer counts.
    pub(super) fn changes(
        &mut self,
        before: &State,
        next: &State,
        allowed: &[usize],
    ) -> Vec<(usize, Vec<u8>)> {
        let sets = &self.sets;
        let is_up = |hop: usize| next.forward.hops.get(hop).is_some_and(|hop| !hop.up.is_empty());
        let reports = |hop: usize| is_up(hop) || sets.is_in_service(hop);
        self.barred.retain(|(hop, _), _| reports(*hop));
        self.transfers.retain(reports);
        let changed = changed(before, next);
        for one in &changed {
            tracing::info!(
                destination = one.cluster.show(next.tables.points.plan),
                available = one.available,
                "destination"
            );
        }
        // A node that returns has all its subsystems, until it says otherwise (Q.714 §5.2.2).
        let routes = &next.tables.routes;
        let returned = |code: PointCode| {
            let destination = routes.find(code).and_then(|at| routes.destinations.get(at));
            destination.is_some_and(|found| {
                changed
                    .iter()
                    .any(|one| one.available && one.cluster == found.cluster)
            })
        };
        self.prohibited.retain(|(code, _), _| !returned(*code));
        let mut sends = self.transfers_to(allowed, next, &changed);
        let now = self.allowed.collect(next, changed, Instant::now());
        sends.extend(notices(next, with_narrower(next, now)));
        sends
    }

    /// The hops whose nodes get TRA: those of them whose links have not failed since.
    pub(super) fn take_allowed(&mut self, next: &State) -> Vec<usize> {
        let mut allowed = std::mem::take(&mut self.restarts.allowed);
        allowed.retain(|hop| next.forward.hops.get(*hop).is_some_and(|hop| !hop.up.is_empty()));
        allowed
    }

    /// What adjacent nodes behind links of M2PA get to know (Q.704 §13.2.2, §13.3.2): the destinations that have changed; those in
    /// `allowed` all that are prohibited, and TRA (§9). A node that restarts says nothing before. They are point codes,
    /// and clusters of ANSI.
    pub(super) fn transfers_to(
        &self,
        allowed: &[usize],
        next: &State,
        changed: &[Known<'_>],
    ) -> Vec<(usize, Vec<u8>)> {
        let mut sends = Vec::new();
        if self.restarts.is_restarting() {
            return sends;
        }
        let plan = next.tables.points.plan;
        for (at, hop) in next.tables.hops.iter().enumerate() {
            if hop.adjacent.is_none() {
                continue;
            }
            let concerns = |cluster: Cluster, via: &[Via]| {
                (cluster.wild == 0 || cluster.is_of(plan)) && via.iter().all(|via| via.hop != at)
            };
            let mut notify = |message| sends.extend(to_peer(next, Some(at), message));
            if !allowed.contains(&at) {
                for one in changed.iter().filter(|one| concerns(one.cluster, one.via)) {
                    notify(transfer(one.cluster, one.available));
                }
                continue;
            }
            // What follows may take its time (T1.111.4 §9.4).
            if plan == Plan::Ansi {
                notify(Management::TrafficRestartWaiting);
            }
            for (at, Destination { cluster, via }) in next.tables.routes.destinations.iter().enumerate() {
                if concerns(*cluster, via) && !available(next, at) {
                    notify(transfer(*cluster, false));
                }
            }
            notify(Management::TrafficRestartAllowed);
        }
        sends
    }
}

/// DUNA and DAVA for each peer. What is wider comes first: it covers what is narrower.
pub(super) fn notices(next: &State, named: Vec<Known<'_>>) -> Vec<(usize, Vec<u8>)> {
    let mut sends = Vec::new();
    for link in 0..next.tables.links.len() {
        for width in named.chunk_by(|one, other| one.cluster.wild == other.cluster.wild) {
            for (kind, wanted) in [(MessageType::Duna, false), (MessageType::Dava, true)] {
                let those = width.iter().filter(|one| one.available == wanted);
                sends.extend(concerned(next, link, kind, those));
            }
        }
    }
    sends
}

/// What peers get to know of a destination.
pub(super) struct Known<'a> {
    pub(super) cluster: Cluster,
    pub(super) via: &'a [Via],
    pub(super) available: bool,
}

/// Destinations whose state differs. One that a reload has added or removed belongs to what is around it before or behind.
fn changed<'a>(before: &'a State, next: &'a State) -> Vec<Known<'a>> {
    let same = std::sync::Arc::ptr_eq(&before.tables, &next.tables);
    let (old, new) = (&before.tables.routes, &next.tables.routes);
    let mut found = Vec::new();
    let mut compare = |destination: &'a Destination, was: bool, is: bool| {
        if was != is {
            found.push(Known {
                cluster: destination.cluster,
                via: &destination.via,
                available: is,
            });
        }
    };
    for (at, destination) in new.destinations.iter().enumerate() {
        let was = if same {
            available(before, at)
        } else {
            before.reaches(destination.cluster)
        };
        compare(destination, was, available(next, at));
    }
    if !same {
        for (at, destination) in old.destinations.iter().enumerate() {
            if !new.has(destination.cluster) {
                compare(
                    destination,
                    available(before, at),
                    next.reaches(destination.cluster),
                );
            }
        }
    }
    found
}

/// TFA or TFP, of a cluster TCA or TCP.
const fn transfer(cluster: Cluster, available: bool) -> Management {
    match (cluster.wild, available) {
        (0, true) => Management::TransferAllowed(cluster.code),
        (0, false) => Management::TransferProhibited(cluster.code),
        (_, true) => Management::ClusterAllowed(cluster.code),
        (_, false) => Management::ClusterProhibited(cluster.code),
    }
}

/// A mask covers every point code within it (RFC 4666 §3.4.1): narrower destinations of the other state are named behind it.
pub(super) fn with_narrower<'a>(next: &'a State, mut named: Vec<Known<'a>>) -> Vec<Known<'a>> {
    let mut masks: AHashMap<Cluster, bool> = named
        .iter()
        .filter(|one| one.cluster.wild > 0)
        .map(|one| (one.cluster, one.available))
        .collect();
    if !masks.is_empty() {
        let listed: AHashSet<Cluster> = named.iter().map(|one| one.cluster).collect();
        let all = next.tables.routes.destinations.iter().enumerate();
        let mut rest: Vec<(usize, &Destination)> =
            all.filter(|(_, one)| !listed.contains(&one.cluster)).collect();
        rest.sort_by_key(|(_, one)| Reverse(one.cluster.wild));
        for (at, Destination { cluster, via }) in rest {
            let nearest = cluster.around().skip(1).find_map(|wider| masks.get(&wider));
            let available = available(next, at);
            if nearest.is_some_and(|named| *named != available) {
                masks.insert(*cluster, available);
                named.push(Known {
                    cluster: *cluster,
                    via,
                    available,
                });
            }
        }
    }
    named.sort_by_key(|one| Reverse(one.cluster.wild));
    named
}

pub(super) fn available(state: &State, destination: usize) -> bool {
    state
        .forward
        .destinations
        .get(destination)
        .is_some_and(|hops| !hops.is_empty())
}

/// The contexts of active application servers of a link that do not serve a destination themselves.
fn contexts(state: &State, link: usize, serves: impl Fn(usize) -> bool) -> Option<Vec<u32>> {
    if !state.tables.grants(link) {
        return None;
    }
    let hops = state.admission.get(link)?.iter().map(|hop| usize::from(*hop));
    let others: Vec<usize> = hops.filter(|hop| !serves(*hop)).collect();
    if others.is_empty() {
        return None;
    }
    Some(
        others
            .iter()
            .filter_map(|hop| state.tables.hops.get(*hop)?.context)
            .collect(),
    )
}

/// Notifies a link of destinations, if it has application servers that may send there.
fn concerned<'a>(
    state: &State,
    link: usize,
    kind: MessageType,
    destinations: impl Iterator<Item = &'a Known<'a>>,
) -> Vec<(usize, Vec<u8>)> {
    let mut by_contexts: Vec<(Vec<u32>, Vec<u32>)> = Vec::new();
    for destination in destinations {
        // A peer that is a node itself (IPSP) needs no notice of what is behind it.
        let is_peer = |via: usize| {
            let other = state.tables.hops.get(via);
            other.is_some_and(|other| !other.is_server && other.links.contains(&link))
        };
        let serves = |hop| {
            let mut via = destination.via.iter();
            via.any(|via| via.hop == hop || is_peer(via.hop))
        };
        let Some(contexts) = contexts(state, link, serves) else {
            continue;
        };
        let code = affected(destination.cluster);
        match by_contexts.iter_mut().find(|(others, _)| *others == contexts) {
            Some((_, codes)) => codes.push(code),
            None => by_contexts.push((contexts, vec![code])),
        }
    }
    let messages = by_contexts.iter().flat_map(|(contexts, codes)| {
        codes
            .chunks(CODES)
            .map(move |codes| (link, message(state, kind, contexts, codes)))
    });
    messages.collect()
}

fn affected(cluster: Cluster) -> u32 {
    AffectedPointCode {
        mask: cluster.wild,
        code: cluster.code,
    }
    .number()
}

fn message(state: &State, kind: MessageType, contexts: &[u32], codes: &[u32]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut builder = Builder::new(kind, &mut out);
    start(state, contexts, &mut builder);
    builder.words(Tag::AFFECTED_POINT_CODE, codes);
    builder.finish();
    out
}

/// The parameters that messages of SSNM begin with.
fn start(state: &State, contexts: &[u32], builder: &mut Builder<'_>) {
    if let Some(appearance) = state.tables.network_appearance {
        builder.word(Tag::NETWORK_APPEARANCE, appearance);
    }
    if !contexts.is_empty() {
        builder.words(Tag::ROUTING_CONTEXT, contexts);
    }
}

/// Answers DAUD: DAVA and DUNA for each point code, and for each destination within a mask (RFC 4666 §4.5.3).
fn audit(
    state: &State,
    link: usize,
    hops: &[u16],
    codes: impl Iterator<Item = AffectedPointCode>,
) -> Vec<(usize, Vec<u8>)> {
    let tables = &state.tables;
    let (single, masks): (Vec<AffectedPointCode>, Vec<AffectedPointCode>) =
        codes.partition(|code| code.mask == 0);
    let mut states: Vec<(AffectedPointCode, bool)> = single
        .into_iter()
        .map(|one| {
            let is_available = tables.points.are(one.code) || state.is_reachable(one.code);
            (one, is_available)
        })
        .collect();
    // A message has thousands of masks: they are looked up by destination, each of which is named once.
    let masks: AHashSet<Cluster> = masks.iter().map(|one| Cluster::new(one.code, one.mask)).collect();
    for (at, Destination { cluster, .. }) in tables.routes.destinations.iter().enumerate() {
        if !masks.is_empty() && cluster.around().any(|wider| masks.contains(&wider)) {
            let affected = AffectedPointCode {
                mask: cluster.wild,
                code: cluster.code,
            };
            states.push((affected, available(state, at)));
        }
    }
    let contexts = hops
        .iter()
        .filter_map(|hop| state.tables.hops.get(usize::from(*hop))?.context);
    let contexts: Vec<u32> = contexts.collect();
    let mut sends = Vec::new();
    // What is wider comes first: it covers what is narrower.
    states.sort_by_key(|(code, _)| Reverse(code.mask));
    for width in states.chunk_by(|(one, _), (other, _)| one.mask == other.mask) {
        for (kind, wanted) in [(MessageType::Dava, true), (MessageType::Duna, false)] {
            let those = width.iter().filter(|(_, available)| *available == wanted);
            let codes: Vec<u32> = those.map(|(code, _)| code.number()).collect();
            for codes in codes.chunks(CODES) {
                sends.push((link, message(state, kind, &contexts, codes)));
            }
        }
    }
    sends
}

/// The message that notifies the sender of an MSU.
pub(crate) fn notice(state: &State, hop: usize, notice: Notice, out: &mut Vec<u8>) {
    let context: Vec<u32> = state
        .tables
        .hops
        .get(hop)
        .and_then(|hop| hop.context)
        .into_iter()
        .collect();
    let one = |code: PointCode| [AffectedPointCode { mask: 0, code }.number()];
    match notice {
        Notice::Unreachable(code) => out.extend(message(state, MessageType::Duna, &context, &one(code))),
        Notice::Congested(code, level) => {
            let mut builder = Builder::new(MessageType::Scon, out);
            start(state, &context, &mut builder);
            builder.words(Tag::AFFECTED_POINT_CODE, &one(code));
            // International networks have no levels (Q.704 §11.2.3).
            if state.tables.points.has_levels() {
                builder.word(Tag::CONGESTION_INDICATIONS, u32::from(level));
            }
            builder.finish();
        }
        Notice::NoUser(code, si) => {
            let mut builder = Builder::new(MessageType::Dupu, out);
            start(state, &context, &mut builder);
            builder.words(Tag::AFFECTED_POINT_CODE, &one(code));
            builder.word(Tag::USER_CAUSE, UNEQUIPPED << 16 | u32::from(si.0));
            builder.finish();
        }
    }
}
