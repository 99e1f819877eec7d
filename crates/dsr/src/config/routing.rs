//! Where requests go: tables, route lists, attempts; and that every name leads somewhere.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period};

use super::nodes::is_identity;
use super::{Action, ApplicationAction, ApplicationTable, Exceptions, Table};

/// Where requests go. Changes while running.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Routing {
    /// Tables of application route rules: the application inside the router that handles a request before it is routed.
    /// The one named `default` is used where none is named.
    pub application_route_tables: Vec<ApplicationTable>,
    /// Tables of peer route rules. The one named `default` is used where none is named.
    pub peer_route_tables: Vec<Table>,
    /// Tables by application id: for requests of peers that name no table.
    pub tables_by_application: Vec<TableOfApplication>,
    /// Routes by realm (RFC 6733 §2.7): for requests that match no peer route rule and whose Destination-Host is absent
    /// or unknown. The route of the realm itself counts before one of a realm above it, and that before `*`.
    pub realm_routes: Vec<RealmRoute>,
    /// Lists of route groups that rules refer to.
    pub route_lists: Vec<RouteList>,
    /// Groups of peers that route lists refer to.
    pub route_groups: Vec<Group>,
    /// Attempts and deadlines.
    pub transaction: Transaction,
    /// Answers after which a request is sent to another peer.
    pub reroute: Vec<Reroute>,
    /// Whether DIAMETER_REDIRECT_INDICATION is followed, to Redirect-Hosts that are connected; else it is passed
    /// back.
    pub follow_redirects: bool,
    /// Routes of redirect indications that one message processor caches for as long as their Redirect-Max-Cache-Time
    /// says (RFC 6733 §6.13, §6.14); beyond, the oldest unused one is evicted. 0: none is cached.
    pub redirect_cache: usize,
    /// Answers to requests that cannot be routed.
    pub exceptions: Exceptions,
}

impl Default for Routing {
    fn default() -> Self {
        Self {
            application_route_tables: Vec::new(),
            peer_route_tables: Vec::new(),
            tables_by_application: Vec::new(),
            realm_routes: Vec::new(),
            route_lists: Vec::new(),
            route_groups: Vec::new(),
            transaction: Transaction::default(),
            reroute: Vec::new(),
            follow_redirects: false,
            redirect_cache: 4096,
            exceptions: Exceptions::default(),
        }
    }
}

/// Which table serves an application.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct TableOfApplication {
    /// Application id.
    pub application: u32,
    /// Table of peer route rules; empty: the default one.
    pub peer_route_table: String,
    /// Table of application route rules; empty: the default one.
    pub application_route_table: String,
}

/// A route by realm.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct RealmRoute {
    /// Destination-Realm: a realm, `.example.org` for that realm and all below it, or `*` for any.
    pub realm: String,
    /// Application ids; empty: any.
    pub applications: Vec<u32>,
    /// Name of a route list.
    pub route_list: String,
}

/// A list of route groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct RouteList {
    /// Name.
    pub name: String,
    /// Names of route groups, the preferred first.
    pub groups: Vec<String>,
    /// The weight that must be available in a group for it to be used; when no group has that much, the one with the
    /// most is used.
    pub minimum_capacity: u32,
    /// Whether a request that failed in one group is tried in the others.
    pub across_groups: bool,
}

impl Default for RouteList {
    fn default() -> Self {
        Self {
            name: String::new(),
            groups: Vec::new(),
            minimum_capacity: 1,
            across_groups: true,
        }
    }
}

/// A group of peers that share load.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Group {
    /// Name.
    pub name: String,
    /// The peers.
    pub peers: Vec<Member>,
    /// Whether all requests of a session go to one peer, as long as the same peers are available: the one that the Session-Id
    /// selects, by weight, without state in the router; every router with this group selects the same one. A request
    /// that names a peer of the group in its Destination-Host goes there. When a peer is lost, only its sessions move, and
    /// they return with it unless their client names the other one by then. Reported loads (RFC 8583) do not count.
    pub by_session: bool,
}

/// A peer in a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Member {
    /// Its DiameterIdentity.
    pub host: String,
    /// Its share of the group's requests, in proportion to the others'.
    #[schemars(range(min = 1, max = 65_535))]
    pub weight: u32,
}

impl Default for Member {
    fn default() -> Self {
        Self {
            host: String::new(),
            weight: 1,
        }
    }
}

/// Attempts and deadlines of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Transaction {
    /// Timeout of a peer's answer; then the request is sent to another peer.
    pub answer: Period,
    /// Timeout of all attempts together.
    pub lifetime: Period,
    /// Bound of the attempts of a request, the first one included.
    #[schemars(range(min = 1, max = 16))]
    pub attempts: u8,
    /// Whether a request is sent to another peer when one does not answer in time; else only when a connection is lost,
    /// or by an answer (`routing.reroute`).
    pub on_timeout: bool,
}

impl Default for Transaction {
    fn default() -> Self {
        Self {
            answer: Period::from_secs(4),
            lifetime: Period::from_secs(10),
            attempts: 3,
            on_timeout: true,
        }
    }
}

/// Answers after which a request is sent to another peer.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Reroute {
    /// Application ids; empty: any.
    pub applications: Vec<u32>,
    /// Values of Result-Code.
    pub result_codes: Vec<u32>,
    /// Values of Experimental-Result-Code.
    pub experimental_codes: Vec<u32>,
}

/// Bound on the applications that one rule leads through.
const MAX_CHAIN: usize = 8;

