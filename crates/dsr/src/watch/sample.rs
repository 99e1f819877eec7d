//! Samples of the counters, and what changed between two.

use std::time::Instant;

use ahash::AHashMap;
use dsr_fabr::{Event as Resolution, Fabr};

use super::records::Records;
use super::{machine, records};
use crate::events::Event;
use crate::router::Gauges;
use crate::rows::PeerRow;
use crate::shared::Dsr;

/// Counters and gauges at one time.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    pub(super) at: Option<Instant>,
    pub(super) messages: Vec<u64>,
    pub(super) discarded: Vec<u64>,
    pub(super) read: Vec<u64>,
    pub(super) bytes: Vec<u64>,
    /// Messages that came, and the bound on requests per second, by connection.
    pub(super) connections: AHashMap<String, (u64, u32)>,
    pub(super) cpu: Vec<f64>,
    /// Kept requests in percent of the bytes that may be kept.
    pub(super) pool: Vec<f64>,
    pub(super) system: Option<(u64, u64)>,
    /// Count of answered requests, and the sum of their hold times in nanoseconds.
    pub(super) hold: (u64, u64),
    pub(super) resolution: Resolved,
    /// Of session and binding repositories.
    pub(super) records: Vec<Records>,
}

/// Counts of full address resolution, of all message processors.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Resolved {
    pub(super) queries: u64,
    pub(super) errors: u64,
    pub(super) congested: u64,
    /// Connections to database processors that were made, and those that were lost.
    pub(super) connected: u64,
    pub(super) lost: u64,
    /// Answers of congested processors.
    pub(super) refused: u64,
    /// Message processors without a database processor.
    pub(super) cut_off: u64,
}

/// Differences of two samples.
#[derive(Clone, Copy)]
pub(super) struct Between<'s> {
    pub(super) old: &'s Sample,
    pub(super) new: &'s Sample,
    pub(super) seconds: f64,
}

impl Between<'_> {
    /// Increase per second of a counter of a message processor.
    pub(super) fn rate(&self, of: fn(&Sample) -> &Vec<u64>, worker: usize) -> f64 {
        let at = |sample: &Sample| of(sample).get(worker).copied().unwrap_or_default();
        at(self.new).saturating_sub(at(self.old)) as f64 / self.seconds
    }
}

/// Name of a message processor in alarms and indicators.
pub(super) fn name(worker: usize) -> String {
    format!("da-mp-{worker}")
}

impl Sample {
    /// Samples a router.
    pub(super) fn of(dsr: &Dsr, now: Instant) -> Self {
        let counters = |worker| dsr.counts.of(worker);
        let workers = 0..dsr.gauges().len();
        let each = |event: Event| {
            workers
                .clone()
                .map(|worker| counters(worker).get(event))
                .collect()
        };
        let received = |worker| {
            let counters = counters(worker);
            counters.get(Event::Request) + counters.get(Event::Answer)
        };
        let connection = |row: PeerRow| {
            let instance = format!("{} at {}", row.host, row.local_node);
            (instance, (row.messages_in, row.ingress_maximum))
        };
        let hold = &dsr.tools.hold;
        Self {
            at: Some(now),
            messages: each(Event::Message),
            discarded: each(Event::OverloadDiscarded),
            read: workers.clone().map(received).collect(),
            bytes: each(Event::Bytes),
            connections: dsr.peers().into_iter().map(connection).collect(),
            cpu: dsr.gauges().iter().map(Gauges::cpu).collect(),
            pool: dsr.gauges().iter().map(Gauges::pool).collect(),
            system: machine::cpu_ticks(),
            hold: (hold.count(), hold.sum()),
            resolution: Resolved {
                queries: dsr.count_of::<Fabr>(Resolution::Queries),
                errors: dsr.count_of::<Fabr>(Resolution::DatabaseError),
                congested: dsr.count_of::<Fabr>(Resolution::DatabaseCongested),
                connected: dsr.count_of::<Fabr>(Resolution::ProcessorConnected),
                lost: dsr.count_of::<Fabr>(Resolution::ProcessorLost),
                refused: dsr.count_of::<Fabr>(Resolution::ProcessorCongested),
                cut_off: dsr
                    .count_of::<Fabr>(Resolution::ServiceLost)
                    .saturating_sub(dsr.count_of::<Fabr>(Resolution::ServiceRestored)),
            },
            records: records::of(&dsr.applications()),
        }
    }
}
