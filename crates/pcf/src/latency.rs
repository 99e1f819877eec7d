//! How long Diameter peers wait for answers, how long the PCF waits for those of others, and how long policies are evaluated.

use std::time::{Duration, Instant};

use ::policy::Service;
use diameter::proto::known::{application, command};
use telemetry::{Histogram, Registry};

telemetry::declare! {
    /// How long things take.
    pub(crate) LATENCIES;
    histogram DIAMETER = "signalbox_pcf_diameter_request_seconds" ["command"] in SECONDS: "Time from a Diameter request of a peer to its answer, by interface and command.";
    histogram PEERS = "signalbox_pcf_peer_request_seconds" ["request"] in SECONDS: "Time from a request of the PCF to the answer of another node, or until it is given up: services, Diameter commands, LDAP. Notifications are not among them.";
    histogram EVALUATION = "signalbox_pcf_evaluation_seconds" ["service"] in SECONDS: "Time that a policy project takes to decide, by service.";
}

/// The requests of Diameter peers.
const SERVED: [((u32, u32), &str); 5] = [
    ((application::GX, command::CREDIT_CONTROL), "Gx CCR"),
    ((application::SD, command::CREDIT_CONTROL), "Sd CCR"),
    ((application::RX, command::AA), "Rx AAR"),
    ((application::RX, command::SESSION_TERMINATION), "Rx STR"),
    ((application::SY, command::SPENDING_STATUS_NOTIFICATION), "Sy SNR"),
];
/// The requests of the PCF over Diameter.
const SENT: [((u32, u32), &str); 7] = [
    ((application::GX, command::RE_AUTH), "Gx RAR"),
    ((application::SD, command::RE_AUTH), "Sd RAR"),
    ((application::SD, command::TDF_SESSION), "Sd TSR"),
    ((application::RX, command::RE_AUTH), "Rx RAR"),
    ((application::RX, command::ABORT_SESSION), "Rx ASR"),
    ((application::SY, command::SPENDING_LIMIT), "Sy SLR"),
    ((application::SY, command::SESSION_TERMINATION), "Sy STR"),
];
/// The services that the PCF uses.
const USED: [&str; 4] = [
    "nbsf-management",
    "namf-comm",
    "nudr-dr",
    "nchf-spendinglimitcontrol",
];

/// The histograms of a PCF.
#[derive(Debug)]
pub(crate) struct Latencies {
    served: [Histogram; SERVED.len()],
    sent: [Histogram; SENT.len()],
    used: [Histogram; USED.len()],
    ldap: Histogram,
    /// By [`Service`].
    evaluation: [Histogram; 3],
}

impl Latencies {
    pub(crate) fn new(registry: &Registry) -> Self {
        let (served, peers) = (registry.histograms(&DIAMETER), registry.histograms(&PEERS));
        let evaluation = registry.histograms(&EVALUATION);
        Self {
            served: SERVED.map(|(_, name)| served.get(&[name])),
            sent: SENT.map(|(_, name)| peers.get(&[name])),
            used: USED.map(|service| peers.get(&[service])),
            ldap: peers.get(&["LDAP search"]),
            evaluation: ["sm", "am", "ue"].map(|service| evaluation.get(&[service])),
        }
    }

    /// A request of a peer, by application and command, was received at this moment and is answered now.
    pub(crate) fn served(&self, request: (u32, u32), received: Instant) {
        observe(&SERVED, &self.served, request, received.elapsed());
    }

    /// A request of the PCF over Diameter, by application and command, was sent at this moment and is answered or given up now.
    pub(crate) fn sent(&self, request: (u32, u32), sent: Instant) {
        observe(&SENT, &self.sent, request, sent.elapsed());
    }

    /// A request to a producer of a service was sent at this moment and is answered or given up now.
    pub(crate) fn used(&self, service: &str, sent: Instant) {
        let place = USED.iter().position(|used| *used == service);
        if let Some(histogram) = place.and_then(|place| self.used.get(place)) {
            histogram.observe(sent.elapsed());
        }
    }

    /// A search in a directory was begun at this moment and has an end now.
    pub(crate) fn searched(&self, begun: Instant) {
        self.ldap.observe(begun.elapsed());
    }

    /// A project was asked for a decision at this moment and has made it now.
    pub(crate) fn evaluated(&self, service: Service, begun: Instant) {
        let [sm, am, ue] = &self.evaluation;
        let histogram = match service {
            Service::Sm => sm,
            Service::Am => am,
            Service::Ue => ue,
        };
        histogram.observe(begun.elapsed());
    }
}

fn observe(names: &[((u32, u32), &str)], histograms: &[Histogram], request: (u32, u32), took: Duration) {
    let place = names.iter().position(|(known, _)| *known == request);
    if let Some(histogram) = place.and_then(|place| histograms.get(place)) {
        histogram.observe(took);
    }
}
