//! Messages to AFs that these have not confirmed: events and ends of their sessions. Each is kept whole, since what it is about may be
//! past when it is sent again. No IO.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A message to an AF.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AfMessage {
    /// The identity of the AF session within its association.
    pub session: String,
    /// Whether the AF is to end its session; else it is notified of events.
    pub ends: bool,
    /// How it is sent.
    pub by: AfInterface,
}

/// The interface of an AF.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AfInterface {
    /// A notification over N5 (TS 29.514 §4.2.5): the URI of the AF and the body.
    N5(String, Value),
    /// A request over Rx (TS 29.214 §4.4.6): the peer that it goes to, and the message in Base64.
    Rx(String, String),
    /// A warning about a background data transfer (TS 29.554 §4.2.4): the URI of its consumer and the body.
    Bdt(String, Value),
}
