//! A configuration compiled into what workers read: names resolved, rules filed. Workers get it as a whole and
//! keep it until the next one comes; a request that is under way meanwhile is looked up in the new one.

use std::sync::Arc;
use std::time::Duration;

use ahash::AHashMap;
use diameter::proto::{Fault, ResultCode, Routing};
use smallvec::SmallVec;

use crate::config::{self, AnswerRule, Config, Exception, Exceptions, Peer};
use crate::registry::{Hops, Registry};
use crate::routing::{RouteGroup, RouteList, Rules, View};

/// What a rule leads to.
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

/// How requests of a peer are treated.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// Its table of peer route rules, by position.
    pub table: Option<usize>,
    /// How long it may take to answer.
    pub answer_timeout: Option<Duration>,
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
    tables: Vec<Rules<Action>>,
    default_table: Option<usize>,
    table_of: AHashMap<u32, usize>,
    lists: Vec<RouteList>,
    /// By host in lower case.
    profiles: AHashMap<Box<str>, Arc<Profile>>,
    default_profile: Arc<Profile>,
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
}

/// Tables that refer to tables are followed so far.
const MOST_TABLES: usize = 8;

impl Snapshot {
    /// Compiles a valid configuration. Hops of configured peers are made in `registry`.
    #[must_use]
    pub fn compile(config: Arc<Config>, version: u32, registry: &Registry, workers: usize) -> Self {
        let routing = &config.routing;
        let position = |name: &str| {
            routing
                .peer_route_tables
                .iter()
                .position(|table| table.name == name)
        };
        let mut hops: AHashMap<String, Hops> = AHashMap::new();
        for (index, peer) in config.peers.iter().enumerate() {
            let home = peer.worker.unwrap_or(index) % workers.max(1);
            let each = nodes_of(&config, peer)
                .into_iter()
                .map(|node| registry.claim(&peer.host, node as u8, true, home));
            hops.insert(peer.host.to_ascii_lowercase(), each.collect());
        }
        let groups: AHashMap<&str, Arc<RouteGroup>> = routing
            .route_groups
            .iter()
            .map(|group| {
                let members = group.peers.iter().filter_map(|member| {
                    let hops = hops.get(&member.host.to_ascii_lowercase())?;
                    Some((hops.clone(), member.weight))
                });
                let made = RouteGroup::new(group.name.clone(), members.collect());
                (group.name.as_str(), Arc::new(made))
            })
            .collect();
        let lists = routing
            .route_lists
            .iter()
            .map(|list| {
                let members = list
                    .groups
                    .iter()
                    .filter_map(|name| groups.get(name.as_str()).cloned());
                RouteList::new(
                    list.name.clone(),
                    members.collect(),
                    list.minimum_capacity,
                    list.across_groups,
                )
            })
            .collect();
        let action = |action: &config::Action| match action {
            config::Action::RouteList(name) => routing
                .route_lists
                .iter()
                .position(|list| list.name == *name)
                .map_or(Action::Implicit, Action::List),
            config::Action::Table(name) => position(name).map_or(Action::Implicit, Action::Table),
            config::Action::Implicit => Action::Implicit,
            config::Action::Answer(answer) => {
                Action::Answer(Fault::new(ResultCode(answer.result_code), answer.message.clone()))
            }
            config::Action::Abandon => Action::Abandon,
        };
        let tables = routing
            .peer_route_tables
            .iter()
            .map(|table| {
                let rules = table
                    .rules
                    .iter()
                    .map(|rule| (rule.priority, &rule.when, action(&rule.action)));
                Rules::new(rules.collect())
            })
            .collect();
        let profiles = config
            .peers
            .iter()
            .map(|peer| {
                let profile = Profile {
                    table: position(&peer.peer_route_table),
                    answer_timeout: peer.answer_timeout.map(|timeout| timeout.duration()),
                };
                (peer.host.to_ascii_lowercase().into(), Arc::new(profile))
            })
            .collect();
        let own = config
            .local_nodes
            .iter()
            .map(|node| node.host.to_ascii_lowercase().into_bytes().into());
        let table_of = routing
            .tables_by_application
            .iter()
            .filter_map(|entry| Some((entry.application, position(&entry.peer_route_table)?)));
        Self {
            version,
            own: own.collect(),
            tables,
            default_table: position("default"),
            table_of: table_of.collect(),
            lists,
            profiles,
            default_profile: Arc::default(),
            reroute: routing.reroute.clone(),
            exceptions: routing.exceptions.clone(),
            answer_timeout: routing.transaction.answer.duration(),
            lifetime: routing.transaction.lifetime.duration(),
            attempts: routing.transaction.attempts.max(1),
            on_timeout: routing.transaction.on_timeout,
            config,
        }
    }

    /// Whether that is one of our names.
    #[inline]
    #[must_use]
    pub fn is_own(&self, name: &[u8]) -> bool {
        self.own.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// How requests of that peer are treated.
    #[must_use]
    pub fn profile(&self, host: &str) -> Arc<Profile> {
        let host = host.to_ascii_lowercase();
        self.profiles.get(&*host).unwrap_or(&self.default_profile).clone()
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

    /// What becomes of a request by this table. No rule is as good as one that says `implicit`.
    #[must_use]
    pub fn action(&self, table: Option<usize>, view: &View<'_>) -> &Action {
        let mut table = table;
        for _ in 0..MOST_TABLES {
            let rules = table.and_then(|table| self.tables.get(table));
            match rules.and_then(|rules| rules.find(view)) {
                Some(Action::Table(next)) => table = Some(*next),
                Some(action) => return action,
                None => break,
            }
        }
        &Action::Implicit
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
