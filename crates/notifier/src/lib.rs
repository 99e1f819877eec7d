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
//! * Pending notifications are bounded in number and in bytes, per subscription and in total. At the bound the outbox
//!   drops the oldest notification, first those that a later one of the same subject replaces: the newest state wins.
//! * Every notification that is dropped or has failed is counted. When the subscriber answers again, the function
//!   provides the present state of the subjects that it missed ([`Publisher::resync`]). A further attempt may carry another body
//!   than the first one ([`Publisher::renewed`]).
//!
//! [`Outbox`] decides all of that without a clock, a socket or randomness. [`run`] drives it on the control thread of a
//! function, which implements [`Publisher`] to reach its subscribers.

mod outbox;
mod policy;
mod post;
mod queue;
mod run;

pub use outbox::{Flight, Outbox, Step};
pub use policy::{Bound, Policy};
pub use post::Answer;
pub use queue::{Missed, Pending, Queue, Receiver, queue};
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
    /// Whether it carries the whole state of its subject and so replaces earlier notifications of the subject.
    pub whole: bool,
    /// The callback URI of the subscriber.
    pub target: Uri,
    /// What it is, in `3gpp-Sbi-Callback` (TS 29.500 annex B); empty for a receiver outside the service-based architecture.
    pub callback: &'static str,
    /// JSON. Subscribers of the same change share the bytes.
    pub body: Bytes,
    /// NF set of which any instance accepts the notification.
    pub set: Option<Arc<str>>,
    /// What its publisher knows it by, as it likes.
    pub mark: u64,
}

/// Outcome of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The subscriber has accepted it.
    Delivered,
    /// The subscriber has refused it, or did not answer any attempt.
    Failed,
    /// Dropped at a bound of the outbox.
    Dropped,
    /// The subscriber redirected it.
    Redirected,
    /// Another instance or address of the subscriber has accepted it.
    Rerouted,
    /// It carries the present state of a subject, after others of the subject were dropped or failed.
    Resynced,
}

/// Returns the same URI at another host.
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
