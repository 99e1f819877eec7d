//! Alerts: what the alert of a metric, and an alarm, become.

use telemetry::metrics::Unit;
use telemetry::{AlarmKind, Alert, Declaration, When};

use crate::Section;
use crate::recorded::{part, quantile, share};

const UNREACHABLE: &str = "Prometheus cannot scrape the admin endpoint of a function.";
/// The page of the alerts on metrics.
const RUNBOOK: &str = "deploy/observability/runbook.md";
/// Instance of the series of a test.
pub(crate) const INSTANCE: &str = "a:1";
/// Jobs of a Prometheus that scrape functions: their names have the word in them.
pub(crate) const JOBS: &str = ".*signalbox.*";

/// An alert as rules, tests and runbook need it.
#[derive(Clone, Debug, PartialEq)]
pub struct AlertRule {
    /// `SignalboxNRFClusterLag`.
    pub name: String,
    /// The section that it belongs to.
    pub section: &'static str,
    /// The value that is compared, and the comparison: `> 5`.
    pub expression: String,
    /// The condition in words.
    pub condition: String,
    /// How long it must hold, in minutes.
    pub minutes: u32,
    /// Its severity; none: that of the series, since an alarm can be raised with another than its usual one.
    pub severity: Option<&'static str>,
    /// What is the case, with the instance.
    pub summary: String,
    /// What that means.
    pub meaning: String,
    /// The same, with the value that is seen.
    pub description: String,
    /// What to do.
    pub advice: String,
    /// Where the runbook has it.
    pub link: String,
    /// Series with which it fires.
    pub fires: Vec<Sample>,
    /// Series with which it does not.
    pub rests: Vec<Sample>,
}

/// A series of a test: a value each minute.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Name and labels.
    pub series: String,
    /// Where it begins.
    pub first: f64,
    /// How much it grows a minute.
    pub step: f64,
}

impl AlertRule {
    /// A function does not answer the scrape: no metric of ours can say so.
    pub(crate) fn unreachable(docs: &str) -> Self {
        let up = |value| vec![sample("up", &[], value, 0.0)];
        Self {
            name: "SignalboxUnreachable".to_owned(),
            section: "process",
            expression: format!("up{{job=~\"{JOBS}\"}} == 0"),
            condition: "a scrape of an admin endpoint fails".to_owned(),
            minutes: 2,
            severity: Some("critical"),
            summary: "{{ $labels.instance }} does not answer".to_owned(),
            meaning: UNREACHABLE.to_owned(),
            description: UNREACHABLE.to_owned(),
            advice: "Check that the process runs and that its admin endpoint answers at `/livez`; one that Prometheus addresses by name needs the name in `admin.hosts`.".to_owned(),
            link: format!("{docs}/{RUNBOOK}#signalboxunreachable"),
            fires: up(0.0),
            rests: up(1.0),
        }
    }

    /// The alert of a metric; none where its declaration has none.
    pub(crate) fn of_metric(section: &Section, metric: &Declaration, docs: &str) -> Option<Self> {
        let alert = metric.alert.as_ref()?;
        let name = metric.name;
        let title = format!(
            "{}{}",
            words(name),
            match alert.when {
                When::ShareAbove { .. } => " failing",
                When::QuantileAbove(_) => " slow",
                When::ChangesAbove(_) => " changing",
                When::Below(_) => " low",
                When::Above(_) | When::Occurs | When::PartAbove { .. } => "",
            }
        );
        let rule = format!("Signalbox{}", camel(&title));
        let (fires, rests) = samples(metric, alert);
        let condition = condition(metric, alert);
        Some(Self {
            summary: format!("{title} at {{{{ $labels.instance }}}}"),
            meaning: metric.help.to_owned(),
            description: format!(
                "{} The alert: {condition}. Now: {{{{ $value | humanize }}}}.",
                metric.help
            ),
            section: section.name,
            expression: expression(metric, alert),
            condition,
            minutes: alert.minutes,
            severity: Some(alert.severity.as_str()),
            advice: alert.advice.to_owned(),
            link: format!("{docs}/{RUNBOOK}#{}", rule.to_lowercase()),
            name: rule,
            fires,
            rests,
        })
    }

    /// The alert that an alarm is active. It is hysteresis enough that an alarm is raised and cleared once.
    pub(crate) fn of_alarm(section: &Section, alarm: &AlarmKind, docs: &str) -> Self {
        use telemetry::Severity::{Critical, Info, Major, Minor};
        let number = alarm.number;
        let active = |number: u32| {
            let (number, severity) = (number.to_string(), alarm.severity.as_str());
            let labels = [
                ("number", number.as_str()),
                ("name", alarm.name),
                ("severity", severity),
                ("about", "a"),
            ];
            vec![sample("signalbox_alarm_details", &labels, 1.0, 0.0)]
        };
        Self {
            name: format!("Signalbox{}", camel(alarm.name)),
            section: section.name,
            expression: format!(
                "max by (job, instance, about, severity) (signalbox_alarm_details{{number=\"{number}\"}}) > 0"
            ),
            condition: format!("alarm {number} is active"),
            minutes: match alarm.severity {
                Critical | Major => 1,
                Minor | Info => 5,
            },
            severity: None,
            summary: format!(
                "{}: {{{{ $labels.about }}}} at {{{{ $labels.instance }}}}",
                alarm.name
            ),
            meaning: alarm.text.to_owned(),
            description: format!("Alarm {number}. {}", alarm.text),
            advice: alarm.advice.to_owned(),
            link: format!("{docs}/{}#alarm-{number}", telemetry::alarms::PAGE),
            fires: active(number),
            rests: active(number + 1),
        }
    }
}

