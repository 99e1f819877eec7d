//! The dashboards: one for each function, one for the whole core. Every metric is in one.

use telemetry::metrics::{Kind, Signal, Unit};
use telemetry::{Declaration, When};

use crate::alerts::{JOBS, words};
use crate::dashboard::{Dashboard, Panel, Query, Show};
use crate::{Pack, Section};

/// What the variables of a dashboard choose.
const CHOSEN: &str = "job=~\"$job\",instance=~\"$instance\"";
/// Lines of a panel that shows several metrics.
const MOST: usize = 8;

/// The dashboard of a function: its metrics by signal.
pub(crate) fn function(section: &Section) -> String {
    let mut dashboard = Dashboard::default();
    for signal in Signal::ALL {
        let of_signal = section.metrics.iter().filter(|one| one.signal() == signal);
        let metrics: Vec<&Declaration> = of_signal.collect();
        if metrics.is_empty() {
            continue;
        }
        dashboard.row(match signal {
            Signal::Rate => "Rate",
            Signal::Errors => "Errors",
            Signal::Duration => "Duration",
            Signal::Saturation => "Saturation and state",
        });
        panels(&metrics).iter().for_each(|panel| dashboard.add(panel));
    }
    let series = format!("{{__name__=~\"signalbox_{}_.+\"}}", section.name);
    let uid = format!("signalbox-{}", section.name);
    dashboard.finish(&uid, &format!("Signalbox {}", section.title), &series)
}

/// The dashboard of the whole core: a summary of the functions, then what all have in common.
pub(crate) fn core(pack: &Pack) -> String {
    let mut dashboard = Dashboard::default();
    dashboard.row("Overview");
    overview(pack).iter().for_each(|panel| dashboard.add(panel));
    for section in &pack.common {
        dashboard.row(section.title);
        let metrics: Vec<&Declaration> = section.metrics.iter().collect();
        panels(&metrics).iter().for_each(|panel| dashboard.add(panel));
    }
    dashboard.finish("signalbox-core", "Signalbox core", "signalbox_alarm_active")
}

fn overview(pack: &Pack) -> Vec<Panel> {
    let number = |title: &str, description: &str, expression: String, legend: &str| Panel {
        title: title.to_owned(),
        description: description.to_owned(),
        show: Show::Numbers,
        unit: "short",
        queries: vec![Query {
            expression,
            legend: legend.to_owned(),
        }],
    };
    let mut panels = vec![
        number(
            "Functions that answer",
            "Admin endpoints that Prometheus can scrape.",
            format!("sum(up{{job=~\"{JOBS}\"}})"),
            "",
        ),
        number(
            "Active alarms",
            "By severity.",
            format!("sum by (severity) (signalbox_alarm_active{{{CHOSEN}}})"),
            "{{severity}}",
        ),
    ];
    let lines = |title: &str, description: &str, unit, each: &dyn Fn(&Section) -> Option<String>| {
        let queries = pack.functions.iter().filter_map(|section| {
            let legend = section.title.to_owned();
            each(section).map(|expression| Query { expression, legend })
        });
        Panel {
            title: title.to_owned(),
            description: description.to_owned(),
            show: Show::Lines,
            unit,
            queries: queries.collect(),
        }
    };
    panels.push(lines(
        "Requests by function",
        "Requests, messages or connections a second.",
        "ops",
        &|section| {
            Some(format!(
                "sum(rate({}{{{CHOSEN}}}[$__rate_interval]))",
                main(section)?.name
            ))
        },
    ));
    panels.push(lines(
        "Errors by function",
        "Share of answers that report a failure of the function.",
        "percentunit",
        &|section| section.metrics.iter().find_map(errors),
    ));
    panels.push(lines(
        "Time to the answer by function",
        "The 99th percentile.",
        "s",
        &|section| {
            let time = section
                .metrics
                .iter()
                .find(|one| one.name.ends_with("_request_seconds"));
            let time = time.or_else(|| {
                section
                    .metrics
                    .iter()
                    .find(|one| one.signal() == Signal::Duration)
            })?;
            matches!(time.kind, Kind::Histogram(_)).then(|| quantile("0.99", time.name, &[]))
        },
    ));
    panels.push(Panel {
        title: "Alarms".to_owned(),
        description: "Active alarms with number, name, severity and subject.".to_owned(),
        show: Show::Table,
        unit: "short",
        queries: vec![Query {
            expression: format!("signalbox_alarm_details{{{CHOSEN}}}"),
            legend: String::new(),
        }],
    });
    panels
}

/// The share of a counter that its alert looks at.
fn errors(metric: &Declaration) -> Option<String> {
    let Some(When::ShareAbove { label, begins, .. }) = metric.alert.map(|alert| alert.when) else {
        return None;
    };
    let name = metric.name;
    let all = format!("sum(rate({name}{{{CHOSEN}}}[$__rate_interval]))");
    let some = format!("sum(rate({name}{{{CHOSEN},{label}=~\"{begins}.*\"}}[$__rate_interval]))");
    // Without a failure the share is 0, and not absent.
    Some(format!("({some} or {all} * 0) / {all}"))
}

/// The counter of what a function is there for: answers by status, requests, or the first of its counters.
fn main(section: &Section) -> Option<&Declaration> {
    let named = |end: &str| {
        let name = format!("signalbox_{}_{end}_total", section.name);
        section.metrics.iter().find(move |one| one.name == name)
    };
    let known = named("responses").or_else(|| named("requests"));
    known.or_else(|| section.metrics.iter().find(|one| one.signal() == Signal::Rate))
}

