//! What a PCEF lacks of a decision (TS 29.212 §4.5.2), for CCA and RAR.

use diameter_proto::AvpWriter;
use diameter_proto::known;
use serde_json::Value;

use super::definition::{Definition, PCC, RuleKind, Terms};
use super::{triggers, usage};
use crate::avp::{self, put_group};
use crate::json;

/// Session-Release-Cause (TS 29.212 §5.3.44) and `SmPolicyAssociationReleaseCause`.
const RELEASE_CAUSE: avp::Names = &[
    (0, "UNSPECIFIED"),
    (1, "UE_SUBSCRIPTION"),
    (2, "INSUFFICIENT_RES"),
];

/// Appends what makes of a PCEF with the decision `has` one with `shall`: Charging-Rule-Remove, Charging-Rule-Install,
/// QoS-Information, Default-EPS-Bearer-QoS, Event-Trigger, Revalidation-Time, Usage-Monitoring-Information. Both are
/// complete decisions; of a PCEF that has nothing yet `has` is null. Nothing is appended where nothing differs.
pub fn put_change(out: &mut AvpWriter, has: &Value, shall: &Value) {
    put_triggers(out, has, shall);
    put_rules(out, has, shall, &PCC);
    put_session(out, has, shall);
    if json::text(has, "revalidationTime") != json::text(shall, "revalidationTime") {
        let time = json::text(shall, "revalidationTime").and_then(avp::time_value);
        out.maybe(known::REVALIDATION_TIME, time);
    }
    usage::put(out, has, shall);
}

/// Appends what ends a session: Session-Release-Cause (TS 29.212 §4.5.9).
pub fn put_release(out: &mut AvpWriter, cause: &str) {
    let cause = avp::value(RELEASE_CAUSE, cause).unwrap_or(0);
    out.put(known::SESSION_RELEASE_CAUSE, cause);
}

/// Appends what has a PCEF give the UE another P-CSCF: PCSCF-Restoration-Indication (TS 29.212 §5.3.116).
pub fn put_restoration(out: &mut AvpWriter) {
    out.put(known::PCSCF_RESTORATION_INDICATION, 0);
}

/// The last complete set counts at the PCEF, so that a changed one is sent whole (TS 29.212 §5.3.7).
pub(super) fn put_triggers(out: &mut AvpWriter, has: &Value, shall: &Value) {
    let events = |decision| -> Vec<i32> {
        let mut events: Vec<i32> = json::texts(decision, "policyCtrlReqTriggers")
            .flat_map(triggers::events)
            .collect();
        events.sort_unstable();
        events.dedup();
        events
    };
    let (old, new) = (events(has), events(shall));
    if old == new {
        return;
    }
    for event in &new {
        out.put(known::EVENT_TRIGGER, *event);
    }
    if new.is_empty() {
        out.put(known::EVENT_TRIGGER, triggers::NONE);
    }
}

/// Rules that are not in the decision any longer, then new and changed ones, those on the same terms in one installation.
pub(super) fn put_rules(out: &mut AvpWriter, has: &Value, shall: &Value, kind: &RuleKind) {
    let member = kind.member;
    let kept = |id: &str| shall.get(member).is_some_and(|rules| rules.get(id).is_some());
    put_group(out, kind.remove, |out| {
        for (id, _) in json::entries(has, member).filter(|(id, _)| !kept(id)) {
            out.put(kind.name, id.as_bytes());
        }
    });
    let mut groups: Vec<(Terms, AvpWriter)> = Vec::new();
    for (id, rule) in json::entries(shall, member) {
        let definition = Definition::new(shall, id, rule, kind);
        let old = has.get(member).and_then(|rules| rules.get(id));
        if old.is_some_and(|old| Definition::new(has, id, old, kind) == definition) {
            continue;
        }
        let known = groups.iter().position(|(terms, _)| *terms == definition.terms);
        let at = known.unwrap_or_else(|| {
            groups.push((definition.terms, AvpWriter::default()));
            groups.len() - 1
        });
        groups[at].1.append_encoded(&definition.avp);
    }
    for (terms, rules) in groups {
        out.group(kind.install, |out| {
            out.append_encoded(rules.as_bytes())
                .maybe(known::RULE_ACTIVATION_TIME, terms.activation)
                .maybe(known::RULE_DEACTIVATION_TIME, terms.deactivation)
                .maybe(known::RESOURCE_ALLOCATION_NOTIFICATION, terms.notify.then_some(0))
                .maybe(
                    known::CHARGING_CORRELATION_INDICATOR,
                    terms.correlate.then_some(0),
                );
        });
    }
}

/// QoS of the session: of the first session rule without a condition.
fn put_session(out: &mut AvpWriter, has: &Value, shall: &Value) {
    let (old, new) = (session_qos(has), session_qos(shall));
    if old != new {
        out.append_encoded(&new);
    }
}

fn session_qos(decision: &Value) -> Vec<u8> {
    let mut rules = json::entries(decision, "sessRules").map(|(_, rule)| rule);
    let rule = rules.find(|rule| rule.get("refCondData").is_none());
    let rule = rule.unwrap_or(&Value::Null);
    let mut out = AvpWriter::default();
    if let Some(ambr) = rule.get("authSessAmbr") {
        put_group(&mut out, known::QOS_INFORMATION, |out| {
            avp::put_rate(
                out,
                json::text(ambr, "uplink"),
                known::APN_AGGREGATE_MAX_BITRATE_UL,
                known::EXTENDED_APN_AMBR_UL,
            );
            avp::put_rate(
                out,
                json::text(ambr, "downlink"),
                known::APN_AGGREGATE_MAX_BITRATE_DL,
                known::EXTENDED_APN_AMBR_DL,
            );
        });
    }
    if let Some(qos) = rule.get("authDefQos") {
        let class = json::uint(qos, "5qi").and_then(|class| i32::try_from(class).ok());
        put_group(&mut out, known::DEFAULT_EPS_BEARER_QOS, |out| {
            out.maybe(known::QOS_CLASS_IDENTIFIER, class);
            if let Some(arp) = qos.get("arp") {
                avp::put_arp(out, arp);
            }
        });
    }
    out.as_bytes().to_vec()
}
