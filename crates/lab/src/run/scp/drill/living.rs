//! A network that changes: profiles change at the NRF, producers report load and overload. None of it may disturb the
//! traffic.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::wanted::{CHANGES, COPIES, not_run, reports};
use crate::run::children::Simulator;
use crate::run::drill::{Drill, Judgement, Outcome};
use crate::run::figure;
use crate::run::rig::RigError;
use ::report::Check;
use callmodel::scp::{ChangeKind, Notifications, ScpModel};
use loadgen::Weights;
use loadgen::client::{Client, Request};
use report::measure::Metrics;
use workload::scp::{Member, Population};

/// Timeout of a change at the NRF.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time for which a producer stays suspended or deregistered.
const AWAY: Duration = Duration::from_secs(1);
/// Length of a burst.
const BURST: Duration = Duration::from_secs(1);
/// The least share of the changes of which the SCP must have been notified: the NRF may merge changes of one moment
/// into one notification.
const NOTIFIED: f64 = 0.9;
/// The least share of the load reports that must have arrived, where more than a few were due: a producer that gets few
/// requests has few answers to carry them.
const REPORTED: f64 = 0.15;
const FEW: f64 = 20.0;
/// Number of changes whose notification may still be pending.
const FEW_CHANGES: f64 = 2.0;
/// Tolerance of the number of copies, as some requests are in flight when the counters are read.
const FEED_SLACK: f64 = 0.02;
/// The most of them that may be lost.
const FEED_LOSS: f64 = 0.01;
const FEED_LOST: &str = "signalbox_scp_feed_lost_total";
const LEARNED: &str = "signalbox_scp_learned_total";

/// Kinds of changes, with how many of a hundred they are (table 3-13 of the guide).
const MIX: [(Kind, f64); 9] = [
    (Kind::PriorityOrCapacity, 70.0),
    (Kind::Suspended, 10.0),
    (Kind::Deregistered, 5.0),
    (Kind::ApiVersion, 3.0),
    (Kind::Endpoint, 2.0),
    (Kind::SupiRange, 2.0),
    (Kind::ServiceInstance, 1.0),
    // Of the other 8 of a hundred.
    (Kind::GpsiRange, 2.0),
    (Kind::Load, 5.0),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    PriorityOrCapacity,
    Suspended,
    Deregistered,
    ApiVersion,
    Endpoint,
    SupiRange,
    /// A service instance is added, and removed a while later.
    ServiceInstance,
    GpsiRange,
    Load,
}

impl From<ChangeKind> for Kind {
    fn from(kind: ChangeKind) -> Self {
        match kind {
            ChangeKind::Load => Self::Load,
            ChangeKind::PriorityOrCapacity => Self::PriorityOrCapacity,
            ChangeKind::Suspended => Self::Suspended,
            ChangeKind::ServiceInstance => Self::ServiceInstance,
        }
    }
}

/// The drill.
pub(in crate::run::scp) struct Living {
    model: ScpModel,
    admin: SocketAddr,
    changes: Option<Changes>,
    feeds: bool,
    start: Option<Metrics>,
}

impl Living {
    pub(in crate::run::scp) fn new(
        model: &ScpModel,
        admin: SocketAddr,
        nrf: SocketAddr,
        population: &Arc<Population>,
        feeds: bool,
    ) -> Self {
        Self {
            feeds,
            changes: model
                .notifications
                .clone()
                .map(|plan| Changes::new(plan, nrf, population.clone())),
            model: model.clone(),
            admin,
            start: None,
        }
    }

    /// Judges the changes of the network.
    fn judge_changes(&self, changes: &Changes, end: &Metrics) -> Check {
        let start = self.start.clone().unwrap_or_default();
        let learned = |how: &str| end.sum(LEARNED, &[("how", how)]) - start.sum(LEARNED, &[("how", how)]);
        let (made, notified, lost) = (changes.made as f64, learned("notified"), learned("lost"));
        Check::new(
            CHANGES,
            format!(
                "the SCP is notified of at least {:.0}% and loses none",
                NOTIFIED * 100.0
            ),
            format!(
                "{} made, {} notified, {} lost{}",
                figure(made),
                figure(notified),
                figure(lost),
                changes
                    .refused
                    .as_ref()
                    .map_or(String::new(), |why| format!("; {why}"))
            ),
            // In a short run none may be due.
            (made > 0.0 || !changes.is_due)
                && notified + FEW_CHANGES >= made * NOTIFIED
                && lost == 0.0
                && changes.refused.is_none(),
        )
    }
}

