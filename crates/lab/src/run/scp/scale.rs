//! The parameters of a model that follow the rate of a run: connections, and requests in flight.

use rustix::process::{Resource, getrlimit};

use crate::run::rig::Place;
use crate::run::{Options, figure};
use callmodel::scp::{Connections, ScpModel};

/// Connections into the SCP at least and at most.
const INTO: (u32, u32) = (2, 10_000);
/// Requests in flight for the induced latency are rate × latency on average; the bound is this many times as high.
const UNDER_WAY: f64 = 2.0;
/// Upper bound in any case.
const MOST_UNDER_WAY: f64 = 1_000_000.0;

/// What follows the rate. All is absent where the rate is not known before, or the model does not say.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Scale {
    /// Connections of consumers.
    pub(super) into: Option<u32>,
    /// Connections of each worker of the SCP to each producer at most.
    pub(super) to_each: Option<u16>,
    /// Requests per second on each of these.
    pub(super) rate_of_each: Option<u32>,
    /// Requests that may be in flight.
    pub(super) under_way: Option<u32>,
}

impl Scale {
    /// For a run with these options.
    pub(super) fn new(model: &ScpModel, options: &Options, place: &Place) -> Self {
        let workers = match place.function_cpus.len() {
            0 => report::measure::cpus().map_or(1, |cpus| cpus.len()),
            pinned => pinned,
        };
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Self::of(model, options.tps(model.requests()), workers, files)
    }

    fn of(model: &ScpModel, tps: Option<f64>, workers: usize, files: u64) -> Self {
        let Some(tps) = tps else {
            return Self::default();
        };
        let times = tps / model.requests();
        let into = |connections: Connections| {
            let into = f64::from(connections.into) * times;
            (into.round() as u32).clamp(INTO.0, INTO.1)
        };
        let to_each = |connections: Connections| {
            let each = f64::from(connections.to_each) * times / workers as f64;
            // A connection is a file at both ends; half of them are left to everything else.
            let most = files / 2 / (u64::from(model.profiles) * workers as u64).max(1);
            (each.ceil() as u64).clamp(1, most.clamp(1, u64::from(u16::MAX))) as u16
        };
        let [near, far] = model.ways();
        let longest = near.max(far).as_secs_f64();
        let under_way = (tps * longest * UNDER_WAY).min(MOST_UNDER_WAY);
        Self {
            into: model.connections.map(into),
            to_each: model.connections.map(to_each),
            // A request and its answer are two messages.
            rate_of_each: model
                .connections
                .and_then(|one| one.to_each_mps)
                .map(|mps| (mps / 2).max(1)),
            under_way: Some(under_way.ceil() as u32),
        }
    }

    /// For the report.
    pub(super) fn notes(&self, model: &ScpModel) -> Vec<String> {
        let mut notes = Vec::new();
        if let (Some(into), Some(to_each), Some(guide)) = (self.into, self.to_each, model.connections) {
            notes.push(format!(
                "{} and {} connections into the SCP and to each producer at the full rate are {into} and, for each \
                 worker, {to_each} at this one",
                figure(guide.into.into()),
                figure(guide.to_each.into()),
            ));
        }
        let ms = |period: settings::Period| figure(period.duration().as_secs_f64() * 1000.0);
        if [model.lan_latency, model.wan_latency, model.nrf_latency]
            .iter()
            .any(|one| !one.is_zero())
        {
            let mut way = format!(
                "producers take {} ms, and {} ms more on the way within the region",
                ms(model.producer_latency),
                ms(model.lan_latency)
            );
            if model.inter_scp.is_some() {
                way += &format!(" or {} ms to another", ms(model.wan_latency));
            }
            notes.push(format!(
                "{way}; the NRF answers {} ms later",
                ms(model.nrf_latency)
            ));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> ScpModel {
        callmodel::find("scp/model-c-1").unwrap().model.scp.unwrap()
    }

    #[test]
    fn a_connection_carries_what_it_carries_in_the_guide() {
        let model = model();
        let scale = |tps, workers| Scale::of(&model, Some(tps), workers, 1 << 20);
        let full = scale(75_000.0, 13);
        assert_eq!((full.into, full.to_each), (Some(190), Some(32)));
        assert_eq!(full.rate_of_each, Some(500));
        let fiftieth = scale(1500.0, 1);
        assert_eq!((fiftieth.into, fiftieth.to_each), (Some(4), Some(9)));
        // 0.45 s on the longest way, twice.
        assert_eq!(fiftieth.under_way, Some(1350));
        assert_eq!(scale(1.0, 4).into, Some(2));
        assert_eq!(Scale::of(&model, None, 1, 1 << 20), Scale::default());
    }

    #[test]
    fn there_are_files_for_all_connections() {
        let few = Scale::of(&model(), Some(75_000.0), 2, 20_000);
        assert_eq!(few.to_each, Some(10));
        assert_eq!(Scale::of(&model(), Some(75_000.0), 2, 64).to_each, Some(1));
    }
}
