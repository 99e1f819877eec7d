//! Sd (TS 29.212 §4b, §5b): application detection and control at a TDF.
//!
//! A policy project makes ADC rules (`adcRules`) with the data that PCC rules refer to as well. [`split`] takes them out of a
//! decision: PCEFs and SMFs know no ADC rules. [`put_change`] writes what a TDF lacks of its part.

use std::net::IpAddr;

use diameter_proto::AvpWriter;
use diameter_proto::known;
use serde_json::Value;

use crate::json::{self, Object};

pub use crate::gx::sd::{put_change, read_report};

/// Sections that ADC rules refer to, and the members that do so.
const REFERENCES: [(&str, &str); 5] = [
    ("refQosData", "qosDecs"),
    ("refTcData", "traffContDecs"),
    ("refChgData", "chgDecs"),
    ("refUmData", "umDecs"),
    ("refCondData", "conds"),
];
/// Triggers of application detection.
const DETECTION: [&str; 2] = ["APP_STA", "APP_STO"];

/// Takes the part of a TDF out of a decision: ADC rules, the data that they refer to, and the triggers of a TDF. Data stay that
/// other rules refer to as well, triggers of detection where a PCC rule names an application. `None`: there are no ADC rules.
pub fn split(decision: &mut Object) -> Option<Value> {
    let rules = decision.remove("adcRules")?;
    if rules.as_object().is_none_or(Object::is_empty) {
        return None;
    }
    let mut part = Object::new();
    for (reference, section) in REFERENCES {
        let own = referred(rules.as_object(), reference);
        let mut others = referred(decision.get("pccRules").and_then(Value::as_object), reference);
        others.extend(referred(
            decision.get("sessRules").and_then(Value::as_object),
            reference,
        ));
        let Some(Value::Object(entries)) = decision.get_mut(section) else {
            continue;
        };
        let mut taken = Object::new();
        for id in own {
            if let Some(entry) = entries.get(&id) {
                taken.insert(id.clone(), entry.clone());
            }
            if !others.contains(&id) {
                entries.remove(&id);
            }
        }
        if entries.is_empty() {
            decision.remove(section);
        }
        if !taken.is_empty() {
            part.insert(section.to_owned(), Value::Object(taken));
        }
    }
    let triggers = split_triggers(decision, part.contains_key("umDecs"));
    part.insert("adcRules".to_owned(), rules);
    part.insert("policyCtrlReqTriggers".to_owned(), json::list(triggers));
    Some(Value::Object(part))
}

/// Identifiers that rules name in a member: a list, or one text.
fn referred(rules: Option<&Object>, member: &str) -> Vec<String> {
    let values = rules
        .into_iter()
        .flatten()
        .filter_map(|(_, rule)| rule.get(member));
    let texts = values.flat_map(|value| match value {
        Value::Array(texts) => texts.as_slice(),
        text => std::slice::from_ref(text),
    });
    texts.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn split_triggers(decision: &mut Object, measures: bool) -> Vec<&'static str> {
    let rules = decision.get("pccRules").and_then(Value::as_object);
    let detects = rules.is_some_and(|rules| rules.values().any(|rule| rule.get("appId").is_some()));
    let mut own: Vec<&str> = Vec::new();
    if let Some(Value::Array(triggers)) = decision.get_mut("policyCtrlReqTriggers") {
        own.extend(
            DETECTION
                .iter()
                .filter(|name| triggers.iter().any(|one| one == **name)),
        );
        triggers.retain(|one| detects || !DETECTION.iter().any(|name| one == name));
        if triggers.is_empty() {
            decision.remove("policyCtrlReqTriggers");
        }
    }
    if measures {
        own.push("US_RE");
    }
    own
}

/// Appends whom a TSR is about: the subscriber, the addresses of the UE, the network.
pub fn put_session(out: &mut AvpWriter, context: &Value) {
    for identity in ["supi", "gpsi"]
        .iter()
        .filter_map(|member| json::text(context, member))
    {
        crate::sy::put_subscription(out, identity);
    }
    let v4 = json::text(context, "ipv4Address").and_then(|text| text.parse::<IpAddr>().ok());
    if let Some(IpAddr::V4(address)) = v4 {
        out.put(known::FRAMED_IP_ADDRESS, &address.octets()[..]);
    }
    if let Some(prefix) = json::text(context, "ipv6AddressPrefix").and_then(prefix) {
        out.put(known::FRAMED_IPV6_PREFIX, &prefix[..]);
    }
    out.maybe(known::CALLED_STATION_ID, json::text(context, "dnn"));
}

/// Framed-IPv6-Prefix of `2001:db8::/64`: a reserved byte, the length, the bytes of the prefix (RFC 3162 §2.3).
fn prefix(text: &str) -> Option<Vec<u8>> {
    let (address, length) = text.split_once('/')?;
    let address: std::net::Ipv6Addr = address.parse().ok()?;
    let length: u8 = length.parse().ok().filter(|length| *length <= 128)?;
    let bytes = usize::from(length).div_ceil(8);
    let mut out = vec![0, length];
    out.extend(address.octets().iter().take(bytes));
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Object {
        match value {
            Value::Object(members) => members,
            _ => Object::new(),
        }
    }

    #[test]
    fn the_part_of_a_tdf_leaves_the_decision_with_what_it_alone_refers_to() {
        let mut decision = object(json!({
            "pccRules": {"all": {"pccRuleId": "all", "refQosData": ["shared"]}},
            "adcRules": {"video": {"adcRuleId": "video", "appId": "video", "refQosData": ["shared"],
                "refTcData": ["gate"], "refUmData": ["month"]}},
            "qosDecs": {"shared": {"qosId": "shared"}}, "traffContDecs": {"gate": {"tcId": "gate"}},
            "umDecs": {"month": {"umId": "month"}},
            "policyCtrlReqTriggers": ["APP_STA", "RAT_TY_CH"],
        }));
        let part = split(&mut decision).unwrap();
        assert_eq!(
            Value::Object(decision.clone()),
            json!({"pccRules": {"all": {"pccRuleId": "all", "refQosData": ["shared"]}},
                "qosDecs": {"shared": {"qosId": "shared"}}, "policyCtrlReqTriggers": ["RAT_TY_CH"]})
        );
        assert_eq!(part["policyCtrlReqTriggers"], json!(["APP_STA", "US_RE"]));
        assert_eq!(part["traffContDecs"], json!({"gate": {"tcId": "gate"}}));
        assert_eq!(part["qosDecs"], json!({"shared": {"qosId": "shared"}}));
        assert!(split(&mut decision).is_none());

        // Where the PCEF detects applications too, it keeps the triggers.
        let mut both = object(json!({"pccRules": {"a": {"appId": "a"}}, "adcRules": {"b": {}},
            "policyCtrlReqTriggers": ["APP_STO"]}));
        let part = split(&mut both).unwrap();
        assert_eq!(both["policyCtrlReqTriggers"], part["policyCtrlReqTriggers"]);
    }

    #[test]
    fn prefixes_have_the_bytes_that_matter() {
        assert_eq!(prefix("2001:db8::/32"), Some(vec![0, 32, 0x20, 1, 0x0d, 0xb8]));
        assert_eq!(prefix("2001:db8::/129"), None);
    }
}