impl Drill for Living {
    fn act(&mut self, at: Duration, length: Duration, _: &mut [Simulator]) -> Result<(), RigError> {
        if self.start.is_none() {
            self.start = Metrics::read(self.admin);
        }
        match &mut self.changes {
            Some(changes) => changes.act(at, length),
            None => Ok(()),
        }
    }

    fn judge(&mut self, outcome: &Outcome<'_>) -> Judgement {
        let mut judgement = Judgement::default();
        if let Some(mut changes) = self.changes.take() {
            changes.settle();
            // The SCP applies the last notifications within a second.
            std::thread::sleep(AWAY);
            let end = Metrics::read(self.admin).unwrap_or_default();
            judgement.checks.push(self.judge_changes(&changes, &end));
            judgement.notes.push(format!(
                "changes at the NRF while it was measured: {}",
                changes.in_words()
            ));
        }
        let window = outcome.window;
        if self.feeds {
            let start = self.start.clone().unwrap_or_default();
            let end = Metrics::read(self.admin).unwrap_or_default();
            let counted =
                |name: &str, labels: &[(&str, &str)]| end.sum(name, labels) - start.sum(name, labels);
            // Some of their copies were made before; they are counted as answered since.
            let in_flight = start.sum("signalbox_scp_outstanding_requests", &[]);
            judge_feed(&mut judgement, counted, in_flight, window.seconds());
        } else if self.model.feed.is_some() {
            let checks = COPIES.map(|name| not_run(name, "there is no broker"));
            judgement.checks.extend(checks);
        }
        let said = window
            .after
            .simulators
            .first()
            .zip(window.before.simulators.first());
        let Some(((after, _), (before, _))) = said else {
            let names = reports(&self.model).map(|(name, ..)| name);
            judgement
                .checks
                .extend(names.map(|name| not_run(name, "the producers gave no counters")));
            return judgement;
        };
        let seconds = window.seconds();
        // A producer reports its load in its answers: a producer that gets few requests reports seldom.
        let asked = (after.requests - before.requests) as f64;
        for (name, every, reporters, of) in reports(&self.model) {
            let reports = of(after) - of(before);
            let share = f64::from(reporters) / f64::from(self.model.profiles.max(1));
            let due = (f64::from(reporters) * seconds / every.duration().as_secs_f64().max(1e-3))
                .min(asked * share);
            let check = Check::new(
                name,
                format!(
                    "{reporters} have new information each {every}: up to {}",
                    figure(due)
                ),
                figure(reports as f64),
                reports as f64 <= due * 1.2 + f64::from(reporters)
                    && (reports as f64 >= due * REPORTED || due < FEW),
            );
            // Reports are due by the clock.
            judgement.checks.push(check.of_time());
        }
        judgement
    }
}

/// Judges the copies of messages, by the counters of the SCP. `in_flight`: requests in flight when the counters were
/// first read.
fn judge_feed(
    judgement: &mut Judgement,
    counted: impl Fn(&str, &[(&str, &str)]) -> f64,
    in_flight: f64,
    seconds: f64,
) {
    let of = |name: &str| counted(&format!("signalbox_scp_{name}_total"), &[]);
    let (delivered, lost) = (of("feed_delivered"), of("feed_lost"));
    // What is dropped while the feed pauses or its memory is full was never copied.
    let dropped = ["paused", "full"].map(|reason| counted(FEED_LOST, &[("reason", reason)]));
    let copied = of("feed_copied") + dropped.iter().sum::<f64>();
    // At four points, at two of them once for each attempt.
    let due = 4.0 * of("requests") + 2.0 * of("reroutes");
    judgement.checks.push(Check::new(
        COPIES[0],
        format!("{} of the requests and answers that were counted", figure(due)),
        figure(copied),
        // For a request in flight two copies were made before, or more where the SCP retried it.
        due > 0.0 && (copied - due).abs() <= due * FEED_SLACK + 4.0 * in_flight,
    ));
    judgement.checks.push(Check::new(
        COPIES[1],
        format!("at most {}%", FEED_LOSS * 100.0),
        format!(
            "{} lost, {} delivered: {} a second",
            figure(lost),
            figure(delivered),
            figure(delivered / seconds.max(1e-3))
        ),
        delivered > 0.0 && lost <= copied * FEED_LOSS,
    ));
}

