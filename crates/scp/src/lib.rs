//! The Service Communication Proxy: indirect communication of network functions, Models C and D
//! (TS 29.500 §6.10, TS 23.501 annex E).
//!
//! A tour, from the wire inwards:
//! * `pipeline`: the steps of a request, one file each. `service` is the SCP as a network function. `refusal`: the
//!   table of reasons for which a request is refused.
//! * [`target`]: the destination that a request names.
//! * `protection`: rates, overload, outliers, circuits, and the load reports of producers.
//! * [`network`]: the known producers, as immutable snapshots. `peers` learns them from NRFs and sends the queries of
//!   delegated discoveries; [`discovery`] caches the answers.
//! * `security`: tokens fetched for consumers, assertions checked, rules of access.
//! * [`selection`] and [`routing`]: selection of the producer, and whether another may be tried.
//! * [`mediation`]: an operator's rules at four trigger points.
//! * `feed`: a copy of messages to Kafka, for which signalling never waits.
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
