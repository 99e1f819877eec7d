//! Rules as data: what an operator writes under `scp.mediation` or in a rule file.
//!
//! These types define the syntax; [`super::compile`] checks and compiles it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// All mediation rules. Empty by default: messages pass unchanged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct RuleSet {
    /// Groups in the order in which they are applied.
    pub groups: Vec<Group>,
}

/// Rules with a common purpose, trigger points and filter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Group {
    /// Name in metrics, logs and faults; unique.
    pub name: String,
    /// Where the rules of this group run; at least one.
    pub trigger_points: Vec<TriggerPoint>,
    /// Service names (`npcf-smpolicycontrol`, the first segment of the API path) to which the group applies; empty: all.
    pub services: Vec<String>,
    /// HTTP methods of the requests to which the group applies; empty: all.
    pub methods: Vec<String>,
    /// Rules in the order in which they are tried.
    pub rules: Vec<Rule>,
}

/// A point in the processing of a message at which rules may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TriggerPoint {
    /// A request as it came from the consumer, before it is routed.
    RequestIngress,
    /// A request as it will leave for the producer, after it was routed.
    RequestEgress,
    /// A response as it came from the producer.
    ResponseIngress,
    /// A response as it will leave for the consumer.
    ResponseEgress,
}

/// The number of trigger points, for tables indexed by them.
pub(super) const TRIGGER_POINTS: usize = 4;

impl TriggerPoint {
    /// Position in tables.
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// Whether the message at this point is a response.
    #[must_use]
    pub fn is_response(self) -> bool {
        matches!(self, Self::ResponseIngress | Self::ResponseEgress)
    }
}

/// One rule: when all of `when` holds, do all of `then`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Rule {
    /// Name in metrics, logs and faults; unique within its group.
    pub name: String,
    /// Conditions that must all hold; empty: always.
    pub when: Vec<Condition>,
    /// What to do, in order; at least one.
    pub then: Vec<Action>,
    /// Whether later rules of the group are skipped once this one has applied.
    pub stop: bool,
}

/// A condition: one subject (`header`, `json`, `on`) with one test, or `all`, `any`, `not` of others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Condition {
    /// Subject: the header of this name (the first, if it occurs several times).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// Subject: the member of the JSON body at this JSON Pointer (RFC 6901).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<String>,
    /// Subject: a property of the message itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<Property>,

    /// Test: whether the subject exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exists: Option<bool>,
    /// Test: equal to this text, number or boolean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equals: Option<Value>,
    /// Test: equal to one of these.
    #[serde(rename = "in", skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<Value>,
    /// Test: text that begins with this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts_with: Option<String>,
    /// Test: text that ends with this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends_with: Option<String>,
    /// Test: text that contains this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// Test: text that matches this regular expression somewhere (anchor with `^` and `$`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matches: Option<String>,
    /// Test: a number above this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above: Option<f64>,
    /// Test: a number below this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below: Option<f64>,

    /// All of these hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub all: Vec<Condition>,
    /// At least one of these holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub any: Vec<Condition>,
    /// This one does not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not: Option<Box<Condition>>,
}

/// A property of the message that is neither header nor body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Property {
    /// Method of the request, in responses as well.
    Method,
    /// Path of the request without its query, in responses as well.
    Path,
    /// Query string of the request without `?`; absent when there is none.
    Query,
    /// Status code of the response; absent in requests.
    Status,
}

/// One thing to do. Exactly one member is set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// Adds a header beside any of the same name.
    AddHeader(HeaderValueAction),
    /// Sets a header; replaces all its values.
    SetHeader(HeaderValueAction),
    /// Replaces the value of a header, only if it exists.
    ReplaceHeader(HeaderValueAction),
    /// Removes a header.
    RemoveHeader(Named),
    /// Gives a header another name and keeps its values.
    RenameHeader(Renamed),
    /// Sets a member of the JSON body; makes missing parents that are objects.
    SetJson(JsonValueAction),
    /// Removes a member of the JSON body, if it exists.
    RemoveJson(AtPointer),
    /// Moves a member of the JSON body, if it exists.
    MoveJson(Moved),
    /// Answers the consumer instead of forwarding the request. Not at response points.
    Reject(Rejection),
    /// Steers the choice of the producer. Only at `requestIngress`.
    Route(Steering),
}

/// A header and the value it gets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct HeaderValueAction {
    /// Name of the header.
    pub name: String,
    /// The value as written here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Or: copied from `header:NAME`, `json:/POINTER`, `method`, `path`, `query`, `status`; the action is
    /// skipped when the source does not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// A member of the JSON body and the value it gets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct JsonValueAction {
    /// JSON Pointer of the member.
    pub pointer: String,
    /// The value as written here; any JSON value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Or: copied from a source, as in `setHeader`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// A name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Named {
    /// Name of the header.
    pub name: String,
}

/// An old and a new name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Renamed {
    /// Present name of the header.
    pub name: String,
    /// Name it gets.
    pub to: String,
}

/// A position in the JSON body.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct AtPointer {
    /// JSON Pointer of the member.
    pub pointer: String,
}

/// Two positions in the JSON body.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Moved {
    /// JSON Pointer of the member.
    pub from: String,
    /// JSON Pointer it moves to.
    pub to: String,
}

/// The answer instead of a relayed request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Rejection {
    /// HTTP status, 400 to 599.
    pub status: u16,
    /// `cause` of the problem details, for example `MODIFICATION_NOT_ALLOWED`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// `detail` of the problem details.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Attributes that routing takes over from mediation. Only those set have an effect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Steering {
    /// Send to this API root (`http://host:port/prefix`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_root: Option<String>,
    /// Send to this NF instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nf_instance_id: Option<String>,
    /// Send to a member of this NF set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nf_set_id: Option<String>,
    /// Prefer producers of this locality.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locality: Option<String>,
    /// Message priority, 0 (highest) to 31.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
}

impl Steering {
    /// Takes over the members that `other` sets; the others stay.
    pub fn merge(&mut self, other: &Self) {
        fn over<T: Clone>(mine: &mut Option<T>, other: &Option<T>) {
            if other.is_some() {
                mine.clone_from(other);
            }
        }
        over(&mut self.api_root, &other.api_root);
        over(&mut self.nf_instance_id, &other.nf_instance_id);
        over(&mut self.nf_set_id, &other.nf_set_id);
        over(&mut self.locality, &other.locality);
        over(&mut self.priority, &other.priority);
    }
}
