//! What a TDF lacks of its ADC rules, and what it reports (TS 29.212 §4b.5, §5b).

use diameter_proto::known::key;
use diameter_proto::{Avp, AvpWriter, Fault, MessageRef};
use serde_json::{Value, json};

use super::definition::ADC;
use super::{change, report, usage};
use crate::avp::{self, push};
use crate::json::{self, Object};

/// Appends what makes of a TDF with the decision `has` one with `shall`: Event-Trigger, ADC-Rule-Remove, ADC-Rule-Install,
/// Usage-Monitoring-Information. Of a TDF that has nothing yet `has` is null.
pub fn put_change(out: &mut AvpWriter, has: &Value, shall: &Value) {
    change::put_triggers(out, has, shall);
    change::put_rules(out, has, shall, &ADC);
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
