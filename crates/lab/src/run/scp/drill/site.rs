//! The SCP's own site is lost: its producers answer 503, then they are killed, then another site of the region answers 503
//! as well, then all come back. The report has where requests went, second by second.

use std::net::SocketAddr;
use std::time::Duration;

use ::report::{Check, Destinations, Second, Site};
use callmodel::scp::{ScpModel, Sites};
use loadgen::engine::TlsFiles;
use report::measure::Metrics;
use settings::Percent;
use simulators::{Misbehaviour, Stats};
use workload::scp::locality_of;

use super::kill::SENT;
use super::{missed, read, total};
use crate::run::children::Simulator;
use crate::run::drill::{Drill, Judgement, Outcome};
use crate::run::figure;
use crate::run::rig::{Place, RigError};
use crate::run::scp::config::region_name;
use crate::run::scp::producers::site_settings;

const ATTEMPTS: &str = "signalbox_scp_attempts_total";
const REFUSED: &str = "signalbox_scp_refused_total";
/// The time between two samples.
const SECOND: Duration = Duration::from_secs(1);
/// The part of the requests of a phase that must go where they belong.
const SHARE: f64 = 0.95;
/// The part of its requests that the own site must have again, in the last two seconds.
const SHARE_AGAIN: f64 = 0.8;

/// What is done to the network, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Well,
    Refuses,
    Dead,
    NeighbourRefuses,
    Back,
}

impl Phase {
    const ALL: [Self; 5] = [
        Self::Well,
        Self::Refuses,
        Self::Dead,
        Self::NeighbourRefuses,
        Self::Back,
    ];

    /// When it begins, in parts of the length.
    fn begins(self) -> f64 {
        match self {
            Self::Well => 0.0,
            Self::Refuses => 0.15,
            Self::Dead => 0.35,
            Self::NeighbourRefuses => 0.55,
            Self::Back => 0.75,
        }
    }

    /// The phase after it.
    fn next(self) -> Option<Self> {
        let at = Self::ALL.iter().position(|one| *one == self)?;
        Self::ALL.get(at + 1).copied()
    }

    fn in_words(self) -> &'static str {
        match self {
            Self::Well => "all are well",
            Self::Refuses => "site-0 answers 503",
            Self::Dead => "site-0 is dead",
            Self::NeighbourRefuses => "site-0 is dead, site-1 answers 503",
            Self::Back => "all are back",
        }
    }
}

/// What was counted at one moment.
#[derive(Clone, Debug, Default)]
struct Sample {
    at: Duration,
    /// By site.
    stats: Vec<Stats>,
    refused: f64,
}

/// The drill.
pub(in crate::run::scp) struct LoseSite {
    place: Place,
    model: ScpModel,
    sites: Sites,
    admin: SocketAddr,
    tls: Option<TlsFiles>,
    phase: Phase,
    /// What the SCP reported at the begin.
    start: Option<Metrics>,
    last: Sample,
    /// What the own site had counted when its producers were killed.
    before_death: Stats,
    seconds: Vec<(Phase, Second)>,
}

impl LoseSite {
    pub(in crate::run::scp) fn new(
        model: &ScpModel,
        place: &Place,
        admin: SocketAddr,
        tls: Option<&TlsFiles>,
    ) -> Result<Self, RigError> {
        let sites = model.sites;
        let sites =
            sites.ok_or_else(|| RigError::Settings("a site cannot be lost without `sites`".to_owned()))?;
        Ok(Self {
            place: place.clone(),
            model: model.clone(),
            sites,
            admin,
            tls: tls.cloned(),
            phase: Phase::Well,
            start: None,
            last: Sample::default(),
            before_death: Stats::default(),
            seconds: Vec::new(),
        })
    }

    fn sample(&self, at: Duration, simulators: &mut [Simulator]) -> Result<Sample, RigError> {
        let mut stats = Vec::new();
        for simulator in simulators.iter_mut().take(self.sites.count() as usize) {
            stats.push(simulator.stats()?);
        }
        // The process that has come back counts from nothing.
        if self.phase == Phase::Back
            && let Some(own) = stats.first_mut()
        {
            own.requests += self.before_death.requests;
            own.misbehaved += self.before_death.misbehaved;
            own.answered += self.before_death.answered;
        }
        Ok(Sample {
            at,
            stats,
            refused: read(self.admin)?.sum(REFUSED, &[]),
        })
    }

    /// Adds what has happened since the last sample.
    fn close_second(&mut self, at: Duration, simulators: &mut [Simulator]) -> Result<(), RigError> {
        let sample = self.sample(at, simulators)?;
        let since = |of: fn(&Stats) -> u64| -> Vec<u64> {
            let pairs = sample.stats.iter().zip(&self.last.stats);
            pairs
                .map(|(now, before)| of(now).saturating_sub(of(before)))
                .collect()
        };
        let second = Second {
            t: at.as_secs_f64(),
            phase: self.phase.in_words().to_owned(),
            served: since(|stats| stats.answered),
            refused: since(|stats| stats.misbehaved),
            refused_by_function: (sample.refused - self.last.refused).max(0.0) as u64,
        };
        self.seconds.push((self.phase, second));
        self.last = sample;
        Ok(())
    }

