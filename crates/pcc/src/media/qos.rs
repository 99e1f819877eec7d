//! QoS of a flow (TS 29.513 table 7.3.2-1, TS 29.213 table 6.3.1).

use serde_json::{Value, json};

use super::Rule;
use super::component::Rates;
use crate::json::{self, Object};
use crate::mapping::{Arp, Class, Mapping};
use crate::rate;
use crate::refusal::{Cause, Refusal};

/// `QosData` of a rule.
pub(super) fn data(rule: &Rule<'_>, mapping: &Mapping) -> Result<Value, Refusal> {
    let class = rule.class;
    let most = class.max_bit_rate.or(mapping.max_bit_rate);
    let asked = maximum(rule)?;
    for (rate, direction) in [(asked.uplink, "uplink"), (asked.downlink, "downlink")] {
        if let (Some(rate), Some(most)) = (rate, most)
            && rate > most.0
        {
            let (rate, most) = (rate::text(rate), rate::text(most.0));
            return Err(Refusal::new(
                Cause::RequestedServiceNotAuthorized,
                rule.at(),
                format!("{rate} {direction} are asked for, at most {most} are allowed"),
            ));
        }
    }
    let mut qos = Object::new();
    qos.insert("qosId".to_owned(), rule.id.as_str().into());
    qos.insert("5qi".to_owned(), class.five_qi.into());
    let maximum = if class.is_guaranteed() {
        Rates {
            uplink: asked.uplink.or(Some(default_rate(rule))),
            downlink: asked.downlink.or(Some(default_rate(rule))),
        }
    } else {
        asked
    };
    put_rates(&mut qos, "maxbrUl", "maxbrDl", maximum);
    if class.is_guaranteed() {
        put_rates(&mut qos, "gbrUl", "gbrDl", guaranteed(rule, maximum)?);
    }
    qos.insert("arp".to_owned(), arp(rule, mapping));
    let component = rule.component.value;
    for member in ["maxPacketLossRateDl", "maxPacketLossRateUl"] {
        json::put(&mut qos, member, component.get(member).cloned());
    }
    for member in ["sharingKeyDl", "sharingKeyUl"] {
        json::put(
            &mut qos,
            member,
            json::uint(component, member).map(|key| key.to_string()),
        );
    }
    if class.is_guaranteed() && crate::event::subscribes(rule.request, "QOS_NOTIF") {
        qos.insert("qnc".to_owned(), true.into());
    }
    Ok(Value::Object(qos))
}

/// `QosData` of the alternatives that the AF names, in its order of preference (TS 29.514 §4.2.2.32).
pub(super) fn alternatives(
    rule: &Rule<'_>,
    mapping: &Mapping,
    all: &mut Object,
) -> Result<Vec<String>, Refusal> {
    let mut ids = Vec::new();
    for reference in json::texts(rule.component.value, "altSerReqs") {
        let Some(class) = mapping.references.get(reference) else {
            let at = format!("{}/altSerReqs", rule.at());
            return Err(Refusal::invalid(at, format!("{reference:?} has no class here")));
        };
        let id = format!("af-alternative-{reference}");
        let mut qos = json!({"qosId": id, "5qi": class.five_qi});
        if class.is_guaranteed() {
            let rate = rate::text(class.default_bit_rate.0);
            let object = json::object(&mut qos);
            for member in ["gbrUl", "gbrDl"] {
                object.insert(member.to_owned(), rate.clone().into());
            }
        }
        all.insert(id.clone(), qos);
        ids.push(id);
    }
    Ok(ids)
}

/// The maximum bit rate that the AF asks for.
fn maximum(rule: &Rule<'_>) -> Result<Rates, Refusal> {
    let (component, flow) = (rule.component, rule.flow);
    let own = component.rates(flow.value, "marBwUl", "marBwDl")?;
    let whole = component.rates(component.value, "marBwUl", "marBwDl")?;
    if !flow.is_rtcp() {
        return Ok(Rates {
            uplink: own.uplink.or(whole.uplink),
            downlink: own.downlink.or(whole.downlink),
        });
    }
    if own.uplink.is_some() || own.downlink.is_some() {
        return Ok(own);
    }
    // TS 29.213 table 6.3.1: of RTCP the sum of both bandwidths, or else a twentieth of the media.
    let senders = component.rate(component.value, "rsBw")?;
    let receivers = component.rate(component.value, "rrBw")?;
    if let (Some(senders), Some(receivers)) = (senders, receivers) {
        let sum = Some(senders.saturating_add(receivers));
        return Ok(Rates {
            uplink: sum,
            downlink: sum,
        });
    }
    let least = senders.or(receivers).unwrap_or(0);
    let share = |rate: Option<u64>| rate.map(|rate| (rate / 20).max(least));
    Ok(Rates {
        uplink: share(whole.uplink),
        downlink: share(whole.downlink),
    })
}

/// The guaranteed bit rate: what the AF requires at least, else the maximum; never above the maximum.
fn guaranteed(rule: &Rule<'_>, maximum: Rates) -> Result<Rates, Refusal> {
    if rule.flow.is_rtcp() {
        return Ok(maximum);
    }
    let least = rule.component.rates(rule.component.value, "mirBwUl", "mirBwDl")?;
    let lower = |least: Option<u64>, most: Option<u64>| match (least, most) {
        (Some(least), Some(most)) => Some(least.min(most)),
        (least, most) => least.or(most),
    };
    Ok(Rates {
        uplink: lower(least.uplink, maximum.uplink),
        downlink: lower(least.downlink, maximum.downlink),
    })
}

/// The rate where the AF gives none; RTCP needs a twentieth.
fn default_rate(rule: &Rule<'_>) -> u64 {
    let rate = rule.class.default_bit_rate.0;
    if rule.flow.is_rtcp() { rate / 20 } else { rate }
}

fn put_rates(qos: &mut Object, uplink: &str, downlink: &str, rates: Rates) {
    json::put(qos, uplink, rates.uplink.map(rate::text));
    json::put(qos, downlink, rates.downlink.map(rate::text));
}

/// `Arp`: that of the class, raised by the AF's priority as far as the operator lets it (TS 29.513 §7.3.3; `PRIO_16` and `PRIORITY-FIFTEEN` are the highest).
fn arp(rule: &Rule<'_>, mapping: &Mapping) -> Value {
    let Class { arp, .. } = rule.class;
    let Arp {
        priority_level,
        preempts,
        preemptable,
    } = *arp;
    let component = rule.component.value;
    let priority = json::text(component, "resPrio").or_else(|| json::text(rule.request, "resPrio"));
    let asked = priority
        .and_then(|priority| priority.strip_prefix("PRIO_")?.parse::<u8>().ok())
        .filter(|priority| (2..=16).contains(priority))
        .map(|priority| (17 - priority).max(mapping.highest_priority));
    let of_af = |member| json::text(component, member).filter(|_| mapping.af_preemption);
    let cap = if preempts { "MAY_PREEMPT" } else { "NOT_PREEMPT" };
    let vuln = if preemptable {
        "PREEMPTABLE"
    } else {
        "NOT_PREEMPTABLE"
    };
    json!({
        "priorityLevel": asked.map_or(priority_level, |asked| asked.min(priority_level)),
        "preemptCap": of_af("preemptCap").unwrap_or(cap),
        "preemptVuln": of_af("preemptVuln").unwrap_or(vuln),
    })
}