/// Changes of profiles at the NRF.
struct Changes {
    plan: Notifications,
    nrf: SocketAddr,
    client: Option<Client>,
    population: Arc<Population>,
    /// Positions of the producers that may change.
    members: Vec<usize>,
    kinds: Weights,
    random: SmallRng,
    made: u64,
    /// Whether the plan had any change in the time that has passed.
    is_due: bool,
    /// Changes that were begun by the rate of the mix, and those of each kind with an interval of its own.
    of_mix: u64,
    of_kind: BTreeMap<ChangeKind, u64>,
    /// Numbers changes, for values that differ.
    turn: u32,
    by_kind: [u64; MIX.len()],
    /// Producers that are suspended or deregistered, until when, and how they changed.
    away: VecDeque<(Duration, usize, Kind)>,
    /// The first answer of the NRF that refused a change.
    refused: Option<String>,
}

impl Changes {
    fn new(plan: Notifications, nrf: SocketAddr, population: Arc<Population>) -> Self {
        let members = population.members.iter().enumerate();
        let members = members.filter(|(_, member)| !member.fails && has_service(member));
        Self {
            members: members.map(|(at, _)| at).collect(),
            plan,
            nrf,
            client: None,
            population,
            kinds: Weights::new(MIX.map(|(_, weight)| weight)),
            random: SmallRng::seed_from_u64(29_510),
            made: 0,
            is_due: false,
            of_mix: 0,
            of_kind: BTreeMap::new(),
            turn: 0,
            by_kind: [0; MIX.len()],
            away: VecDeque::new(),
            refused: None,
        }
    }

    /// Changes that should have been made by this time: the steady ones, and bursts at equal distances.
    fn due(&self, at: Duration, length: Duration) -> f64 {
        let mut due = self.plan.per_second * at.as_secs_f64();
        let parts = self.plan.bursts.len() as f64 + 1.0;
        for (number, rate) in self.plan.bursts.iter().enumerate() {
            let begins = length.mul_f64((number as f64 + 1.0) / parts);
            let lasted = at.saturating_sub(begins).min(BURST);
            due += rate * lasted.as_secs_f64();
        }
        due
    }

    fn act(&mut self, at: Duration, length: Duration) -> Result<(), RigError> {
        let mut requests = Vec::new();
        while let Some((_, who, kind)) = self.away.pop_front_if(|(until, ..)| *until <= at) {
            requests.push(self.back(who, kind));
        }
        let due = self.due(at, length) as u64;
        self.is_due |= due > 0;
        if self.members.is_empty() {
            return self.send(&requests);
        }
        // A producer that returns is a change of the mix as well.
        self.of_mix += requests.len() as u64;
        while self.of_mix < due {
            let drawn = self.kinds.draw(&mut self.random);
            let who = self.any_member();
            requests.push(self.change(who, drawn, at));
            self.of_mix += 1;
        }
        for (kind, period) in self.plan.every.clone() {
            let due = (at.as_secs_f64() / period.duration().as_secs_f64().max(1e-3)) as u64;
            while self.of_kind.get(&kind).copied().unwrap_or(0) < due {
                *self.of_kind.entry(kind).or_default() += 1;
                let drawn = MIX.iter().position(|(one, _)| *one == Kind::from(kind));
                let who = self.any_member();
                requests.push(self.change(who, drawn.unwrap_or(MIX.len() - 1), at));
            }
        }
        self.send(&requests)
    }

