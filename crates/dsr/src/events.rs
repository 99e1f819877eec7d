//! What can happen in a router: counted here, logged where it matters.
//!
//! Counters belong to one worker, so they are never contended; whoever reads adds them up.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! events {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal;)+) => {
        /// Something that happened.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Event { $($(#[doc = $doc])+ $variant,)+ }

        impl Event {
            /// Every event, in the order of its counters.
            pub const ALL: &'static [Event] = &[$(Event::$variant),+];

            /// Name of the metric.
            #[must_use]
            pub const fn metric(self) -> &'static str {
                match self { $(Event::$variant => concat!("signalbox_dsr_", $name, "_total"),)+ }
            }

            /// What happened, in a sentence.
            #[must_use]
            pub fn help(self) -> &'static str {
                match self { $(Event::$variant => concat!($($doc),+).trim_start(),)+ }
            }
        }

        const COUNT: usize = [$(Event::$variant),+].len();
    };
}

events! {
    /// A message was processed, in the sense of MPS: read and sent on, answered or discarded by routing; or sent once more or copied.
    Message = "messages";
    /// A request came.
    Request = "requests";
    /// An answer came.
    Answer = "answers";
    /// A request was sent to a peer.
    RequestSent = "requests_sent";
    /// An answer was sent to the peer that waits for it.
    AnswerSent = "answers_sent";
    /// A message went to another worker, whose peer it is for.
    HandedOver = "handovers";
    /// A request was sent again, elsewhere.
    Rerouted = "reroutes";
    /// A request was answered by the router itself.
    Refused = "refused_requests";
    /// No peer was available for a request.
    NoRoute = "unroutable_requests";
    /// A request came back to the router.
    Loop = "loops";
    /// A request went unanswered past its deadline.
    Timeout = "timeouts";
    /// A request was under way on a connection that was lost.
    ConnectionLost = "interrupted_requests";
    /// A request met a full queue or table.
    Exhausted = "exhaustions";
    /// A request was forgotten, as a rule said.
    Abandoned = "abandoned_requests";
    /// A request had an AVP that is framed wrong or flags that cannot be.
    BadRequest = "bad_requests";
    /// An answer had an AVP that is framed wrong.
    BadAnswer = "bad_answers";
    /// An answer found its peer on another connection than the request's.
    AnswerFollowed = "followed_answers";
    /// An answer found its peer gone.
    AnswerLost = "lost_answers";
    /// A request was discarded because its message processor has too much to do: alarm 22215.
    OverloadDiscarded = "overload_discards";
    /// A request came beyond its connection's maximum rate.
    IngressDiscarded = "ingress_discards";
    /// A request was yellow: beyond its connection's reserved rate.
    Yellow = "yellow_requests";
    /// A request was not sent to a peer whose throttle group has its fill.
    Throttled = "throttled_requests";
    /// A request was copied.
    Copied = "copies";
    /// The answer to a copy came.
    CopyAnswered = "copy_answers";
    /// A redirect was followed.
    Redirected = "redirects_followed";
    /// A request met address resolution.
    Resolved = "resolutions";
    /// Address resolution found a destination for a request.
    ResolvedTo = "resolutions_found";
    /// A message had names hidden or found again.
    Hidden = "hidden_messages";
    /// An overload report was put into an answer.
    OverloadReported = "overload_reports";
    /// A message was traced.
    Traced = "traced_messages";
    /// A message should have been traced, but too many wait to be written.
    TraceLost = "untraced_messages";
    /// A connection was placed on another message processor than the one that accepted it.
    Placed = "placed_connections";
    /// Bytes of messages that were read, those of peer control left out.
    Bytes = "received_bytes";
    /// A peer became open.
    PeerUp = "peers_up";
    /// A peer was lost or left.
    PeerDown = "peers_down";
    /// A connection was refused, cut off or could not be made.
    ConnectionRefused = "refused_connections";
}

/// Counters of one worker.
#[derive(Debug)]
pub struct Counters([AtomicU64; COUNT]);

impl Default for Counters {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Counters {
    /// Counts an event. Only the thread that owns the counters calls this.
    #[inline]
    pub fn count(&self, event: Event) {
        self.add(event, 1);
    }

    /// Counts several at once.
    #[inline]
    pub fn add(&self, event: Event, more: u64) {
        let counter = &self.0[event as usize];
        // A load and a store cost a tenth of an atomic addition, and nobody else writes.
        counter.store(
            counter.load(Ordering::Relaxed).wrapping_add(more),
            Ordering::Relaxed,
        );
    }

    /// How often it happened.
    #[must_use]
    pub fn get(&self, event: Event) -> u64 {
        self.0[event as usize].load(Ordering::Relaxed)
    }
}
