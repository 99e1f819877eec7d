//! Where requests go: tables of rules, route lists, what happens when a peer fails.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};

/// Where requests go. Changes while running.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Routing {
    /// Tables of application route rules: which application inside the router a request meets before it is
    /// routed. The one named `default` is used where none is named.
    pub application_route_tables: Vec<ApplicationTable>,
    /// Tables of peer route rules. The one named `default` is used where none is named.
    pub peer_route_tables: Vec<Table>,
    /// Tables by application id: for requests of peers that name no table.
    pub tables_by_application: Vec<TableOfApplication>,
    /// Lists of route groups that rules refer to.
    pub route_lists: Vec<RouteList>,
    /// Groups of peers that route lists refer to.
    pub route_groups: Vec<Group>,
    /// Attempts and deadlines.
    pub transaction: Transaction,
    /// Answers after which a request is tried elsewhere.
    pub reroute: Vec<Reroute>,
    /// Whether DIAMETER_REDIRECT_INDICATION is followed, to Redirect-Hosts that are connected; else it is passed
    /// back.
    pub follow_redirects: bool,
    /// What is answered when a request cannot be routed.
    pub exceptions: Exceptions,
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

/// A table of application route rules.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct ApplicationTable {
    /// Name; `default` for the one that is used where none is named.
    pub name: String,
    /// Rules. Of those that fit a request the one of the lowest priority value counts, of equal ones the
    /// first. A request that fits none is routed as it is.
    pub rules: Vec<ApplicationRule>,
}

/// An application route rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct ApplicationRule {
    /// Name, in logs and counts.
    pub name: String,
    /// Rules with a lower value are looked at first.
    pub priority: u32,
    /// What a request has to be like; conditions that are absent are always true.
    pub when: Conditions,
    /// What happens then.
    pub action: ApplicationAction,
}

impl Default for ApplicationRule {
    fn default() -> Self {
        Self {
            name: String::new(),
            priority: 100,
            when: Conditions::default(),
            action: ApplicationAction::Route,
        }
    }
}

/// What happens to a request that fits an application route rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ApplicationAction {
    /// It meets this application, and is routed by peer route rules then.
    Application(String),
    /// It is routed by peer route rules at once.
    Route,
    /// It is answered.
    Answer(Answer),
    /// It is forgotten; its sender gets no answer.
    Abandon,
}

/// A table of rules.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Table {
    /// Name; `default` for the one that is used where none is named.
    pub name: String,
    /// Rules. Of those that fit a request the one of the lowest priority value counts, of equal ones the
    /// first. A request that fits none goes to the peer its Destination-Host names, if that is connected.
    pub rules: Vec<Rule>,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Rule {
    /// Name, in logs and counts.
    pub name: String,
    /// Rules with a lower value are looked at first.
    pub priority: u32,
    /// What a request has to be like; conditions that are absent are always true.
    pub when: Conditions,
    /// What happens then.
    pub action: Action,
    /// Name of a route list: a copy of the request goes there too. Its answer is not waited for.
    pub copy_to: String,
}

impl Default for Rule {
    fn default() -> Self {
        Self {
            name: String::new(),
            priority: 100,
            when: Conditions::default(),
            action: Action::Implicit,
            copy_to: String::new(),
        }
    }
}

/// What a request has to be like. All that are given have to hold.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Conditions {
    /// Destination-Realm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination_realm: Option<TextCondition>,
    /// Destination-Host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination_host: Option<TextCondition>,
    /// Origin-Realm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin_realm: Option<TextCondition>,
    /// Origin-Host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin_host: Option<TextCondition>,
    /// The subscriber's IMSI, wherever the message has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imsi: Option<TextCondition>,
    /// The subscriber's MSISDN, wherever the message has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub msisdn: Option<TextCondition>,
    /// Application ids, any of these; empty: any at all.
    pub applications: Vec<u32>,
    /// Command codes, any of these; empty: any at all.
    pub commands: Vec<u32>,
    /// The least important DRMP priority that fits (0 most important, 15 least).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 15))]
    pub priority_at_least: Option<u8>,
}

/// A condition on a text. Exactly one of its keys is given. Letters compare without regard to case.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct TextCondition {
    /// It is one of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub equals: Vec<String>,
    /// It begins with one of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub starts_with: Vec<String>,
    /// It ends with one of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ends_with: Vec<String>,
    /// It is there (true) or not (false).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub present: Option<bool>,
}

