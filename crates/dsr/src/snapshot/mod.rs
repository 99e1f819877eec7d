//! A configuration compiled into what workers read: names resolved, rules filed. Workers get it as a whole and
//! keep it until the next one comes; a request that is under way meanwhile is looked up in the new one.

mod compile;
mod loader;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ahash::AHashMap;
use diameter::proto::peer::Capabilities;
use diameter::proto::{Fault, Routing};
use smallvec::SmallVec;

use crate::config::{self, AnswerRule, Config, Exception, Exceptions, Ingress, Peer};
use crate::gate::Throttle;
use crate::hiding::Hiding;
use crate::rbar::Rbar;
use crate::registry::Hops;
use crate::routing::{RouteList, Rules, View, find_lower};

pub use loader::Loader;

/// What a rule leads to, and the list that gets a copy.
#[derive(Debug)]
pub struct Leads {
    /// What becomes of the request.
    pub action: Action,
    /// Position of the route list of the copy.
    pub copy: Option<usize>,
}

/// What becomes of a request.
#[derive(Debug)]
pub enum Action {
    /// A route list, by position.
    List(usize),
    /// The peer that the Destination-Host names.
    Implicit,
    /// Another table, by position.
    Table(usize),
    /// This answer.
    Answer(Fault),
    /// Nothing at all.
    Abandon,
}

/// What an application route rule leads to.
#[derive(Debug)]
pub enum Meets {
    /// An application, by position.
    Application(usize),
    /// Peer route rules at once.
    Route,
    /// This answer.
    Answer(Fault),
    /// Nothing at all.
    Abandon,
}

/// An application inside the router. Each kind is one variant here, one key of [`config::Application`] and one
/// arm where requests meet it (`router::request`).
#[derive(Debug)]
pub enum Installed {
    /// Range based address resolution.
    Rbar(Arc<Rbar>),
    /// Nothing: a name without a kind.
    Empty,
}

/// Which requests are traced.
#[derive(Debug)]
pub struct TracePoint {
    /// Hosts in lower case; empty: of any peer.
    pub peers: Vec<String>,
    /// Whether it fits.
    pub rules: Rules<()>,
}

/// How requests of a peer are treated.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// Its table of peer route rules, by position.
    pub table: Option<usize>,
    /// Its table of application route rules, by position.
    pub application_table: Option<usize>,
    /// DRMP priority of requests that bring none.
    pub priority: Option<u8>,
    /// Requests per second.
    pub ingress: Ingress,
    /// Whether it belongs to a foreign network.
    pub untrusted: bool,
    /// Whether it is another message processor of this router.
    pub sibling: bool,
    /// How long it may take to answer.
    pub answer_timeout: Option<Duration>,
    /// Applications it may send requests of; empty: any.
    pub applications: SmallVec<[u32; 4]>,
}

/// The configuration as workers see it.
#[derive(Debug)]
pub struct Snapshot {
    /// Grows with each configuration.
    pub version: u32,
    /// The configuration it was made of.
    pub config: Arc<Config>,
    /// Our names, in lower case.
    own: SmallVec<[Box<[u8]>; 2]>,
    tables: Vec<Rules<Leads>>,
    default_table: Option<usize>,
    table_of: AHashMap<u32, usize>,
    application_tables: Vec<Rules<Meets>>,
    default_application_table: Option<usize>,
    application_table_of: AHashMap<u32, usize>,
    applications: Vec<Installed>,
    /// Where peers of siblings are reached, by host in lower case.
    via: AHashMap<Box<[u8]>, Hops>,
    siblings: Vec<u32>,
    /// Names hidden from foreign networks.
    pub hiding: Option<Hiding>,
    /// Trigger points, by position.
    pub trace: Vec<TracePoint>,
    throttled: AHashMap<u32, usize>,
    shares: Vec<Vec<f64>>,
    lists: Vec<RouteList>,
    /// By host in lower case.
    profiles: AHashMap<Box<str>, Arc<Profile>>,
    default_profile: Arc<Profile>,
    /// Of peers that are not configured, by the rule that lets them in.
    strangers: Vec<(diameter::DynamicPeers, Arc<Profile>)>,
    reroute: Vec<config::Reroute>,
    exceptions: Exceptions,
    /// How long a peer may take to answer, unless it has a time of its own.
    pub answer_timeout: Duration,
    /// How long all attempts may take.
    pub lifetime: Duration,
    /// How many attempts.
    pub attempts: u8,
    /// Whether there are second attempts after a timeout.
    pub on_timeout: bool,
    /// Whether redirects are followed.
    pub follow_redirects: bool,
}

/// Tables that refer to tables are followed so far.
const MOST_TABLES: usize = 8;

impl Snapshot {
    /// Whether that is one of our names.
    #[inline]
    #[must_use]
    pub fn is_own(&self, name: &[u8]) -> bool {
        self.own.iter().any(|own| own.eq_ignore_ascii_case(name))
            || self.hiding.as_ref().is_some_and(|hiding| hiding.is_own(name))
    }

