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
        let counter = &self.0[event as usize];
        // A load and a store cost a tenth of an atomic addition, and nobody else writes.
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// How often it happened.
    #[must_use]
    pub fn get(&self, event: Event) -> u64 {
        self.0[event as usize].load(Ordering::Relaxed)
    }
}
