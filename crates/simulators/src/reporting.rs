//! Load and overload that producers report in their answers (TS 29.500 §6.3, §6.4): each has a new value at an
//! interval, and reports it in one answer.

use std::time::Duration;

use ahash::AHashMap;
use rand::Rng;
use rand::rngs::SmallRng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::Period;
use time::OffsetDateTime;
use time::macros::format_description;

use crate::network::instance_of;
use callmodel::scp::{Lci, Oci};

/// Settings of the reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct ReportingSettings {
    /// Load of every producer that has an address of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lci: Option<Lci>,
    /// Overload of some of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oci: Option<Oci>,
    /// Their numbers.
    pub overloaded: Vec<u32>,
}

/// The last report of a producer.
#[derive(Debug, Default)]
struct Said {
    load: u8,
    load_due: Duration,
    reduces: bool,
    overload_due: Duration,
}

/// The reports of all producers.
#[derive(Debug)]
pub(super) struct Reporting {
    settings: ReportingSettings,
    said: AHashMap<u32, Said>,
}

/// Headers of an answer.
pub(super) type Headers = Vec<(&'static str, String)>;

impl Reporting {
    /// `None` where no producer reports.
    pub(super) fn new(settings: &ReportingSettings) -> Option<Self> {
        (settings.lci.is_some() || settings.oci.is_some()).then(|| Self {
            settings: settings.clone(),
            said: AHashMap::new(),
        })
    }

    /// The report of a producer in an answer at this time.
    pub(super) fn say(&mut self, number: u32, now: Duration, random: &mut SmallRng) -> Headers {
        let mut headers = Headers::new();
        let Self { settings, said } = self;
        let said = said.entry(number).or_insert_with(|| Said {
            load: random.random_range(10..50),
            // The producers start at different times.
            load_due: part(settings.lci.map(|lci| lci.every), random),
            overload_due: match settings.overloaded.contains(&number) {
                true => part(settings.oci.map(|oci| oci.every), random),
                false => Duration::MAX,
            },
            reduces: false,
        });
        if let Some(lci) = settings.lci.filter(|_| now >= said.load_due) {
            said.load_due = now + lci.every.duration();
            let by = lci.change + random.random_range(0..10);
            said.load = if said.load + by <= 90 { said.load + by } else { 10 };
            let value = format!(
                "Timestamp: \"{}\"; Load-Metric: {}%; NF-Instance: {}",
                date(),
                said.load,
                instance_of(number)
            );
            headers.push(("3gpp-sbi-lci", value));
        }
        if let Some(oci) = settings.oci.filter(|_| now >= said.overload_due) {
            said.overload_due = now + oci.every.duration();
            said.reduces = !said.reduces;
            let value = format!(
                "Timestamp: \"{}\"; Period-of-Validity: {}s; Overload-Reduction-Metric: {}%; NF-Instance: {}",
                date(),
                oci.every.as_secs().max(1),
                if said.reduces { oci.reduction } else { 0 },
                instance_of(number)
            );
            headers.push(("3gpp-sbi-oci", value));
        }
        headers
    }
}

/// Some part of a period.
fn part(period: Option<Period>, random: &mut SmallRng) -> Duration {
    period.map_or(Duration::ZERO, |period| {
        period.duration().mul_f64(random.random::<f64>())
    })
}

/// Now, as HTTP dates are written (RFC 9110 §5.6.7), which is how both headers have it.
fn date() -> String {
    let format = format_description!(
        "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
    );
    OffsetDateTime::now_utc().format(&format).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn each_producer_reports_a_new_value_at_its_interval() {
        let mut random = SmallRng::seed_from_u64(1);
        let mut reporting = Reporting::new(&ReportingSettings {
            lci: Some(Lci {
                every: Period::from_secs(5),
                change: 5,
            }),
            oci: Some(Oci {
                every: Period::from_secs(15),
                instances: 1,
                reduction: 10,
            }),
            overloaded: vec![7],
        })
        .unwrap();
        let mut count = [0; 2];
        let mut loads = Vec::new();
        for tenth in 0..600 {
            for number in [7, 8] {
                for (name, value) in reporting.say(number, Duration::from_millis(tenth * 100), &mut random) {
                    count[usize::from(name == "3gpp-sbi-oci")] += 1;
                    assert!(value.ends_with(&instance_of(number)), "{value}");
                    if number == 8 {
                        let load = value.split("Load-Metric: ").nth(1).unwrap();
                        loads.push(load.split('%').next().unwrap().parse::<i32>().unwrap());
                    }
                }
            }
        }
        assert!((22..=26).contains(&count[0]), "{count:?}");
        assert!((3..=5).contains(&count[1]), "{count:?}");
        assert!(
            loads.windows(2).all(|pair| (pair[1] - pair[0]).abs() >= 5),
            "{loads:?}"
        );
        assert!(Reporting::new(&ReportingSettings::default()).is_none());
    }
}
