//! What all network functions share, once: start and stop, threads, listeners, TLS files, reload, health, alarms, metrics,
//! admin pages.
//!
//! # How to add a function
//!
//! A function is a type that implements [`NetworkFunction`]. The type itself holds what its threads share, its settings
//! are a section of the configuration file, and the trait asks for these, in the order in which they are called:
//!
//! 1. `bind` reserves addresses and opens TLS files. A function with a service-based interface returns `sbi::Sbi`.
//! 2. `derive` makes of settings what requests need: compiled rules, keys. It runs at the start and at each reload, so that
//!    a mistake in a setting keeps the function from starting and a reload from changing anything.
//! 3. `open` runs on the control thread: it opens the store, spawns tasks (audits, notifications), and returns the function
//!    and what the control thread does. Listeners do not accept before it has returned.
//! 4. `worker` makes one worker's share, at the start and after each reload, then from the worker before.
//! 5. `serve` serves until shutdown; `front.seat().listeners.serve_routed(front)` for a service-based interface. Its worker
//!    implements `sbi::Routed`: one table of paths, scopes, methods, operations and handlers, by which the skeleton routes,
//!    counts, traces, refuses, logs and completes answers. A worker that relays any request implements `sbi::Answer`.
//!
//! A function that keeps records has `records` for changes that collide, for what a failed store means to a consumer, and for
//! what an audit may remove.
//!
//! Settings that may change while it runs carry the mark `#[schemars(extend("x-reload" = true))]` where they are declared
//! (see [`settings::reload`]). A reload merges them into the configuration in effect, derives from it, and puts both into
//! effect under the lock that every other change takes as well ([`live::Live`]). There is no list of keys to keep.
//!
//! A line in the table of the binary (`crates/signalbox/src/functions/mod.rs`) gives the function its command, its admin
//! endpoint, its section of the configuration and its pages of the reference.
//!
//! What a function must not do: hold a lock that two workers share on the way of a request, start threads, watch files,
//! read TLS files itself, or keep a list of what may be reloaded.

pub mod brake;
pub mod browser;
pub mod certificates;
#[cfg(feature = "diameter")]
pub mod diameter_names;
pub mod files;
pub mod generations;
pub mod journal;
pub mod journal_file;
pub mod live;
pub mod pages;

mod contract;
mod counts;
mod drmp;
mod error;
mod following;
mod instance;
#[cfg(all(feature = "sbi", feature = "store"))]
pub mod operator;
#[cfg(all(feature = "sbi", feature = "store"))]
pub mod records;
mod running;
#[cfg(feature = "sbi")]
pub mod sbi;
mod shedder;
mod start;
#[cfg(feature = "store")]
pub mod store;
#[cfg(feature = "store")]
pub mod store_copies;
#[cfg(feature = "testing")]
pub mod testing;
mod tolerated;

pub use contract::{
    Beginning, Common, Effective, Front, Listeners, Live, NetworkFunction, Opened, Opening, Page, Seat,
    Settings, listening,
};
pub use counts::Counts;
pub use drmp::Drmp;
pub use error::StartError;
pub use instance::settle_instance;
pub use overload::{Admission, Offered, WaitingTime};
pub use running::{Handle, Running};
pub use shedder::{AdmissionMetrics, Meters, OVERLOAD, Shedder, Shedding, Step};
pub use start::{Frame, start, start_within};
#[doc(hidden)]
pub use telemetry;
pub use tolerated::Tolerated;
#[doc(hidden)]
pub use tracing;
pub use worker::{Shutdown, Waiting, WorkerContext};
