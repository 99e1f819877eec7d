//! From the service information of an AF (TS 29.514 `AppSessionContextReqData`; Rx in the same form, [`crate::rx`]) to PCC
//! rules with their QoS, gate and charging (TS 29.513 §7.3, TS 29.213 §6.3).
//!
//! Each flow (`medSubComps`) that has filters, or an application in their place, becomes one rule with a QoS, a gate (`TrafficControlData`) and, where wanted, charging of
//! its own. The identifiers depend on the session and the AF's numbers alone ([`crate::RuleId`]), so that an update
//! modifies rules and does not recreate them.

mod charging;
mod component;
mod features;
mod qos;
mod steering;

use serde_json::{Value, json};

use crate::event;
use crate::json::{self, Object};
use crate::mapping::{Class, Mapping};
use crate::refusal::{Cause, Refusal};
use crate::rule_id::RuleId;
use component::{Component, Flow};

pub use features::fit;

/// The rules of an AF session as a part of an `SmPolicyDecision`: `pccRules`, `qosDecs`, `traffContDecs`, `chgDecs`,
/// `umDecs`, `policyCtrlReqTriggers`, `lastReqRuleData`. [`crate::decision::compose`] adds it to the rest.
///
/// `session` identifies the AF session among all of the UE's session.
///
/// # Errors
/// A [`Refusal`] with the standard's cause, where the service information is wrong or the mapping does not allow it.
pub fn derive(session: &str, request: &Value, mapping: &Mapping) -> Result<Value, Refusal> {
    let mut components = component::read(request, mapping)?;
    components.sort_by_key(|component| component.number);
    let mut parts = Parts::default();
    let charging = charging::Charging::read(request, mapping)?;
    for component in &components {
        for flow in component.live_flows() {
            let id = RuleId {
                session,
                component: component.number,
                flow: flow.number,
            };
            let class = class(request, component, flow, mapping)?;
            let rule = Rule {
                id: id.to_string(),
                class: &class,
                request,
                component,
                flow,
            };
            parts.add(&rule, &charging, mapping)?;
        }
    }
    parts.watch(session, request);
    Ok(parts.finish())
}

/// Applies what an AF sends as an update (`AppSessionContextUpdateData`, a JSON merge patch) to the stored request, and
/// removes components and flows whose status is now `REMOVED` (TS 29.514 §4.2.3.2, TS 29.214 §4.4.2).
pub fn merge(request: &mut Value, update: &Value) {
    json::merge_patch(request, update);
    let gone = |value: &Value| json::text(value, "fStatus") == Some("REMOVED");
    let Some(Value::Object(components)) = request.get_mut("medComponents") else {
        return;
    };
    components.retain(|_, component| {
        let flows = component.get_mut("medSubComps").and_then(Value::as_object_mut);
        let has_flows = flows.is_none_or(|flows| {
            flows.retain(|_, flow| !gone(flow));
            !flows.is_empty()
        });
        // Without the flows that it had a component describes no traffic.
        has_flows && !gone(component)
    });
    // The member has at least one component (OpenAPI: `minProperties`).
    if components.is_empty() {
        json::object(request).remove("medComponents");
    }
}

/// One rule in the making.
struct Rule<'a> {
    id: String,
    class: &'a Class,
    request: &'a Value,
    component: &'a Component<'a>,
    flow: &'a Flow<'a>,
}

/// The class that decides on a flow: that which the AF names, that of its application, that of signalling, that of the
/// media type.
fn class(
    request: &Value,
    component: &Component<'_>,
    flow: &Flow<'_>,
    mapping: &Mapping,
) -> Result<Class, Refusal> {
    let at = || format!("/medComponents/{}", component.key);
    if let Some(reference) = json::text(component.value, "qosReference") {
        return allowed(mapping.references.get(reference).cloned(), at, || {
            format!("qosReference {reference:?} has no class here")
        });
    }
    let application = json::text(component.value, "afAppId").or_else(|| json::text(request, "afAppId"));
    let class = match application.and_then(|application| mapping.applications.get(application)) {
        Some(class) => class.clone(),
        None if flow.is_signalling() => mapping.signalling.clone(),
        None => mapping.media_class(component.media_type()).into_owned(),
    };
    allowed(class.allowed.then_some(class), at, || {
        format!("{} media are not allowed", component.media_type())
    })
}

fn allowed(
    class: Option<Class>,
    at: impl FnOnce() -> String,
    why: impl FnOnce() -> String,
) -> Result<Class, Refusal> {
    class.ok_or_else(|| Refusal::new(Cause::RequestedServiceNotAuthorized, at(), why()))
}

