//! Metrics, alarms, health, logs and trace context: what happened, in one place.
//!
//! - [`metrics`]: names declared once ([`declare!`](crate::declare)), handles resolved once, an increment on the
//!   data path is one addition in memory of the worker's own; shards are merged when somebody looks.
//! - [`events`]: what can happen in a function, with a sentence each; counted by thread, shown as metrics.
//! - [`alarms`]: raised and cleared with number and severity; each change is a log line and a metric.
//! - [`health`]: what the function needs to be ready, with the reason when it is not.
//! - [`dependency`]: what it needs of others, with last success and last error.
//! - [`journal`]: what has changed, in order of time.
//! - [`admin`]: the HTTP endpoint of each function: `/livez`, `/readyz`, `/metrics`, `/config`, `/alarms` and the
//!   function's own pages.
//! - [`logging`]: `tracing` for people or machines, its level changeable while running.
//! - [`trace`]: W3C trace context, and spans of sampled requests by OTLP.
//! - [`process`]: CPU, memory and descriptors of this process.
//! - [`webhook`]: alarms to an operator's server.
//! - [`severity`]: how bad alarms and alerts are.

pub mod admin;
pub mod alarms;
pub mod dependency;
pub mod events;
pub mod health;
pub mod journal;
pub mod logging;
pub mod metrics;
mod outbound;
pub mod process;
pub mod severity;
pub mod trace;
pub mod webhook;

pub use admin::Admin;
pub use alarms::{AlarmKind, Alarms, rfc3339};
pub use dependency::{Dependency, DependencyRow, Standing};
pub use health::Health;
pub use journal::Journal;
pub use metrics::{Alert, Counter, Declaration, Family, Gauge, Histogram, Level, Registry, When};
pub use severity::Severity;
