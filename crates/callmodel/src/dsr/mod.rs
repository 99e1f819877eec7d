//! The traffic of a Diameter signaling router: MMEs, HSSs and the requests between them.

mod drill;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Percent, Period, Validate};

use crate::equipment::EquipmentLists;
use crate::ocdra::Charging;
use crate::pdra::Sessions;
use crate::resolution::Resolution;
use crate::roaming::Roaming;
use crate::subscribers::{FIRST_SUBSCRIBER, SubscriberRanges};
pub use drill::{Cut, Drill, KillPeers, Learning, OfDatabase, Outage, OverloadDrill, Reconnect, Restart};

/// Messages that a router processes for each request: the request and its answer.
pub const MESSAGES_PER_REQUEST: f64 = 2.0;
/// Subscribers of each range of `ranges`.
pub const SUBSCRIBERS_PER_RANGE: u64 = 1000;

/// The traffic of a Diameter signaling router. There are as many MMEs as `load.connections`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct DsrModel {
    /// Messages per second at the full rate, as the guide counts them: every message that comes in and goes
    /// out again, so that a request with its answer is two.
    pub mps: f64,
    /// Mix of the requests.
    #[serde(default)]
    pub mix: Mix,
    /// Average size of ULRs and ULAs in bytes.
    #[schemars(range(min = 700, max = 60_000))]
    pub message_bytes: u32,
    /// Simulated HSSs, PCRFs with `pdra` or OCSs with `ocdra`, a connection each.
    #[schemars(range(min = 1, max = 999))]
    pub hss: u16,
    /// Message processors of the router. Peers are spread over them evenly, so that of `n` processors
    /// `1 - 1/n` of the messages leave by another than they came in by.
    #[schemars(range(min = 1, max = 64))]
    pub da_mps: u16,
    /// Routers, a process each, that know one another as siblings; each has a connection to every HSS. Without
    /// `frontEnds` each MME knows two of them.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 16))]
    pub routers: u16,
    /// IP front ends between the MMEs and the routers: none, one, or an active/standby pair at one address.
    #[serde(default)]
    #[schemars(range(min = 0, max = 2))]
    pub front_ends: u16,
    /// Whether routers reach the HSSs through an IP front end as well, which has one address for all of them.
    #[serde(default)]
    pub egress: bool,
    /// The least share of messages that leave by another processor.
    #[serde(default)]
    pub cross_routed: Percent,
    /// Destination AVPs of the requests.
    #[serde(default)]
    pub destination: Destination,
    /// With `destination: subscriber`, entries of the router's address resolution: ranges of IMSIs, dealt to
    /// the HSSs in turn.
    #[serde(default)]
    pub ranges: u64,
    /// Shares of requests that the router's overload control discards at its levels DOC, CL1, CL2 and CL3;
    /// none: it has no overload control.
    #[serde(default)]
    pub discards: Vec<Percent>,
    /// Time that an HSS takes to answer.
    #[serde(default)]
    pub hss_latency: Period,
    /// ULRs of these DRMP priorities (RFC 7944) instead of `mix`; none: requests without a priority.
    #[serde(default)]
    pub priorities: Vec<PriorityShare>,
    /// Lists of the router's equipment identity register: MMEs check equipment at S13, and HSSs get no requests. None:
    /// no register.
    #[serde(default)]
    pub equipment: Option<EquipmentLists>,
    /// With `destination: subscriber`, subscribers that full address resolution resolves one by one, instead of by `ranges`.
    #[serde(default)]
    pub fabr: Option<Resolution>,
    /// MMEs are in foreign networks and their subscribers roam; a security application screens what they send. The mix is that
    /// of `mix`.
    #[serde(default)]
    pub dsa: Option<Roaming>,
    /// Sessions of gateways and applications at PCRFs, which a Policy DRA keeps together, instead of requests to HSSs.
    #[serde(default)]
    pub pdra: Option<Sessions>,
    /// Charging sessions of gateways at OCSs, each of which an online charging DRA keeps at one of them, instead of requests
    /// to HSSs.
    #[serde(default)]
    pub ocdra: Option<Charging>,
    /// Events while the load runs; none: no events.
    #[serde(default)]
    pub drill: Option<Drill>,
}

