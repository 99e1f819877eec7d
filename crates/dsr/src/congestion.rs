//! Congestion of a message processor: its load, the level in effect, and the requests that are discarded. Pure: CPU
//! time, time and counts are arguments.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use diameter::proto::AvpWriter;
use diameter::proto::overload::doic::{LOSS, Report, ReportNumbers, ReportType, Reporter, SupportedFeatures};
use overload::cpu::CpuLoad;
use overload::{Change, CongestionLevels, Discard, PriorityDiscard, RunningAverage};

use crate::config::{Colour, Overload, Policy};

/// How many DRMP priorities there are.
const DRMP: u8 = 16;

/// Requests that came and messages that were processed, since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Requests, discarded ones included.
    pub(crate) offered: u64,
    /// Requests that were not discarded.
    pub(crate) accepted: u64,
    /// Messages in the sense of MPS.
    pub(crate) messages: u64,
}

/// The state.
#[derive(Debug)]
pub(crate) struct Congestion {
    settings: Overload,
    /// Messages per second above which requests are discarded, whatever the load; 0: there is no such limit.
    hard_limit: f64,
    levels: CongestionLevels,
    average: RunningAverage,
    /// Requests per second.
    offered: RunningAverage,
    load: CpuLoad,
    /// The load by which the level was last decided.
    judged: Option<f64>,
    discard: PriorityDiscard,
    classes: Vec<Vec<Discard>>,
    /// Of all requests, by the level.
    share: f64,
    /// Of all requests, by the hard limit.
    beyond: f64,
    counts: Option<(Instant, Counts)>,
    /// Reports of the realm: of requests that name no host, this router chooses the server. Only a host itself reports
    /// its overload; a report about a neighbour would be RFC 8581's.
    reporter: Reporter,
    numbers: Arc<ReportNumbers>,
    /// The report in force, encoded: alone, and with the features.
    reports: [Bytes; 2],
    /// The features, encoded; empty where nothing is ever reported.
    features: Bytes,
}

impl Congestion {
    /// Without congestion. `numbers` grow from run to run and are shared by all workers, for overload reports.
    #[must_use]
    pub(crate) fn new(settings: &Overload, numbers: Arc<ReportNumbers>) -> Self {
        let validity = settings.doic_validity.duration();
        let spare = settings.spare_priority.min(DRMP - 1);
        // The classes that are spared.
        let spared = match settings.policy {
            Policy::ColourWithinPriority => 2 * spare + 1,
            Policy::PriorityWithinColour | Policy::PriorityOnly => spare,
        };
        Self {
            hard_limit: settings.plan().map_or(0.0, |plan| {
                f64::from(plan.mps) * f64::from(settings.hard_limit_percent) / 100.0
            }),
            levels: CongestionLevels::new(settings.resolved()),
            average: RunningAverage::new(settings.average.duration()),
            offered: RunningAverage::new(settings.average.duration()),
            load: CpuLoad::new(),
            judged: None,
            discard: PriorityDiscard::new(Some(spared)),
            classes: settings
                .levels
                .iter()
                .map(|level| vec![Discard::new(); level.classes.len()])
                .collect(),
            share: 0.0,
            beyond: 0.0,
            counts: None,
            reporter: Reporter::numbered(ReportType::Realm, validity, numbers.clone()),
            numbers,
            reports: Default::default(),
            features: match settings.doic {
                true => features(None),
                false => Bytes::new(),
            },
            settings: settings.clone(),
        }
    }

    /// Takes new settings; the load so far is kept.
    pub(crate) fn configure(&mut self, settings: &Overload) {
        if self.settings == *settings {
            return;
        }
        let mut new = Self::new(settings, self.numbers.clone());
        new.average = std::mem::replace(&mut self.average, RunningAverage::new(Duration::ZERO));
        (new.load, new.judged, new.counts) = (self.load, self.judged, self.counts);
        // Clients have its reports in effect: the end of an overload is reported as well (RFC 7683 §5.2.3).
        new.reporter = self.reporter.clone();
        new.reporter.configure(settings.doic_validity.duration());
        new.report(Instant::now());
        *self = new;
    }

