//! Every setting of a router; a file per topic.

mod applications;
mod exceptions;
mod hiding;
mod mediation;
mod nodes;
mod overload;
mod peers;
mod profiles;
mod routing;
mod rules;
mod watching;

pub use applications::{Application, Ready, check_files};
pub use dsr_app::Answer;
pub use exceptions::{AnswerRule, Exception, Exceptions};
pub use hiding::{HiddenHost, HidingScope, TopologyHiding};
pub use mediation::{AvpCondition, AvpValue, Change, Mediation, MediationRule, MessageConditions, Messages};
pub(crate) use mediation::{AvpPath, data, encode, is_text, key, path};
pub use nodes::{Listener, LocalNode, NodeLimits};
pub use overload::{
    AdvertiseLoad, ClassDiscard, Colour, LevelSeverity, Overload, OverloadLevel, Policy, ServerReports,
    Thresholds,
};
pub use peers::{
    DuplicatePolicy, DynamicPeers, Ingress, Peer, ReopenPolicy, ThrottleGroup, ThrottleLevel, Timers,
    TransportKind,
};
pub use profiles::Plan;
pub use routing::{Group, Member, RealmRoute, Reroute, RouteList, Routing, TableOfApplication, Transaction};
pub use rules::{
    Action, ApplicationAction, ApplicationRule, ApplicationTable, Conditions, CopyAfter, Rule, Table,
    TextCondition,
};
pub use watching::{Indicators, Measurements, Trace, TracePoint};

use std::collections::BTreeSet;
use std::net::SocketAddr;

use sbi::dns::DnsConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};

/// Settings of a Diameter signaling router. Defaults run: a relay for peers of this machine.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Config {
    /// Address of the admin endpoint (`/livez /readyz /metrics /config`).
    #[schemars(extend("format" = "socket-address"))]
    pub admin: SocketAddr,
    /// Message processors (DA-MPs): worker threads, each with connections of its own. 0: one per core.
    pub workers: usize,
    /// Cores the workers are pinned to; empty: not pinned.
    pub cores: Vec<usize>,
    /// Identities of the router towards its peers. The first one is used where none is named.
    pub local_nodes: Vec<LocalNode>,
    /// Bounds of one message processor.
    pub limits: NodeLimits,
    /// Peers that are known by name.
    #[schemars(extend("x-reload" = true))]
    pub peers: Vec<Peer>,
    /// How `peers[].names` are resolved.
    pub dns: DnsConfig,
    /// Peers that may connect without being configured one by one.
    #[schemars(extend("x-reload" = true))]
    pub dynamic_peers: Vec<DynamicPeers>,
    /// Where requests go.
    #[schemars(extend("x-reload" = true))]
    pub routing: Routing,
    /// Applications inside the router.
    #[schemars(extend("x-reload" = true))]
    pub applications: Vec<Application>,
    /// Bound of the requests per second of a connection, for peers without a bound of their own.
    #[schemars(extend("x-reload" = true))]
    pub ingress: Ingress,
    /// Rates for requests to several peers together.
    #[schemars(extend("x-reload" = true))]
    pub throttle_groups: Vec<ThrottleGroup>,
    /// Overload control: levels of load, and the requests that are discarded.
    #[schemars(extend("x-reload" = true))]
    pub overload: Overload,
    /// Names that are hidden from foreign networks.
    #[schemars(extend("x-reload" = true))]
    pub topology_hiding: TopologyHiding,
    /// Rules that change requests and answers in the router.
    #[schemars(extend("x-reload" = true))]
    pub mediation: Mediation,
    /// Thresholds at which an indicator raises an alarm.
    #[schemars(extend("x-reload" = true))]
    pub indicators: Indicators,
    /// Files of measurements.
    #[schemars(extend("x-reload" = true))]
    pub measurements: Measurements,
    /// Messages that are written to trace files.
    #[schemars(extend("x-reload" = true))]
    pub trace: Trace,
    /// Timeout of requests in flight when the router stops.
    pub drain: Period,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            admin: SocketAddr::from(([127, 0, 0, 1], 9050)),
            workers: 0,
            cores: Vec::new(),
            local_nodes: vec![LocalNode::default()],
            limits: NodeLimits::default(),
            peers: Vec::new(),
            dns: DnsConfig::default(),
            dynamic_peers: vec![DynamicPeers::default()],
            routing: Routing::default(),
            applications: Vec::new(),
            ingress: Ingress::default(),
            throttle_groups: Vec::new(),
            overload: Overload::default(),
            topology_hiding: TopologyHiding::default(),
            mediation: Mediation::default(),
            indicators: Indicators::default(),
            measurements: Measurements::default(),
            trace: Trace::default(),
            drain: Period::from_secs(2),
        }
    }
}

impl Config {
    /// Position of the local node of this name; without a name the first.
    pub(crate) fn local_node(&self, name: &str) -> Option<usize> {
        self.local_nodes.iter().position(|node| node.name == name)
    }

