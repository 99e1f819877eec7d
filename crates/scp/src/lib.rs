//! The Service Communication Proxy: indirect communication of network functions, Models C and D
//! (TS 29.500 §6.10, TS 23.501 annex E).
//!
//! A tour, from the wire inwards:
//! * `pipeline`: the way of a request on one screen, a file for each of its steps. `service` is the SCP as a network function. `refusal`: why a request is refused, one table.
//! * [`target`]: what a request says of where it is to go.
//! * `protection`: rates, overload, outliers, circuits, and what producers tell of their load.
//! * [`network`]: the producers that are known, as immutable snapshots. `peers` learns them from NRFs, and
//!   asks NRFs for consumers that delegate their discovery; [`discovery`] remembers the answers.
//! * `security`: tokens fetched for consumers, assertions checked, rules of access.
//! * [`selection`] and [`routing`]: who is chosen, and whether another may be tried.
//! * [`mediation`]: an operator's rules at four points of the way.
//! * `feed`: a copy of messages to Kafka, which signalling never waits for.
//! * [`config`]: every setting, documented where it is defined. [`events`]: what is counted.

mod alarms;
pub mod config;
pub mod discovery;
pub mod events;
mod federation;
mod feed;
#[doc(hidden)]
pub mod fuzzing;
mod live;
pub use mediation;
mod nrf_sets;
mod pages;
mod peers;
mod pipeline;
mod protection;
mod refusal;
mod security;
pub mod selection;
mod service;
mod shared;

pub use config::Config;
pub use function::StartError;
pub use service::{Running, start};
pub use shared::Scp;

/// Every metric of an SCP.
#[must_use]
pub fn metrics() -> Vec<telemetry::Declaration> {
    let admission = events::ADMISSION.declarations();
    [events::METRICS, &admission, security::METRICS, feed::METRICS].concat()
}

#[cfg(test)]
mod tests {
    #[test]
    fn metrics_are_named_as_they_should_be() {
        let faults = telemetry::metrics::lint(&super::metrics());
        assert!(faults.is_empty(), "{faults:?}");
    }
}