    /// Takes a reading of CPU time, or an assumed load in percent, and the counts so far. Returns the level when it has
    /// changed.
    pub(crate) fn sample(&mut self, now: Instant, cpu: Cpu, counts: Counts) -> Option<Change> {
        let load = match cpu {
            Cpu::Used(used) => self.load.feed(used, now),
            Cpu::Driven(load) => Some(load),
        };
        let change = load.and_then(|load| {
            let average = match cpu {
                Cpu::Used(_) => self.average.feed(load, now),
                Cpu::Driven(load) => load,
            };
            self.judged = Some(average);
            self.levels.update(average, now)
        });
        let level = self.levels.current();
        self.share = match level.checked_sub(1).and_then(|at| self.settings.levels.get(at)) {
            Some(level) => level.discard.fraction(),
            None => 0.0,
        };
        self.limit(now, counts);
        self.report(now);
        change
    }

    /// The share to discard so that the hard limit holds.
    fn limit(&mut self, now: Instant, counts: Counts) {
        let last = self.counts.replace((now, counts));
        let limit = self.hard_limit;
        let Some((then, before)) = last else { return };
        let elapsed = now.saturating_duration_since(then).as_secs_f64();
        if limit <= 0.0 || elapsed <= 0.0 {
            self.beyond = 0.0;
            return;
        }
        // Arrivals vary by chance; at the limit itself that must not discard more than needed.
        let offered = counts.offered.saturating_sub(before.offered) as f64 / elapsed;
        let offered = self.offered.feed(offered, now);
        let accepted = counts.accepted.saturating_sub(before.accepted) as f64;
        let messages = counts.messages.saturating_sub(before.messages) as f64;
        // An accepted request is followed by its answer: messages per accepted request.
        let each = if accepted > 0.0 {
            (messages / accepted).max(1.0)
        } else {
            2.0
        };
        self.beyond = if offered > 0.0 {
            (1.0 - limit / (each * offered)).max(0.0)
        } else {
            0.0
        };
    }

    /// The overload reports for answers, encoded.
    fn report(&mut self, now: Instant) {
        if !self.settings.doic {
            return;
        }
        let reduction = (self.share.max(self.beyond) * 100.0).round() as u8;
        self.reporter.set(now, reduction);
        self.reports = match self.reporter.report(now) {
            None => Default::default(),
            Some(report) => {
                let mut alone = AvpWriter::with_capacity(64);
                report.write(&mut alone);
                [alone.into_bytes(), features(Some(&report))]
            }
        };
    }

    /// What to append to an answer for a client that supports overload reports: a report of the realm unless its
    /// request named a host; the features, unless the answer has them (RFC 7683 §5.1.2).
    #[inline]
    #[must_use]
    pub(crate) fn report_for(&self, host_routed: bool, has_features: bool) -> &Bytes {
        static NOTHING: Bytes = Bytes::new();
        let [alone, with_features] = &self.reports;
        match (host_routed || alone.is_empty(), has_features) {
            (false, true) => alone,
            (false, false) => with_features,
            (true, false) => &self.features,
            (true, true) => &NOTHING,
        }
    }

    /// Whether answers to requests that name no host report an overload now.
    #[must_use]
    pub(crate) fn is_reporting(&self) -> bool {
        self.reports.first().is_some_and(|report| !report.is_empty())
    }

    /// Whether any request may be discarded now.
    #[inline]
    #[must_use]
    pub(crate) fn is_calm(&self) -> bool {
        self.levels.current() == 0 && self.beyond <= 0.0
    }

    /// The level, 0 for none, and its name.
    #[must_use]
    pub(crate) fn level(&self) -> (usize, &str) {
        let level = self.levels.current();
        (level, self.levels.name(level))
    }

    /// The load that decides the level, measured or assumed, in percent; none: not known yet.
    #[must_use]
    pub(crate) const fn load(&self) -> Option<f64> {
        self.judged
    }

    /// The share of requests that clients are asked to abate now, and for how long; none: no report is in effect.
    #[must_use]
    pub(crate) fn reported(&self, now: Instant) -> Option<(f64, Duration)> {
        let report = self.reporter.report(now).filter(|_| self.settings.doic)?;
        Some((f64::from(report.reduction) / 100.0, report.validity))
    }

