//! Policy associations: what the PCF keeps of a PDU session or a UE. No IO.
//!
//! * [`Association`]: the record in the store, with its keys.
//! * [`af`]: AF sessions that are bound to it, over N5 or Rx.
//! * [`address`]: addresses of UEs as keys, and whether an association has an address.
//! * [`af_message`]: messages to AFs that these have not confirmed.
//! * [`applications`]: applications that were detected.
//! * [`bdt`]: policies of background data transfers, which are about no UE.
//! * [`bound`]: its binding at the BSF.
//! * `callbacks`: the paths at which producers notify of it.
//! * `consumer`: the NF instance that has created it.
//! * [`context`]: what an update changes of the context (TS 29.512 §4.2.4).
//! * [`decision`]: the whole decision of an association, and what a consumer gets of a change.
//! * [`due`]: when something is due for it: renewals of subscriptions, deliveries of UE policies.
//! * [`ended`]: AF sessions that ended with it.
//! * [`gx`]: how the PCEF of a Gx session is reached.
//! * [`ledger`]: the quotas of a subscriber, which outlive its sessions.
//! * `messages`: what a decision has for servers of the operator until it is written.
//! * `origination`: when the establishment of a session was begun.
//! * [`owed_end`]: what it leaves behind at other functions.
//! * [`refused`]: whether the policy refuses an association that stands.
//! * [`repetition`]: updates of a consumer that are sent again.
//! * [`sd`]: the session of a TDF.
//! * [`subscriber_state`]: state variables that all associations of a subscriber share.
//! * [`sy`]: the Sy session that the sessions of a subscriber share.
//! * `ue_policy`: how far the delivery of a UE policy has come.
//! * `triggers`: the data that come with triggers of consumers.
//! * [`unanswered`]: consumers that did not answer the audit.
//! * [`unconfirmed`]: RARs, notifications and messages to AFs that are not confirmed.
//! * [`usage`]: accumulated usage.

pub mod address;
pub mod af;
pub mod af_message;
pub mod applications;
pub mod bdt;
pub mod bound;
pub(crate) mod callbacks;
pub(crate) mod claims;
pub(crate) mod consumer;
pub mod context;
pub mod decision;
pub mod due;
pub mod ended;
pub mod gx;
pub mod ledger;
pub(crate) mod messages;
pub(crate) mod origination;
pub mod owed_end;
mod record;
pub mod refused;
pub mod repetition;
pub mod sd;
pub mod subscriber_state;
pub mod sy;
pub(crate) mod triggers;
pub(crate) mod ue_policy;
pub mod unanswered;
pub mod unconfirmed;
pub mod usage;

pub use record::{Addresses, Association, AssociationId, Kind};
