//! Point codes, links, application servers, link sets, routes.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::Period;
use ss7_proto::Plan;
use ss7_proto::m3ua::TrafficMode;

/// The point codes of an STP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct PointCodes {
    /// Which point codes the network has.
    pub plan: NumberingPlan,
    /// The point code of this STP (`3-50-1` or a number): the origin of what it sends itself.
    pub own: String,
    /// Further point codes at which it takes messages: a capability point code that it shares with its mate, aliases.
    pub also: Vec<String>,
    /// Network indicator of what it sends of its own accord (status tests): 0 = international, 2 = national. Messages that
    /// it relays and answers keep theirs.
    #[schemars(range(max = 3))]
    pub network_indicator: u8,
}

impl Default for PointCodes {
    fn default() -> Self {
        Self {
            plan: NumberingPlan::default(),
            own: String::new(),
            also: Vec::new(),
            network_indicator: 2,
        }
    }
}

/// A plan of point codes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NumberingPlan {
    /// 14 bits (Q.708), written `3-50-1`.
    #[default]
    Itu,
    /// 24 bits (T1.111.8), written `5-20-1`; SCCP as in T1.112.
    Ansi,
    /// 24 bits as in China's national network: point codes as ANSI, SCCP as ITU.
    China,
    /// 16 bits (JT-Q704), written `10-3-2`.
    Japan,
}

impl NumberingPlan {
    pub(crate) const fn plan(self) -> Plan {
        match self {
            Self::Itu => Plan::Itu,
            Self::Ansi => Plan::Ansi,
            Self::China => Plan::China,
            Self::Japan => Plan::Japan,
        }
    }
}

/// An association with a peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Link {
    /// Name in metrics, alarms and pages.
    pub name: String,
    /// What this STP is on the link.
    pub role: Role,
    /// What carries it.
    pub transport: Transport,
    /// Addresses of the peer.
    pub peer: Vec<IpAddr>,
    /// Port of the peer. Absent: 2905 to connect to (3565 for role `m2pa`, 5000 for role `ipa`), any to accept from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Whether this STP connects; otherwise the peer does.
    pub connect: bool,
}

/// What this STP is on a link (RFC 4666 §1.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Signalling gateway process: the peer is an ASP.
    #[default]
    Sgp,
    /// ASP: the peer is a signalling gateway or STP.
    Asp,
    /// IP server process: both sides are equal. A side that connects also sends ASPUP and ASPAC (single exchange); an
    /// acknowledgement of either side opens the link.
    Ipsp,
    /// The link is one of M2PA (RFC 4165): both sides are adjacent signalling points.
    M2pa,
    /// The link is one of IPA (SCCPlite): SCCP over TCP without a routing label, as `osmo-stp` and base station controllers speak
    /// it. Where this STP connects, the name of the link is its unit name.
    Ipa,
}

/// What carries a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// SCTP of the kernel.
    #[default]
    Sctp,
    /// TCP: for laboratories.
    Tcp,
}

/// How the ASPs of an application server share its traffic (RFC 4666 §4.3.4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Traffic {
    /// One takes all: the one that became active last.
    Override,
    /// Each takes a share, by signalling link selection.
    #[default]
    Loadshare,
    /// Each takes everything.
    Broadcast,
}

impl Traffic {
    pub(crate) const fn mode(self) -> TrafficMode {
        match self {
            Self::Override => TrafficMode::Override,
            Self::Loadshare => TrafficMode::Loadshare,
            Self::Broadcast => TrafficMode::Broadcast,
        }
    }
}

/// An application server (AS): one or more ASPs that share traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct ApplicationServer {
    /// Name in routes, metrics, alarms and pages.
    pub name: String,
    /// Its number on its links.
    pub routing_context: u32,
    /// How its ASPs share traffic.
    pub traffic_mode: Traffic,
    /// ASPs that have to be active before a load-shared or broadcast AS is.
    pub wanted: usize,
    /// T(r): how long messages are queued after the last ASP became inactive.
    pub recovery: Period,
    /// Links of its ASPs, of role `sgp`, or all of role `ipa`.
    pub links: Vec<String>,
    /// Point codes that it serves: each is a route of priority 0 to it. With links of role `ipa` one: the origin of what comes.
    pub point_codes: Vec<String>,
    /// The point code that messages of the peer go to, with links of role `ipa`, whose messages name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// The screening list for what it sends; absent: all is admitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screening: Option<String>,
}

impl Default for ApplicationServer {
    fn default() -> Self {
        Self {
            name: String::new(),
            routing_context: 0,
            traffic_mode: Traffic::default(),
            wanted: 1,
            recovery: Period::from_secs(2),
            links: Vec::new(),
            point_codes: Vec::new(),
            destination: None,
            screening: None,
        }
    }
}

/// Links to one adjacent node, which share traffic by signalling link selection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct LinkSet {
    /// Name in routes, metrics, alarms and pages.
    pub name: String,
    /// The routing context that both sides use; absent: none is sent (links of role `asp` only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routing_context: Option<u32>,
    /// Links of role `asp` or `ipsp`, or all of role `m2pa`: the position of such a link is its signalling link code (SLC), which
    /// both sides have to agree on.
    pub links: Vec<String>,
    /// The point code of the adjacent node, for links of role `m2pa`: it is a route of priority 0 to the link set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point_code: Option<String>,
    /// The screening list for what comes from there; absent: all is admitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screening: Option<String>,
}

/// A route.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Route {
    /// Point code; `3-48-0/3` for all that differ in the last 3 bits only (a cluster), `0/14` for all. Of several that fit
    /// the one with fewer such bits counts.
    pub destination: String,
    /// Application server or link set.
    pub via: String,
    /// 0 is tried first. Routes to one destination with one priority share its traffic.
    pub priority: u8,
}