    /// Whether to discard the next request of a client that abates this share of its requests already (RFC 7683 §5.2.3:
    /// the share that a reacting node has abated is not discarded a second time).
    pub(crate) fn discards(&mut self, priority: u8, colour: Colour, obeyed: f64) -> bool {
        if self.is_calm() {
            return false;
        }
        let left = |share: f64| match obeyed < share {
            true => (share - obeyed) / (1.0 - obeyed),
            false => 0.0,
        };
        if obeyed > 0.0 && left(self.share) <= 0.0 && self.beyond <= 0.0 {
            return false;
        }
        let priority = priority.min(DRMP - 1);
        let level = self.levels.current().checked_sub(1);
        if let Some(at) = level
            && let Some(settings) = self.settings.levels.get(at)
        {
            let class = settings.classes.iter().position(|class| {
                (class.from_priority..=class.to_priority).contains(&priority)
                    && class.colour.is_none_or(|wanted| wanted == colour)
            });
            if let Some(class) = class {
                let share = left(settings.classes[class].discard.fraction()).max(self.beyond);
                return self
                    .classes
                    .get_mut(at)
                    .and_then(|classes| classes.get_mut(class))
                    .is_some_and(|discard| discard.next(share));
            }
        }
        let yellow = u8::from(colour == Colour::Yellow);
        let class = match self.settings.policy {
            Policy::ColourWithinPriority => 2 * priority + yellow,
            // A spared priority is spared in any colour.
            Policy::PriorityWithinColour if priority <= self.settings.spare_priority => priority,
            Policy::PriorityWithinColour => DRMP * yellow + priority,
            Policy::PriorityOnly => priority,
        };
        self.discard.next(class, left(self.share).max(self.beyond))
    }
}

/// OC-Supported-Features and a report, encoded.
fn features(report: Option<&Report>) -> Bytes {
    let mut out = AvpWriter::with_capacity(96);
    SupportedFeatures { vector: LOSS }.write(&mut out);
    if let Some(report) = report {
        report.write(&mut out);
    }
    out.into_bytes()
}

