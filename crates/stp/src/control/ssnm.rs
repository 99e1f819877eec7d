//! What peers are notified of the network, and what they ask (RFC 4666 §3.4, §4.5).

use ss7_proto::PointCode;
use ss7_proto::m3ua::{AffectedPointCode, Builder, ErrorCode, Fault, Message, MessageType, Tag};

use super::{Control, Inner};
use crate::path::Notice;
use crate::state::State;
use crate::tables::Cluster;

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
            MessageType::Daud => self.send(audit(&state, link, &concerned.hops, codes)),
            MessageType::Duna | MessageType::Dava | MessageType::Drst => {
                let bars = kind == MessageType::Duna;
                let hops: Vec<usize> = concerned.hops.iter().map(|hop| usize::from(*hop)).collect();
                let codes: Vec<AffectedPointCode> = codes.collect();
                self.change(|inner| inner.bar(&hops, &codes, bars));
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
    /// A signalling gateway calls destinations unavailable, or available again.
    fn bar(&mut self, hops: &[usize], codes: &[AffectedPointCode], bars: bool) {
        for destination in &self.tables.routes.destinations {
            let cluster = destination.cluster;
            // A part of a cluster says nothing of the cluster.
            let whole = |code: &AffectedPointCode| code.mask >= cluster.wild && code.covers(cluster.code);
            if !codes.iter().any(whole) {
                continue;
            }
            for via in destination.via.iter().filter(|via| hops.contains(&via.hop)) {
                if bars {
                    self.barred.insert((via.hop, cluster));
                } else {
                    self.barred.remove(&(via.hop, cluster));
                }
            }
        }
    }

    /// What follows from a change of states: notices for peers, and what is known of links that are down no longer counts.
    pub(super) fn changes(&mut self, before: &State, next: &State) -> Vec<(usize, Vec<u8>)> {
        self.barred
            .retain(|(hop, _)| next.forward.hops.get(*hop).is_some_and(|hop| !hop.up.is_empty()));
        let mut sends = Vec::new();
        let same = std::sync::Arc::ptr_eq(&before.tables, &next.tables);
        for (kind, wanted) in [(MessageType::Duna, false), (MessageType::Dava, true)] {
            let mut changed = Vec::new();
            for (at, destination) in next.tables.routes.destinations.iter().enumerate() {
                let is = available(next, at);
                let was = match same {
                    true => available(before, at),
                    // A destination that a reload has added was not available.
                    false => before
                        .tables
                        .routes
                        .destinations
                        .iter()
                        .position(|one| one.cluster == destination.cluster)
                        .is_some_and(|at| available(before, at)),
                };
                if is != was && is == wanted {
                    tracing::info!(
                        destination = destination.cluster.show(next.tables.points.plan),
                        available = is,
                        "destination"
                    );
                    changed.push(at);
                }
            }
            if wanted && !changed.is_empty() {
                // A node that returns has all its subsystems, until it says otherwise (Q.714 §5.2.2).
                let returned = |code: PointCode| {
                    next.tables
                        .routes
                        .find(code)
                        .is_some_and(|at| changed.contains(&at))
                };
                self.prohibited.retain(|(code, _), _| !returned(*code));
            }
            for link in 0..next.tables.links.len() {
                sends.extend(concerned(next, link, kind, &changed));
            }
        }
        sends
    }
}

fn available(state: &State, destination: usize) -> bool {
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
fn concerned(state: &State, link: usize, kind: MessageType, destinations: &[usize]) -> Vec<(usize, Vec<u8>)> {
    let all = &state.tables.routes.destinations;
    let mut by_contexts: Vec<(Vec<u32>, Vec<u32>)> = Vec::new();
    for destination in destinations.iter().filter_map(|at| all.get(*at)) {
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
    if let Some(appearance) = state.tables.network_appearance {
        builder.word(Tag::NETWORK_APPEARANCE, appearance);
    }
    if !contexts.is_empty() {
        builder.words(Tag::ROUTING_CONTEXT, contexts);
    }
    builder.words(Tag::AFFECTED_POINT_CODE, codes);
    builder.finish();
    out
}

/// Answers DAUD: DAVA and DUNA for each point code, and for each destination within a mask (RFC 4666 §4.5.3).
fn audit(
    state: &State,
    link: usize,
    hops: &[u16],
    codes: impl Iterator<Item = AffectedPointCode>,
) -> Vec<(usize, Vec<u8>)> {
    let (mut up, mut down) = (Vec::new(), Vec::new());
    let tables = &state.tables;
    // Several masks may cover one destination.
    let mut listed = vec![false; tables.routes.destinations.len()];
    for code in codes {
        if code.mask == 0 {
            let here = tables.points.are(code.code) || state.is_reachable(code.code);
            let list = if here { &mut up } else { &mut down };
            list.push(code.number());
            continue;
        }
        for ((at, destination), listed) in tables.routes.destinations.iter().enumerate().zip(&mut listed) {
            let cluster = destination.cluster;
            if *listed || cluster.wild > code.mask || !code.covers(cluster.code) {
                continue;
            }
            *listed = true;
            let list = if available(state, at) { &mut up } else { &mut down };
            list.push(affected(cluster));
        }
    }
    let contexts = hops
        .iter()
        .filter_map(|hop| state.tables.hops.get(usize::from(*hop))?.context);
    let contexts: Vec<u32> = contexts.collect();
    let mut sends = Vec::new();
    for (kind, codes) in [(MessageType::Dava, up), (MessageType::Duna, down)] {
        for codes in codes.chunks(CODES) {
            sends.push((link, message(state, kind, &contexts, codes)));
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
        Notice::Congested(code) => out.extend(message(state, MessageType::Scon, &context, &one(code))),
        Notice::NoUser(code, si) => {
            let mut builder = Builder::new(MessageType::Dupu, out);
            if let Some(appearance) = state.tables.network_appearance {
                builder.word(Tag::NETWORK_APPEARANCE, appearance);
            }
            if !context.is_empty() {
                builder.words(Tag::ROUTING_CONTEXT, &context);
            }
            builder.words(Tag::AFFECTED_POINT_CODE, &one(code));
            builder.word(Tag::USER_CAUSE, UNEQUIPPED << 16 | u32::from(si.0));
            builder.finish();
        }
    }
}