    /// How requests of that peer are treated.
    #[must_use]
    pub fn profile(&self, host: &str) -> Arc<Profile> {
        let host = host.to_ascii_lowercase();
        self.profiles.get(&*host).unwrap_or(&self.default_profile).clone()
    }

    /// How requests of a peer are treated that is connected like this: as configured, else by the rule that
    /// lets it in.
    #[must_use]
    pub fn profile_of(&self, peer: &Capabilities, address: IpAddr, tls: bool) -> Arc<Profile> {
        let host = peer.origin.host.to_ascii_lowercase();
        if let Some(profile) = self.profiles.get(&*host) {
            return profile.clone();
        }
        let rule = self
            .strangers
            .iter()
            .find(|(rule, _)| rule.admits(&peer.origin.realm, address, tls));
        rule.map_or(&self.default_profile, |(_, profile)| profile).clone()
    }

    /// The table for a request: the peer's, the application's, the default one.
    #[inline]
    #[must_use]
    pub fn table(&self, profile: &Profile, application: u32) -> Option<usize> {
        profile
            .table
            .or_else(|| self.table_of.get(&application).copied())
            .or(self.default_table)
    }

    /// What a request meets before it is routed; none: no application route rule fits.
    #[must_use]
    pub fn meets(&self, profile: &Profile, view: &View<'_>) -> Option<&Meets> {
        let table = profile
            .application_table
            .or_else(|| self.application_table_of.get(&view.application).copied())
            .or(self.default_application_table)?;
        self.application_tables.get(table)?.find(view)
    }

    /// The application at this position.
    #[must_use]
    pub fn installed(&self, position: usize) -> &Installed {
        self.applications.get(position).unwrap_or(&Installed::Empty)
    }

    /// Where a peer of a sibling is reached.
    #[must_use]
    pub fn via(&self, host: &[u8]) -> Option<&Hops> {
        find_lower(&self.via, host)
    }

    /// The hops of siblings, by id.
    #[must_use]
    pub fn siblings(&self) -> &[u32] {
        &self.siblings
    }

    /// The throttle group of a hop, by position.
    #[inline]
    #[must_use]
    pub fn throttle_of(&self, hop: u32) -> Option<usize> {
        if self.throttled.is_empty() {
            return None;
        }
        self.throttled.get(&hop).copied()
    }

    /// A worker's parts of the throttle groups.
    #[must_use]
    pub fn throttles(&self, worker: usize) -> Vec<Throttle> {
        let groups = self.config.throttle_groups.iter().zip(&self.shares);
        groups
            .map(|(group, shares)| Throttle::new(group, shares.get(worker).copied().unwrap_or_default()))
            .collect()
    }

    /// What becomes of a request by this table. No rule is as good as one that says `implicit`.
    #[must_use]
    pub fn action(&self, table: Option<usize>, view: &View<'_>) -> &Leads {
        let mut table = table;
        for _ in 0..MOST_TABLES {
            let rules = table.and_then(|table| self.tables.get(table));
            match rules.and_then(|rules| rules.find(view)) {
                Some(Leads {
                    action: Action::Table(next),
                    ..
                }) => table = Some(*next),
                Some(leads) => return leads,
                None => break,
            }
        }
        const IMPLICIT: &Leads = &Leads {
            action: Action::Implicit,
            copy: None,
        };
        IMPLICIT
    }

    /// The route list at this position.
    #[must_use]
    pub fn list(&self, position: usize) -> Option<&RouteList> {
        self.lists.get(position)
    }

    /// Every route list.
    #[must_use]
    pub fn lists(&self) -> &[RouteList] {
        &self.lists
    }

    /// Whether an answer means that the request should be tried elsewhere.
    #[inline]
    #[must_use]
    pub fn reroutes(&self, application: u32, answer: &Routing<'_>) -> bool {
        !self.reroute.is_empty()
            && self.reroute.iter().any(|rule| {
                (rule.applications.is_empty() || rule.applications.contains(&application))
                    && match answer.result_code {
                        Some(code) => rule.result_codes.contains(&code),
                        None => answer
                            .experimental_result()
                            .is_some_and(|(_, code)| rule.experimental_codes.contains(&code)),
                    }
            })
    }

    /// What is answered in such a case.
    #[must_use]
    pub fn exception(&self, exception: Exception) -> &AnswerRule {
        self.exceptions.of(exception)
    }
}

/// The local nodes that have a connection with a peer.
pub(crate) fn nodes_of(config: &Config, peer: &Peer) -> SmallVec<[usize; 2]> {
    if peer.local_nodes.is_empty() {
        return SmallVec::from_slice(&[0]);
    }
    peer.local_nodes
        .iter()
        .filter_map(|name| config.local_node(name))
        .collect()
}
