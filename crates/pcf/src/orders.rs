//! Requests of ours for Diameter peers (RAR, ASR, SLR, STR, TSR), on their way to the nodes of the workers.

use std::sync::Arc;
use std::time::Duration;

use diameter::proto::{Message, MessageMut};
use serde_json::Value;
use telemetry::trace::Scope;
use tokio::sync::{mpsc, oneshot};

use crate::activity::trail::{self, Mark};
use crate::association::AssociationId;

/// A request to be sent.
pub(crate) struct Order {
    /// The peer that it goes to; none, and where no worker is connected to that peer: any that serves the application, by the
    /// Destination-Host and Destination-Realm (RFC 6733 §6.1).
    pub(crate) peer: Option<String>,
    pub(crate) message: MessageMut,
    /// How long the answer may take.
    pub(crate) timeout: Duration,
    /// What the answer is about.
    pub(crate) then: Then,
    /// Attempts of workers that had no connection for it.
    pub(crate) tried: usize,
}

/// A request on its way, with the trail of what has caused it.
pub(crate) struct Queued {
    pub(crate) order: Order,
    pub(crate) mark: Option<Mark>,
    /// The traced request that it is sent for.
    pub(crate) scope: Option<Scope>,
}

/// What happens with an answer.
pub(crate) enum Then {
    /// It is that of a PCEF, about a session.
    Gx(Push),
    /// It is that of an AF; with the record of the request, where there is one.
    Rx(Option<(AssociationId, u64)>),
    /// The sender of the request gets it; nothing where there is none.
    Reply(oneshot::Sender<Message>),
    /// A Sy session has ended.
    SyEnd,
    /// It is that of a TDF, about a session.
    Sd(Detection),
}

/// A TSR or RAR to a TDF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Detection {
    pub(crate) id: AssociationId,
    /// The number of the request within the session.
    pub(crate) serial: u32,
}

/// A RAR to a PCEF.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Push {
    pub(crate) id: AssociationId,
    pub(crate) what: What,
    /// Attempts before this one.
    pub(crate) attempt: u32,
    /// The number of its record among those that are not confirmed.
    pub(crate) record: Option<u64>,
    /// PCC rules that it provides: they are not in effect where no attempt succeeds.
    pub(crate) rules: Vec<String>,
}

/// What a RAR is for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    /// A change of the decision; where it gets lost, the PCEF may still have these entries (`pccRules`, `umDecs`).
    Change { removed: Value },
    /// The whole decision, after changes that were not answered, of which there were this many. It may remove entries too.
    Whole { removed: Value, doubts: u32 },
    /// The restoration of the P-CSCF of the UE.
    Restoration,
    /// The end of the session, for a cause of `SmPolicyAssociationReleaseCause`.
    Release { cause: String },
}

/// The ways to the nodes of all workers.
#[derive(Clone, Debug)]
pub(crate) struct Orders(Arc<[mpsc::Sender<Queued>]>);

pub(crate) type Receiver = mpsc::Receiver<Queued>;

/// A way to each worker, with room for `most` requests.
pub(crate) fn channels(workers: usize, most: usize) -> (Orders, Vec<Receiver>) {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..workers).map(|_| mpsc::channel(most.max(1))).unzip();
    (Orders(senders.into()), receivers)
}

impl Orders {
    /// Enqueues a request at a worker; false where there is no room.
    pub(crate) fn send(&self, worker: usize, order: Order) -> bool {
        let count = self.0.len().max(1);
        let way = self.0.get(worker % count);
        let queued = Queued {
            order,
            mark: trail::mark(),
            scope: Scope::of_thread(),
        };
        way.is_some_and(|way| way.try_send(queued).is_ok())
    }
}
