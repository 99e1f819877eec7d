//! The network repository function (TS 29.510).
//!
//! A tour, from the wire inwards:
//! * [`service`] wires everything into a runnable; the way of a request is on one screen there.
//! * `api` has one file per 3GPP service: parse, call, answer.
//! * [`registry`]: which NFs there are. Writers go through the control thread and the store, those of one NF one by one;
//!   readers look at an immutable [`registry::Snapshot`] and never wait.
//! * [`discovery`]: which of them fit a question, in which order, and the answer as bytes.
//! * [`subscriptions`] and [`notify`]: who wants to be told of a [`registry::ProfileChange`], and the telling.
//! * [`tokens`]: access tokens for consumers (TS 29.510 §6.3).
//! * [`slf`]: which group a subscriber belongs to, asked of a UDR. [`forwarding`]: questions for other NRFs.
//! * `growth`: the state of other NRF sets, for which this one answers as well.
//! * [`screening`]: who may register at all.
//! * [`config`]: every setting, documented where it is defined.

pub mod config;
pub mod discovery;
pub mod error;
pub mod events;
pub mod forwarding;
#[doc(hidden)]
pub mod fuzzing;
mod growth;
mod live;
pub mod notify;
mod overload;
pub mod registry;
pub mod screening;
pub mod slf;
pub mod subscriptions;
pub mod tokens;

mod api;
pub mod service;

pub use config::Config;
pub use error::StartError;
pub use events::Event;
pub use live::KEYS;
pub use service::{Running, start};
