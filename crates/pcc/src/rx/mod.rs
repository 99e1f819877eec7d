//! Rx (TS 29.214): AAR and STR to documents of N5, answers and notifications to AAA, RAR and ASR.
//!
//! [`Request::read`] makes of an AAR an `AppSessionContextReqData` (TS 29.514), from which [`crate::media::derive`] makes
//! rules and into which [`crate::media::merge`] puts an update. Specific actions have the names of events.

mod events;
mod media;
mod notify;
mod request;

pub use notify::{put_abort, put_access, put_notification};
pub use request::{FEATURES, Request, RequestKind, fault};