    /// Gives buffers the size that the profile says, where `limits.byProfile` wants it.
    pub(crate) fn size_by_profile(&mut self) {
        let Some(plan) = self.overload.plan().filter(|_| self.limits.by_profile) else {
            return;
        };
        let most = f64::from(plan.mps) * f64::from(self.overload.hard_limit_percent) / 100.0;
        let answer = self.routing.transaction.answer.duration();
        self.limits.size(most, answer, self.indicators.message_size);
    }

    /// Tables that a peer names have to be there.
    fn validate_tables(&self, at: &str, peer_table: &str, application_table: &str, faults: &mut Faults) {
        let routing = &self.routing;
        let unknown_peer_table = !routing
            .peer_route_tables
            .iter()
            .any(|table| table.name == peer_table);
        let unknown_application_table = !routing
            .application_route_tables
            .iter()
            .any(|table| table.name == application_table);
        for (key, name, unknown) in [
            ("peerRouteTable", peer_table, unknown_peer_table),
            (
                "applicationRouteTable",
                application_table,
                unknown_application_table,
            ),
        ] {
            if !name.is_empty() && unknown {
                faults
                    .at(format!("{at}.{key}"))
                    .say(format!("unknown table `{name}`"), "the name of a table");
            }
        }
    }

    fn validate_peers(&self, faults: &mut Faults) {
        for (index, rule) in self.dynamic_peers.iter().enumerate() {
            let at = format!("dynamicPeers[{index}]");
            faults.within(&at, rule);
            self.validate_tables(&at, &rule.peer_route_table, &rule.application_route_table, faults);
        }
        let mut hosts = BTreeSet::new();
        for (index, peer) in self.peers.iter().enumerate() {
            let at = format!("peers[{index}]");
            faults.within(&at, peer);
            if !hosts.insert(peer.host.to_ascii_lowercase()) {
                faults
                    .at(format!("{at}.host"))
                    .say("is the name of another peer as well", "one entry per peer");
            }
            if self
                .local_nodes
                .iter()
                .any(|node| node.host.eq_ignore_ascii_case(&peer.host))
            {
                faults
                    .at(format!("{at}.host"))
                    .say("is the router's own name", "the name of another node");
            }
            for (number, name) in peer.local_nodes.iter().enumerate() {
                if self.local_node(name).is_none() {
                    faults
                        .at(format!("{at}.localNodes[{number}]"))
                        .say(format!("unknown local node `{name}`"), "a name from localNodes");
                }
            }
            self.validate_tables(&at, &peer.peer_route_table, &peer.application_route_table, faults);
            let is_sibling = |other: &Peer| other.sibling && other.host.eq_ignore_ascii_case(&peer.via);
            if !peer.via.is_empty() && !self.peers.iter().any(is_sibling) {
                faults.at(format!("{at}.via")).say(
                    format!("unknown sibling `{}`", peer.via),
                    "the host of a peer with `sibling: true`",
                );
            }
        }
    }
}

impl Validate for Config {
    fn validate(&self, faults: &mut Faults) {
        if self.local_nodes.is_empty() {
            faults.at("localNodes").say("is empty", "at least one local node");
        }
        let mut names = BTreeSet::new();
        let mut hosts = BTreeSet::new();
        for (index, node) in self.local_nodes.iter().enumerate() {
            faults.within(format!("localNodes[{index}]"), node);
            if !names.insert(&node.name) {
                faults
                    .at(format!("localNodes[{index}].name"))
                    .say("is the name of another local node as well", "a name of its own");
            }
            if !hosts.insert(node.host.to_ascii_lowercase()) {
                faults.at(format!("localNodes[{index}].host")).say(
                    "is the host of another local node as well",
                    "a host of its own; one node with several listeners has them in `listenAlso`",
                );
            }
        }
        faults.within("limits", &self.limits);
        if self.limits.by_profile && self.overload.plan().is_none() {
            let right = "overload.profile or overload.profileMps, or byProfile: false";
            faults.at("limits.byProfile").say("needs a profile", right);
        }
        faults.within("dns", &self.dns);
        self.validate_peers(faults);
        let peers: BTreeSet<String> = self
            .peers
            .iter()
            .map(|peer| peer.host.to_ascii_lowercase())
            .collect();
        let applications: BTreeSet<&str> = self.applications.iter().map(|one| one.name.as_str()).collect();
        for (index, application) in self.applications.iter().enumerate() {
            let lifetime = self.routing.transaction.lifetime;
            application.validate_at(&format!("applications[{index}]"), lifetime, faults);
        }
        for (g, group) in self.throttle_groups.iter().enumerate() {
            for (p, host) in group.peers.iter().enumerate() {
                if !peers.contains(&host.to_ascii_lowercase()) {
                    faults
                        .at(format!("throttleGroups[{g}].peers[{p}]"))
                        .say(format!("unknown peer `{host}`"), "the host of a peer");
                }
            }
        }
        self.routing.validate_within(&peers, &applications, faults);
        faults.within("ingress", &self.ingress);
        faults.within("overload", &self.overload);
        faults.within("topologyHiding", &self.topology_hiding);
        faults.within("mediation", &self.mediation);
        faults.within("indicators", &self.indicators);
        faults.within("measurements", &self.measurements);
        faults.within("trace", &self.trace);
    }
}
