//! The journal: transactions get the next offset, are durable, are applied, and are acknowledged, in this order.
//!
//! One task of a server does it ([`Keeper`]); requests send it orders.

mod keeper;

use numbers::DestinationSet;
use store::Error;
use tokio::sync::{mpsc, oneshot};

pub(crate) use keeper::Keeper;

use crate::change::Change;
use crate::data::Unchangeable;
use crate::outside::outside;
use crate::record::Head;
use crate::repository::GroupWrite;
use crate::subject::Subject;

/// Transactions that wait, at most; more are refused.
const MOST_PENDING: usize = 1_024;

/// What requests ask of the journal.
pub(crate) enum Order {
    /// Write a transaction.
    Write(Transaction, oneshot::Sender<Result<u64, Refused>>),
    /// Read what other servers have written.
    Refresh(oneshot::Sender<()>),
    /// Remove transactions up to this offset.
    Trim(u64, oneshot::Sender<Result<(), Error>>),
}

/// Changes that become visible and durable together.
#[derive(Clone, Debug)]
pub(crate) struct Transaction {
    pub(crate) changes: Vec<Change>,
    pub(crate) group: Option<GroupWrite>,
}

/// Why a transaction was not written. Nothing of it was, unless the store says that it may have been.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error("change {position}: {subject} has {}, not what is expected", shown(.found.as_ref()))]
    Expected {
        /// From 1.
        position: usize,
        subject: Subject,
        found: Option<DestinationSet>,
    },
    #[error("{number} belongs to group {group}")]
    Taken {
        number: String,
        /// Another one.
        group: String,
    },
    #[error("the group was changed meanwhile; read it again")]
    Group,
    #[error(transparent)]
    Unchangeable(#[from] Unchangeable),
    #[error(transparent)]
    Store(#[from] Error),
    #[error("other servers keep writing before this one; try again")]
    Overtaken,
    #[error("the store has transactions up to {store} alone, this server has those up to {own}; try later")]
    Older {
        /// The newest offset of the store: of a node that is late, or restored from a copy.
        store: u64,
        /// The newest offset here.
        own: u64,
    },
    #[error("{0}")]
    Stopped(String),
    #[error("too many transactions are pending; try later")]
    Full,
}

/// The sending side of the journal's task. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Journal(mpsc::Sender<Order>);

impl Journal {
    pub(crate) fn channel() -> (Self, mpsc::Receiver<Order>) {
        let (sender, orders) = mpsc::channel(MOST_PENDING);
        (Self(sender), orders)
    }

    /// Writes a transaction; its offset when it is durable and visible here.
    pub(crate) async fn write(&self, transaction: Transaction) -> Result<u64, Refused> {
        let (answer, answered) = oneshot::channel();
        self.0
            .try_send(Order::Write(transaction, answer))
            .map_err(|_| Refused::Full)?;
        let stopped = || Refused::Stopped("the server stops".to_owned());
        outside(answered).await.unwrap_or_else(|_| Err(stopped()))
    }

    /// Reads what other servers have written.
    pub(crate) async fn refresh(&self) {
        let (answer, answered) = oneshot::channel();
        if self.0.try_send(Order::Refresh(answer)).is_ok() {
            let _ = outside(answered).await;
        }
    }

    /// Removes transactions up to an offset.
    pub(crate) async fn trim(&self, to: u64) -> Result<(), Error> {
        let (answer, answered) = oneshot::channel();
        if self.0.send(Order::Trim(to, answer)).await.is_err() {
            return Err(Error::Closed);
        }
        answered.await.unwrap_or(Err(Error::Closed))
    }
}

/// What is known of the journal. Workers and pages read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) head: Head,
    /// Why this server cannot follow the journal any more.
    pub(crate) stopped: Option<String>,
}

fn shown(found: Option<&DestinationSet>) -> &str {
    found.map_or("no destination", DestinationSet::as_str)
}
