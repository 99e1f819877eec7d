//! What pages and gauges show.

use serde::Serialize;
use ss7_proto::mtp3::Inhibited;

use super::{Control, Inner};

/// A link.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LinkRow {
    pub(crate) name: String,
    /// `active`, `inhibited` or `inactive`.
    pub(crate) state: &'static str,
    /// Why it is not active.
    pub(crate) reason: String,
    pub(crate) peer: String,
    /// Application servers and link sets for which the peer is active.
    pub(crate) active: Vec<String>,
    pub(crate) received: u64,
    pub(crate) sent: u64,
    pub(crate) queued: usize,
}

/// An application server or link set.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HopRow {
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    /// `active`, `restarting` (TRA is awaited), `pending` or `inactive`.
    pub(crate) state: &'static str,
    pub(crate) routing_context: Option<u32>,
    /// Links whose peers are active.
    pub(crate) links: Vec<String>,
    pub(crate) received: u64,
    pub(crate) sent: u64,
}

/// A destination.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RouteRow {
    pub(crate) destination: String,
    /// `available` or `unreachable`.
    pub(crate) state: &'static str,
    /// Hops that take its messages now.
    pub(crate) taken_by: Vec<String>,
    /// All routes, `name (priority)`.
    pub(crate) routes: Vec<String>,
}

impl Inner {
    /// The state of a link, and why it is not active.
    pub(super) fn condition(&self, link: usize) -> (&'static str, String) {
        if let Some(reason) = self.reason(link) {
            return ("inactive", reason);
        }
        let hop = self.tables.set_of(link);
        let inhibited = hop.map(|hop| self.sets.inhibited(hop, link, &self.tables));
        let by = match inhibited {
            None | Some(Inhibited::No) => return ("active", String::new()),
            Some(Inhibited::Requested) => {
                return (
                    "active",
                    "the peer has not answered that it is to be inhibited".to_owned(),
                );
            }
            Some(Inhibited::Local) => "inhibited by this STP",
            Some(Inhibited::Remote) => "inhibited by the peer",
            Some(Inhibited::Both) => "inhibited by this STP and by the peer",
        };
        ("inhibited", by.to_owned())
    }
}

impl Control {
    pub(crate) fn links(&self) -> Vec<LinkRow> {
        let inner = self.inner.lock();
        let state = self.state.load();
        let hop = |at: &u16| {
            state
                .tables
                .hops
                .get(usize::from(*at))
                .map(|hop| hop.name.clone())
        };
        let value = |counters: &[telemetry::Counter], at: usize| {
            counters.get(at).map_or(0, telemetry::Counter::value)
        };
        let links = state.tables.links.iter().enumerate();
        let rows = links.map(|(at, link)| {
            let (state_name, reason) = inner.condition(at);
            let peer = inner.links.get(at).and_then(|status| status.peer);
            LinkRow {
                name: link.name.clone(),
                state: state_name,
                reason,
                peer: peer.map_or_else(String::new, |peer| peer.to_string()),
                active: state
                    .admission
                    .get(at)
                    .into_iter()
                    .flatten()
                    .filter_map(hop)
                    .collect(),
                received: value(&state.meters.received, at),
                sent: value(&state.meters.sent, at),
                queued: self.mailboxes.get(at).map_or(0, super::Mailbox::queued),
            }
        });
        rows.collect()
    }

    pub(crate) fn hops(&self) -> Vec<HopRow> {
        let state = self.state.load();
        let link = |at: &u16| {
            state
                .tables
                .links
                .get(usize::from(*at))
                .map(|link| link.name.clone())
        };
        let value = |counters: &[telemetry::Counter], at: usize| {
            counters.get(at).map_or(0, telemetry::Counter::value)
        };
        let hops = state.tables.hops.iter().zip(&state.forward.hops).enumerate();
        let rows = hops.map(|(at, (hop, now))| HopRow {
            name: hop.name.clone(),
            kind: if hop.is_server {
                "application server"
            } else {
                "link set"
            },
            state: match (now.up.is_empty(), now.pending) {
                (false, _) if now.restarting => "restarting",
                (false, _) => "active",
                (true, true) => "pending",
                (true, false) => "inactive",
            },
            routing_context: hop.context,
            links: now.up.iter().filter_map(link).collect(),
            received: value(&state.meters.ingress, at),
            sent: value(&state.meters.egress, at),
        });
        rows.collect()
    }

    pub(crate) fn routes(&self) -> Vec<RouteRow> {
        let state = self.state.load();
        let tables = &state.tables;
        let name = |at: usize| tables.hops.get(at).map_or("", |hop| hop.name.as_str());
        let all = tables.routes.destinations.iter().zip(&state.forward.destinations);
        let rows = all.map(|(destination, hops)| RouteRow {
            destination: destination.cluster.show(tables.points.plan),
            state: if hops.is_empty() {
                "unreachable"
            } else {
                "available"
            },
            taken_by: hops
                .iter()
                .map(|hop| name(usize::from(*hop)).to_owned())
                .collect(),
            routes: destination
                .via
                .iter()
                .map(|via| format!("{} ({})", name(via.hop), via.priority))
                .collect(),
        });
        rows.collect()
    }
}
