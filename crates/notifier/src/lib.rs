//! Delivery of notifications to the subscribers of a function (TS 29.500 §6.10.9, TS 29.510 §5.2.2.6, TS 29.521 §4.2.8).
//!
//! ```text
//! Queue::push ─ channel ─ Outbox ──── ready subscriber ─ pace ─ POST ─ 2xx: next of this subscriber
//! (any thread)            (pure)  ▲                               │ ─ 3xx: the same at the other place, bounded
//!                                 └─ pause, doubling, jitter ─────┤ ─ 429, 5xx, no answer: again, at most `attempts`
//!                                                                 └ then `alternates`, then the notification failed
//! ```
//!
//! * Notifications of one subscription are delivered one by one, in order.
//! * What waits is bounded in number and in bytes, per subscription and in total. When there is no room the oldest
//!   notification goes, first those that a later one of the same subject replaces: the newest state wins.
//! * Every notification that is dropped or has failed is counted. When the subscriber answers again, the function is
//!   asked for the present state of the subjects it missed ([`Publisher::resync`]).
//!
//! [`Outbox`] decides all of that without a clock, a socket or a die. [`run`] drives it on the control thread of a
//! function, which says how its subscribers are reached by implementing [`Publisher`].

mod outbox;
mod policy;
mod post;
mod queue;
mod run;

pub use outbox::{Flight, Outbox, Step};
pub use policy::{Bound, Policy};
pub use post::Answer;
pub use queue::{Pending, Queue, Receiver, queue};
pub use run::{Publisher, run};

use std::sync::Arc;

use bytes::Bytes;
use http::Uri;

/// A notification to be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Identity of the subscription.
    pub subscription: Arc<str>,
    /// Identity of the resource that has changed.
    pub subject: Arc<str>,
    /// Whether it carries the whole state of its subject, so that earlier ones of the subject say nothing more.
    pub whole: bool,
    /// The callback URI of the subscriber.
    pub target: Uri,
    /// JSON. Subscribers of the same change share the bytes.
    pub body: Bytes,
    /// NF set of which any instance takes the notification.
    pub set: Option<Arc<str>>,
}

/// What happened to a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The subscriber has taken it.
    Delivered,
    /// The subscriber has refused it, or did not answer any attempt.
    Failed,
    /// There was no room.
    Dropped,
    /// The subscriber wanted it at another place.
    Redirected,
    /// Another instance or place of the subscriber has taken it.
    Rerouted,
    /// It carries the present state of a subject, after others of the subject were dropped or failed.
    Resynced,
}

/// The same URI at another place.
#[must_use]
pub fn at(uri: &Uri, host: &str, port: Option<u16>) -> Option<Uri> {
    let authority = match port {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    let mut parts = uri.clone().into_parts();
    parts.authority = Some(authority.parse().ok()?);
    Uri::from_parts(parts).ok()
}
