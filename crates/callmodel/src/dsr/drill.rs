//! Events at a router and its peers while the load runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Percent, Period};

use super::{Destination, DsrModel};

/// An event at a router and its peers while the load runs, with checks of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Drill {
    /// HSSs die with requests in flight.
    KillPeers(KillPeers),
    /// A router dies with requests in flight.
    KillRouter(Outage),
    /// The active front end of a pair dies with requests in flight.
    KillFrontEnd(Outage),
    /// The only router dies with requests in flight, and starts again.
    RestartRouter(Restart),
    /// The node of the database that the only router uses dies with requests in flight; `outage` is the longest answer.
    KillDatabase(Outage),
    /// Two sites with a router and a database each are cut off from one another, and joined again.
    CutSites(Cut),
    /// MMEs reconnect without a DPR, with requests in flight.
    Reconnect(Reconnect),
    /// The security application learns, and then blocks.
    Learning(Learning),
    /// More load than the router may accept.
    Overload(OverloadDrill),
    /// One of the database processors dies under load, and starts again.
    LoseProcessor(OfDatabase),
    /// The subscriber database server dies under load, and starts again.
    KillServer(OfDatabase),
    /// A block of the numbers of one of the database processors is damaged before the load.
    DamageBlock(OfDatabase),
}

impl Drill {
    /// Whether it is about the database of full address resolution.
    pub(super) const fn is_of_database(&self) -> bool {
        matches!(
            self,
            Self::LoseProcessor(_) | Self::KillServer(_) | Self::DamageBlock(_)
        )
    }
}

/// HSSs die with requests in flight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct KillPeers {
    /// Number of HSSs that die, of `hss`. They are one process, which is killed.
    #[schemars(range(min = 1, max = 998))]
    pub hss: u16,
    /// Time, as a share of the run.
    pub after: Percent,
}

/// A process dies, and others take its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Outage {
    /// Time, as a share of the run.
    pub after: Percent,
    /// The longest permitted outage: the number of failed requests, as a time in which the whole load fails.
    pub outage: Period,
}

/// The router dies with requests in flight and starts again; what it has acknowledged, it still has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Restart {}

/// Sites are cut off from one another under load: both serve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Cut {
    /// When they are cut off, as a share of the run.
    pub after: Percent,
    /// When they are joined again, as a share of the run.
    pub until: Percent,
}

/// Something happens to a process of `fabr.processors`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct OfDatabase {}

/// A security application without any knowledge learns who is where, without attacks; then it blocks, and attacks begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Learning {
    /// Time of learning, as a share of the run.
    pub learns: Percent,
}

/// MMEs reconnect without a DPR, with requests in flight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Reconnect {
    /// Mean interval of the reconnections of each MME.
    pub every: Period,
}

/// First the congestion levels in turn, at a load that is assumed instead of measured; then a ramp beyond the
/// hard limit of the message processor's profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct OverloadDrill {
    /// The assumed loads in percent, one for each level of `discards`.
    pub loads: Vec<Percent>,
    /// The rate meanwhile, as a multiple of the model's.
    pub calm: f64,
    /// The rates of the ramp, as multiples of the model's, which is the hard limit.
    pub ramp: Vec<f64>,
    /// Priorities up to this are never discarded.
    pub spare_priority: u8,
    /// How often each MME sends a DWR meanwhile.
    pub watchdog: Period,
    /// How long a DWA may take.
    pub watchdog_within: Period,
}

