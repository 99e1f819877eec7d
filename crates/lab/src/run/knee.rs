//! The search for the highest rate: which step failed, and what limited it.

use ::report::Step;
use callmodel::Bounds;
use loadgen::FailureKind;

use super::figure;
use super::rig::Place;
use super::window::{DISTURBED, Window};

/// A generator thread that uses more of its core than this is at its limit.
pub(super) const BUSY: f64 = 0.9;
/// A function that uses more of its cores than this is at its limit.
const FULL: f64 = 0.9;

/// Why a window is beyond the knee; `None` when it is not.
pub(super) fn beyond_knee(window: &Window, bounds: &Bounds) -> Option<String> {
    let total = window.record.total();
    let success = total.succeeded as f64 / (total.offered as f64).max(1.0);
    let p99 = total.latency.value_at_quantile(0.99) as f64 / 1000.0;
    let bound = bounds.knee_p99.duration().as_secs_f64() * 1000.0;
    if success < bounds.knee_success.fraction() {
        let most = FailureKind::ALL
            .into_iter()
            .max_by_key(|kind| total.failed[*kind as usize]);
        let most = most.map_or("", FailureKind::name);
        return Some(format!("success {:.3}% (mostly {most})", success * 100.0));
    }
    if p99 > bound {
        return Some(format!("p99 {} ms over {} ms", figure(p99), figure(bound)));
    }
    let offered = total.offered as f64 / window.seconds();
    if offered < least_offered(window.tps, window.seconds()) {
        return Some(format!("the generator offered only {} TPS", figure(offered)));
    }
    None
}

/// The least rate that a generator on time offers: a Poisson schedule of n arrivals varies by its root.
fn least_offered(tps: f64, seconds: f64) -> f64 {
    tps * 0.97 - 4.0 * (tps / seconds.max(1e-3)).sqrt()
}

/// A step of the search as data.
pub(super) fn step(window: &Window, place: &Place, failed: Option<String>) -> Step {
    let total = window.record.total();
    Step {
        tps: window.tps,
        achieved_tps: total.succeeded as f64 / window.seconds(),
        success_ratio: total.succeeded as f64 / (total.offered as f64).max(1.0),
        p99_ms: total.latency.value_at_quantile(0.99) as f64 / 1000.0,
        cpu_cores: window.cores(),
        other_cores: window.others(place),
        generator_busy: window.generator_busy(),
        failed,
    }
}

/// A step of the search for people.
pub(super) fn step_in_words(step: &Step) -> String {
    let held = if step.failed.is_none() { "held  " } else { "failed" };
    let mut words = format!(
        "{:>9} TPS  {held}  p99 {} ms, function {:.2} cores",
        figure(step.tps),
        figure(step.p99_ms),
        step.cpu_cores
    );
    if step.other_cores > DISTURBED {
        words += &format!(" (others {:.2})", step.other_cores);
    }
    words += &format!(", generator {:.0}% busy", step.generator_busy * 100.0);
    if let Some(why) = &step.failed {
        words += &format!(" ({why})");
    }
    words
}

/// What kept the search from a higher rate, judged by the lowest step that failed.
pub(super) fn limit(steps: &[Step], place: &Place, seen: bool) -> String {
    let failed = steps
        .iter()
        .filter(|s| s.failed.is_some())
        .min_by(|a, b| a.tps.total_cmp(&b.tps));
    let Some(step) = failed else {
        return "nothing: the search ended before a rate failed".to_owned();
    };
    let why = step.failed.clone().unwrap_or_default();
    let cores = place.function_cpus.len() as f64;
    if seen && cores > 0.0 && step.cpu_cores >= cores * FULL {
        return format!("function: its {cores} core(s) are full ({why})");
    }
    if seen && cores > 0.0 && step.cpu_cores + step.other_cores >= cores * FULL {
        return format!(
            "the machine: others took {:.2} of the function's {cores} core(s), which used {:.2} itself ({why})",
            step.other_cores, step.cpu_cores
        );
    }
    if step.generator_busy >= BUSY {
        return format!(
            "generator: {:.0}% of a core in use; the function may carry more ({why})",
            step.generator_busy * 100.0
        );
    }
    if seen && cores == 0.0 {
        return format!(
            "the machine: function and lab share its cores (function {:.2} cores; {why})",
            step.cpu_cores
        );
    }
    format!("function: {why}, with {:.2} of its cores in use", step.cpu_cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_arrivals_may_be_fewer_by_chance() {
        assert!(least_offered(1.0, 3.0) < 0.33);
        assert!((9_400.0..9_700.0).contains(&least_offered(10_000.0, 3.0)));
    }
}
