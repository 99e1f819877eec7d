//! What can happen in an NRF: counted here, logged where it matters.
//!
//! A counter belongs to one worker or to the control thread, so it is never contended; whoever reads adds
//! them up.

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
            pub fn metric(self) -> &'static str {
                match self { $(Event::$variant => concat!("signalbox_nrf_", $name, "_total"),)+ }
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
    /// An NF registered for the first time.
    Registered = "registrations";
    /// A profile was replaced or patched.
    Updated = "updates";
    /// A heart-beat came.
    HeartBeat = "heartbeats";
    /// An NF deregistered.
    Deregistered = "deregistrations";
    /// An NF was suspended for missed heart-beats.
    Suspended = "suspensions";
    /// A suspended NF was removed.
    Expired = "expirations";
    /// A registration was refused by screening.
    ScreenedOut = "screened_out";
    /// A discovery was answered.
    Discovered = "discoveries";
    /// A discovery found nothing.
    FoundNothing = "empty_discoveries";
    /// A discovery was answered from a worker's kept answers.
    AnswerReused = "reused_answers";
    /// A discovery was answered 304.
    NotModified = "not_modified";
    /// A request was wrong.
    BadRequest = "bad_requests";
    /// A request was discarded under overload.
    Discarded = "discards";
    /// A group was asked for.
    SlfAsked = "slf_queries";
    /// No location function answered.
    SlfFailed = "slf_failures";
    /// A question was forwarded.
    Forwarded = "forwarded";
    /// No other NRF answered.
    ForwardFailed = "forward_failures";
    /// The state of another NRF set was retrieved, or found unchanged.
    GrowthRetrieved = "growth_retrievals";
    /// No NRF of another set answered; what is known of the set stays.
    GrowthFailed = "growth_failures";
    /// A subscription was made.
    Subscribed = "subscriptions_created";
    /// A subscription ended.
    Unsubscribed = "subscriptions_ended";
    /// A notification was delivered.
    Notified = "notifications";
    /// A notification could not be delivered.
    NotificationFailed = "notification_failures";
    /// A notification was dropped because too many waited.
    NotificationDropped = "notifications_dropped";
    /// A token was issued.
    TokenIssued = "tokens";
    /// A token was refused.
    TokenRefused = "tokens_refused";
    /// A write was refused because the control thread was too busy.
    WriteOverflow = "write_overflows";
}

/// Counters of one thread.
#[derive(Debug)]
pub struct Counters([AtomicU64; COUNT]);

impl Default for Counters {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Counters {
    /// Counts an event. Only the thread that owns the counters calls this.
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
