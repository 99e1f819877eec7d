//! What an operator's Prometheus and Grafana need, generated from the declarations of metrics and alarms: rules, their
//! tests, dashboards and the runbook. Nothing here runs in a function.
//!
//! An alert exists because a declaration has one ([`telemetry::Alert`]) or because there is an alarm
//! ([`telemetry::AlarmKind`]). [`AlertRule`] is what both become; rules, tests and runbook are made from it, so that no
//! alert can lack one of them.

mod alerts;
mod cases;
mod dashboard;
mod dashboards;
mod recorded;
mod rules;
mod runbook;

use telemetry::{AlarmKind, Declaration};

pub use alerts::{AlertRule, Sample};

/// A function, or a part that all functions have: its metrics and alarms.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its short name: `nrf`, `store`.
    pub name: &'static str,
    /// Its name in titles: `NRF`, `Stores`.
    pub title: &'static str,
    /// Every metric of its own.
    pub metrics: Vec<Declaration>,
    /// Every alarm of its own.
    pub alarms: Vec<AlarmKind>,
}

/// Everything that a process can show.
#[derive(Clone, Debug)]
pub struct Pack {
    /// What all functions have in common.
    pub common: Vec<Section>,
    /// The functions.
    pub functions: Vec<Section>,
    /// Where the pages of the documentation are, without a slash at the end; links to runbooks begin with it.
    pub docs: String,
}

/// A file of the pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path below the directory of the pack.
    pub path: String,
    /// Its text.
    pub text: String,
}

impl Pack {
    /// All files.
    #[must_use]
    pub fn files(&self) -> Vec<File> {
        let alerts = self.alerts();
        let mut files = vec![
            File::new("rules/recording.yaml", rules::recording(self)),
            File::new("rules/alerts.yaml", rules::alerting(&alerts)),
            File::new("tests.yaml", cases::cases(&alerts)),
            File::new("runbook.md", runbook::page(&alerts)),
            File::new("dashboards/signalbox-core.json", dashboards::core(self)),
        ];
        files.extend(self.functions.iter().map(|function| {
            let path = format!("dashboards/signalbox-{}.json", function.name);
            File::new(&path, dashboards::function(function))
        }));
        files
    }

    /// Every alert, in the order of the sections; an alarm that two functions raise is one.
    #[must_use]
    pub fn alerts(&self) -> Vec<AlertRule> {
        let mut all: Vec<AlertRule> = vec![AlertRule::unreachable(&self.docs)];
        for section in self.sections() {
            let metrics = section.metrics.iter();
            all.extend(metrics.filter_map(|metric| AlertRule::of_metric(section, metric, &self.docs)));
            for alarm in &section.alarms {
                let rule = AlertRule::of_alarm(section, alarm, &self.docs);
                if all.iter().all(|known| known.name != rule.name) {
                    all.push(rule);
                }
            }
        }
        all
    }

    /// What all functions have in common, then the functions.
    fn sections(&self) -> impl Iterator<Item = &Section> {
        self.common.iter().chain(&self.functions)
    }
}

impl File {
    fn new(path: &str, text: String) -> Self {
        Self {
            path: path.to_owned(),
            text,
        }
    }
}