    /// Does what begins a phase.
    fn begin(&mut self, phase: Phase, simulators: &mut [Simulator]) -> Result<(), RigError> {
        let refuses = Misbehaviour {
            error: Percent::new(100.0),
            error_status: 503,
            ..Misbehaviour::default()
        };
        let [own, neighbour, ..] = simulators else {
            return Err(RigError::Settings("the run has fewer than two sites".to_owned()));
        };
        match phase {
            Phase::Well => {}
            Phase::Refuses => own.misbehave(&refuses)?,
            Phase::Dead => {
                own.kill()?;
                self.before_death = own.stats()?;
            }
            Phase::NeighbourRefuses => neighbour.misbehave(&refuses)?,
            Phase::Back => {
                neighbour.misbehave(&Misbehaviour::default())?;
                let listen = settings::Listen::from(own.addresses[0]);
                let settings = site_settings(&self.model, 0, listen, self.tls.as_ref());
                let name = format!("{}-again", locality_of(0));
                let place = &self.place;
                *own = Simulator::start(&place.program, &name, &settings, &place.lab_cpus, &place.folder)?;
            }
        }
        self.phase = phase;
        Ok(())
    }

    /// Of the requests that were served in a phase, its first second aside, the share of the sites that `fits`.
    fn share(&self, phase: Phase, fits: impl Fn(u32) -> bool) -> f64 {
        let seconds = self.seconds.iter().filter(|(one, _)| *one == phase).skip(1);
        let (mut fitting, mut all) = (0, 0);
        for (_, second) in seconds {
            for ((site, _), served) in self.sites.all().zip(&second.served) {
                all += served;
                fitting += if fits(site) { *served } else { 0 };
            }
        }
        fitting as f64 / (all as f64).max(1.0)
    }

    fn went(&self, phase: Phase, to: &str, fits: impl Fn(u32) -> bool) -> Check {
        let share = self.share(phase, fits);
        Check::new(
            phase.in_words(),
            format!(
                "at least {:.0}% of the requests are served by {to}",
                SHARE * 100.0
            ),
            format!("{:.1}%", share * 100.0),
            share >= SHARE,
        )
    }

    /// Whether the own site has its requests again at the end.
    fn came_back(&self) -> Check {
        let back = self.seconds.iter().filter(|(phase, _)| *phase == Phase::Back);
        let (mut own, mut all) = (0, 0);
        for (_, second) in back.rev().take(2) {
            own += second.served.first().copied().unwrap_or(0);
            all += second.served.iter().sum::<u64>();
        }
        Check::new(
            Phase::Back.in_words(),
            format!(
                "site-0 serves at least {:.0}% of the requests in the last two seconds",
                SHARE_AGAIN * 100.0
            ),
            format!("{own} of {all}"),
            all > 0 && own as f64 >= SHARE_AGAIN * all as f64,
        )
    }

    /// No request that is idempotent fails, and of the others only those that the killed producers had.
    fn failures(&self, outcome: &Outcome<'_>, start: &Metrics, end: &Metrics) -> Vec<Check> {
        let is_idempotent = |name: &str| name.contains(" PUT");
        let safe = total(outcome, is_idempotent);
        let others = total(outcome, |name| !is_idempotent(name));
        let lost: f64 = SENT
            .iter()
            .map(|outcome| {
                let labels = [("outcome", *outcome)];
                end.sum(ATTEMPTS, &labels) - start.sum(ATTEMPTS, &labels)
            })
            .sum();
        vec![
            Check::new(
                "idempotent requests",
                "none fails",
                format!("{} of {} failed", safe.failures(), figure(safe.offered as f64)),
                safe.failures() == 0 && safe.offered > 0,
            ),
            Check::new(
                "other requests",
                "none fails but those that killed producers had and did not answer",
                format!(
                    "{} of {} failed; they had {}",
                    others.failures(),
                    figure(others.offered as f64),
                    figure(lost)
                ),
                others.failures() as f64 <= lost,
            ),
        ]
    }
}

impl Drill for LoseSite {
    fn act(&mut self, at: Duration, length: Duration, simulators: &mut [Simulator]) -> Result<(), RigError> {
        if self.start.is_none() {
            self.start = Some(read(self.admin)?);
            self.last = self.sample(at, simulators)?;
        }
        let part = at.as_secs_f64() / length.as_secs_f64().max(1e-3);
        let next = self.phase.next().filter(|next| part >= next.begins());
        if next.is_some() || at.saturating_sub(self.last.at) >= SECOND || part >= 1.0 {
            self.close_second(at, simulators)?;
        }
        match next {
            Some(next) => self.begin(next, simulators),
            None => Ok(()),
        }
    }

    fn judge(&mut self, outcome: &Outcome<'_>) -> Judgement {
        let end = read(self.admin).unwrap_or_default();
        let Some(start) = self.start.clone().filter(|_| self.phase == Phase::Back) else {
            return missed("a site is lost and comes back");
        };
        let each = self.sites.each;
        let mut checks = vec![
            self.went(Phase::Well, "site-0", |site| site == 0),
            self.went(Phase::Refuses, "other sites of its region", |site| {
                (1..each).contains(&site)
            }),
            self.went(Phase::Dead, "other sites of its region", |site| {
                (1..each).contains(&site)
            }),
            self.went(Phase::NeighbourRefuses, "sites that answer", |site| site > 1),
            self.came_back(),
        ];
        checks.extend(self.failures(outcome, &start, &end));
        let destinations = Destinations {
            sites: self
                .sites
                .all()
                .map(|(site, region)| Site {
                    name: locality_of(site),
                    region: region_name(region),
                })
                .collect(),
            seconds: std::mem::take(&mut self.seconds)
                .into_iter()
                .map(|(_, second)| second)
                .collect(),
        };
        let notes = "the producers of site-0 answer 503 from 15% of the time on, are killed (SIGKILL) at 35% and start \
                     again at 75%; those of site-1 answer 503 from 55% to 75%; ejected for 1 s at first, a broken \
                     circuit is tried again after 500 ms";
        Judgement {
            checks,
            notes: vec![notes.to_owned()],
            destinations: Some(destinations),
            ..Judgement::default()
        }
    }
}
