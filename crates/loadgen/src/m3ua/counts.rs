//! Counters of deliveries, and the node that is away, over all generator threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counters of deliveries.
#[derive(Debug, Default)]
pub struct Counts {
    /// Messages that arrived at another node than the one they were for.
    pub misrouted: AtomicU64,
    /// Messages that overtook an earlier one of the same sender, receiver and link selection.
    pub disordered: AtomicU64,
    /// Messages that arrived once more.
    pub doubled: AtomicU64,
    /// Messages that arrived after their time, or that no node has sent.
    pub strays: AtomicU64,
    /// Messages that came back to their senders against the plan (UDTS, XUDTS).
    pub returned: AtomicU64,
    /// ERR of the STP.
    pub refused: AtomicU64,
    /// Messages that arrived at the node that drills take away.
    pub arrived_there: AtomicU64,
    /// Messages that failed between two other nodes; 0 where drills take none away.
    pub elsewhere: AtomicU64,
    /// As `elsewhere`, messages that did not arrive in time.
    pub late_elsewhere: AtomicU64,
    /// Messages that arrived at the second of two nodes that they may arrive at.
    pub seconds: AtomicU64,
    /// Nodes whose associations are active now, of the thread that was the last to count.
    pub active: AtomicU64,
}

impl Counts {
    /// Reads one of the counters.
    #[must_use]
    pub fn read(count: &AtomicU64) -> u64 {
        count.load(Ordering::Relaxed)
    }
}

/// Counts one more.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// A node that drills take away: while it is away it has no association.
#[derive(Clone, Debug, Default)]
pub struct Absence {
    /// Its number, as [`super::Node::number`] has it; `None`: no node is ever away.
    node: Option<u32>,
    is_away: Arc<AtomicBool>,
}

impl Absence {
    /// Of this node, which is not away yet.
    #[must_use]
    pub fn of(node: u32) -> Self {
        Self {
            node: Some(node),
            is_away: Arc::default(),
        }
    }

    /// Ends its association and keeps it from having another, or lets it connect again.
    pub fn set(&self, is_away: bool) {
        self.is_away.store(is_away, Ordering::Relaxed);
    }

    pub(super) fn is_away(&self, node: u32) -> bool {
        self.concerns(node) && self.is_away.load(Ordering::Relaxed)
    }

    pub(super) fn concerns(&self, node: u32) -> bool {
        self.node == Some(node)
    }

    /// Whether drills take a node away, and it is none of these.
    pub(super) fn spares(&self, nodes: [u32; 2]) -> bool {
        self.node.is_some_and(|node| !nodes.contains(&node))
    }
}
