//! An ENUM server: it answers what a telephone number resolves to (RFC 6116) from profiles and an exact map of numbers
//! ([docs/enum.md](../../../docs/enum.md)).
//!
//! | room | what happens there |
//! |---|---|
//! | [`config`] | settings |
//! | `tables` | what settings are compiled to: trees, ranges, profiles, keys |
//! | `view` | the numbers that are in effect |
//! | `changes` | numbers that were changed at the admin endpoint: durable, then visible |
//! | `resolve` | what a number resolves to; also for `why` |
//! | `message` | from a query to its answer, without input and output |
//! | `transport` | UDP and TCP, bounded |
//! | `service` | the server as a network function |
//! | `control`, `metrics`, `alarms`, `pages` | how to look inside |

mod alarms;
mod changes;
pub mod config;
mod control;
mod message;
mod metrics;
mod pages;
mod resolve;
mod service;
mod tables;
mod transport;
mod view;

pub use config::Config;
pub use function::StartError;
pub use service::{EnumServer, Running, start};
pub use tables::check_files;
