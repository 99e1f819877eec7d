//! The binding support function (TS 29.521): which PCF has the policy of a session.
//!
//! A tour, from the wire inwards:
//! * [`service`]: the BSF as a network function; `listeners`, `live`, `pages`: what it listens with, what is derived from
//!   settings, its admin pages and gauges.
//! * `dispatch` has the steps of a request on one screen; `worker` is what the handlers work with, and refuses
//!   requests by their sender, by rates and by its load.
//! * `api` has one file per resource of Nbsf_Management: parse, call, answer.
//! * [`binding`]: resources, their compact form, and which one answers a query. No IO.
//! * [`repository`]: bindings in the store. A request is answered when its write is durable.
//! * `resource`: what the bindings of sessions, UEs and MBS sessions have in common.
//! * `rx`: Diameter requests of AFs on their way to the PCF of the session.
//! * `notify`: notifications of subscribers, delivered by the crate `notifier`.
//! * `peers`: the NRF, at which the BSF registers and asks about PCFs; `audit`: bindings whose PCF is gone.
//! * [`import`]: bindings from a file into the store; [`export`]: records of the store as JSON.
//! * [`config`]: every setting, documented where it is defined.
//!
//! Several BSFs may share one database; each works alone on the embedded store.

pub use bindings as binding;
pub mod config;
pub mod events;
pub mod export;
#[doc(hidden)]
pub mod fuzzing;
pub mod import;
pub mod repository;

mod api;
mod audit;
mod by_pcf;
mod census;
mod dispatch;
mod flights;
mod latency;
mod listeners;
mod live;
mod notify;
mod operator;
mod owed;
mod pages;
mod paying;
mod peers;
mod profile;
mod resource;
mod rx;
mod score;
pub mod service;
mod shared;
mod state;
mod worker;

pub use config::Config;
pub use events::Event;
pub use function::StartError;
pub use function::sbi::State;
pub use score::Score;
pub use service::{Running, start};
pub use shared::Bsf;
