//! What the admin pages show: peers and routes as rows.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use diameter::{Connection, Node, PeerStatus};
use serde::Serialize;

use crate::registry::HopState;
use crate::router::{Core, Link, Router};
use crate::service::Shared;
use crate::snapshot::Snapshot;

/// How often a worker tells how its peers stand.
const REPORT: Duration = Duration::from_millis(500);

/// How a peer stands.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PeerRow {
    /// Its DiameterIdentity.
    pub host: String,
    /// Its realm, while it is connected.
    pub realm: String,
    /// Name of the local node.
    pub local_node: String,
    /// Position of its message processor.
    pub worker: usize,
    /// `available`, `degraded` or `unavailable`.
    pub state: &'static str,
    /// State of its machine, by RFC 6733 §5.6.
    pub machine: String,
    /// Where it is connected.
    pub address: String,
    /// Whether it is configured.
    pub configured: bool,
    /// Messages read.
    pub messages_in: u64,
    /// Messages sent.
    pub messages_out: u64,
    /// Requests that wait for its answer.
    pub pending: u32,
    /// Requests it did not answer in time.
    pub timeouts: u64,
}

/// A member of a route list.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RouteRow {
    /// Name of the list.
    pub list: String,
    /// Name of the group.
    pub group: String,
    /// Whether the group is the one that is used now.
    pub active: bool,
    /// The peer.
    pub host: String,
    /// How it stands.
    pub state: &'static str,
    /// Position of its message processor.
    pub worker: usize,
}

/// Every member of every route list.
pub(crate) fn routes(snapshot: &Snapshot) -> Vec<RouteRow> {
    let mut rows = Vec::new();
    for list in snapshot.lists() {
        let active = list.active();
        for (index, group) in list.groups().iter().enumerate() {
            rows.extend(group.hops().map(|hop| RouteRow {
                list: list.name.clone(),
                group: group.name.clone(),
                active: active == Some(index),
                host: hop.host.to_string(),
                state: hop.state().as_str(),
                worker: hop.home(),
            }));
        }
    }
    rows
}

/// The peers of all workers, by name.
pub(crate) fn peers(shared: &Shared) -> Vec<PeerRow> {
    let mut rows: Vec<PeerRow> = shared
        .reports
        .iter()
        .flat_map(|report| Vec::clone(&report.load()))
        .collect();
    rows.sort_by(|a, b| (&a.host, &a.local_node).cmp(&(&b.host, &b.local_node)));
    rows
}

/// Tells twice a second how a worker's peers stand.
pub(crate) async fn report(core: Rc<Core>, shared: Arc<Shared>, worker: usize) {
    loop {
        let names: Vec<String> = shared
            .snapshot
            .borrow()
            .config
            .local_nodes
            .iter()
            .map(|node| node.name.clone())
            .collect();
        let mut rows = Vec::new();
        for (node, name) in core.nodes().iter().zip(&names) {
            for status in node.peers() {
                let connection = status.connection.and_then(|id| node.connection(id));
                rows.push(row(node, connection.as_deref(), &status, name, worker));
            }
        }
        shared.reports[worker].store(Arc::new(rows));
        tokio::time::sleep(REPORT).await;
    }
}

fn row(
    node: &Node<Router>,
    connection: Option<&Connection<Link>>,
    status: &PeerStatus,
    local_node: &str,
    worker: usize,
) -> PeerRow {
    let link = connection.and_then(Connection::state);
    let up = connection.and_then(Connection::peer);
    PeerRow {
        host: status.host.clone(),
        realm: up.map(|up| up.remote.origin.realm.clone()).unwrap_or_default(),
        local_node: local_node.to_owned(),
        worker,
        state: link.map_or(HopState::Down, |link| link.hop().state()).as_str(),
        machine: format!("{:?}", status.state),
        address: connection
            .map(|connection| connection.remote().to_string())
            .unwrap_or_default(),
        configured: status.configured,
        messages_in: status.totals.messages_in,
        messages_out: status.totals.messages_out,
        pending: connection.map_or(0, |connection| node.pending_of(connection.id())),
        timeouts: status.totals.timeouts,
    }
}
