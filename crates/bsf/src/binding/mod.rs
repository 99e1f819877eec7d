//! Bindings: what they look like, how they are kept, which of them answers a question. No IO.

mod address;
mod document;
mod features;
mod mbs;
mod pack;
mod query;
mod session;
pub mod shape;
mod subscription;
mod ue;

pub use address::{Form, FormRecord, Forms, Place};
pub use document::{Audited, BindingId, Document};
pub use features::{BINDING_UPDATE, EXTENDED_SAME_PCF, MULTI_UE_ADDR, SAME_PCF, negotiate, own};
pub use mbs::MbsBinding;
pub use query::{Query, Selection, select};
pub use session::PcfBinding;
pub use subscription::Subscription;
pub use ue::UeBinding;
