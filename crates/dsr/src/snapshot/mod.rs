//! A configuration compiled into what workers read: names resolved, rules filed. Workers get it as a whole and
//! keep it until the next one comes; a request that is under way meanwhile is looked up in the new one.

mod compile;
mod loader;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ahash::AHashMap;
use diameter::proto::peer::Capabilities;
use diameter::proto::{AvpKey, Fault, ResultCode, Routing};
use dsr_app::{Installed, View};
use smallvec::SmallVec;

use crate::config::{self, AnswerRule, Config, Exception, Exceptions, Ingress, Peer};
use crate::gate::Throttle;
use crate::hiding::Hidings;
use crate::measures::{Count, Names};
use crate::mediation::Mediation;
use crate::registry::{Hop, HopState, Hops};
use crate::routing::{RealmRoutes, RouteList, Rules, find_lower};

pub(crate) use loader::Loader;

/// What a rule leads to, and the list that gets a copy.
#[derive(Debug)]
pub(crate) struct Leads {
    /// What becomes of the request.
    pub(crate) action: Action,
    /// Whether it is copied.
    pub(crate) copy: Option<Copying>,
    /// Where it is counted.
    pub(crate) count: Count,
}

/// When a request is copied, and the route list of the copy by position.
#[derive(Clone, Debug)]
pub(crate) enum Copying {
    /// At once.
    Request(usize),
    /// After its answer.
    Answer(Arc<AnswerCopy>),
}

/// A copy that is made after the answer.
#[derive(Debug)]
pub(crate) struct AnswerCopy {
    /// Position of the route list, in this version of the configuration.
    pub(crate) list: usize,
    pub(crate) version: u32,
    /// The results after which it is made; empty: any.
    pub(crate) results: Vec<u32>,
    /// The AVP that gets the answer.
    pub(crate) answer_in: Option<AvpKey>,
}

/// What becomes of a request.
#[derive(Debug)]
pub(crate) enum Action {
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
pub(crate) enum ApplicationStep {
    /// These applications, by position.
    Applications(SmallVec<[usize; 2]>),
    /// Peer route rules at once.
    Route,
    /// This answer.
    Answer(Fault),
    /// Nothing at all.
    Abandon,
}

/// An application inside the router.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    /// Stays as long as the application has its name and kind; no other ever has it.
    pub(crate) id: u32,
    pub(crate) application: Arc<dyn Installed>,
}

/// Which requests are traced.
#[derive(Debug)]
pub(crate) struct TracePoint {
    /// Hosts in lower case; empty: of any peer.
    pub(crate) peers: Vec<String>,
    /// Whether it fits.
    pub(crate) rules: Rules<()>,
    /// Where it is counted.
    pub(crate) count: Count,
}

/// How requests of a peer are treated.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    /// Its table of peer route rules, by position.
    pub(crate) table: Option<usize>,
    /// Its table of application route rules, by position.
    pub(crate) application_table: Option<usize>,
    /// DRMP priority of requests that bring none.
    pub(crate) priority: Option<u8>,
    /// Requests per second.
    pub(crate) ingress: Ingress,
    /// Whether it belongs to a foreign network.
    pub(crate) untrusted: bool,
    /// Whether the DRMP priority of its requests counts.
    pub(crate) trusts_priority: bool,
    /// Whether its overload reports count, and it gets ours.
    pub(crate) trusts_reports: bool,
    /// Whether it is another message processor of this router.
    pub(crate) sibling: bool,
    /// How long it may take to answer.
    pub(crate) answer_timeout: Option<Duration>,
    /// Applications it may send requests of; empty: any.
    pub(crate) applications: SmallVec<[u32; 4]>,
    /// Whether its requests without the P flag are relayed.
    pub(crate) relays_without_p_flag: bool,
}

