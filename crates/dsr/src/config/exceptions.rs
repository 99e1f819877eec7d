//! What is answered when a request cannot be routed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is answered when a request cannot be routed, by reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Exceptions {
    /// No rule matches and its Destination-Host is not connected, or no peer of the route is available.
    pub no_route: AnswerRule,
    /// The connection was lost, and no other peer is left.
    pub connection_failure: AnswerRule,
    /// No peer answered in time.
    pub no_answer: AnswerRule,
    /// A queue or table is full.
    pub exhausted: AnswerRule,
    /// The router found itself in the Route-Records.
    pub loop_detected: AnswerRule,
}

/// An answer, or none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct AnswerRule {
    /// Result-Code; with `vendorId`: Experimental-Result-Code. 0: no answer.
    pub result_code: u32,
    /// Vendor-Id of the result (RFC 6733 §7.6), such as 10415 for a code of 3GPP; 0: a Result-Code.
    pub vendor_id: u32,
    /// Error-Message.
    pub message: String,
}

impl Default for AnswerRule {
    fn default() -> Self {
        Self::new(3002, "unable to deliver")
    }
}

impl AnswerRule {
    fn new(result_code: u32, message: &str) -> Self {
        Self {
            result_code,
            vendor_id: 0,
            message: message.to_owned(),
        }
    }
}

impl Default for Exceptions {
    fn default() -> Self {
        Self {
            no_route: AnswerRule::new(3002, "no peer is available for this request"),
            connection_failure: AnswerRule::new(3002, "the connection was lost and no other peer is left"),
            no_answer: AnswerRule::new(3002, "no peer answered in time"),
            exhausted: AnswerRule::new(3004, "too many requests are in flight"),
            loop_detected: AnswerRule::new(3005, "the request has passed this node before"),
        }
    }
}

/// Why a request could not be routed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exception {
    /// No rule fits, or no peer of the route is available.
    NoRoute,
    /// The connection was lost, and no other peer is left.
    ConnectionFailure,
    /// No peer answered in time.
    NoAnswer,
    /// A queue or table is full.
    Exhausted,
    /// The router found itself in the Route-Records.
    LoopDetected,
}

impl Exceptions {
    /// What is answered.
    #[must_use]
    pub fn of(&self, exception: Exception) -> &AnswerRule {
        match exception {
            Exception::NoRoute => &self.no_route,
            Exception::ConnectionFailure => &self.connection_failure,
            Exception::NoAnswer => &self.no_answer,
            Exception::Exhausted => &self.exhausted,
            Exception::LoopDetected => &self.loop_detected,
        }
    }
}
