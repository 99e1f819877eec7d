//! The seam for applications inside the router: what a request meets between mediation and routing.
//!
//! An application is compiled from its settings and files before the snapshot that holds it, is shared by all workers,
//! and outlives snapshots while its settings and its file stay the same. It decides without IO and without a lock. Each
//! kind is a room with an implementation of [`Application`], a key of [`crate::config::Application`], and an arm of
//! `snapshot::loader`.

use std::fmt::Debug;

use diameter::proto::{Fault, MessageMut, Origin};
use serde_json::Value;

use crate::config::Destination;
use crate::events::Event;
use crate::routing::View;

/// An application.
pub(crate) trait Application: Debug + Send + Sync {
    /// The key of its kind in the configuration.
    fn kind(&self) -> &'static str;

    /// Whether it answers requests itself. Those without the P flag are for it then (RFC 6733 §3), and so are those for
    /// this node.
    fn is_server(&self) -> bool {
        false
    }

    /// What becomes of a request that an application route rule has led here.
    fn request(&self, given: &Given<'_>) -> Outcome<'_>;

    /// Its tables, for pages and metrics.
    fn tables(&self) -> Vec<Table>;

    /// Puts an entry on a list, or takes it off all lists (`none`); none: its entries are not changed one by one. It may
    /// wait for the disk.
    fn change(&self, subject: &str, list: &str) -> Option<Result<(), String>> {
        let _ = (subject, list);
        None
    }

    /// What it knows of a subject, for pages; none: it is asked about nothing.
    fn look_up(&self, subject: &str) -> Option<Value> {
        let _ = subject;
        None
    }
}

/// What an application is given.
pub(crate) struct Given<'r> {
    pub(crate) message: &'r MessageMut,
    pub(crate) view: &'r View<'r>,
    /// Our names at the local node that received the request.
    pub(crate) names: &'r Origin,
    /// Counts an event.
    pub(crate) count: &'r dyn Fn(Event),
}

/// What becomes of a request.
#[derive(Debug)]
pub(crate) enum Outcome<'a> {
    /// It goes on as it is.
    Forward,
    /// It goes there.
    To(&'a Destination),
    /// It is answered, by a setting.
    Answer(&'a Fault),
    /// It is refused.
    Refuse(Box<Fault>),
    /// The application is its server.
    Reply(Reply),
    /// It is dropped.
    Abandon,
}

/// The answer of a server.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) message: MessageMut,
    /// Vendor-Id and Experimental-Result-Code, or 0 and Result-Code.
    pub(crate) result: (u32, u32),
}

/// A table of an application.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) entries: usize,
    /// Memory that the entries take.
    pub(crate) bytes: usize,
}