impl Default for Profile {
    /// That of a peer of our own network.
    fn default() -> Self {
        Self {
            table: None,
            application_table: None,
            priority: None,
            ingress: Ingress::default(),
            untrusted: false,
            trusts_priority: true,
            trusts_reports: true,
            sibling: false,
            answer_timeout: None,
            applications: SmallVec::new(),
            relays_without_p_flag: false,
        }
    }
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
    application_tables: Vec<Rules<(ApplicationStep, Count)>>,
    default_application_table: Option<usize>,
    application_table_of: AHashMap<u32, usize>,
    /// None: a name without a kind.
    applications: Vec<Option<Slot>>,
    /// Where realms are reached.
    realm_routes: RealmRoutes,
    /// Where peers of siblings are reached, by host in lower case.
    via: AHashMap<Box<[u8]>, Hops>,
    siblings: Vec<u32>,
    /// Those of each sibling.
    sibling_hops: Vec<Hops>,
    /// Names hidden from foreign networks and clients.
    pub(crate) hiding: Hidings,
    /// Rules that change messages.
    pub(crate) mediation: Mediation,
    /// Trigger points, by position.
    pub(crate) trace: Vec<TracePoint>,
    throttled: AHashMap<u32, usize>,
    /// The hops of each throttle group, by position.
    throttle_members: Vec<Vec<Arc<Hop>>>,
    lists: Vec<RouteList>,
    /// Where route lists are counted, by position.
    list_counts: Vec<Count>,
    /// Where throttle groups are counted, by position: what they took, and what they had no room for.
    throttle_counts: Vec<[Count; 2]>,
    /// What is counted.
    pub(crate) measured: Names,
    /// By host in lower case.
    profiles: AHashMap<Box<str>, Arc<Profile>>,
    default_profile: Arc<Profile>,
    /// Of peers that are not configured, by the rule that lets them in.
    strangers: Vec<(diameter::DynamicPeers, Arc<Profile>)>,
    reroute: Vec<config::Reroute>,
    exceptions: Exceptions,
    /// How long a peer may take to answer, unless it has a time of its own.
    pub(crate) answer_timeout: Duration,
    /// How long all attempts may take.
    pub(crate) lifetime: Duration,
    /// How many attempts.
    pub(crate) attempts: u8,
    /// Whether there are second attempts after a timeout.
    pub(crate) on_timeout: bool,
    /// Whether redirects are followed.
    pub(crate) follow_redirects: bool,
}

/// Tables that refer to tables are followed so far.
const MOST_TABLES: usize = 8;

impl Snapshot {
    /// Whether that is one of our names.
    #[inline]
    #[must_use]
    pub(crate) fn is_own(&self, name: &[u8]) -> bool {
        self.own.iter().any(|own| own.eq_ignore_ascii_case(name))
            || self
                .hiding
                .untrusted
                .as_ref()
                .is_some_and(|hiding| hiding.is_own(name))
    }

