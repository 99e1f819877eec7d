//! Indicators: averages over `indicators.interval`, and the alarms for those above their limits.

use std::collections::VecDeque;

use telemetry::{AlarmKind, Alarms, Severity};

use super::alarms::{CONNECTION_MPS, HOLD, MESSAGE_SIZE, MP_CPU, POOL, SYSTEM_CPU, SYSTEM_RAM, TRAFFIC};
use super::machine;
use super::sample::{Between, Sample, name};
use crate::config::{self, Plan};
use crate::rows::IndicatorRow;
use crate::snapshot::Snapshot;

/// The subject of indicators that are about the whole router.
const ROUTER: &str = "dsr";
/// The subject of indicators that are about the machine.
const MACHINE: &str = "machine";

/// Every message that was read from a peer, however it was processed, peer control included: the guide's Ingress Message
/// Rate. The number is ours, the guide has none.
const INGRESS_RATE: (u32, &str) = (10_505, "Ingress Message Rate");

/// Indicators while they are computed.
pub(super) struct Indicate<'i> {
    pub(super) snapshot: &'i Snapshot,
    pub(super) alarms: &'i Alarms,
    pub(super) between: Between<'i>,
    /// Whether the other router of a mated pair is available.
    pub(super) has_mate: bool,
    /// Samples of the interval.
    pub(super) samples: &'i VecDeque<Sample>,
    pub(super) rows: Vec<IndicatorRow>,
}

impl Indicate<'_> {
    /// Computes every indicator, and raises or clears its alarm.
    pub(super) fn run(mut self) -> Vec<IndicatorRow> {
        self.message_processors();
        self.messages();
        self.connections();
        self.machine();
        self.resolution();
        self.records();
        self.rows
    }

    fn settings(&self) -> &config::Indicators {
        &self.snapshot.config.indicators
    }

    fn row(&mut self, kind: &AlarmKind, instance: &str, value: f64, unit: &'static str) {
        let plan = self.snapshot.config.overload.plan();
        self.rows.push(IndicatorRow {
            id: kind.number,
            name: kind.name,
            instance: instance.to_owned(),
            value,
            unit,
            profile: plan
                .and_then(|plan| plan.profile)
                .filter(|_| kind.number == TRAFFIC.number),
        });
    }

    /// An indicator with a limit; 0: none.
    fn limited(&mut self, kind: &AlarmKind, instance: &str, value: f64, limit: f64, unit: &'static str) {
        self.row(kind, instance, value, unit);
        self.alarms.above(kind, instance, value, limit, unit);
    }

    fn message_processors(&mut self) {
        let plan = self.snapshot.config.overload.plan();
        let limit = match self.has_mate {
            true => self.settings().mp_cpu_with_mate.percent(),
            false => self.settings().mp_cpu.percent(),
        };
        for worker in 0..self.between.new.cpu.len() {
            let instance = name(worker);
            let average = |of: fn(&Sample) -> &Vec<f64>| {
                let values = self.samples.iter().filter_map(|sample| of(sample).get(worker));
                values.sum::<f64>() / self.samples.len().max(1) as f64
            };
            let (cpu, pool) = (average(|sample| &sample.cpu), average(|sample| &sample.pool));
            self.limited(&MP_CPU, &instance, cpu, limit, "percent");
            let most = self.settings().pdu_pool.percent();
            self.limited(&POOL, &instance, pool, most, "percent");
            let mps = self.between.rate(|sample| &sample.messages, worker);
            self.row(&TRAFFIC, &instance, mps, "messages per second");
            match plan.and_then(|plan| traffic(mps, plan, self.settings())) {
                Some((severity, detail)) => self.alarms.raise_as(&TRAFFIC, severity, &instance, detail),
                None => self.alarms.clear(&TRAFFIC, &instance),
            }
        }
    }

    /// Size of messages, and how long requests take.
    fn messages(&mut self) {
        let total = |of: fn(&Sample) -> &Vec<u64>| {
            let workers = 0..self.between.new.cpu.len();
            workers.map(|worker| self.between.rate(of, worker)).sum::<f64>()
        };
        let size = ratio(total(|sample| &sample.bytes), total(|sample| &sample.read));
        let limit = self.settings().message_size.bytes() as f64;
        self.limited(&MESSAGE_SIZE, ROUTER, size, limit, "bytes");
        let (old, new) = (self.between.old.hold, self.between.new.hold);
        let answered = new.0.saturating_sub(old.0) as f64;
        let hold = ratio(new.1.saturating_sub(old.1) as f64 / 1e6, answered);
        let limit = self.settings().hold_time.as_millis() as f64;
        self.limited(&HOLD, ROUTER, hold, limit, "milliseconds");
    }

    fn connections(&mut self) {
        let Between { old, new, seconds } = self.between;
        let mut all = 0.0;
        for (instance, (count, maximum)) in &new.connections {
            let before = old.connections.get(instance);
            let mps = count.saturating_sub(before.map_or(0, |(count, _)| *count)) as f64 / seconds;
            all += mps;
            self.row(&CONNECTION_MPS, instance, mps, "messages per second");
            let settings = self.settings();
            let maximum = match *maximum {
                0 => settings.connection_mps,
                maximum => maximum,
            };
            let share = mps / f64::from(maximum.max(1));
            let severity = match share {
                share if share > settings.connection_major.fraction() => Some(Severity::Major),
                share if share > settings.connection_minor.fraction() => Some(Severity::Minor),
                _ => None,
            };
            match severity {
                Some(severity) => {
                    let detail = format!("{mps:.0} messages per second of {maximum}");
                    self.alarms.raise_as(&CONNECTION_MPS, severity, instance, detail);
                }
                None => self.alarms.clear(&CONNECTION_MPS, instance),
            }
        }
        self.rows.push(IndicatorRow {
            id: INGRESS_RATE.0,
            name: INGRESS_RATE.1,
            instance: ROUTER.to_owned(),
            value: all,
            unit: "messages per second",
            profile: None,
        });
        for instance in old.connections.keys() {
            if !new.connections.contains_key(instance) {
                self.alarms.clear(&CONNECTION_MPS, instance);
            }
        }
    }

    fn machine(&mut self) {
        if let (Some((idle, all)), Some((idle_before, all_before))) =
            (self.between.new.system, self.between.old.system)
        {
            let all = all.saturating_sub(all_before) as f64;
            let busy = all - idle.saturating_sub(idle_before) as f64;
            let limit = self.settings().system_cpu.percent();
            self.limited(&SYSTEM_CPU, MACHINE, 100.0 * ratio(busy, all), limit, "percent");
        }
        if let Some(used) = machine::memory_percent() {
            let limit = self.settings().system_memory.percent();
            self.limited(&SYSTEM_RAM, MACHINE, used, limit, "percent");
        }
    }
}

