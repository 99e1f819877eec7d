//! What is wanted of our SCP beside the other proxies.

use super::proxies::{HAPROXY, MODEL_C, MODEL_D, NGHTTPX};
use crate::bench::contest::Section;
use crate::run::figure;
use ::report::Check;

/// Shares at which Model C may not cost more than nghttpx; `None` is the closed loop.
const COMPARED: [Option<f64>; 4] = [None, Some(0.10), Some(0.25), Some(0.50)];
const HALF: Option<f64> = Some(0.50);

pub(super) fn checks(section: &Section) -> Vec<Check> {
    let of = |name: &str, share| section.row(name, share);
    let cpu = |name: &str, share| of(name, share).and_then(|row| row.cpu_us_per_request);
    let ratio = |a: &str, b: &str, share| Some(cpu(a, share)? / cpu(b, share)?);
    let title = &section.title;
    let ratios = |a: &str, b: &str, bar: f64, expected: &str, name: &str| {
        let found = COMPARED.map(|share| ratio(a, b, share));
        let text = found.map(|one| one.map_or_else(|| "collapsed".to_owned(), |one| format!("{one:.2}")));
        Check::new(
            format!("{title}: {name}, saturated and at 10, 25 and 50 %"),
            expected,
            text.join(", "),
            found.iter().all(|one| one.is_some_and(|one| one <= bar)),
        )
    };
    let mut checks = vec![
        ratios(
            MODEL_C,
            NGHTTPX,
            1.0,
            "at most 1.00 each",
            "processor time of Model C by nghttpx's",
        ),
        ratios(
            MODEL_C,
            HAPROXY,
            1.0,
            "at most 1.00 each",
            "processor time of Model C by HAProxy's",
        ),
        ratios(
            MODEL_D,
            MODEL_C,
            1.1,
            "at most 1.10 each",
            "processor time of Model D by Model C's",
        ),
    ];
    let failed = of(MODEL_C, HALF).map_or(0, |row| row.failed);
    checks.push(Check::new(
        format!("{title}: requests of Model C without a right answer at 50 %"),
        "none",
        failed.to_string(),
        failed == 0,
    ));
    let refused = [None, Some(0.10), Some(0.25), HALF]
        .iter()
        .flat_map(|share| [MODEL_C, MODEL_D].map(|name| of(name, *share).map_or(0, |row| row.refused)))
        .sum::<u64>();
    checks.push(Check::new(
        format!("{title}: requests that the SCP refuses, saturated and up to 50 %"),
        "none",
        refused.to_string(),
        refused == 0,
    ));
    let added = |name: &str| of(name, HALF).and_then(|row| row.added_p99_ms);
    let limit = added(NGHTTPX).unwrap_or_default().max(1.0);
    checks.push(Check::new(
        format!("{title}: p99 that Model C adds at 50 %"),
        "at most 1 ms, or what nghttpx adds",
        added(MODEL_C).map_or_else(
            || "collapsed".to_owned(),
            |ms| format!("{ms:.2} ms, limit {limit:.2} ms"),
        ),
        added(MODEL_C).is_some_and(|ms| ms <= limit),
    ));
    for burst in section
        .bursts
        .iter()
        .filter(|burst| [MODEL_C, MODEL_D].contains(&&*burst.name))
    {
        checks.push(Check::new(
            format!("{title}: {} after a burst as before", burst.name),
            "within 1 s",
            burst.recovered_s.map_or_else(
                || "not at all".to_owned(),
                |seconds| format!("{} s", figure(seconds)),
            ),
            burst.held_before && burst.recovered_s.is_some_and(|seconds| seconds <= 1.0),
        ));
    }
    checks
}