    /// The position of a producer.
    fn any_member(&mut self) -> usize {
        self.members[self.random.random_range(0..self.members.len())]
    }

    /// Ends every suspension and deregistration.
    fn settle(&mut self) {
        let away: Vec<Request> = std::mem::take(&mut self.away)
            .into_iter()
            .map(|(_, who, kind)| self.back(who, kind))
            .collect();
        if let Err(error) = self.send(&away) {
            self.refused.get_or_insert(error.to_string());
        }
    }

    fn send(&mut self, requests: &[Request]) -> Result<(), RigError> {
        if requests.is_empty() {
            return Ok(());
        }
        let io = || RigError::io("changing profiles at the NRF");
        let client = match &mut self.client {
            Some(client) => client,
            None => self
                .client
                .insert(Client::connect(self.nrf, PATIENCE).map_err(io())?),
        };
        let answers = client.exchange(requests).map_err(io())?;
        self.made += requests.len() as u64;
        for (request, answer) in requests.iter().zip(&answers) {
            if !(200..300).contains(&answer.status) {
                let why = format!(
                    "{} was answered {}: {}",
                    request.method,
                    answer.status,
                    answer.text()
                );
                self.refused.get_or_insert(why);
            }
        }
        Ok(())
    }

    fn back(&self, who: usize, kind: Kind) -> Request {
        let member = &self.population.members[who];
        match kind {
            Kind::Deregistered => {
                Request::new("PUT", path(member)).with("application/json", member.profile.to_string())
            }
            Kind::ServiceInstance => {
                let services = member.profile["nfServices"].clone();
                patch(member, "replace", "/nfServices", services)
            }
            _ => patch(member, "replace", "/nfStatus", json!("REGISTERED")),
        }
    }

    fn change(&mut self, who: usize, drawn: usize, at: Duration) -> Request {
        let is_away = self.away.iter().any(|(_, other, _)| *other == who);
        let member = &self.population.members[who];
        // Of a set only the first member is suspended or deregistered, so that the set always has a producer.
        let kind = match MIX[drawn].0 {
            Kind::Suspended | Kind::Deregistered if !member.is_first => Kind::Load,
            _ if is_away => Kind::Load,
            kind => kind,
        };
        let gone = self
            .away
            .iter()
            .any(|(_, other, kind)| *other == who && *kind == Kind::Deregistered);
        if gone {
            // A deregistered producer cannot change: another one does.
            let other = self.members[(self.made as usize + self.away.len()) % self.members.len()];
            if other != who {
                return self.change(other, MIX.len() - 1, at);
            }
        }
        let at_kind = MIX.iter().position(|(one, _)| *one == kind).unwrap_or(0);
        self.by_kind[at_kind] += 1;
        // The value always differs from the last one: the NRF does not notify of a change without effect.
        self.turn = self.turn.wrapping_add(1);
        let number = self.turn;
        match kind {
            Kind::PriorityOrCapacity => {
                let body = json!([
                    {"op": "replace", "path": "/nfServices/0/priority", "value": 1 + number % 3},
                    {"op": "replace", "path": "/nfServices/0/capacity", "value": 100 + number % 60_000},
                ]);
                Request::new("PATCH", path(member)).with("application/json-patch+json", body.to_string())
            }
            Kind::Suspended => {
                self.away.push_back((at + AWAY, who, kind));
                patch(member, "replace", "/nfStatus", json!("SUSPENDED"))
            }
            Kind::Deregistered => {
                self.away.push_back((at + AWAY, who, kind));
                Request::new("DELETE", path(member))
            }
            Kind::ApiVersion => {
                let version = json!([{"apiVersionInUri": "v1", "apiFullVersion": format!("1.0.{number}")}]);
                patch(member, "replace", "/nfServices/0/versions", version)
            }
            Kind::Endpoint => {
                let mut endpoints = member.profile["nfServices"][0]["ipEndPoints"].clone();
                if number.is_multiple_of(2) {
                    endpoints[0]["transport"] = json!("TCP");
                }
                patch(member, "replace", "/nfServices/0/ipEndPoints", endpoints)
            }
            Kind::ServiceInstance => {
                self.away.push_back((at + AWAY, who, kind));
                let mut service = member.profile["nfServices"][0].clone();
                service["serviceInstanceId"] = json!(format!("further-{number}"));
                patch(member, "add", "/nfServices/-", service)
            }
            Kind::SupiRange | Kind::GpsiRange => ranges_of(member, kind, number),
            Kind::Load => patch(member, "add", "/load", json!(number % 100)),
        }
    }

