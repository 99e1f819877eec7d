//! Alerts: when an operator must look at a metric.

use super::declaration::Kind;
use crate::severity::Severity;

/// When an operator must look at a metric; stands on its declaration. Rules of a monitoring system are generated from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alert {
    /// The condition.
    pub when: When,
    /// How long it must hold, in minutes.
    pub minutes: u32,
    /// How bad it is.
    pub severity: Severity,
    /// What to do: the paragraph of the runbook, from a verb on.
    pub advice: &'static str,
}

/// The condition of an alert. Rates are those of five minutes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// A gauge is above a value.
    Above(f64),
    /// A gauge is below a value.
    Below(f64),
    /// A counter has grown within five minutes.
    Occurs,
    /// A gauge has had another value more often than this within half an hour.
    ChangesAbove(u32),
    /// More than a share of what a counter counts has a label that begins with a text: `5` for answers with status 5xx.
    ShareAbove {
        /// The label.
        label: &'static str,
        /// What its values begin with.
        begins: &'static str,
        /// The share, from 0 to 1.
        share: f64,
    },
    /// A counter grows by more than a share of what another one does.
    PartAbove {
        /// The other counter.
        of: &'static str,
        /// The share, from 0 to 1.
        share: f64,
    },
    /// One value of a histogram in a hundred is above this one, in the unit of its name.
    QuantileAbove(f64),
}

impl Alert {
    /// An alert of this severity.
    #[must_use]
    pub const fn new(severity: Severity, when: When, minutes: u32, advice: &'static str) -> Self {
        Self {
            when,
            minutes,
            severity,
            advice,
        }
    }

    /// Something is impaired that service does not depend on yet.
    #[must_use]
    pub const fn minor(when: When, minutes: u32, advice: &'static str) -> Self {
        Self::new(Severity::Minor, when, minutes, advice)
    }

    /// Service is impaired.
    #[must_use]
    pub const fn major(when: When, minutes: u32, advice: &'static str) -> Self {
        Self::new(Severity::Major, when, minutes, advice)
    }

    /// What is wrong with an alert on a metric of this kind.
    pub(super) fn fault(&self, kind: Kind, labels: &[&str]) -> Option<&'static str> {
        let fits = match self.when {
            When::Above(_) | When::Below(_) | When::ChangesAbove(_) => kind == Kind::Gauge,
            When::Occurs | When::PartAbove { .. } => kind == Kind::Counter,
            When::ShareAbove { label, .. } => kind == Kind::Counter && labels.contains(&label),
            When::QuantileAbove(_) => matches!(kind, Kind::Histogram(_)),
        };
        let share = match self.when {
            When::ShareAbove { share, .. } | When::PartAbove { share, .. } => share,
            _ => 0.5,
        };
        // An increase is seen for five minutes, so a condition that must hold longer never holds for a single one.
        let unseen = self.when == When::Occurs && self.minutes >= 5;
        match () {
            () if !fits => Some("has an alert that does not fit its kind or its labels"),
            () if !(share > 0.0 && share < 1.0) => {
                Some("has an alert on a share that is not between 0 and 1")
            }
            () if unseen => Some("has an alert on an occurrence that must hold for five minutes or longer"),
            () if self.advice.len() < 10 || !self.advice.ends_with('.') => {
                Some("has an alert without advice: a sentence of what to do")
            }
            () => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Buckets, Declaration, lint};

    #[test]
    fn an_alert_must_fit_its_metric() {
        let advice = "Do what helps.";
        let share = |label, share| When::ShareAbove {
            label,
            begins: "5",
            share,
        };
        let time = Kind::Histogram(Buckets::SECONDS);
        let cases = [
            (Kind::Gauge, Alert::minor(When::Above(1.0), 5, advice), ""),
            (Kind::Counter, Alert::minor(When::Above(1.0), 5, advice), "kind"),
            (Kind::Gauge, Alert::minor(When::Occurs, 0, advice), "kind"),
            (Kind::Counter, Alert::minor(When::Occurs, 0, advice), ""),
            (Kind::Counter, Alert::minor(When::Occurs, 5, advice), "occurrence"),
            (Kind::Counter, Alert::major(share("status", 0.1), 5, advice), ""),
            (
                Kind::Counter,
                Alert::major(share("state", 0.1), 5, advice),
                "labels",
            ),
            (
                Kind::Counter,
                Alert::major(share("status", 1.0), 5, advice),
                "share",
            ),
            (
                Kind::Counter,
                Alert::major(When::QuantileAbove(1.0), 5, advice),
                "kind",
            ),
            (time, Alert::major(When::QuantileAbove(1.0), 5, advice), ""),
            (time, Alert::major(When::QuantileAbove(1.0), 5, ""), "advice"),
        ];
        for (kind, alert, wrong) in cases {
            let name = match kind {
                Kind::Counter => "signalbox_test_requests_total",
                Kind::Gauge => "signalbox_test_level",
                Kind::Histogram(_) => "signalbox_test_request_seconds",
            };
            let found = lint(&[Declaration {
                name,
                kind,
                help: "What it is.",
                labels: &["status"],
                alert: Some(alert),
            }])
            .join("");
            assert_eq!(found.is_empty(), wrong.is_empty(), "{alert:?}: {found}");
            assert!(found.contains(wrong), "{alert:?}: {found}");
        }
    }
}
