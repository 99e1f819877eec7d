//! The body of a webhook of Alertmanager (`webhook_config`, version 4), with one alert.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Change;

/// Where the system keeps the name of the machine.
const HOST: &str = "/proc/sys/kernel/hostname";
/// The end of an alert that is active: the zero time of Go.
const NO_END: &str = "0001-01-01T00:00:00Z";
/// Characters of what an alarm is about, and of its detail: strangers may name it.
const MOST_TEXT: usize = 500;

/// The name of this machine, empty where the system does not say it.
pub(super) fn host() -> String {
    let name = std::fs::read_to_string(HOST).unwrap_or_default();
    name.trim().to_owned()
}

pub(super) fn body(change: &Change, host: &str) -> Value {
    let alarm = &change.alarm;
    let status = if change.is_active { "firing" } else { "resolved" };
    let number = alarm.number.to_string();
    let labels = BTreeMap::from([
        ("alertname", alarm.name.to_owned()),
        ("number", number),
        ("severity", alarm.severity.as_str().to_owned()),
        ("about", cut(&alarm.instance)),
        ("function", change.function.to_owned()),
        ("host", host.to_owned()),
    ]);
    let annotations = json!({
        "summary": alarm.text,
        "description": cut(&alarm.detail),
        "advice": alarm.advice,
        "page": alarm.page,
    });
    let ended = alarm.cleared.as_deref().filter(|_| !change.is_active);
    let fingerprint = fingerprint(&labels);
    json!({
        "version": "4",
        "groupKey": format!("{{}}:{{fingerprint=\"{fingerprint}\"}}"),
        "truncatedAlerts": 0,
        "status": status,
        "receiver": "signalbox",
        "groupLabels": { "alertname": alarm.name },
        "commonLabels": labels,
        "commonAnnotations": annotations,
        "externalURL": "",
        "alerts": [{
            "status": status,
            "labels": labels,
            "annotations": annotations,
            "startsAt": alarm.raised,
            "endsAt": ended.unwrap_or(NO_END),
            "generatorURL": "",
            "fingerprint": fingerprint,
        }],
    })
}

fn cut(text: &str) -> String {
    text.chars().take(MOST_TEXT).collect()
}

/// What an alert is known by, as Prometheus makes it of labels: FNV-1a of 64 bits over names and values in the order of the
/// names, 0xff after each.
fn fingerprint(labels: &BTreeMap<&str, String>) -> String {
    const OFFSET: u64 = 14_695_981_039_346_656_037;
    const PRIME: u64 = 1_099_511_628_211;
    let texts = labels.iter().flat_map(|(name, value)| [*name, value.as_str()]);
    let octets = texts.flat_map(|text| text.bytes().chain([0xff]));
    let hash = octets.fold(OFFSET, |hash, octet| {
        (hash ^ u64::from(octet)).wrapping_mul(PRIME)
    });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_that_of_prometheus() {
        // The empty set has the offset basis; so has the library of Prometheus.
        assert_eq!(fingerprint(&BTreeMap::new()), "cbf29ce484222325");
        // Of `a` FNV-1a of 64 bits is af63dc4c8601ec8c; the separators and `b` follow.
        let by_hand = [0xff, b'b', 0xff]
            .into_iter()
            .fold(0xaf63_dc4c_8601_ec8c, |hash: u64, octet: u8| {
                (hash ^ u64::from(octet)).wrapping_mul(0x0000_0100_0000_01b3)
            });
        let labels = BTreeMap::from([("a", "b".to_owned())]);
        assert_eq!(fingerprint(&labels), format!("{by_hand:016x}"));
    }
}
