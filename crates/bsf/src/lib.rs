//! The binding support function (TS 29.521): which PCF has the policy of a session.
//!
//! A tour, from the wire inwards:
//! * [`service`] wires everything into a runnable; the way of a request is on one screen there.
//! * `api` has one file per resource of Nbsf_Management: parse, call, answer.
//! * [`binding`]: what a binding looks like, how it is kept small, which one answers a question. No IO.
//! * [`repository`]: bindings in the store. A request is answered when its write is durable.
//! * `rx`: Diameter requests of AFs on their way to the PCF of the session.
//! * `notify`: telling subscribers, bounded and retried. `overload`: which requests are not worked on.
//! * `peers`: the NRF, at which the BSF registers and asks about PCFs; `audit`: bindings whose PCF is gone.
//! * `live`: what can change while it runs.
//! * [`import`]: bindings from a file into the store.
//! * [`config`]: every setting, documented where it is defined.
//!
//! Several BSFs may share one database; each works alone on the embedded store.

pub mod binding;
pub mod config;
pub mod error;
pub mod events;
#[doc(hidden)]
pub mod fuzzing;
pub mod import;
pub mod repository;

mod api;
mod audit;
mod live;
mod notify;
mod overload;
mod peers;
mod rx;
mod score;
pub mod service;

pub use config::Config;
pub use error::StartError;
pub use events::Event;
pub use live::KEYS;
pub use score::Score;
pub use service::{Running, State, start};