impl Validate for TextCondition {
    fn validate(&self, faults: &mut Faults) {
        let given = [
            !self.equals.is_empty(),
            !self.starts_with.is_empty(),
            !self.ends_with.is_empty(),
            self.present.is_some(),
        ];
        if given.iter().filter(|given| **given).count() != 1 {
            faults.at("").say(
                "does not say one thing",
                "exactly one of equals, startsWith, endsWith and present",
            );
        }
    }
}

/// What happens to a request that fits a rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// It goes to a peer of this route list.
    RouteList(String),
    /// It goes to the peer that its Destination-Host names.
    Implicit,
    /// It is looked up in this table instead.
    Table(String),
    /// It is answered.
    Answer(Answer),
    /// It is forgotten; its sender gets no answer.
    Abandon,
}

/// An answer the router gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Answer {
    /// Result-Code.
    pub result_code: u32,
    /// Error-Message.
    pub message: String,
}

impl Default for Answer {
    fn default() -> Self {
        Self {
            result_code: 3002,
            message: String::new(),
        }
    }
}

/// A list of route groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct RouteList {
    /// Name.
    pub name: String,
    /// Names of route groups, the preferred first.
    pub groups: Vec<String>,
    /// The weight that has to be available in a group for it to be used; when no group has so much, the one
    /// with the most is used.
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
    /// How long a peer may take to answer before the request is tried elsewhere.
    pub answer: Period,
    /// How long all attempts may take together.
    pub lifetime: Period,
    /// How often a request is sent at most, the first time included.
    #[schemars(range(min = 1, max = 16))]
    pub attempts: u8,
    /// Whether a request is tried elsewhere when a peer does not answer in time; else only when a connection
    /// is lost, or by an answer (`routing.reroute`).
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

/// Answers after which a request is tried elsewhere.
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

/// What is answered when a request cannot be routed, by reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Exceptions {
    /// No rule fits and its Destination-Host is not connected, or no peer of the route is available.
    pub no_route: AnswerRule,
    /// The connection was lost, and no other peer is left.
    pub connection_failure: AnswerRule,
    /// No peer answered in time.
    pub no_answer: AnswerRule,
    /// A queue or table is full.
    pub exhausted: AnswerRule,
    /// The router found itself in the Route-Records.
    pub loop_detected: AnswerRule,
}

/// An answer, or none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct AnswerRule {
    /// Result-Code; 0: no answer at all.
    pub result_code: u32,
    /// Error-Message.
    pub message: String,
}

impl Default for AnswerRule {
    fn default() -> Self {
        Self::new(3002, "unable to deliver")
    }
}

impl AnswerRule {
    fn new(result_code: u32, message: &str) -> Self {
        Self {
            result_code,
            message: message.to_owned(),
        }
    }
}

impl Default for Exceptions {
    fn default() -> Self {
        Self {
            no_route: AnswerRule::new(3002, "no peer is available for this request"),
            connection_failure: AnswerRule::new(3002, "the connection was lost and no other peer is left"),
            no_answer: AnswerRule::new(3002, "no peer answered in time"),
            exhausted: AnswerRule::new(3004, "too many requests are under way"),
            loop_detected: AnswerRule::new(3005, "this request has been here before"),
        }
    }
}

/// Why a request could not be routed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exception {
    /// No rule fits, or no peer of the route is available.
    NoRoute,
    /// The connection was lost, and no other peer is left.
    ConnectionFailure,
    /// No peer answered in time.
    NoAnswer,
    /// A queue or table is full.
    Exhausted,
    /// The router found itself in the Route-Records.
    LoopDetected,
}

impl Exceptions {
    /// What is answered.
    #[must_use]
    pub fn of(&self, exception: Exception) -> &AnswerRule {
        match exception {
            Exception::NoRoute => &self.no_route,
            Exception::ConnectionFailure => &self.connection_failure,
            Exception::NoAnswer => &self.no_answer,
            Exception::Exhausted => &self.exhausted,
            Exception::LoopDetected => &self.loop_detected,
        }
    }
}

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
                format!("there is no {kind} `{name}`"),
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
                if let ApplicationAction::Application(name) = &rule.action
                    && !applications.contains(name.as_str())
                {
                    unknown(faults, format!("{at}.action"), "application", name);
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

impl Conditions {
    pub(super) fn validate_within(&self, at: &str, faults: &mut Faults) {
        let texts = [
            ("destinationRealm", &self.destination_realm),
            ("destinationHost", &self.destination_host),
            ("originRealm", &self.origin_realm),
            ("originHost", &self.origin_host),
            ("imsi", &self.imsi),
            ("msisdn", &self.msisdn),
        ];
        for (key, condition) in texts {
            faults.within(format!("{at}.{key}"), condition);
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
                .say(format!("`{name}` is there twice"), "a name of its own");
        }
    }
    seen
}
