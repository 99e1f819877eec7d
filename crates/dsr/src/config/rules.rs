//! Rules: what a request has to be like, and what happens then.

use dsr_app::Answer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Validate};

/// A table of application route rules.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct ApplicationTable {
    /// Name; `default` for the one that is used where none is named.
    pub name: String,
    /// Rules. Of the rules that match a request the one with the lowest priority value counts, of equal ones the first.
    /// A request that matches none is routed unchanged.
    pub rules: Vec<ApplicationRule>,
}

/// An application route rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct ApplicationRule {
    /// Name under which matching requests are counted; rules of one name count together. Empty: not counted.
    pub name: String,
    /// Rules with a lower value are evaluated first.
    pub priority: u32,
    /// Conditions on a request; an absent condition is always true.
    pub when: Conditions,
    /// Action on a matching request.
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
    /// The application handles it; then peer route rules route it.
    Application(String),
    /// These applications handle it, one after the other; they see its answer in the reverse order. Then peer route rules
    /// route it.
    Applications(Vec<String>),
    /// It is routed by peer route rules at once.
    Route,
    /// It is answered.
    Answer(Answer),
    /// It is dropped; its sender gets no answer.
    Abandon,
}

impl ApplicationAction {
    /// The applications that it leads through.
    pub(crate) fn applications(&self) -> &[String] {
        match self {
            Self::Application(name) => std::slice::from_ref(name),
            Self::Applications(names) => names,
            Self::Route | Self::Answer(_) | Self::Abandon => &[],
        }
    }
}

/// A table of rules.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Table {
    /// Name; `default` for the one that is used where none is named.
    pub name: String,
    /// Rules. Of the rules that match a request the one with the lowest priority value counts, of equal ones the first.
    /// A request that matches none goes to the peer that its Destination-Host names, if that peer is connected.
    pub rules: Vec<Rule>,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Rule {
    /// Name under which matching requests are counted; rules of one name count together. Empty: not counted.
    pub name: String,
    /// Rules with a lower value are evaluated first.
    pub priority: u32,
    /// Conditions on a request; an absent condition is always true.
    pub when: Conditions,
    /// Action on a matching request.
    pub action: Action,
    /// Name of a route list: a copy of the request goes to it as well. The answer to the copy is dropped.
    pub copy_to: String,
    /// The copy is made when the answer of a peer has come; absent: with the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy_after: Option<CopyAfter>,
}

/// Which answers a copy is made after.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct CopyAfter {
    /// Result-Codes and Experimental-Result-Codes, any of these; empty: all.
    pub results: Vec<u32>,
    /// `VENDOR:CODE` of an AVP that the copy gets, with the whole answer as its data; empty: the request alone is copied.
    pub answer_in: String,
}

impl Default for Rule {
    fn default() -> Self {
        Self {
            name: String::new(),
            priority: 100,
            when: Conditions::default(),
            action: Action::Implicit,
            copy_to: String::new(),
            copy_after: None,
        }
    }
}

/// Conditions on a request. All that are given have to hold.
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
    /// The subscriber's IMSI, in whichever AVP the message has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imsi: Option<TextCondition>,
    /// The subscriber's MSISDN, in whichever AVP the message has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub msisdn: Option<TextCondition>,
    /// Application ids, any of these; empty: all.
    pub applications: Vec<u32>,
    /// Command codes, any of these; empty: all.
    pub commands: Vec<u32>,
    /// The least important DRMP priority that matches (0 most important, 15 least).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 15))]
    pub priority_at_least: Option<u8>,
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
    /// It is present (true) or absent (false).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub present: Option<bool>,
}

impl Validate for TextCondition {
    fn validate(&self, faults: &mut Faults) {
        let lists = [&self.equals, &self.starts_with, &self.ends_with];
        require_one_test(lists, self.present, "", faults);
    }
}

/// A condition has exactly one test: one of its lists (`equals`, `startsWith`, `endsWith`), or `present`.
pub(super) fn require_one_test(
    lists: [&Vec<String>; 3],
    present: Option<bool>,
    at: &str,
    faults: &mut Faults,
) {
    let given = lists.iter().filter(|list| !list.is_empty()).count();
    if given + usize::from(present.is_some()) != 1 {
        faults.at(at).say(
            "has no condition, or more than one",
            "exactly one of equals, startsWith, endsWith and present",
        );
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
    /// It is dropped; its sender gets no answer.
    Abandon,
}
