//! What policy decisions mean on the interfaces of PCF and PCRF.
//!
//! The common form is JSON with the names of the standard: `SmPolicyContextData`, `SmPolicyDecision` (TS 29.512),
//! `AppSessionContextReqData`, `EventsNotification` (TS 29.514), `UsageMonData` (TS 29.519). What arrives over Diameter
//! (Gx and Sd, TS 29.212; Rx, TS 29.214; Sy, TS 29.219) is read into the same documents, so that one policy project and one session store serve
//! 4G and 5G; unknown members survive.
//!
//! | to … | use |
//! |---|---|
//! | make PCC rules of what an AF asks for | [`media::derive`], [`media::merge`] |
//! | compose a decision, and what an SMF lacks of it | [`decision::compose`], [`decision::difference`] |
//! | notify an AF of what an SMF or PCEF reported | [`event::notification`] |
//! | offer windows for background data transfers | [`bdt::Model`] |
//! | keep accounts of quotas | [`usage::Accounts`] |
//! | read a CCR or RAA, write a CCA or RAR | [`gx`] |
//! | read an AAR or STR, write an AAA, RAR or ASR | [`rx`] |
//! | write an SLR, read an SLA or SNR | [`sy`] |
//! | write a TSR, RAR or CCA of a TDF, read its CCR | [`sd`] |
//! | know the status of a policy counter at a time | [`counters`] |
//!
//! The crate is pure: no runtime, no clock, no IO; times are arguments.
//!
//! ```
//! use serde_json::json;
//!
//! let call = json!({
//!     "notifUri": "http://af/notify", "suppFeat": "", "ueIpv4": "10.45.0.1", "afAppId": "IMS",
//!     "medComponents": {"1": {
//!         "medCompN": 1, "medType": "AUDIO", "marBwUl": "64 Kbps", "marBwDl": "64 Kbps",
//!         "medSubComps": {"1": {"fNum": 1, "fDescs": ["permit out 17 from 192.0.2.9 40000 to 10.45.0.1 50000"]}},
//!     }},
//! });
//! let rules = pcc::media::derive("call-7", &call, &pcc::Mapping::default()).unwrap();
//! assert_eq!(rules["pccRules"]["af-call-7-1-1"]["refQosData"][0], "af-call-7-1-1");
//! assert_eq!(rules["qosDecs"]["af-call-7-1-1"]["5qi"], 1);
//!
//! // The SMF is notified of what it does not have yet.
//! let change = pcc::decision::difference(&json!({}), &rules).unwrap();
//! assert_eq!(change["qosDecs"]["af-call-7-1-1"]["gbrDl"], "64 Kbps");
//! ```

mod avp;
pub mod bdt;
pub mod counters;
pub mod decision;
pub mod event;
mod flow;
pub mod fuzzing;
pub mod gx;
mod json;
mod mapping;
pub mod media;
mod rate;
mod refusal;
mod rule_id;
pub mod rx;
pub mod sd;
pub mod sy;
pub mod usage;

pub use mapping::{Arp, BitRate, Class, Mapping};
pub use refusal::{Cause, Refusal};
pub use rule_id::RuleId;
