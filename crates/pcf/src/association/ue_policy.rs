//! How far the delivery of a UE policy has come: what an association keeps of it (TS 24.501 §D.2.1, TS 29.525 §4.2.2.2).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Association, repetition};

/// The room of an association that has it.
const ROOM: &str = "uePolicy";
/// The name under which associations are found whose delivery is in flight since an earlier release.
pub(crate) const IN_FLIGHT: &str = "ue-policy:in-flight";
/// The member of a UE decision that has the URSP rules of the project.
pub(crate) const URSP_RULES: &str = "urspRules";
/// Procedure transaction identities of the network (TS 24.501 §D.1.2).
const FIRST_PTI: u8 = 0x80;
const LAST_PTI: u8 = 0xfe;

/// How far a delivery has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Progress {
    /// The command is still to be sent.
    Pending,
    /// The command was sent, and T3501 runs.
    Sent,
    /// The UE has it (MANAGE UE POLICY COMPLETE).
    Delivered,
    /// The UE has refused some of it (MANAGE UE POLICY COMMAND REJECT).
    Rejected,
    /// It was given up.
    Failed,
}

/// A section of a command that a UE has refused (TS 24.501 §D.6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SectionResult {
    /// UE policy section code.
    pub(crate) upsc: u16,
    /// Order of the failed instruction.
    pub(crate) instruction: u16,
    /// Cause; 111 is a protocol error, and so is any other value.
    pub(crate) cause: u8,
}

/// The delivery of the present UE policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Delivery {
    pub(crate) progress: Progress,
    /// Procedure transaction identity of the command.
    pub(crate) pti: u8,
    /// Hash of the PLMN and the rules, in hexadecimal.
    content: String,
    /// Whether the command takes the rules away that an earlier one has brought.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    removes: bool,
    /// How often the command was sent, or could not be.
    pub(crate) attempts: u32,
    /// When T3501 expires, or the command was to be sent: milliseconds since 1970.
    pub(crate) due: i64,
    /// Whether its time stands in a table of its own; an earlier release has given the association a name instead.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) listed: bool,
    /// API root of the AMF that has the subscription.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) amf: Option<String>,
    /// URI of the subscription to the UE's answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) subscription: Option<String>,
    /// Why the last attempt or the delivery has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<String>,
    /// What the UE has refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) results: Vec<SectionResult>,
}

impl Delivery {
    /// That of an association.
    pub(crate) fn of(association: &Association) -> Option<Self> {
        Self::deserialize(association.rooms.get(ROOM)?).ok()
    }

    /// Keeps it with an association.
    pub(crate) fn keep(&self, association: &mut Association) {
        if let Ok(room) = serde_json::to_value(self) {
            association.rooms.insert(ROOM.to_owned(), room);
        }
    }

    /// Whether the UE's answer is still to come.
    pub(crate) fn is_in_flight(&self) -> bool {
        matches!(self.progress, Progress::Pending | Progress::Sent)
    }

    /// Gives the delivery up.
    pub(crate) fn fail(&mut self, cause: &str) {
        self.progress = Progress::Failed;
        self.cause = Some(cause.to_owned());
    }

    /// Plans the delivery of what an association's decision has for its UE, if the UE does not have it yet; whether one is
    /// planned. One that was given up is planned again where `again` is true.
    pub(crate) fn plan(association: &mut Association, again: bool, due: i64) -> bool {
        let rules = rules_of(association);
        let before = Self::of(association);
        let removes = rules.is_empty();
        // A UE without a section has nothing to lose.
        let holds_something = before.as_ref().is_some_and(|before| !before.removes);
        if removes && !holds_something {
            return false;
        }
        let content = format!("{:016x}", hash(plmn_of(association), rules));
        if let Some(before) = &before {
            let is_same = before.content == content;
            if is_same && !(again && before.progress == Progress::Failed) {
                return false;
            }
        }
        let (amf, subscription, pti) = before.map_or((None, None, FIRST_PTI), |before| {
            let next = if before.pti >= LAST_PTI {
                FIRST_PTI
            } else {
                before.pti + 1
            };
            (before.amf, before.subscription, next)
        });
        let planned = Self {
            progress: Progress::Pending,
            pti,
            content,
            removes,
            attempts: 0,
            due,
            listed: true,
            amf,
            subscription,
            cause: None,
            results: Vec::new(),
        };
        planned.keep(association);
        true
    }
}

