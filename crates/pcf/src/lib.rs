//! The policy control function (TS 29.512, TS 29.507, TS 29.525, TS 29.514): policy associations of PDU sessions and UEs,
//! decided by the operator's policy projects.
//!
//! A tour, from the wire inwards:
//! * [`service`]: the PCF as a network function; `live`, `pages`: what is derived from settings, admin pages and gauges.
//! * `dispatch` has the steps of a request on one screen; `worker` is what the handlers work with, and refuses
//!   requests by their sender, by rates and by its load.
//! * `api` has one file per service: parse, change the association, answer.
//! * [`association`]: the record of an association, its addresses, what changes it. No IO.
//! * [`repository`]: associations in the store. A request is answered when its write is durable.
//! * `change`: one writer at a time for each association, across workers and instances; application sessions add their
//!   parts of a decision through it.
//! * `projects`: the policy projects in effect; `pre`: runs them; `pds`: the data of the subscriber that they read, from the
//!   `sources` of a worker.
//! * `creation`: new associations; `reassessment`: decisions that are made again without a request of their consumer.
//! * `renewal`: subscriptions to data of subscribers that end, or that a producer was away for.
//! * `audit`: associations that their consumers have lost, or whose consumers are lost.
//! * `quotas`: what sessions report of their subscriber's quotas, and the thresholds that they get; `writes`: what the UDR gets
//!   of that.
//! * `emergency`: sessions that have no subscriber whose data count.
//! * `subscriber_state`: state variables that the associations of a subscriber share.
//! * `agent` serves Diameter: `gx`, `rx`, `sd`, `sy`; `pushes` and `tdf` make the requests of the PCF, `orders` has them sent.
//! * `activity`: what traced subscribers send, get, and what is decided and written for them; records of policy events.
//! * `latency`: how long requests, answers of others and evaluations take.
//! * `explain`: which block decided what, for pages.
//! * `ursp`: UE policies in octets, as a UE reads them; `updp`: what a UE answers; `delivery`, `schedule`: how they reach it
//!   through its AMF.
//! * `notices`: notifications of consumers, delivered by the crate `notifier`; `ended`: AF sessions whose end AFs have to confirm.
//! * `outbound`: how other functions are reached, with which access tokens; `peers`: those that the PCF sends requests to;
//!   `bindings`: what is pending at the BSF; `backlog`: bounded work aside from answers.
//! * `targets`: the servers of the operator that projects notify; `messenger`: sends to them.
//! * [`import`]: associations from a file, while the PCF does not run.
//! * [`config`]: every setting, documented where it is defined.
//!
//! Several PCFs may share one database; each works alone on the embedded store.

pub mod association;
pub mod config;
pub mod events;
pub mod import;
pub mod repository;
pub mod service;

mod activity;
mod agent;
mod api;
mod audit;
mod backlog;
mod binding;
mod bindings;
mod change;
mod creation;
mod delivery;
mod dispatch;
mod emergency;
mod explain;
mod finished;
mod gx;
mod latency;
mod listeners;
mod live;
mod messenger;
mod notices;
mod operator;
mod orders;
mod outbound;
mod owner;
mod pages;
mod pds;
mod peers;
mod pre;
mod profile;
mod projects;
mod pushes;
mod quotas;
mod reassessment;
mod removals;
mod renewal;
mod reports;
mod restarts;
mod restoration;
mod rx;
mod schedule;
mod sd;
mod shape;
mod shared;
mod sources;
mod subscriber_state;
mod subscribers;
mod sy;
mod targets;
mod tdf;
mod turns;
mod unreadable;
mod updp;
mod ursp;
mod worker;
mod writes;

pub use config::Config;
pub use events::Event;
pub use function::StartError;
pub use function::sbi::State;
pub use projects::{ProjectMistakes, check_projects};
pub use service::{Running, start};
pub use shared::Pcf;