fn expression(metric: &Declaration, alert: &Alert) -> String {
    let name = metric.name;
    match alert.when {
        When::Above(value) => format!("{name} > {value}"),
        When::Below(value) => format!("{name} < {value}"),
        When::Occurs => format!("increase({name}[5m]) > 0"),
        When::ChangesAbove(times) => format!("changes({name}[30m]) > {times}"),
        When::ShareAbove { share: above, .. } => format!("{} > {above}", share(name)),
        When::PartAbove { of, share } => format!("{} > {share}", part(name, of)),
        When::QuantileAbove(value) => format!("{} > {value}", quantile(name)),
    }
}

fn condition(metric: &Declaration, alert: &Alert) -> String {
    let unit = match metric.unit() {
        Unit::Seconds => " s",
        Unit::Bytes => " bytes",
        Unit::Moment | Unit::Ratio | Unit::Count => "",
    };
    let percent = |share: f64| format!("{}%", (share * 1000.0).round() / 10.0);
    let what = match alert.when {
        When::Above(value) => format!("above {value}{unit}"),
        When::Below(value) => format!("below {value}{unit}"),
        When::Occurs => "it has occurred within five minutes".to_owned(),
        When::ChangesAbove(times) => format!("it has changed more than {times} times within half an hour"),
        When::ShareAbove { label, begins, share } => {
            format!("{label} begins with {begins} for more than {}", percent(share))
        }
        When::PartAbove { of, share } => format!("more than {} of {of}", percent(share)),
        When::QuantileAbove(value) => format!("the 99th percentile is above {value}{unit}"),
    };
    match alert.minutes {
        0 => what,
        minutes => format!("{what}, for {minutes} min"),
    }
}

/// Series with which the alert fires, and those with which it does not, near the threshold on the other side.
fn samples(metric: &Declaration, alert: &Alert) -> (Vec<Sample>, Vec<Sample>) {
    let name = metric.name;
    // Every label of the declaration has a value, as in what is scraped.
    let plain: Vec<(&str, &str)> = metric.labels.iter().map(|label| (*label, "x")).collect();
    let one = |first, step| vec![sample(name, &plain, first, step)];
    match alert.when {
        When::Above(value) => (one(value + 1.0, 0.0), one(value, 0.0)),
        When::Below(value) => (one(value - 1.0, 0.0), one(value, 0.0)),
        When::Occurs => (one(0.0, 1.0), one(7.0, 0.0)),
        When::ChangesAbove(_) => (one(1.0, 1.0), one(1.0, 0.0)),
        When::ShareAbove { label, begins, share } => {
            let value = format!("{begins}00");
            let with = |value: &str, step| {
                let labels = plain.iter().map(|(name, other)| match *name == label {
                    true => (*name, value),
                    false => (*name, *other),
                });
                sample(name, &labels.collect::<Vec<_>>(), 0.0, step)
            };
            // Of 100 a minute, a half more than the share, and a half of it.
            let of = |bad: f64| vec![with(&value, bad), with("000", 100.0 - bad)];
            (of((share * 150.0).min(100.0)), of(share * 50.0))
        }
        When::PartAbove { of, share } => {
            let both = |step| vec![sample(name, &plain, 0.0, step), sample(of, &[], 0.0, 100.0)];
            (both(share * 150.0), both(share * 50.0))
        }
        When::QuantileAbove(value) => {
            let bucket = |le: &str, step| {
                let mut labels = plain.clone();
                labels.push(("le", le));
                sample(&format!("{name}_bucket"), &labels, 0.0, step)
            };
            let (below, above) = (value.to_string(), (value * 2.0).to_string());
            let of = |below_step| {
                vec![
                    bucket(&below, below_step),
                    bucket(&above, 100.0),
                    bucket("+Inf", 100.0),
                ]
            };
            (of(98.0), of(99.5))
        }
    }
}

fn sample(name: &str, labels: &[(&str, &str)], first: f64, step: f64) -> Sample {
    let mut series = format!("{name}{{instance=\"{INSTANCE}\",job=\"signalbox\"");
    for (label, value) in labels {
        series.push_str(&format!(",{label}=\"{value}\""));
    }
    series.push('}');
    Sample { series, first, step }
}

/// `NRFClusterLag` of `NRF cluster lag`.
fn camel(text: &str) -> String {
    let parts = text.split(|c: char| !c.is_ascii_alphanumeric());
    let parts = parts.filter(|part| !part.is_empty()).map(|part| {
        let (first, rest) = part.split_at(1);
        first.to_ascii_uppercase() + rest
    });
    parts.collect()
}

/// `NRF cluster lag` of `signalbox_nrf_cluster_lag_seconds`.
pub(crate) fn words(metric: &str) -> String {
    let name = metric.strip_prefix("signalbox_").unwrap_or(metric);
    let (function, rest) = name.split_once('_').unwrap_or((name, ""));
    let units = ["_seconds", "_bytes", "_ratio", "_total"];
    let rest = units
        .iter()
        .fold(rest, |rest, unit| rest.strip_suffix(unit).unwrap_or(rest));
    let function = match function {
        "nrf" | "scp" | "bsf" | "pcf" | "dsr" | "ipfe" | "stp" | "enum" | "dp" | "sbi" => {
            function.to_ascii_uppercase()
        }
        other => {
            let (first, rest) = other.split_at(other.len().min(1));
            first.to_ascii_uppercase() + rest
        }
    };
    format!("{function} {}", rest.replace('_', " "))
        .trim_end()
        .to_owned()
}
