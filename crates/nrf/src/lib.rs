//! The network repository function (TS 29.510).
//!
//! A tour, from the wire inwards:
//! * `service` is the NRF as a network function; `dispatch` has the steps of a request.
//! * `api` has one file per 3GPP service: parse, call, answer.
//! * crate [`registry`]: which NFs there are. Writers go through the control thread and the store, those of one NF one by
//!   one; readers read an immutable [`registry::Snapshot`] and never wait.
//! * [`discovery`]: selection and order of the NFs for a query, the answer as bytes.
//! * [`subscriptions`]: which subscribers a [`registry::ProfileChange`] concerns. `notify`: delivery by the crate `notifier`.
//! * [`tokens`]: access tokens for consumers (TS 29.510 §6.3).
//! * [`slf`]: the group of a subscriber, queried from a UDR. [`forwarding`]: requests to other NRFs.
//! * `cluster`: several NRFs of a set on one database, which see each other's changes and take over for each other.
//! * `growth`: the state of other NRF sets, for which this one answers as well.
//! * [`screening`]: lists that a profile must pass to be registered.
//! * [`config`]: every setting, documented where it is defined.

mod cluster;
pub mod config;
pub mod discovery;
pub mod events;
pub mod forwarding;
#[doc(hidden)]
pub mod fuzzing;
mod growth;
mod live;
mod notify;
mod registrar;
pub mod screening;
pub mod slf;
pub mod subscriptions;
pub mod tokens;

mod alternates;
mod api;
mod dispatch;
mod gate;
mod pace;
mod pages;
mod service;
mod shared;
mod why;
mod worker;

pub use config::Config;
pub use events::Event;
pub use function::StartError;
pub use service::{Running, start};
pub use shared::Nrf;