/// The decision in the making.
#[derive(Default)]
struct Parts {
    rules: Object,
    qos: Object,
    traffic: Object,
    charging: Object,
    usage: Object,
    triggers: Vec<&'static str>,
    requested: Vec<Value>,
}

impl Parts {
    fn add(
        &mut self,
        rule: &Rule<'_>,
        charging: &charging::Charging<'_>,
        mapping: &Mapping,
    ) -> Result<(), Refusal> {
        let id = rule.id.as_str();
        let qos = qos::data(rule, mapping)?;
        // A rule without a filter would match all traffic of the session (TS 29.512 §5.6.2.6). A medium of which the AF does
        // not know the flows yet is authorized by its type and bit rates, and gets a rule when they come (TS 29.513 §7.2).
        if rule.flow.flow_infos().is_none() && rule.application().is_none() {
            return Ok(());
        }
        let mut pcc = Object::new();
        pcc.insert("pccRuleId".to_owned(), id.into());
        match rule.flow.flow_infos() {
            Some(infos) => {
                pcc.insert("flowInfos".to_owned(), infos);
            }
            None => json::put(&mut pcc, "appId", rule.application()),
        }
        let media = u32::from(!rule.flow.is_signalling());
        pcc.insert(
            "precedence".to_owned(),
            mapping.precedence.saturating_add(media).into(),
        );
        json::put(&mut pcc, "contVer", rule.component.value.get("contVer").cloned());
        json::put(
            &mut pcc,
            "afSigProtocol",
            rule.flow.value.get("afSigProtocol").cloned(),
        );
        json::put(
            &mut pcc,
            "disUeNotif",
            rule.component.value.get("disUeNotif").cloned(),
        );
        for member in ["tscaiInputDl", "tscaiInputUl", "tscaiTimeDom"] {
            json::put(&mut pcc, member, rule.component.value.get(member).cloned());
        }
        pcc.insert("refQosData".to_owned(), json!([id]));
        pcc.insert("refTcData".to_owned(), json!([id]));
        let alternatives = qos::alternatives(rule, mapping, &mut self.qos)?;
        if !alternatives.is_empty() {
            pcc.insert("refAltQosParams".to_owned(), json::list(alternatives));
        }
        if let Some((charging_id, data)) = charging.data(rule) {
            pcc.insert("refChgData".to_owned(), json!([charging_id]));
            self.charging.insert(charging_id, data);
        }
        if let Some((usage_id, data)) = charging.usage(rule) {
            pcc.insert("refUmData".to_owned(), json!([usage_id]));
            self.usage.insert(usage_id, data);
        }
        let mut traffic = json!({"tcId": id, "flowStatus": rule.flow.status()});
        steering::apply(rule, json::object(&mut traffic), &mut pcc);
        self.traffic.insert(id.to_owned(), traffic);
        self.qos.insert(id.to_owned(), qos);
        self.rules.insert(id.to_owned(), Value::Object(pcc));
        Ok(())
    }

    /// What the SMF has to report, so that the AF hears of the events it subscribed to.
    fn watch(&mut self, session: &str, request: &Value) {
        self.triggers = event::triggers(request);
        let data = event::requested_rule_data(request);
        if data.is_empty() {
            return;
        }
        let own = |id: &&String| RuleId::parse(id).is_some_and(|id| id.session == session);
        let rules: Vec<&String> = self.rules.keys().filter(own).collect();
        if !rules.is_empty() {
            let rules = json::list(rules.into_iter().cloned());
            self.requested
                .push(json!({"refPccRuleIds": rules, "reqData": data}));
        }
    }

    fn finish(self) -> Value {
        let mut out = Object::new();
        for (member, entries) in [
            ("pccRules", self.rules),
            ("qosDecs", self.qos),
            ("traffContDecs", self.traffic),
            ("chgDecs", self.charging),
            ("umDecs", self.usage),
        ] {
            if !entries.is_empty() {
                out.insert(member.to_owned(), Value::Object(entries));
            }
        }
        if !self.triggers.is_empty() {
            out.insert("policyCtrlReqTriggers".to_owned(), json::list(self.triggers));
        }
        if !self.requested.is_empty() {
            out.insert("lastReqRuleData".to_owned(), Value::Array(self.requested));
        }
        Value::Object(out)
    }
}

impl Rule<'_> {
    /// The application that stands for flows (TS 29.514 §4.2.2.2: `afAppId` where there are no flow descriptions).
    fn application(&self) -> Option<&str> {
        json::text(self.component.value, "afAppId").or_else(|| json::text(self.request, "afAppId"))
    }

    fn at(&self) -> String {
        format!("/medComponents/{}", self.component.key)
    }
}