const fn one() -> u16 {
    1
}

/// The share of requests of a priority.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PriorityShare {
    /// DRMP priority: 0 is the most important.
    #[schemars(range(min = 0, max = 15))]
    pub priority: u8,
    /// Its share of the requests.
    pub share: Percent,
}

impl PriorityShare {
    /// Name of its requests in reports.
    #[must_use]
    pub fn operation(&self) -> String {
        format!("updateLocation priority {}", self.priority)
    }
}

/// Shares of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Mix {
    /// ULR, at attach and when the MME changes.
    pub update_location: Percent,
    /// AIR, for vectors of authentication.
    pub authentication_information: Percent,
    /// PUR, when an MME removes a subscriber.
    pub purge: Percent,
}

impl Default for Mix {
    fn default() -> Self {
        Self {
            update_location: Percent::new(100.0),
            authentication_information: Percent::new(0.0),
            purge: Percent::new(0.0),
        }
    }
}

/// Destination AVPs of the requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Destination {
    /// The HSS by its name (Destination-Host).
    #[default]
    Host,
    /// The realm; a route list chooses the HSS.
    Realm,
    /// The realm; the HSS is found by the range that the IMSI is in.
    Subscriber,
}

impl Destination {
    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Realm => "realm",
            Self::Subscriber => "subscriber",
        }
    }
}

impl Default for DsrModel {
    fn default() -> Self {
        Self {
            mps: 18_000.0,
            mix: Mix::default(),
            message_bytes: 2200,
            hss: 4,
            da_mps: 1,
            routers: 1,
            front_ends: 0,
            egress: false,
            cross_routed: Percent::new(0.0),
            destination: Destination::Host,
            ranges: 1000,
            discards: Vec::new(),
            hss_latency: Period::default(),
            priorities: Vec::new(),
            equipment: None,
            fabr: None,
            dsa: None,
            pdra: None,
            ocdra: None,
            drill: None,
        }
    }
}

impl DsrModel {
    /// Requests per second at the full rate.
    #[must_use]
    pub fn requests(&self) -> f64 {
        self.of_sessions()
            .map_or(self.mps / MESSAGES_PER_REQUEST, |(requests, _)| requests)
    }

    /// Messages for each request of a client: two, and those of requests that follow from the other side.
    #[must_use]
    pub fn messages_per_request(&self) -> f64 {
        let sessions = self.of_sessions().filter(|(requests, _)| *requests > 0.0);
        let follow = sessions.map_or(0.0, |(requests, re_auths)| re_auths / requests);
        MESSAGES_PER_REQUEST * (1.0 + follow)
    }

    /// Requests of clients and of servers per second at the full rate, of an application that keeps sessions.
    fn of_sessions(&self) -> Option<(f64, f64)> {
        let policy = self.pdra.as_ref().map(|own| (own.requests(), own.re_auths()));
        let charging = self.ocdra.as_ref();
        policy.or_else(|| charging.map(|own| (own.requests(), own.re_auths())))
    }

    /// The share of messages that leave by another processor than they came in by, peers being spread evenly.
    #[must_use]
    pub fn crossing(&self) -> f64 {
        1.0 - 1.0 / f64::from(self.da_mps.max(1))
    }

    /// The subscribers of each HSS, when the router has to know.
    #[must_use]
    pub fn subscribers(&self) -> Option<SubscriberRanges> {
        if let Some(resolution) = &self.fabr {
            return Some(resolution.homes(self.hss));
        }
        (self.destination == Destination::Subscriber).then_some(SubscriberRanges {
            first: FIRST_SUBSCRIBER,
            size: SUBSCRIBERS_PER_RANGE,
            count: self.ranges,
            nodes: u64::from(self.hss),
        })
    }
}