    /// Whether that is the name of a local node.
    #[inline]
    #[must_use]
    pub(crate) fn is_local(&self, name: &[u8]) -> bool {
        self.own.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Whether a request is for other nodes. RFC 6733 §6.1.4: one that names this node, or neither host nor realm, is
    /// for this node, which serves no application of its own. §7.1.3: one that names a host has to name its realm as well.
    #[inline]
    #[must_use]
    pub(crate) fn relays(&self, view: &View<'_>) -> bool {
        let host = view.routing.destination_host;
        view.routing.destination_realm.is_some() && !host.is_some_and(|host| self.is_local(host))
    }

    /// The answer to a request that names this node as its destination: it is processed here (RFC 6733 §6.1.4), where no
    /// application serves it.
    #[inline]
    #[must_use]
    pub(crate) fn unserved(&self, view: &View<'_>) -> Option<Fault> {
        let host = view.routing.destination_host?;
        if !self.is_local(host) {
            return None;
        }
        let why = format!(
            "application {} is not served by the router itself",
            view.application
        );
        Some(Fault::new(ResultCode::APPLICATION_UNSUPPORTED, why))
    }

    /// How requests of that peer are treated.
    #[must_use]
    pub(crate) fn profile(&self, host: &str) -> Arc<Profile> {
        let host = host.to_ascii_lowercase();
        self.profiles.get(&*host).unwrap_or(&self.default_profile).clone()
    }

    /// How requests of a peer are treated that is connected like this: as configured, else by the rule that
    /// lets it in.
    #[must_use]
    pub(crate) fn profile_of(&self, peer: &Capabilities, address: IpAddr, tls: bool) -> Arc<Profile> {
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
    pub(crate) fn table(&self, profile: &Profile, application: u32) -> Option<usize> {
        profile
            .table
            .or_else(|| self.table_of.get(&application).copied())
            .or(self.default_table)
    }

    /// What a request meets before it is routed; none: no application route rule fits.
    #[must_use]
    pub(crate) fn application_step(
        &self,
        profile: &Profile,
        view: &View<'_>,
    ) -> Option<&(ApplicationStep, Count)> {
        let table = profile
            .application_table
            .or_else(|| self.application_table_of.get(&view.application).copied())
            .or(self.default_application_table)?;
        self.application_tables.get(table)?.find(view)
    }

    /// The applications by position; none: a name without a kind.
    pub(crate) fn slots(&self) -> &[Option<Slot>] {
        &self.applications
    }

    /// The application at this position.
    #[must_use]
    pub(crate) fn installed(&self, position: usize) -> Option<&Arc<dyn Installed>> {
        Some(&self.applications.get(position)?.as_ref()?.application)
    }

    /// The applications with their names.
    pub(crate) fn applications(&self) -> impl Iterator<Item = (&str, &dyn Installed)> {
        let names = self.config.applications.iter().map(|one| one.name.as_str());
        let both = names.zip(&self.applications);
        both.filter_map(|(name, slot)| Some((name, &*slot.as_ref()?.application)))
    }

    /// Whether a request meets an application that is its server.
    #[must_use]
    pub(crate) fn serves(&self, profile: &Profile, view: &View<'_>) -> bool {
        let step = self.application_step(profile, view);
        step.is_some_and(|(step, _)| match step {
            ApplicationStep::Applications(chain) => {
                let mut installed = chain.iter().filter_map(|position| self.installed(*position));
                installed.any(|installed| installed.is_server())
            }
            _ => false,
        })
    }

    /// Whether there are routes by realm.
    #[inline]
    #[must_use]
    pub(crate) fn has_realm_routes(&self) -> bool {
        !self.realm_routes.is_empty()
    }

    /// The route list for the realm and the application of a request, by position, and where it is counted.
    #[must_use]
    pub(crate) fn realm_route(&self, view: &View<'_>) -> Option<(usize, Count)> {
        self.realm_routes
            .find(view.routing.destination_realm?, view.application)
    }

    /// Where a peer of a sibling is reached.
    #[must_use]
    pub(crate) fn via(&self, host: &[u8]) -> Option<&Hops> {
        find_lower(&self.via, host)
    }

    /// The hops of siblings, by id.
    #[must_use]
    pub(crate) fn siblings(&self) -> &[u32] {
        &self.siblings
    }

    /// The throttle group of a hop, by position.
    #[inline]
    #[must_use]
    pub(crate) fn throttle_of(&self, hop: u32) -> Option<usize> {
        if self.throttled.is_empty() {
            return None;
        }
        self.throttled.get(&hop).copied()
    }

    /// A worker's parts of the throttle groups.
    #[must_use]
    pub(crate) fn throttles(&self, worker: usize) -> Vec<Throttle> {
        let groups = self.config.throttle_groups.iter().enumerate();
        groups
            .map(|(position, group)| Throttle::new(group, self.throttle_share(position, worker)))
            .collect()
    }

    /// A worker's part of the throttle group at this position before its demand is known: equal among the routers that
    /// share it.
    #[must_use]
    pub fn throttle_share(&self, position: usize, worker: usize) -> f64 {
        let routers = 1.0 + self.throttle_siblings(position).len() as f64;
        self.throttle_peers(position, worker) / routers
    }

    /// A worker's part of the available peers of the throttle group at this position; of all peers while none is
    /// available.
    pub(crate) fn throttle_peers(&self, position: usize, worker: usize) -> f64 {
        let members = self.throttle_members.get(position).map(Vec::as_slice);
        let members = members.unwrap_or_default();
        let share = |counts: fn(&Hop) -> bool| {
            let counting = members.iter().filter(|hop| counts(hop));
            let here = counting.clone().filter(|hop| hop.home() == worker).count() as f64;
            match counting.count() {
                0 => None,
                all => Some(here / all as f64),
            }
        };
        let here = share(|hop| hop.usable() != HopState::Down).or_else(|| share(|_| true));
        here.unwrap_or_default()
    }

    /// The available siblings that have the throttle group at this position as well.
    pub(crate) fn throttle_siblings(&self, position: usize) -> Vec<&str> {
        let is_shared = |group: &config::ThrottleGroup| group.shared_with_siblings;
        if !self.config.throttle_groups.get(position).is_some_and(is_shared) {
            return Vec::new();
        }
        let is_up = |hops: &&Hops| hops.iter().any(|hop| hop.usable() != HopState::Down);
        let siblings = self.sibling_hops.iter().filter(is_up);
        siblings.filter_map(|hops| Some(&*hops.first()?.host)).collect()
    }

    /// What this table does with a request. Without a matching rule the action is `implicit`.
    #[must_use]
    pub(crate) fn action(&self, table: Option<usize>, view: &View<'_>) -> &Leads {
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
            count: Count::NONE,
        };
        IMPLICIT
    }

    /// Where the route list at this position is counted.
    pub(crate) fn list_count(&self, position: usize) -> Count {
        self.list_counts.get(position).copied().unwrap_or(Count::NONE)
    }

    /// Where the throttle group at this position is counted: what it took, and what it had no room for.
    pub(crate) fn throttle_counts(&self, position: usize) -> [Count; 2] {
        let counts = self.throttle_counts.get(position);
        counts.copied().unwrap_or([Count::NONE; 2])
    }

    /// The route list at this position.
    #[must_use]
    pub(crate) fn list(&self, position: usize) -> Option<&RouteList> {
        self.lists.get(position)
    }

    /// Every route list.
    #[must_use]
    pub(crate) fn lists(&self) -> &[RouteList] {
        &self.lists
    }

    /// Whether an answer means that the request should be tried elsewhere.
    #[inline]
    #[must_use]
    pub(crate) fn reroutes(&self, application: u32, answer: &Routing<'_>) -> bool {
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
    pub(crate) fn exception(&self, exception: Exception) -> &AnswerRule {
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