/// The source of the load.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cpu {
    /// CPU time that the thread has used since it began.
    Used(Duration),
    /// A load in percent that was set.
    Driven(f64),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(level: f64, settings: &Overload) -> Congestion {
        let mut congestion = Congestion::new(settings, Arc::default());
        congestion.sample(Instant::now(), Cpu::Driven(level), Counts::default());
        congestion
    }

    fn gone(congestion: &mut Congestion, priority: u8, colour: Colour, count: usize) -> usize {
        (0..count)
            .filter(|_| congestion.discards(priority, colour, 0.0))
            .count()
    }

    #[test]
    fn each_level_discards_its_share() {
        let settings = Overload::default();
        for (load, name, share) in [
            (53.0, "normal", 0.0),
            (54.0, "DOC", 0.05),
            (60.0, "CL1", 0.25),
            (66.0, "CL2", 0.5),
            (72.0, "CL3", 0.9),
        ] {
            let mut congestion = at(load, &settings);
            assert_eq!(congestion.level().1, name);
            let gone = gone(&mut congestion, 10, Colour::Green, 10_000) as f64;
            assert!((gone / 10_000.0 - share).abs() < 0.02, "{name}: {gone}");
        }
        let raised = Overload {
            thresholds: crate::config::Thresholds::Raised,
            ..settings
        };
        assert_eq!(at(68.9, &raised).level().1, "normal");
        assert_eq!(at(87.0, &raised).level().1, "CL3");
    }

    #[test]
    fn the_important_stay_and_the_yellow_go_first() {
        for (policy, first) in [
            (Policy::ColourWithinPriority, (10, Colour::Yellow)),
            (Policy::PriorityWithinColour, (5, Colour::Yellow)),
        ] {
            let mut congestion = at(
                60.0,
                &Overload {
                    policy,
                    ..Overload::default()
                },
            );
            let kinds = [
                (0, Colour::Yellow),
                (5, Colour::Yellow),
                (10, Colour::Green),
                (10, Colour::Yellow),
            ];
            let mut counts = [0; 4];
            for _ in 0..5_000 {
                for (count, (priority, colour)) in counts.iter_mut().zip(kinds) {
                    *count += u32::from(congestion.discards(priority, colour, 0.0));
                }
            }
            let all: u32 = counts.iter().sum();
            assert!((4_800..=5_200).contains(&all), "a quarter of all: {counts:?}");
            assert_eq!(counts[0], 0, "priority 0 is spared");
            let most = counts.iter().max().unwrap();
            let index = counts.iter().position(|count| count == most).unwrap();
            assert!(
                kinds[index] == first || (first.0 == 5 && kinds[index] == (10, Colour::Yellow)),
                "{counts:?}"
            );
            assert!(counts[2] < 300, "green of the same priority stays: {counts:?}");
        }
    }

    #[test]
    fn shares_can_be_given_by_class() {
        let mut settings = Overload::default();
        settings.levels[1].classes = vec![crate::config::ClassDiscard {
            from_priority: 8,
            to_priority: 15,
            colour: Some(Colour::Yellow),
            discard: settings::Percent::new(40.0),
        }];
        let mut congestion = at(61.0, &settings);
        assert_eq!(gone(&mut congestion, 10, Colour::Yellow, 1_000), 400);
    }

    #[test]
    fn the_hard_limit_sheds_without_load() {
        let settings = Overload {
            profile: "VM:10K_MPS".to_owned(),
            ..Overload::default()
        };
        let mut congestion = Congestion::new(&settings, Arc::default());
        let start = Instant::now();
        let mut counts = Counts::default();
        for n in 0..20u32 {
            congestion.sample(start + Duration::from_millis(100) * n, Cpu::Driven(5.0), counts);
            // 40,000 requests per second; each that is taken makes two messages.
            for _ in 0..4_000 {
                counts.offered += 1;
                if !congestion.discards(10, Colour::Green, 0.0) {
                    counts.accepted += 1;
                    counts.messages += 2;
                }
            }
        }
        assert_eq!(congestion.level().1, "normal");
        let before = counts;
        congestion.sample(start + Duration::from_secs(3), Cpu::Driven(5.0), counts);
        assert!(before.messages < 2 * 26_500 + 8_000, "{before:?}");
    }

    #[test]
    fn clients_are_asked_to_send_less_while_it_lasts() {
        let mut congestion = at(60.0, &Overload::default());
        let report = congestion.report_for(false, false).clone();
        assert!(report.len() > congestion.report_for(false, true).len());
        assert!(congestion.is_reporting());
        assert!(
            congestion.report_for(true, true).is_empty(),
            "of a host only the host reports"
        );
        let features = congestion.report_for(true, false).clone();
        assert!(!features.is_empty());
        let now = Instant::now() + Duration::from_secs(1);
        congestion.sample(now, Cpu::Driven(10.0), Counts::default());
        congestion.sample(now + Duration::from_secs(1), Cpu::Driven(10.0), Counts::default());
        assert!(congestion.is_calm());
        let over = congestion.report_for(false, false);
        assert!(!over.is_empty() && *over != report, "the end is reported as well");
        congestion.sample(
            now + Duration::from_secs(60),
            Cpu::Driven(10.0),
            Counts::default(),
        );
        assert_eq!(*congestion.report_for(false, false), features);
        assert!(!congestion.is_reporting() && congestion.report_for(false, true).is_empty());
    }

    #[test]
    fn the_most_important_are_spared_in_any_colour() {
        for policy in [Policy::ColourWithinPriority, Policy::PriorityWithinColour] {
            let settings = Overload {
                policy,
                ..Overload::default()
            };
            let mut congestion = at(75.0, &settings);
            let mut gone = 0;
            for n in 0..5_000u32 {
                let spared = congestion.discards(0, Colour::Yellow, 0.0);
                assert!(!spared, "{policy:?}");
                gone += u32::from(congestion.discards(10, Colour::Green, 0.0));
                gone += u32::from(congestion.discards(if n % 2 == 0 { 10 } else { 5 }, Colour::Yellow, 0.0));
            }
            assert!(gone > 9_000, "{policy:?}: {gone}");
        }
    }
}
