//! A database processor: Diameter routers ask it which servers a subscriber belongs to
//! ([docs/dp.md](../../../docs/dp.md)).
//!
//! | room | what happens there |
//! |---|---|
//! | [`config`] | settings |
//! | `data` | numbers and names with their destinations, and changes of them |
//! | `answer` | from a bundle of queries to its answers, without input and output |
//! | `transport` | connections of routers, bounded |
//! | `journal` | transactions of a subscriber database server: what they are, where they are kept, how they are polled |
//! | `service` | the processor as a network function |
//! | `control`, `metrics`, `alarms`, `pages` | how to look inside |

mod alarms;
mod answer;
pub mod config;
mod control;
mod data;
mod journal;
mod metrics;
mod pages;
mod service;
mod transport;

pub use config::Config;
pub use data::check_files;
pub use function::StartError;
pub use service::{DatabaseProcessor, Running, start};
