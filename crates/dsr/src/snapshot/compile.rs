//! Making a snapshot of a configuration: names become positions and hops, rules are filed.

use std::sync::Arc;

use ahash::AHashMap;

use super::{
    Action, AnswerCopy, ApplicationStep, Copying, Leads, Profile, Slot, Snapshot, TracePoint, nodes_of,
};
use crate::config::{self, Config, Routing};
use crate::hiding::Hidings;
use crate::measures::{Count, Names, Subject};
use crate::mediation::Mediation;
use crate::registry::{Hop, Hops, Registry};
use crate::routing::{RealmRoutes, RouteGroup, RouteList, Rules};

/// Hops by host in lower case.
type ByHost = AHashMap<String, Hops>;

impl Snapshot {
    /// Compiles a valid configuration with its applications. Hops of configured peers are made in `registry`.
    ///
    /// # Errors
    /// When a mediation rule does not compile.
    pub(crate) fn compile(
        config: Arc<Config>,
        version: u32,
        registry: &Registry,
        workers: usize,
        applications: Vec<Option<Slot>>,
    ) -> Result<Self, String> {
        let routing = &config.routing;
        let (hops, via) = hops(&config, registry, workers);
        let siblings = config.peers.iter().filter(|peer| peer.sibling);
        let sibling_hops: Vec<Hops> = siblings
            .filter_map(|peer| find(&hops, &peer.host).cloned())
            .collect();
        let (throttled, throttle_members) = throttles(&config, &hops);
        let mut measured = Names::default();
        let own = config.local_nodes.iter().map(|node| &node.host);
        let default_profile = Profile {
            ingress: config.ingress,
            ..Profile::default()
        };
        Ok(Self {
            version,
            own: own
                .map(|host| host.to_ascii_lowercase().into_bytes().into())
                .collect(),
            tables: routing
                .peer_route_tables
                .iter()
                .map(|table| peer_rules(routing, table, version, &mut measured))
                .collect(),
            default_table: peer_table(routing, "default"),
            table_of: by_application(routing, |entry| peer_table(routing, &entry.peer_route_table)),
            application_tables: routing
                .application_route_tables
                .iter()
                .map(|table| application_rules(&config, table, &mut measured))
                .collect(),
            default_application_table: application_table(routing, "default"),
            application_table_of: by_application(routing, |entry| {
                application_table(routing, &entry.application_route_table)
            }),
            applications,
            realm_routes: realm_routes(routing, &mut measured),
            siblings: sibling_hops.iter().flatten().map(|hop| hop.id).collect(),
            sibling_hops,
            via,
            hiding: Hidings::new(&config.topology_hiding),
            mediation: Mediation::new(&config.mediation, &mut measured)?,
            trace: config
                .trace
                .points
                .iter()
                .map(|point| trace_point(point, &mut measured))
                .collect(),
            list_counts: routing
                .route_lists
                .iter()
                .map(|list| measured.add(Subject::RouteList, &list.name))
                .collect(),
            throttle_counts: config
                .throttle_groups
                .iter()
                .map(|group| {
                    [Subject::ThrottleGroup, Subject::ThrottleGroupFull]
                        .map(|subject| measured.add(subject, &group.name))
                })
                .collect(),
            throttled,
            throttle_members,
            lists: lists(routing, &hops),
            profiles: config.peers.iter().map(|peer| profile(&config, peer)).collect(),
            strangers: config
                .dynamic_peers
                .iter()
                .map(|rule| (rule.driver(), stranger(&config, rule)))
                .collect(),
            default_profile: Arc::new(default_profile),
            reroute: routing.reroute.clone(),
            exceptions: routing.exceptions.clone(),
            answer_timeout: routing.transaction.answer.duration(),
            lifetime: routing.transaction.lifetime.duration(),
            attempts: routing.transaction.attempts.max(1),
            on_timeout: routing.transaction.on_timeout,
            follow_redirects: routing.follow_redirects,
            measured,
            config,
        })
    }
}

fn find<'h>(hops: &'h ByHost, host: &str) -> Option<&'h Hops> {
    hops.get(&host.to_ascii_lowercase())
}

