//! The limits of a session: those of the subscriber's policy data, then those of the settings.

use pcc::usage::{Accounts, network};
use serde_json::{Map, Value, json};
use time::OffsetDateTime;

use crate::association::Association;
use crate::config::{Usage, UsageLevel, UsageLimit};

/// The accounts of a session as its limits open them, and which of them are the UDR's.
pub(super) fn of_session(
    association: &Association,
    data: &Value,
    settings: &Usage,
    now: OffsetDateTime,
) -> (Accounts, Vec<String>) {
    let dnn = association.text_of("dnn").unwrap_or_default();
    let slice = association.context.get("sliceInfo").map(slice_key);
    let mut accounts = Accounts::of_subscriber(data, slice.as_deref(), dnn, now);
    let of_udr = accounts.all().iter().map(|account| account.id().to_owned());
    let of_udr: Vec<String> = of_udr.collect();
    if !settings.limits.is_empty() {
        let own = Accounts::of_subscriber(&document(settings, dnn), None, dnn, now);
        for account in own.all() {
            if accounts.get(account.id()).is_none() {
                accounts.put(account.clone());
            }
        }
    }
    (accounts, of_udr)
}

/// The key of a slice in maps (TS 29.571 §5.4.4.2).
fn slice_key(slice: &Value) -> String {
    let sst = slice.get("sst").and_then(Value::as_u64).unwrap_or_default();
    match slice.get("sd").and_then(Value::as_str) {
        Some(sd) => format!("{sst}-{sd}"),
        None => sst.to_string(),
    }
}

/// The limits of the settings for a DNN as `SmPolicyData`.
fn document(settings: &Usage, dnn: &str) -> Value {
    let is_of = |limit: &UsageLimit| {
        limit.dnns.is_empty()
            || limit
                .dnns
                .iter()
                .any(|own| network(own).eq_ignore_ascii_case(network(dnn)))
    };
    let (mut limits, mut references) = (Map::new(), Map::new());
    for (id, limit) in settings.limits.iter().filter(|(_, limit)| is_of(limit)) {
        limits.insert(id.clone(), data_limit(id, limit));
        references.insert(id.clone(), json!({"limitId": id, "monkey": limit.keys}));
    }
    json!({
        "umDataLimits": limits,
        "smPolicySnssaiData": {"0": {"smPolicyDnnData": {dnn: {"dnn": dnn, "refUmDataLimitIds": references}}}},
    })
}

/// `UsageMonDataLimit` (TS 29.519 §5.4.2.7).
fn data_limit(id: &str, limit: &UsageLimit) -> Value {
    let level = match limit.level {
        UsageLevel::Session => "SESSION_LEVEL",
        UsageLevel::Service => "SERVICE_LEVEL",
    };
    let mut usage = Map::new();
    for (name, volume) in [
        ("totalVolume", limit.total_volume),
        ("uplinkVolume", limit.uplink_volume),
        ("downlinkVolume", limit.downlink_volume),
    ] {
        if let Some(volume) = volume {
            usage.insert(name.to_owned(), volume.0.into());
        }
    }
    if let Some(duration) = limit.duration {
        usage.insert("duration".to_owned(), duration.as_secs().into());
    }
    let mut data = json!({"limitId": id, "umLevel": level, "usageLimit": usage});
    if let Some(reset) = limit.reset {
        data["resetPeriod"] = json!({"period": reset.name()});
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::association::Kind;
    use settings::{ByteSize, Period};

    #[test]
    fn limits_of_policy_data_go_before_those_of_the_settings() {
        let limit = |volume: u64, dnns: &[&str]| UsageLimit {
            total_volume: Some(ByteSize::kib(volume)),
            duration: Some(Period::from_secs(60)),
            dnns: dnns.iter().map(|dnn| (*dnn).to_owned()).collect(),
            ..UsageLimit::default()
        };
        let settings = Usage {
            limits: [
                ("month".to_owned(), limit(1, &[])),
                ("fair".to_owned(), limit(2, &["Internet"])),
                ("ims".to_owned(), limit(3, &["ims"])),
            ]
            .into(),
            ..Usage::default()
        };
        let data = json!({"umDataLimits": {"month": {"limitId": "month", "usageLimit": {"totalVolume": 70},
            "scopes": {"1-00000A": {"snssai": {"sst": 1, "sd": "00000A"}, "dnn": ["internet"]}}}}});
        let context = json!({"supi": "imsi-1", "dnn": "internet", "sliceInfo": {"sst": 1, "sd": "00000a"}});
        let association = Association::new(Kind::Sm, context);
        let (accounts, at_udr) = of_session(&association, &data, &settings, OffsetDateTime::now_utc());
        let left = |id: &str| accounts.get(id).and_then(|account| account.left().total);
        assert_eq!(
            (left("month"), left("fair"), left("ims")),
            (Some(70), Some(2048), None)
        );
        assert_eq!(at_udr, ["month"]);
    }
}
