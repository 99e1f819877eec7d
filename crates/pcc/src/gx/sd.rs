//! What a TDF lacks of its ADC rules, and what it reports (TS 29.212 §4b.5, §5b).

use diameter_proto::known::{self, key};
use diameter_proto::{Avp, AvpWriter, Fault, MessageRef};
use serde_json::{Value, json};

use super::definition::{Definition, Terms};
use super::{change, report, usage};
use crate::avp::{self, push, put_group};
use crate::json::{self, Object};

/// Appends what makes of a TDF with the decision `has` one with `shall`: Event-Trigger, ADC-Rule-Remove, ADC-Rule-Install,
/// Usage-Monitoring-Information. Of a TDF that has nothing yet `has` is null.
pub fn put_change(out: &mut AvpWriter, has: &Value, shall: &Value) {
    change::put_triggers(out, has, shall);
    let is_kept = |id: &str| shall.get("adcRules").is_some_and(|rules| rules.get(id).is_some());
    put_group(out, known::ADC_RULE_REMOVE, |out| {
        for (id, _) in json::entries(has, "adcRules").filter(|(id, _)| !is_kept(id)) {
            out.put(known::ADC_RULE_NAME, id.as_bytes());
        }
    });
    let mut groups: Vec<(Terms, AvpWriter)> = Vec::new();
    for (id, rule) in json::entries(shall, "adcRules") {
        let definition = Definition::adc(shall, id, rule);
        let old = has.get("adcRules").and_then(|rules| rules.get(id));
        if old.is_some_and(|old| Definition::adc(has, id, old) == definition) {
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
        out.group(known::ADC_RULE_INSTALL, |out| {
            out.append_encoded(rules.as_bytes())
                .maybe(known::RULE_ACTIVATION_TIME, terms.activation)
                .maybe(known::RULE_DEACTIVATION_TIME, terms.deactivation);
        });
    }
    usage::put(out, has, shall);
}

/// What a CCR, TSA or RAA of a TDF reports, as members of `SmPolicyUpdateContextData`, and `adcRuleReports`.
///
/// # Errors
/// A [`Fault`] where an AVP is wrong.
pub fn read_report(message: MessageRef<'_>) -> Result<Object, Fault> {
    let Value::Object(mut document) = report::read_report(message)? else {
        return Ok(Object::new());
    };
    avp::walk(message.walk(), |avp| {
        if avp.key() == key::ADC_RULE_REPORT {
            push(&mut document, "adcRuleReports", rule_report(avp)?);
        }
        Ok(())
    })?;
    Ok(document)
}

/// An ADC-Rule-Report (TS 29.212 §5b.3.6), as a `RuleReport`.
fn rule_report(avp: &Avp<'_>) -> Result<Value, Fault> {
    let mut out = Object::new();
    out.insert("adcRuleIds".to_owned(), json!([]));
    avp::walk(avp.group(), |inner| {
        match inner.key() {
            key::ADC_RULE_NAME | key::ADC_RULE_BASE_NAME => {
                push(&mut out, "adcRuleIds", avp::text(inner).into());
            }
            key::PCC_RULE_STATUS => {
                let is_active = inner.read::<diameter_proto::kind::Enumerated>()? == 0;
                let status = if is_active { "ACTIVE" } else { "INACTIVE" };
                out.insert("ruleStatus".to_owned(), status.into());
            }
            key::RULE_FAILURE_CODE => {
                json::put(&mut out, "failureCode", avp::named(inner, report::FAILURE_CODE)?);
            }
            _ => {}
        }
        Ok(())
    })?;
    out.entry("ruleStatus").or_insert_with(|| "ACTIVE".into());
    Ok(Value::Object(out))
}