/// The hops of every peer, and where peers of siblings are reached.
fn hops(config: &Config, registry: &Registry, workers: usize) -> (ByHost, AHashMap<Box<[u8]>, Hops>) {
    let mut hops = ByHost::new();
    let (behind, ours): (Vec<_>, Vec<_>) = config
        .peers
        .iter()
        .enumerate()
        .partition(|(_, peer)| !peer.via.is_empty());
    for (index, peer) in ours {
        let home = peer.worker.unwrap_or(index) % workers.max(1);
        let each = nodes_of(config, peer)
            .into_iter()
            .map(|node| registry.claim(&peer.host, node as u8, true, home));
        hops.insert(peer.host.to_ascii_lowercase(), each.collect());
    }
    // A peer of a sibling is reached where the sibling is.
    let mut via = AHashMap::new();
    for (_, peer) in behind {
        if let Some(there) = find(&hops, &peer.via).cloned() {
            let host = peer.host.to_ascii_lowercase();
            via.insert(host.clone().into_bytes().into(), there.clone());
            hops.insert(host, there);
        }
    }
    (hops, via)
}

/// The throttle group of each hop, and the hops of each group.
fn throttles(config: &Config, hops: &ByHost) -> (AHashMap<u32, usize>, Vec<Vec<Arc<Hop>>>) {
    let (mut throttled, mut groups) = (AHashMap::new(), Vec::new());
    for (index, group) in config.throttle_groups.iter().enumerate() {
        let members = group.peers.iter().filter_map(|host| find(hops, host));
        let members: Vec<Arc<Hop>> = members.flatten().cloned().collect();
        throttled.extend(members.iter().map(|hop| (hop.id, index)));
        groups.push(members);
    }
    (throttled, groups)
}

fn lists(routing: &Routing, hops: &ByHost) -> Vec<RouteList> {
    let group = |group: &config::Group| {
        let member = |member: &config::Member| Some((find(hops, &member.host)?.clone(), member.weight));
        Arc::new(RouteGroup::new(
            group.name.clone(),
            group.peers.iter().filter_map(member).collect(),
            group.by_session,
        ))
    };
    let groups: AHashMap<&str, Arc<RouteGroup>> = routing
        .route_groups
        .iter()
        .map(|one| (one.name.as_str(), group(one)))
        .collect();
    let list = |list: &config::RouteList| {
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
    };
    routing.route_lists.iter().map(list).collect()
}

fn list_position(routing: &Routing, name: &str) -> Option<usize> {
    routing.route_lists.iter().position(|list| list.name == name)
}

fn peer_table(routing: &Routing, name: &str) -> Option<usize> {
    routing
        .peer_route_tables
        .iter()
        .position(|table| table.name == name)
}

fn application_table(routing: &Routing, name: &str) -> Option<usize> {
    routing
        .application_route_tables
        .iter()
        .position(|table| table.name == name)
}

fn by_application(
    routing: &Routing,
    table: impl Fn(&config::TableOfApplication) -> Option<usize>,
) -> AHashMap<u32, usize> {
    let entries = routing.tables_by_application.iter();
    entries
        .filter_map(|entry| Some((entry.application, table(entry)?)))
        .collect()
}

// Names that lead nowhere were refused when the configuration was read.

fn copying(routing: &Routing, rule: &config::Rule, version: u32) -> Option<Copying> {
    let list = list_position(routing, &rule.copy_to)?;
    Some(match &rule.copy_after {
        None => Copying::Request(list),
        Some(after) => Copying::Answer(Arc::new(AnswerCopy {
            list,
            version,
            results: after.results.clone(),
            answer_in: config::key(&after.answer_in).ok(),
        })),
    })
}

