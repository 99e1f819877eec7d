//! How long requests over Rx take, from the request of a peer to the answer that it gets.

use std::time::Duration;

use diameter::proto::known::command;
use telemetry::{Histogram, Registry};

telemetry::declare! {
    /// How long requests over Rx take.
    pub(crate) LATENCIES;
    histogram RX_LATENCY = "signalbox_bsf_rx_request_seconds" ["command"] in SECONDS: "Time from a request over Rx to its answer, that of the PCF or AF included, by command.";
}

/// A histogram for each command.
#[derive(Debug)]
pub(crate) struct Latencies([Histogram; 4]);

/// Commands by their position in [`Latencies`].
const COMMANDS: [(u32, &str); 4] = [
    (command::AA, "AAR"),
    (command::SESSION_TERMINATION, "STR"),
    (command::RE_AUTH, "RAR"),
    (command::ABORT_SESSION, "ASR"),
];

impl Latencies {
    pub(crate) fn new(registry: &Registry) -> Self {
        let family = registry.histograms(&RX_LATENCY);
        Self(COMMANDS.map(|(_, name)| family.get(&[name])))
    }

    /// A request of this command was answered after that time.
    pub(crate) fn observe(&self, command: u32, took: Duration) {
        let place = COMMANDS.iter().position(|(code, _)| *code == command);
        if let Some(histogram) = place.and_then(|place| self.0.get(place)) {
            histogram.observe(took);
        }
    }
}
