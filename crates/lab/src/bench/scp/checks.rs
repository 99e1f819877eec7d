//! What is wanted of our SCP beside the other proxies.

use super::proxies::{HAPROXY, MODEL_C, MODEL_D, NGHTTPX};
use crate::bench::contest::{COMPARED, Section};
use crate::run::figure;
use ::report::Check;

const HALF: Option<f64> = Some(0.50);

pub(super) fn checks(section: &Section) -> Vec<Check> {
    let of = |name: &str, share| section.row(name, share);
    let title = &section.title;
    let compare = |what: &str, pair, bar| section.compare(format!("{title}: {what}"), pair, bar);
    let mut checks = vec![
        compare("processor time of Model C by nghttpx's", (MODEL_C, NGHTTPX), 1.0),
        compare("processor time of Model C by HAProxy's", (MODEL_C, HAPROXY), 1.0),
        section.compare_own(
            format!("{title}: processor time of Model D by Model C's"),
            (MODEL_D, MODEL_C),
            1.1,
        ),
    ];
    let failed = of(MODEL_C, HALF).map_or(0, |row| row.failed);
    checks.push(Check::new(
        format!("{title}: requests of Model C without a right answer at 50 %"),
        "none",
        failed.to_string(),
        failed == 0,
    ));
    let refused = COMPARED
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