impl DsrModel {
    pub(super) fn validate_drill(&self, drill: &Drill, faults: &mut Faults) {
        match drill {
            Drill::KillPeers(kill) => {
                if kill.hss == 0 || kill.hss >= self.hss {
                    faults.at("drill.killPeers.hss").say(
                        format!(
                            "{} of {} HSSs leave no HSS alive, or kill none",
                            kill.hss, self.hss
                        ),
                        "at least 1, and fewer than `hss`",
                    );
                }
                if self.destination != Destination::Realm && self.of_sessions().is_none() {
                    faults.at("destination").say(
                        "names an HSS that may be dead",
                        "`realm`, so that a route list chooses another",
                    );
                }
            }
            Drill::RestartRouter(_) => {
                if self.pdra.is_none() {
                    let right = "`pdra`, whose sessions outlive the router";
                    faults
                        .at("drill.restartRouter")
                        .say("has nothing to find again", right);
                }
            }
            Drill::LoseProcessor(_) | Drill::KillServer(_) | Drill::DamageBlock(_) => {
                self.validate_database(faults);
            }
            Drill::KillDatabase(_) => {
                if self.pdra.is_none() {
                    let right = "`pdra`, whose sessions are in a database";
                    faults.at("drill.killDatabase").say("has no database", right);
                }
            }
            Drill::CutSites(cut) => {
                if self.pdra.is_none() {
                    let right = "`pdra`, whose sessions are in a database of each site";
                    faults.at("drill.cutSites").say("has no databases", right);
                }
                let (after, until) = (cut.after.percent(), cut.until.percent());
                if !(0.0 < after && after < until && until < 100.0) {
                    let right = "more than 0%, then `until`, less than 100%";
                    faults
                        .at("drill.cutSites.after")
                        .say("leaves no time before, during or after the cut", right);
                }
            }
            Drill::Learning(learning) => {
                if !(learning.learns.percent() > 0.0 && learning.learns.percent() < 100.0) {
                    let right = "more than 0% and less than 100%";
                    faults
                        .at("drill.learning.learns")
                        .say("leaves no time to learn, or none to block", right);
                }
                if self.dsa.as_ref().is_none_or(|dsa| dsa.attacks.percent() <= 0.0) {
                    let right = "`dsa` with `attacks`, which are blocked";
                    faults.at("drill.learning").say("has nothing to block", right);
                }
            }
            Drill::KillRouter(_) => {
                if self.routers < 2 {
                    let right = "at least 2, so that one is left";
                    faults
                        .at("routers")
                        .say("leaves no router when one is killed", right);
                }
            }
            Drill::KillFrontEnd(_) => {
                if self.front_ends < 2 {
                    let right = "2: an active front end to kill, and its standby";
                    faults
                        .at("frontEnds")
                        .say("leaves no front end when one is killed", right);
                }
            }
            Drill::Reconnect(reconnect) => {
                if reconnect.every.is_zero() {
                    faults
                        .at("drill.reconnect.every")
                        .say("is 0", "a period such as 500ms");
                }
            }
            Drill::Overload(overload) => {
                if overload.loads.len() != self.discards.len() || self.discards.is_empty() {
                    faults
                        .at("drill.overload.loads")
                        .say("and `discards` are not of one length", "a load for each level");
                }
                if self.priorities.is_empty() {
                    faults
                        .at("priorities")
                        .say("is empty", "the priorities of requests");
                }
                let rates = overload.ramp.iter().chain(std::iter::once(&overload.calm));
                if overload.ramp.is_empty() || rates.clone().any(|rate| !rate.is_finite() || *rate <= 0.0) {
                    faults
                        .at("drill.overload.ramp")
                        .say("has no rates, or some are not above 0", "multiples above 0");
                }
            }
        }
    }

    fn validate_database(&self, faults: &mut Faults) {
        let fabr = self.fabr.as_ref();
        if fabr.is_none_or(|fabr| fabr.processors < 2 || fabr.writes == 0) {
            let right = "at least 2, with `writes`: one that it happens to, and one that answers meanwhile";
            faults
                .at("fabr.processors")
                .say("are too few for the drill, or do not change", right);
        }
        if fabr.is_some_and(|fabr| fabr.whole_block().is_empty()) {
            let right = "at least 3073, so that a block of numbers is whole";
            faults
                .at("fabr.subscribers")
                .say("are all in the block that grows", right);
        }
    }
}
