//! The service capability exposure function with MTC-IWF (TS 23.682): servers of devices (SCS/AS) monitor devices, exchange data
//! with them and trigger them through HTTP (T8, TS 29.122), the network answers over Diameter (S6t and S6m, TS 29.336; T6a and T6b,
//! TS 29.128; T4, TS 29.337).
//!
//! A tour, from the wire inwards:
//! * `service`: the SCEF as a network function; `listeners`, `live`, `pages`: what it listens with, what is derived from settings,
//!   its admin pages and gauges.
//! * `dispatch` has the resources of T8 on one screen; `worker` is what the handlers work with.
//! * `api` has one file per resource: parse, call, answer.
//! * `s6t`, `s6m`, `t6a`, `t4` and `tsp` make Diameter messages of what T8 says, and the other way; no IO.
//! * `agent` is the Diameter node; it lives on the first worker, and other workers send their requests there (`orders`). It sends
//!   downlink data to devices, in order for each device.
//! * `ending` ends NIDD configurations and device triggers, when their time is over as well.
//! * `gathered` holds reports about groups for their guard time, and what has become of data for the members of groups.
//! * `notices` delivers notifications to SCS/AS, `outcomes` reports to SCS over Tsp. They are stored before the network has its answer.
//! * `spans`: spans of Diameter requests.
//! * `record`: what is stored, by the time of `clock`; `repository`: the tables.
//!
//! One SCEF at a time uses a store.

pub mod config;
pub mod events;

mod agent;
mod api;
mod clock;
mod dispatch;
mod ending;
mod gathered;
mod identity;
mod listeners;
mod live;
mod notices;
mod orders;
mod outcomes;
mod pages;
mod quotas;
mod record;
mod repository;
mod s6m;
mod s6t;
mod service;
mod shape;
mod shared;
mod spans;
mod t4;
mod t6a;
mod tsp;
mod worker;

pub use config::Config;
pub use events::Event;
pub use function::StartError;
pub use service::{Running, start};
pub use shared::Scef;