/// The quotient; 0 where there is nothing to divide by.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Severity and text of the alarm for a message rate; none: the rate is within the plan.
fn traffic(mps: f64, plan: Plan, settings: &config::Indicators) -> Option<(Severity, String)> {
    let shares = [
        (Severity::Critical, settings.traffic_critical),
        (Severity::Major, settings.traffic_major),
        (Severity::Minor, Some(settings.traffic_minor)),
    ];
    let (severity, share) = shares.into_iter().find_map(|(severity, share)| {
        let share = share?;
        (mps > f64::from(plan.mps) * share.fraction()).then_some((severity, share))
    })?;
    let profile = plan.profile.map(|name| format!(" ({name})")).unwrap_or_default();
    let limit = f64::from(plan.mps) * share.fraction();
    let (share, planned) = (share.percent(), plan.mps);
    let detail = format!(
        "{mps:.0} messages per second, above {limit:.0}: {share} % of the planned {planned}{profile}"
    );
    Some((severity, detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_is_judged_by_the_profile() {
        let plan = Plan {
            profile: Some("14K_MPS"),
            mps: 14_000,
        };
        let of_guide = config::Indicators::default();
        // The guide's own example: 60 % of 14k.
        assert!(traffic(8_400.0, plan, &of_guide).is_none());
        let (severity, detail) = traffic(8_401.0, plan, &of_guide).unwrap();
        assert_eq!(severity.as_str(), "minor");
        assert_eq!(
            detail,
            "8401 messages per second, above 8400: 60 % of the planned 14000 (14K_MPS)"
        );
        let stricter = config::Indicators {
            traffic_major: Some(settings::Percent::new(80.0)),
            traffic_critical: Some(settings::Percent::new(100.0)),
            ..of_guide
        };
        for (mps, expected) in [(11_000.0, "minor"), (11_300.0, "major"), (14_100.0, "critical")] {
            let (severity, _) = traffic(mps, plan, &stricter).unwrap();
            assert_eq!(severity.as_str(), expected, "{mps}");
        }
    }
}
