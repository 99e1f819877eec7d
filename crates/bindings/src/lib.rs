//! Bindings: what they look like, how they are kept, which of them answers a question. No IO.

mod address;
mod document;
mod fault;
mod features;
mod mbs;
mod pack;
mod query;
mod rx_session;
mod same_pcf;
mod session;
pub mod shape;
mod subscription;
mod ue;

pub use address::{Form, FormRecord, Forms, Place};
pub use document::{Audited, BindingId, Document};
pub use fault::DocumentFault;
pub use features::{BINDING_UPDATE, EXTENDED_SAME_PCF, MULTI_UE_ADDR, SAME_PCF, negotiate, own};
pub use mbs::MbsBinding;
pub use query::{Query, Selection, select};
pub use rx_session::RxSession;
pub use same_pcf::SamePcfGuard;
pub use session::PcfBinding;
pub use subscription::{SessionChange, Subscription};
pub use ue::UeBinding;
