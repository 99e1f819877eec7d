//! Usage-Monitoring-Information (TS 29.212 §5.3.60): thresholds out, usage in.

use diameter_proto::known::{self, key};
use diameter_proto::{Avp, AvpWriter, Fault};
use serde_json::Value;

use crate::avp;
use crate::json::{self, Object};

const SESSION_LEVEL: i32 = 0;
const PCC_RULE_LEVEL: i32 = 1;
const ADC_RULE_LEVEL: i32 = 2;

/// Members of a data type for total, uplink, downlink and seconds.
type Names = [&'static str; 4];
const THRESHOLD: Names = [
    "volumeThreshold",
    "volumeThresholdUplink",
    "volumeThresholdDownlink",
    "timeThreshold",
];
const NEXT_THRESHOLD: Names = [
    "nextVolThreshold",
    "nextVolThresholdUplink",
    "nextVolThresholdDownlink",
    "nextTimeThreshold",
];
const USAGE: Names = ["volUsage", "volUsageUplink", "volUsageDownlink", "timeUsage"];
const NEXT_USAGE: Names = [
    "nextVolUsage",
    "nextVolUsageUplink",
    "nextVolUsageDownlink",
    "nextTimeUsage",
];

/// Appends the accounts that differ. One that is removed is disabled.
pub(super) fn put(out: &mut AvpWriter, has: &Value, shall: &Value) {
    for (id, data) in json::entries(shall, "umDecs") {
        let old = has.get("umDecs").and_then(|old| old.get(id));
        let (level, old_level) = (level(shall, id), level(has, id));
        if old == Some(data) && level == old_level {
            continue;
        }
        out.group(known::USAGE_MONITORING_INFORMATION, |out| {
            out.put(known::MONITORING_KEY, id.as_bytes());
            put_units(out, data, THRESHOLD, None);
            let time = json::text(data, "monitoringTime").and_then(avp::time_value);
            if time.is_some() {
                put_units(out, data, NEXT_THRESHOLD, time);
            }
            let inactivity =
                json::uint(data, "inactivityTime").and_then(|seconds| u32::try_from(seconds).ok());
            out.maybe(known::QUOTA_CONSUMPTION_TIME, inactivity)
                .put(known::USAGE_MONITORING_LEVEL, level);
        });
    }
    for (id, _) in json::entries(has, "umDecs") {
        if shall.get("umDecs").and_then(|new| new.get(id)).is_none() {
            out.group(known::USAGE_MONITORING_INFORMATION, |out| {
                out.put(known::MONITORING_KEY, id.as_bytes())
                    .put(known::USAGE_MONITORING_LEVEL, level(has, id))
                    .put(known::USAGE_MONITORING_SUPPORT, 0);
            });
        }
    }
}

fn level(decision: &Value, id: &str) -> i32 {
    if decision.get("adcRules").is_some() {
        return ADC_RULE_LEVEL;
    }
    // What no PCC rule refers to is measured for the session, for which a PCEF needs no rule (TS 29.212 §4.5.16).
    let of_rule = json::entries(decision, "pccRules")
        .any(|(_, rule)| json::texts(rule, "refUmData").any(|key| key == id));
    let of_session =
        json::entries(decision, "sessRules").any(|(_, rule)| json::text(rule, "refUmData") == Some(id));
    match of_rule && !of_session {
        true => PCC_RULE_LEVEL,
        false => SESSION_LEVEL,
    }
}

/// A Granted-Service-Unit, where one of the measures has a threshold.
fn put_units(out: &mut AvpWriter, data: &Value, names: Names, from: Option<diameter_proto::kind::TimeValue>) {
    let [total, uplink, downlink, seconds] = names.map(|name| json::uint(data, name));
    if [total, uplink, downlink, seconds].iter().all(Option::is_none) {
        return;
    }
    let seconds = seconds.map(|seconds| u32::try_from(seconds).unwrap_or(u32::MAX));
    out.group(known::GRANTED_SERVICE_UNIT, |out| {
        out.maybe(known::CC_TIME, seconds)
            .maybe(known::CC_TOTAL_OCTETS, total)
            .maybe(known::CC_INPUT_OCTETS, uplink)
            .maybe(known::CC_OUTPUT_OCTETS, downlink)
            .maybe(known::MONITORING_TIME, from);
    });
}

/// `AccuUsageReport`; `None` where nothing was used. Of two Used-Service-Unit, that with a Monitoring-Time counts from
/// then on (TS 29.212 §4.5.17.5).
pub(super) fn read(avp: &Avp<'_>) -> Result<Option<Value>, Fault> {
    let mut report = Object::new();
    let mut used = false;
    avp::walk(avp.group(), |inner| {
        match inner.key() {
            key::MONITORING_KEY => {
                report.insert("refUmIds".to_owned(), avp::text(inner).into());
            }
            key::USED_SERVICE_UNIT => {
                used = true;
                let group = inner.group();
                let later = group.clone().find(known::MONITORING_TIME)?.is_some();
                let [total, uplink, downlink, seconds] = if later { NEXT_USAGE } else { USAGE };
                json::put(&mut report, total, group.clone().get(known::CC_TOTAL_OCTETS)?);
                json::put(&mut report, uplink, group.clone().get(known::CC_INPUT_OCTETS)?);
                json::put(&mut report, downlink, group.clone().get(known::CC_OUTPUT_OCTETS)?);
                json::put(&mut report, seconds, group.get(known::CC_TIME)?);
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok((used && report.contains_key("refUmIds")).then_some(Value::Object(report)))
}