fn peer_rules(routing: &Routing, table: &config::Table, version: u32, measured: &mut Names) -> Rules<Leads> {
    let action = |action: &config::Action| match action {
        config::Action::RouteList(name) => {
            list_position(routing, name).map_or(Action::Implicit, Action::List)
        }
        config::Action::Table(name) => peer_table(routing, name).map_or(Action::Implicit, Action::Table),
        config::Action::Implicit => Action::Implicit,
        config::Action::Answer(answer) => Action::Answer(answer.fault()),
        config::Action::Abandon => Action::Abandon,
    };
    let mut leads = |rule: &config::Rule| Leads {
        action: action(&rule.action),
        copy: copying(routing, rule, version),
        count: measured.add(Subject::Rule, &rule.name),
    };
    let rules = table
        .rules
        .iter()
        .map(|rule| (rule.priority, &rule.when, leads(rule)));
    Rules::new(rules.collect())
}

fn realm_routes(routing: &Routing, measured: &mut Names) -> RealmRoutes {
    let mut routes = RealmRoutes::default();
    for route in &routing.realm_routes {
        let count = measured.add(Subject::RealmRoute, &route.realm);
        if let Some(list) = list_position(routing, &route.route_list) {
            routes.add(&route.realm, &route.applications, list, count);
        }
    }
    routes
}

fn application_rules(
    config: &Config,
    table: &config::ApplicationTable,
    measured: &mut Names,
) -> Rules<(ApplicationStep, Count)> {
    let position = |name: &String| config.applications.iter().position(|one| one.name == *name);
    let meets = |action: &config::ApplicationAction| match action {
        config::ApplicationAction::Application(_) | config::ApplicationAction::Applications(_) => {
            ApplicationStep::Applications(action.applications().iter().filter_map(position).collect())
        }
        config::ApplicationAction::Route => ApplicationStep::Route,
        config::ApplicationAction::Answer(answer) => ApplicationStep::Answer(answer.fault()),
        config::ApplicationAction::Abandon => ApplicationStep::Abandon,
    };
    let rules = table.rules.iter().map(|rule| {
        let count = measured.add(Subject::ApplicationRule, &rule.name);
        (rule.priority, &rule.when, (meets(&rule.action), count))
    });
    Rules::new(rules.collect())
}

fn trace_point(point: &config::TracePoint, measured: &mut Names) -> TracePoint {
    TracePoint {
        peers: point.peers.iter().map(|host| host.to_ascii_lowercase()).collect(),
        rules: Rules::new(vec![(0, &point.when, ())]),
        count: measured.add(Subject::TracePoint, &point.name),
    }
}

fn profile(config: &Config, peer: &config::Peer) -> (Box<str>, Arc<Profile>) {
    let profile = Profile {
        table: peer_table(&config.routing, &peer.peer_route_table),
        application_table: application_table(&config.routing, &peer.application_route_table),
        priority: peer.priority,
        // What comes from a sibling was within the bounds of its connection there.
        ingress: peer.ingress.unwrap_or(match peer.sibling {
            true => config::Ingress::default(),
            false => config.ingress,
        }),
        untrusted: peer.untrusted,
        trusts_priority: peer.trust_priority.unwrap_or(!peer.untrusted),
        trusts_reports: peer.trust_overload_reports.unwrap_or(!peer.untrusted),
        sibling: peer.sibling,
        answer_timeout: peer.answer_timeout.map(|timeout| timeout.duration()),
        applications: peer.accepts.as_slice().into(),
        relays_without_p_flag: peer.relay_without_p_flag,
    };
    (peer.host.to_ascii_lowercase().into(), Arc::new(profile))
}

/// How requests of peers are treated that this rule lets in.
fn stranger(config: &Config, rule: &config::DynamicPeers) -> Arc<Profile> {
    Arc::new(Profile {
        table: peer_table(&config.routing, &rule.peer_route_table),
        application_table: application_table(&config.routing, &rule.application_route_table),
        priority: rule.priority,
        ingress: rule.ingress.unwrap_or(config.ingress),
        untrusted: rule.untrusted,
        trusts_priority: rule.trust_priority.unwrap_or(!rule.untrusted),
        trusts_reports: rule.trust_overload_reports.unwrap_or(!rule.untrusted),
        applications: rule.accepts.as_slice().into(),
        relays_without_p_flag: rule.relay_without_p_flag,
        ..Profile::default()
    })
}