    fn in_words(&self) -> String {
        let names = [
            "priority or capacity",
            "suspended",
            "deregistered",
            "API version",
            "endpoint",
            "SUPI range",
            "service instance added",
            "GPSI range",
            "load",
        ];
        let rows: Vec<String> = names
            .iter()
            .zip(self.by_kind)
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        format!(
            "{} ({}), {} a second and bursts of {:?}; suspended or deregistered producers return after {} s, service instances are removed",
            self.made,
            rows.join(", "),
            figure(self.plan.per_second),
            self.plan.bursts,
            AWAY.as_secs()
        )
    }
}

/// Another range of subscribers that a producer serves; of types that have none, another load.
fn ranges_of(member: &Member, kind: Kind, number: u32) -> Request {
    let range = json!({"start": format!("{number:015}"), "end": "999999999999999"});
    let gpsi = kind == Kind::GpsiRange;
    let (info, ranges) = match (member.nf_type.as_str(), gpsi) {
        ("AUSF", false) => ("ausfInfo", "supiRanges"),
        ("CHF", false) => ("chfInfo", "supiRangeList"),
        ("CHF", true) => ("chfInfo", "gpsiRangeList"),
        ("PCF", false) => ("pcfInfo", "supiRanges"),
        ("PCF", true) => ("pcfInfo", "gpsiRanges"),
        ("UDM", false) => ("udmInfo", "supiRanges"),
        ("UDM", true) => ("udmInfo", "gpsiRanges"),
        ("UDR" | "SLF", false) => ("udrInfo", "supiRanges"),
        ("UDR" | "SLF", true) => ("udrInfo", "gpsiRanges"),
        _ => return patch(member, "add", "/load", json!(number % 100)),
    };
    patch(member, "add", &format!("/{info}"), json!({ranges: [range]}))
}

fn has_service(member: &Member) -> bool {
    member.profile["nfServices"]
        .as_array()
        .is_some_and(|list| !list.is_empty())
}

fn path(member: &Member) -> String {
    format!("/nnrf-nfm/v1/nf-instances/{}", member.id)
}

fn patch(member: &Member, operation: &str, at: &str, value: Value) -> Request {
    let body = json!([{"op": operation, "path": at, "value": value}]);
    Request::new("PATCH", path(member)).with("application/json-patch+json", body.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the two checks hold, for these counts of requests, copies, deliveries, and copies dropped in a pause.
    fn judged(requests: f64, copied: f64, delivered: f64, paused: f64) -> [bool; 2] {
        let mut judgement = Judgement::default();
        let counted = |name: &str, labels: &[(&str, &str)]| match name {
            "signalbox_scp_requests_total" => requests,
            "signalbox_scp_feed_copied_total" => copied,
            "signalbox_scp_feed_delivered_total" => delivered,
            FEED_LOST if labels.is_empty() => copied + paused - delivered,
            FEED_LOST if labels.contains(&("reason", "paused")) => paused,
            _ => 0.0,
        };
        judge_feed(&mut judgement, counted, 0.0, 10.0);
        [0, 1].map(|at| judgement.checks[at].pass)
    }

    #[test]
    fn missing_copies_and_lost_copies_fail_different_checks() {
        assert_eq!(judged(1000.0, 4000.0, 4000.0, 0.0), [true, true]);
        assert_eq!(judged(1000.0, 3000.0, 3000.0, 0.0), [false, true]);
        assert_eq!(judged(1000.0, 4000.0, 3900.0, 0.0), [true, false]);
        assert_eq!(judged(1000.0, 3000.0, 3000.0, 1000.0), [true, false]);
        assert_eq!(judged(0.0, 0.0, 0.0, 0.0), [false, false]);
    }
}