/// Panels of metrics: one each for those with labels and for histograms, one for each subject of the others.
fn panels(metrics: &[&Declaration]) -> Vec<Panel> {
    let is_simple = |one: &&&Declaration| one.labels.is_empty() && !matches!(one.kind, Kind::Histogram(_));
    let (simple, own): (Vec<&Declaration>, Vec<&Declaration>) = metrics.iter().partition(is_simple);
    let mut all: Vec<Panel> = own.into_iter().map(panel).collect();
    // Metrics about one subject begin with the same word. What stands alone goes together by unit.
    let mut groups: Vec<(String, Vec<&Declaration>)> = Vec::new();
    for metric in &simple {
        let subject = |one: &Declaration| (first_word(one), unit(one));
        let alone = simple
            .iter()
            .filter(|other| subject(other) == subject(metric))
            .count()
            == 1;
        let key = match alone {
            true => format!("Others\n{}", unit(metric)),
            false => format!("{}\n{}", first_word(metric), unit(metric)),
        };
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(metric),
            None => groups.push((key, vec![metric])),
        }
    }
    for (key, group) in groups {
        let title = key.split('\n').next().unwrap_or_default();
        for some in group.chunks(MOST) {
            all.push(several(title, some));
        }
    }
    all
}

/// The word of a name that follows the function.
fn first_word(metric: &Declaration) -> &'static str {
    let mut words = metric.name.split('_').skip(2);
    words.next().unwrap_or_default()
}

/// A panel of one metric, by its labels.
fn panel(metric: &Declaration) -> Panel {
    // Workers are many and alike.
    let labels: Vec<&str> = metric
        .labels
        .iter()
        .copied()
        .filter(|label| *label != "worker")
        .collect();
    let shown: Vec<String> = labels.iter().map(|label| format!("{{{{{label}}}}}")).collect();
    let legend = shown.join(" ");
    let queries = match metric.kind {
        Kind::Histogram(_) => [("0.5", "p50"), ("0.99", "p99")]
            .map(|(share, percentile)| Query {
                expression: quantile(share, metric.name, &labels),
                legend: format!("{legend} {percentile}").trim_start().to_owned(),
            })
            .to_vec(),
        Kind::Counter | Kind::Gauge => vec![Query {
            expression: value(metric, &labels),
            legend: format!("{{{{instance}}}} {legend}").trim_end().to_owned(),
        }],
    };
    Panel {
        title: words(metric.name),
        description: metric.help.to_owned(),
        show: Show::Lines,
        unit: unit(metric),
        queries,
    }
}

/// A panel of several metrics without labels.
fn several(title: &str, metrics: &[&Declaration]) -> Panel {
    if let [one] = metrics {
        return panel(one);
    }
    let (first, rest) = title.split_at(title.len().min(1));
    let queries = metrics.iter().map(|metric| Query {
        expression: value(metric, &[]),
        legend: format!("{} {{{{instance}}}}", words(metric.name)),
    });
    let described = metrics
        .iter()
        .map(|metric| format!("- {}: {}", words(metric.name), metric.help));
    Panel {
        title: first.to_uppercase() + rest,
        description: described.collect::<Vec<_>>().join("\n"),
        show: Show::Lines,
        unit: metrics.first().map_or("short", |metric| unit(metric)),
        queries: queries.collect(),
    }
}

/// The value of a counter or gauge: rates of counters, sums over workers.
fn value(metric: &Declaration, labels: &[&str]) -> String {
    let by = std::iter::once("instance").chain(labels.iter().copied());
    let by = by.collect::<Vec<_>>().join(", ");
    let name = metric.name;
    match (metric.kind, metric.unit()) {
        (Kind::Counter, _) => format!("sum by ({by}) (rate({name}{{{CHOSEN}}}[$__rate_interval]))"),
        (_, Unit::Moment) if name.contains("start") => format!("time() - max by ({by}) ({name}{{{CHOSEN}}})"),
        (_, Unit::Moment) => format!("min by ({by}) ({name}{{{CHOSEN}}}) - time()"),
        // A sum of shares or levels over workers would mean nothing.
        (_, Unit::Ratio) => format!("max by ({by}) ({name}{{{CHOSEN}}})"),
        _ if name.ends_with("_level") => format!("max by ({by}) ({name}{{{CHOSEN}}})"),
        // The lowest priority is that of the worker that refuses most.
        _ if name.ends_with("_threshold") => format!("min by ({by}) ({name}{{{CHOSEN}}})"),
        _ => format!("sum by ({by}) ({name}{{{CHOSEN}}})"),
    }
}

fn quantile(share: &str, name: &str, labels: &[&str]) -> String {
    let by = std::iter::once("le").chain(labels.iter().copied());
    let by = by.collect::<Vec<_>>().join(", ");
    format!("histogram_quantile({share}, sum by ({by}) (rate({name}_bucket{{{CHOSEN}}}[$__rate_interval])))")
}

/// Grafana's name of the unit of what a panel shows.
fn unit(metric: &Declaration) -> &'static str {
    match (metric.kind, metric.unit()) {
        // Seconds a second.
        (Kind::Counter, Unit::Seconds) => "percentunit",
        (Kind::Counter, Unit::Bytes) => "Bps",
        (Kind::Counter, _) => "ops",
        (_, Unit::Seconds | Unit::Moment) => "s",
        (_, Unit::Bytes) => "bytes",
        (_, Unit::Ratio) => "percentunit",
        (_, Unit::Count) => "short",
    }
}
