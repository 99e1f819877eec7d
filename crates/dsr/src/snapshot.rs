//! A configuration compiled into what workers read: names resolved, rules filed. Workers get it as a whole and
//! keep it until the next one comes; a request that is under way meanwhile is looked up in the new one.

use std::sync::Arc;
use std::time::Duration;

use ahash::AHashMap;
use diameter::proto::{Fault, ResultCode, Routing};
use smallvec::SmallVec;

use crate::config::{self, AnswerRule, Config, Exception, Exceptions, Ingress, Peer};
use crate::gate::Throttle;
use crate::hiding::Hiding;
use crate::rbar::Rbar;
use crate::registry::{Hop, Hops, Registry};
use crate::routing::{RouteGroup, RouteList, Rules, View, find_lower};

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
    /// Compiles a valid configuration. Hops of configured peers are made in `registry`; what `last` has
    /// loaded from files that did not change is taken over.
    ///
    /// # Errors
    /// When a file cannot be used.
    pub fn compile(
        config: Arc<Config>,
        version: u32,
        registry: &Registry,
        workers: usize,
        loader: &mut Loader,
    ) -> Result<Self, String> {
        let applications = loader.load(&config)?;
        let routing = &config.routing;
        let position = |name: &str| {
            routing
                .peer_route_tables
                .iter()
                .position(|table| table.name == name)
        };
        let mut hops: AHashMap<String, Hops> = AHashMap::new();
        for (index, peer) in config
            .peers
            .iter()
            .enumerate()
            .filter(|(_, peer)| peer.via.is_empty())
        {
            let home = peer.worker.unwrap_or(index) % workers.max(1);
            let each = nodes_of(&config, peer)
                .into_iter()
                .map(|node| registry.claim(&peer.host, node as u8, true, home));
            hops.insert(peer.host.to_ascii_lowercase(), each.collect());
        }
        // A peer of a sibling is reached where the sibling is.
        let mut via = AHashMap::new();
        for peer in config.peers.iter().filter(|peer| !peer.via.is_empty()) {
            if let Some(there) = hops.get(&peer.via.to_ascii_lowercase()).cloned() {
                let host = peer.host.to_ascii_lowercase();
                via.insert(host.clone().into_bytes().into(), there.clone());
                hops.insert(host, there);
            }
        }
        let siblings = config.peers.iter().filter(|peer| peer.sibling);
        let siblings = siblings
            .filter_map(|peer| hops.get(&peer.host.to_ascii_lowercase()))
            .flatten()
            .map(|hop| hop.id)
            .collect();
        let mut throttled = AHashMap::new();
        let mut shares = Vec::new();
        for (index, group) in config.throttle_groups.iter().enumerate() {
            let members: Vec<&Arc<Hop>> = group
                .peers
                .iter()
                .filter_map(|host| hops.get(&host.to_ascii_lowercase()))
                .flatten()
                .collect();
            let share = |worker| members.iter().filter(|hop| hop.home() == worker).count() as f64;
            shares.push(
                (0..workers)
                    .map(|worker| share(worker) / members.len().max(1) as f64)
                    .collect(),
            );
            throttled.extend(members.iter().map(|hop| (hop.id, index)));
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
                let rules = table.rules.iter().map(|rule| {
                    let copy = routing
                        .route_lists
                        .iter()
                        .position(|list| list.name == rule.copy_to);
                    let action = action(&rule.action);
                    (rule.priority, &rule.when, Leads { action, copy })
                });
                Rules::new(rules.collect())
            })
            .collect();
        let meets = |action: &config::ApplicationAction| match action {
            config::ApplicationAction::Application(name) => config
                .applications
                .iter()
                .position(|application| application.name == *name)
                .map_or(Meets::Route, Meets::Application),
            config::ApplicationAction::Route => Meets::Route,
            config::ApplicationAction::Answer(answer) => {
                Meets::Answer(Fault::new(ResultCode(answer.result_code), answer.message.clone()))
            }
            config::ApplicationAction::Abandon => Meets::Abandon,
        };
        let application_position = |name: &str| {
            let mut tables = routing.application_route_tables.iter();
            tables.position(|table| table.name == name)
        };
        let application_tables = routing
            .application_route_tables
            .iter()
            .map(|table| {
                let rules = table
                    .rules
                    .iter()
                    .map(|rule| (rule.priority, &rule.when, meets(&rule.action)));
                Rules::new(rules.collect())
            })
            .collect();
        let trace = config
            .trace
            .points
            .iter()
            .map(|point| TracePoint {
                peers: point.peers.iter().map(|host| host.to_ascii_lowercase()).collect(),
                rules: Rules::new(vec![(0, &point.when, ())]),
            })
            .collect();
        let profiles = config
            .peers
            .iter()
            .map(|peer| {
                let profile = Profile {
                    table: position(&peer.peer_route_table),
                    application_table: application_position(&peer.application_route_table),
                    priority: peer.priority,
                    ingress: peer.ingress.unwrap_or(config.ingress),
                    untrusted: peer.untrusted,
                    sibling: peer.sibling,
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
        let application_table_of = routing.tables_by_application.iter().filter_map(|entry| {
            let table = application_position(&entry.application_route_table)?;
            Some((entry.application, table))
        });
        let default_profile = Profile {
            ingress: config.ingress,
            ..Profile::default()
        };
        Ok(Self {
            version,
            own: own.collect(),
            tables,
            default_table: position("default"),
            table_of: table_of.collect(),
            application_tables,
            default_application_table: application_position("default"),
            application_table_of: application_table_of.collect(),
            applications,
            via,
            siblings,
            hiding: Hiding::new(&config.topology_hiding),
            trace,
            throttled,
            shares,
            lists,
            profiles,
            default_profile: Arc::new(default_profile),
            reroute: routing.reroute.clone(),
            exceptions: routing.exceptions.clone(),
            answer_timeout: routing.transaction.answer.duration(),
            lifetime: routing.transaction.lifetime.duration(),
            attempts: routing.transaction.attempts.max(1),
            on_timeout: routing.transaction.on_timeout,
            follow_redirects: routing.follow_redirects,
            config,
        })
    }

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

/// Loads what configurations name by file, and keeps it while neither the file nor its settings change: a
/// million ranges take a second to read.
#[derive(Debug, Default)]
pub struct Loader {
    kept: Vec<(config::Rbar, Option<Stamp>, Arc<Rbar>)>,
}

/// When a file was written, and its length.
type Stamp = (std::time::SystemTime, u64);

fn stamp(settings: &config::Rbar) -> Option<Stamp> {
    let metadata = std::fs::metadata(settings.file.as_ref()?).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

impl Loader {
    fn load(&mut self, config: &Config) -> Result<Vec<Installed>, String> {
        let mut kept = Vec::new();
        let mut all = Vec::new();
        for application in &config.applications {
            let Some(settings) = &application.rbar else {
                all.push(Installed::Empty);
                continue;
            };
            let now = stamp(settings);
            let known = self
                .kept
                .iter()
                .find(|(of, then, _)| of == settings && *then == now);
            let rbar = match known {
                Some((.., rbar)) => rbar.clone(),
                None => {
                    let loaded = Rbar::load(settings);
                    Arc::new(loaded.map_err(|reason| format!("application {}: {reason}", application.name))?)
                }
            };
            kept.push((settings.clone(), now, rbar.clone()));
            all.push(Installed::Rbar(rbar));
        }
        self.kept = kept;
        Ok(all)
    }

    /// Whether a file has changed since it was read.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.kept
            .iter()
            .any(|(settings, then, _)| settings.file.is_some() && stamp(settings) != *then)
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