/// The room of an association whose UE is still to answer.
fn in_flight(association: &Association) -> Option<&Value> {
    let room = association.rooms.get(ROOM)?;
    let progress = room.get("progress").and_then(Value::as_str);
    matches!(progress, Some("pending" | "sent")).then_some(room)
}

/// Whether an association is found by [`IN_FLIGHT`].
pub(crate) fn is_named(association: &Association) -> bool {
    in_flight(association).is_some_and(|room| room.get("listed").is_none())
}

/// When the delivery of an association is due, in milliseconds since 1970; `None`: none is in flight, or it is found by name.
pub(crate) fn due(association: &Association) -> Option<u64> {
    let room = in_flight(association).filter(|room| room.get("listed").is_some())?;
    let due = room.get("due").and_then(Value::as_i64)?;
    Some(u64::try_from(due).unwrap_or(0))
}

/// The URSP rules of an association's decision.
pub(crate) fn rules_of(association: &Association) -> &[Value] {
    let rules = association.policy.get(URSP_RULES).and_then(Value::as_array);
    rules.map(Vec::as_slice).unwrap_or_default()
}

/// The PLMN of the sections for an association's UE.
pub(crate) fn plmn_of(association: &Association) -> &Value {
    let context = &association.context;
    // An update brings the serving network as `plmnId` (TS 29.525 §5.6.2.4).
    let moved = context.get("plmnId");
    moved
        .or_else(|| context.get("servingPlmn"))
        .or_else(|| context.get("guami")?.get("plmnId"))
        .unwrap_or(&Value::Null)
}

fn hash(plmn: &Value, rules: &[Value]) -> u64 {
    let text = [plmn.to_string(), Value::from(rules).to_string()].concat();
    repetition::hash(text.bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::association::Kind;
    use serde_json::json;

    fn association(rules: &Value) -> Association {
        let context = json!({"guami": {"plmnId": {"mcc": "001", "mnc": "01"}, "amfId": "0000ff"}});
        let mut association = Association::new(Kind::Ue, context);
        association.policy.insert(URSP_RULES.to_owned(), rules.clone());
        association
    }

    #[test]
    fn a_delivery_is_planned_once_for_each_content() {
        let mut one = association(&json!([{"relatPrecedence": 1}]));
        assert!(Delivery::plan(&mut one, false, 5));
        let planned = Delivery::of(&one).unwrap();
        assert_eq!(
            (planned.pti, planned.due, planned.progress),
            (0x80, 5, Progress::Pending)
        );
        assert!(due(&one).is_some() && planned.is_in_flight() && !is_named(&one));
        assert!(!Delivery::plan(&mut one, true, 6), "in flight");

        let mut failed = planned;
        failed.fail("no AMF");
        failed.keep(&mut one);
        assert!(due(&one).is_none());
        assert!(!Delivery::plan(&mut one, false, 6));
        assert!(
            Delivery::plan(&mut one, true, 6),
            "given up, and the AMF has news of the UE"
        );
        assert_eq!(Delivery::of(&one).unwrap().pti, 0x81);

        // Other rules, then none: the section is taken away once.
        one.policy
            .insert(URSP_RULES.to_owned(), json!([{"relatPrecedence": 2}]));
        assert!(Delivery::plan(&mut one, false, 7));
        one.policy.shift_remove(URSP_RULES);
        assert!(Delivery::plan(&mut one, false, 8));
        assert!(!Delivery::plan(&mut one, false, 9));
    }

    #[test]
    fn a_ue_that_has_nothing_needs_no_removal_and_identities_stay_those_of_the_network() {
        let mut none = association(&json!([]));
        assert!(!Delivery::plan(&mut none, true, 1));
        for number in 0..300 {
            none.policy.insert(URSP_RULES.to_owned(), json!([number]));
            assert!(Delivery::plan(&mut none, false, 1));
            let pti = Delivery::of(&none).unwrap().pti;
            assert!((FIRST_PTI..=LAST_PTI).contains(&pti));
        }
    }
}
