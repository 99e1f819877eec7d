//! The subscriber database server: the master data of full address resolution (which servers a subscriber has), provisioned over
//! HTTP, with a journal that database processors poll.
//!
//! A tour, from the wire inwards:
//! * `service`: the SDS as a network function; `live`, `pages`: what is derived from settings, its admin pages and gauges.
//! * `dispatch` has the resources on one screen; `worker` is what the handlers work with, `shared` what all threads have, `outside` how
//!   workers await other threads.
//! * `api` has one file per resource: parse, call, answer.
//! * `journal` is the task that gives each transaction its offset, makes it durable and applies it; `tail` has its newest
//!   transactions as lines; `pollers`: who polls it.
//! * `data`: numbers and names in memory and in the files of the directory; `upkeep` writes those, and trims the journal.
//! * `subject`, `change`: what a record is about, and how it is changed; `record`, `repository`: what is stored.

pub mod config;
pub mod events;

mod api;
mod change;
mod data;
mod dispatch;
mod journal;
mod live;
mod outside;
mod pages;
mod pollers;
mod record;
mod repository;
mod service;
mod shared;
mod subject;
mod tail;
mod upkeep;
mod worker;

pub use config::Config;
pub use events::Event;
pub use function::StartError;
pub use service::{Running, start};
pub use shared::Sds;
pub use subject::record_line;