impl Routing {
    /// Reports every name that leads nowhere; `peers` are the configured ones in lower case.
    pub(super) fn validate_within(
        &self,
        peers: &BTreeSet<String>,
        applications: &BTreeSet<&str>,
        faults: &mut Faults,
    ) {
        let tables = names(
            &self.peer_route_tables,
            |table| &table.name,
            "routing.peerRouteTables",
            faults,
        );
        let lists = names(&self.route_lists, |list| &list.name, "routing.routeLists", faults);
        let groups = names(
            &self.route_groups,
            |group| &group.name,
            "routing.routeGroups",
            faults,
        );
        let unknown = |faults: &mut Faults, at: String, kind: &str, name: &str| {
            faults.at(at).say(
                format!("unknown {kind} `{name}`"),
                format!("the name of a {kind}"),
            );
        };
        let application_tables = names(
            &self.application_route_tables,
            |table| &table.name,
            "routing.applicationRouteTables",
            faults,
        );
        for (t, table) in self.application_route_tables.iter().enumerate() {
            for (r, rule) in table.rules.iter().enumerate() {
                let at = format!("routing.applicationRouteTables[{t}].rules[{r}]");
                rule.when.validate_within(&format!("{at}.when"), faults);
                let named = rule.action.applications();
                for name in named.iter().filter(|name| !applications.contains(name.as_str())) {
                    unknown(faults, format!("{at}.action"), "application", name);
                }
                if matches!(rule.action, ApplicationAction::Applications(_))
                    && !(1..=MAX_CHAIN).contains(&named.len())
                {
                    let what = format!("names {} applications", named.len());
                    faults
                        .at(format!("{at}.action"))
                        .say(what, format!("1 to {MAX_CHAIN}"));
                }
            }
        }
        for (t, table) in self.peer_route_tables.iter().enumerate() {
            for (r, rule) in table.rules.iter().enumerate() {
                let at = format!("routing.peerRouteTables[{t}].rules[{r}]");
                rule.when.validate_within(&format!("{at}.when"), faults);
                match &rule.action {
                    Action::RouteList(name) if !lists.contains(name.as_str()) => {
                        unknown(faults, format!("{at}.action"), "route list", name);
                    }
                    Action::Table(name) if !tables.contains(name.as_str()) => {
                        unknown(faults, format!("{at}.action"), "table", name);
                    }
                    _ => {}
                }
                if let Some(after) = &rule.copy_after {
                    if rule.copy_to.is_empty() {
                        let right = "copyTo, or no copyAfter";
                        faults.at(format!("{at}.copyAfter")).say("copies nowhere", right);
                    }
                    if !after.answer_in.is_empty()
                        && let Err(wrong) = super::key(&after.answer_in)
                    {
                        faults
                            .at(format!("{at}.copyAfter.answerIn"))
                            .say(wrong, "VENDOR:CODE");
                    }
                }
                if !rule.copy_to.is_empty() && !lists.contains(rule.copy_to.as_str()) {
                    unknown(faults, format!("{at}.copyTo"), "route list", &rule.copy_to);
                }
            }
        }
        for (index, entry) in self.tables_by_application.iter().enumerate() {
            for (key, name, known) in [
                ("peerRouteTable", &entry.peer_route_table, &tables),
                (
                    "applicationRouteTable",
                    &entry.application_route_table,
                    &application_tables,
                ),
            ] {
                if !name.is_empty() && !known.contains(name.as_str()) {
                    let at = format!("routing.tablesByApplication[{index}].{key}");
                    unknown(faults, at, "table", name);
                }
            }
        }
        for (r, route) in self.realm_routes.iter().enumerate() {
            let at = format!("routing.realmRoutes[{r}]");
            if !lists.contains(route.route_list.as_str()) {
                unknown(faults, format!("{at}.routeList"), "route list", &route.route_list);
            }
            if route.realm != "*" && !is_identity(route.realm.trim_start_matches('.')) {
                faults.at(format!("{at}.realm")).say(
                    format!("`{}` is not a realm", route.realm),
                    "a realm such as epc.example.org, .example.org, or *",
                );
            }
        }
        for (l, list) in self.route_lists.iter().enumerate() {
            for (g, name) in list.groups.iter().enumerate() {
                if !groups.contains(name.as_str()) {
                    unknown(
                        faults,
                        format!("routing.routeLists[{l}].groups[{g}]"),
                        "route group",
                        name,
                    );
                }
            }
        }
        for (g, group) in self.route_groups.iter().enumerate() {
            for (m, member) in group.peers.iter().enumerate() {
                if !peers.contains(&member.host.to_ascii_lowercase()) {
                    unknown(
                        faults,
                        format!("routing.routeGroups[{g}].peers[{m}].host"),
                        "peer",
                        &member.host,
                    );
                }
            }
        }
        if self.transaction.answer.is_zero() || self.transaction.lifetime < self.transaction.answer {
            faults.at("routing.transaction.lifetime").say(
                "is shorter than one attempt",
                "at least routing.transaction.answer",
            );
        }
    }
}

/// The names of a list; duplicates and empty ones are reported.
fn names<'a, T>(
    items: &'a [T],
    name: impl Fn(&'a T) -> &'a String,
    at: &str,
    faults: &mut Faults,
) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let name = name(item);
        if name.is_empty() {
            faults.at(format!("{at}[{index}].name")).say("is empty", "a name");
        } else if !seen.insert(name.as_str()) {
            faults
                .at(format!("{at}[{index}].name"))
                .say(format!("`{name}` occurs twice"), "a name of its own");
        }
    }
    seen
}