impl DsrModel {
    /// Applications of the router have requests of their own, and one router.
    fn validate_applications(&self, faults: &mut Faults) {
        if let Some(equipment) = &self.equipment {
            faults.within("equipment", equipment);
        }
        if let Some(resolution) = &self.fabr {
            faults.within("fabr", resolution);
        }
        if let Some(roaming) = &self.dsa {
            faults.within("dsa", roaming);
        }
        if let Some(sessions) = &self.pdra {
            faults.within("pdra", sessions);
        }
        if let Some(charging) = &self.ocdra {
            faults.within("ocdra", charging);
        }
        if let Some((requests, re_auths)) = self.of_sessions() {
            let all = (requests + re_auths) * MESSAGES_PER_REQUEST;
            if (all / self.mps - 1.0).abs() > 0.01 {
                let sum = format!("{all} messages a second of its requests and RARs");
                faults.at("mps").say(format!("is not {sum}"), "the sum of them");
            }
        }
        let applications = [
            ("equipment", self.equipment.is_some(), false),
            ("fabr", self.fabr.is_some(), true),
            ("dsa", self.dsa.is_some(), false),
            ("pdra", self.pdra.is_some(), false),
            ("ocdra", self.ocdra.is_some(), false),
        ];
        let mut given = applications.into_iter().filter(|(_, is_given, _)| *is_given);
        let Some((key, _, resolves)) = given.next() else {
            return;
        };
        // PCRFs and OCSs may die.
        let is_drilled = match &self.drill {
            None => false,
            Some(Drill::KillPeers(_)) => self.of_sessions().is_none(),
            Some(Drill::RestartRouter(_) | Drill::KillDatabase(_) | Drill::CutSites(_)) => {
                self.pdra.is_none()
            }
            Some(drill) if drill.is_of_database() => self.fabr.is_none(),
            Some(Drill::Learning(_)) => self.dsa.is_none(),
            Some(_) => true,
        };
        let is_alone = self.routers <= 1 && self.front_ends == 0;
        if given.next().is_some() || is_drilled || !is_alone || !self.priorities.is_empty() {
            faults.at(key).say(
                "has requests of its own, of one router",
                "one of `equipment`, `fabr`, `dsa`, `pdra` and `ocdra`, without `priorities`, `frontEnds`, further \
                 `routers` and drills of others",
            );
        }
        if resolves != (self.destination == Destination::Subscriber) {
            let right = "`subscriber` with `fabr`, `host` or `realm` with the others";
            faults
                .at("destination")
                .say(format!("does not go with `{key}`"), right);
        }
    }
}

