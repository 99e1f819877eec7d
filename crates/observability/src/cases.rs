//! Tests of the alerts for `promtool test rules`: each fires with some series, and rests with others.

use serde_json::{Value, json};

use crate::alerts::{AlertRule, INSTANCE, Sample};
use crate::rules::HEAD;

/// Minutes that an alert gets beside those that its condition must hold, so that a rate has the five that it looks back.
const SETTLING: u32 = 7;
/// The same for what looks back half an hour.
const LONG_SETTLING: u32 = 32;

/// The file of tests: one in which all alerts fire, one in which all rest. Each has an instance of its own, so that no alert
/// sees the series of another; a test for each would evaluate all rules again and again.
pub(crate) fn cases(alerts: &[AlertRule]) -> String {
    let file = json!({
        "rule_files": ["rules/recording.yaml", "rules/alerts.yaml"],
        "evaluation_interval": "1m",
        "tests": [test(alerts, true), test(alerts, false)],
    });
    HEAD.to_owned() + &settings::to_yaml(&file)
}

fn test(alerts: &[AlertRule], fires: bool) -> Value {
    let last = alerts.iter().map(minutes).max().unwrap_or_default();
    let series = alerts.iter().flat_map(|alert| {
        let samples = if fires { &alert.fires } else { &alert.rests };
        samples.iter().map(move |sample| {
            let Sample { series, first, step } = sample;
            let series = series.replace(INSTANCE, &alert.name);
            json!({ "series": series, "values": format!("{first}+{step}x{last}") })
        })
    });
    json!({
        "interval": "1m",
        "input_series": series.collect::<Vec<_>>(),
        "promql_expr_test": alerts.iter().map(|alert| expected(alert, fires)).collect::<Vec<_>>(),
    })
}

/// When the alert is checked.
fn minutes(alert: &AlertRule) -> u32 {
    let looks_far_back = alert.expression.contains("[30m]");
    alert.minutes + if looks_far_back { LONG_SETTLING } else { SETTLING }
}

fn expected(alert: &AlertRule, fires: bool) -> Value {
    let name = &alert.name;
    let selected = format!("alertname=\"{name}\",instance=\"{name}\"");
    // One that rests is not pending either.
    let (expr, samples) = match fires {
        true => (
            format!("count(ALERTS{{{selected},alertstate=\"firing\"}})"),
            json!([{ "labels": "{}", "value": 1 }]),
        ),
        false => (format!("count(ALERTS{{{selected}}})"), json!([])),
    };
    json!({ "expr": expr, "eval_time": format!("{}m", minutes(alert)), "exp_samples": samples })
}
