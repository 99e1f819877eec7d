//! The reasons for which this SCP refuses a request or cannot serve it, each with its label and its answer.

use sbi::problem::{Cause, Problem};

macro_rules! refusals {
    ($($(#[$doc:meta])* $variant:ident = $label:literal: $cause:ident, $retry:expr, $detail:literal;)+) => {
        /// The reason of a refusal. Its label names it in `signalbox_scp_refused_total` and in
        /// `protection.errorProfiles`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Refusal { $($(#[$doc])* $variant,)+ }

        impl Refusal {
            /// All of them.
            pub(crate) const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Its name in metrics and settings.
            pub(crate) const fn label(self) -> &'static str {
                match self { $(Self::$variant => $label,)+ }
            }

            /// Its cause (TS 29.500 table 5.2.7.2-1), `Retry-After` in seconds and detail, if the refusing
            /// step has no detail of its own.
            const fn answer(self) -> (Cause, Option<u64>, &'static str) {
                match self { $(Self::$variant => (Cause::$cause, $retry, $detail),)+ }
            }
        }
    };
}

refusals! {
    /// The client credentials assertion is missing or invalid.
    Assertion = "assertion": CcaVerificationFailure, None, "the client credentials assertion is not valid";
    /// The producer's circuit is open.
    CircuitOpen = "circuitOpen": TargetNfNotReachable, Some(1), "the producer fails and its circuit is open";
    /// Every connection to the producer is at its rate.
    ConnectionRate = "connectionRate": TooManyRequests, Some(1), "every connection to the producer is at its request rate";
    /// The rate of requests to the producer is reached.
    EgressRate = "egressRate": TooManyRequests, Some(1), "the rate of requests to the producer is reached";
    /// The producer is ejected.
    Ejected = "ejected": TargetNfNotReachable, Some(1), "the producer fails and is ejected for a while";
    /// A profile or a rule of access refuses the consumer.
    Forbidden = "forbidden": Forbidden, None, "the consumer may not use the producer";
    /// A header, or the path, is invalid.
    Header = "header": InvalidMsgFormat, None, "invalid header";
    /// No hop is left.
    Hops = "hops": MaxScpHopsReached, None, "3gpp-Sbi-Max-Forward-Hops allows no further hop";
    /// This worker has too many requests in flight.
    InFlight = "inFlight": NfCongestion, Some(1), "too many requests are in flight";
    /// The consumer exceeds its rate.
    IngressRate = "ingressRate": TooManyRequests, None, "the consumer exceeds the rate that this SCP admits";
    /// The timeout of the consumer has passed.
    Late = "late": TimedOutRequest, None, "the timeout of the consumer has passed";
    /// The request has passed this SCP before.
    Loop = "loop": MsgLoopDetected, None, "the request has passed this SCP before";
    /// A mediation rule refuses the message.
    Mediation = "mediation": Forbidden, None, "a mediation rule refuses the message";
    /// A method that is none of the service-based interface, such as `TRACE` or `CONNECT`.
    Method = "method": NotImplemented, None, "this SCP does not relay the method";
    /// No candidate is left.
    NoProducer = "noProducer": TargetNfNotReachable, None, "no further producer may serve the request";
    /// Too many requests are outstanding at the producer.
    Outstanding = "outstanding": NfCongestion, Some(1), "too many requests are outstanding at the producer";
    /// The queue to the producer is full.
    Overflow = "overflow": NfCongestion, None, "the queue to the producer is full";
    /// This SCP is overloaded.
    Overload = "overload": NfCongestion, Some(1), "discarded under overload of the SCP";
    /// The producer reports overload.
    ProducerOverload = "producerOverload": NfCongestion, Some(1), "the producer is overloaded";
    /// The request has no usable target.
    Target = "target": NfDiscoveryFailure, None, "no producer was found for the request";
    /// No producer answered in time.
    Timeout = "timeout": TargetNfNotReachable, None, "no producer answered in time";
    /// No access token was granted.
    Token = "token": AccessTokenDenied, None, "no access token was granted";
    /// The producer is unreachable.
    Unreachable = "unreachable": TargetNfNotReachable, None, "the producer is unreachable";
    /// The request cannot be sent.
    Unsendable = "unsendable": InvalidMsgFormat, None, "the request cannot be sent";
}

/// A refusal with its answer.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) refusal: Refusal,
    pub(crate) problem: Problem,
    /// `Retry-After` in seconds.
    pub(crate) retry_after: Option<u64>,
}

impl Refusal {
    /// With this answer.
    pub(crate) fn with(self, problem: Problem) -> Box<Refused> {
        Box::new(Refused {
            refusal: self,
            problem,
            retry_after: self.answer().1,
        })
    }
}

impl From<Refusal> for Box<Refused> {
    fn from(refusal: Refusal) -> Self {
        let (cause, _, detail) = refusal.answer();
        refusal.with(Problem::new(cause).detail(detail))
    }
}

impl Refused {
    /// Sets `Retry-After` in seconds.
    pub(crate) fn after(mut self: Box<Self>, seconds: u64) -> Box<Self> {
        self.retry_after = Some(seconds);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_unique_and_counters_lie_in_their_order() {
        for (position, refusal) in Refusal::ALL.iter().enumerate() {
            assert_eq!(*refusal as usize, position);
            let same = Refusal::ALL.iter().filter(|one| one.label() == refusal.label());
            assert_eq!(same.count(), 1, "{refusal:?}");
        }
    }
}