impl Validate for DsrModel {
    fn validate(&self, faults: &mut Faults) {
        if !(self.mps.is_finite() && self.mps > 0.0) {
            faults
                .at("mps")
                .say("is not a rate", "messages per second, above 0");
        }
        let Mix {
            update_location,
            authentication_information,
            purge,
        } = self.mix;
        let sum: f64 = [update_location, authentication_information, purge]
            .map(Percent::percent)
            .iter()
            .sum();
        if (sum - 100.0).abs() > 0.01 {
            faults.at("mix").say(format!("adds up to {sum}%"), "100%");
        }
        let shares: f64 = self.priorities.iter().map(|one| one.share.percent()).sum();
        if !self.priorities.is_empty() && (shares - 100.0).abs() > 0.01 {
            faults
                .at("priorities")
                .say(format!("adds up to {shares}%"), "100%");
        }
        if !(1..=16).contains(&self.routers) {
            let wrong = format!("{} cannot be started", self.routers);
            faults.at("routers").say(wrong, "1 to 16");
        }
        if self.egress && self.front_ends == 0 {
            faults
                .at("egress")
                .say("has no front end towards the clients", "`frontEnds` of 1 or 2");
        }
        if self.front_ends > 2 {
            let wrong = format!("{} do not share one address", self.front_ends);
            faults.at("frontEnds").say(wrong, "0, 1, or 2 for a pair");
        }
        self.validate_applications(faults);
        if let Some(drill) = &self.drill {
            self.validate_drill(drill, faults);
        }
        if !matches!(self.discards.len(), 0 | 4) {
            faults.at("discards").say(
                format!("has {} shares", self.discards.len()),
                "four, of DOC, CL1, CL2 and CL3, or none",
            );
        }
        if self.destination == Destination::Subscriber
            && self.fabr.is_none()
            && self.ranges < u64::from(self.hss)
        {
            faults.at("ranges").say(
                format!("{} ranges leave HSSs without subscribers", self.ranges),
                format!("at least {}, one for each HSS", self.hss),
            );
        }
        if self.crossing() + 1e-9 < self.cross_routed.fraction() {
            let needed = (1.0 / (1.0 - self.cross_routed.fraction()).max(1e-3)).ceil();
            faults.at("daMps").say(
                format!(
                    "with {} processors {:.0}% of the messages leave by another one",
                    self.da_mps,
                    self.crossing() * 100.0
                ),
                format!("at least {needed}, so that {} do", self.cross_routed),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::CallModel;

    #[test]
    fn an_application_has_requests_of_its_own_and_one_router() {
        let fabr = include_str!("../../../../callmodels/dsr/fabr-sds.yaml");
        let dsa = include_str!("../../../../callmodels/dsr/dsa-attacks.yaml");
        let pdra = include_str!("../../../../callmodels/dsr/pdra.yaml");
        let ocdra = include_str!("../../../../callmodels/dsr/ocdra.yaml");
        for (model, from, to, place) in [
            (
                fabr,
                "destination: subscriber",
                "destination: host",
                "dsr.destination",
            ),
            (fabr, "  daMps:", "  frontEnds: 1\n  daMps:", "dsr.fabr"),
            (fabr, "  daMps:", "  routers: 2\n  daMps:", "dsr.fabr"),
            (
                fabr,
                "  daMps:",
                "  drill: { loseProcessor: {} }\n  daMps:",
                "dsr.fabr.processors",
            ),
            (
                pdra,
                "  daMps:",
                "  drill: { killServer: {} }\n  daMps:",
                "dsr.pdra",
            ),
            (dsa, "  daMps:", "  frontEnds: 2\n  daMps:", "dsr.dsa"),
            (dsa, "  daMps:", "  equipment: {}\n  daMps:", "dsr.equipment"),
            (
                dsa,
                "  daMps:",
                "  drill: { killPeers: { hss: 1, after: 50% } }\n  daMps:",
                "dsr.dsa",
            ),
            (
                pdra,
                "destination: realm",
                "destination: subscriber",
                "dsr.destination",
            ),
            (pdra, "mps: 13000", "mps: 12000", "dsr.mps"),
            (ocdra, "mps: 13000", "mps: 12000", "dsr.mps"),
            (ocdra, "delete: 1300", "delete: 0", "dsr.ocdra.gy"),
            (
                ocdra,
                "  daMps:",
                "  drill: { restartRouter: {} }\n  daMps:",
                "dsr.ocdra",
            ),
            (
                ocdra,
                "  daMps:",
                "  drill: { learning: { learns: 50% } }\n  daMps:",
                "dsr.drill.learning",
            ),
            (
                dsa,
                "  daMps:",
                "  drill: { learning: { learns: 100% } }\n  daMps:",
                "dsr.drill.learning.learns",
            ),
        ] {
            assert!(model.contains(from), "{from}");
            let text = model.replace(from, to);
            let report = settings::from_str::<CallModel>(&text, "x.yaml").unwrap_err();
            assert!(report.to_string().contains(place), "{to}: {report}");
        }
    }
}
