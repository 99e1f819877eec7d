//! The checks that decide whether a run passed: the bounds of its model, and the counts that its answers imply.

use std::time::Duration;

use ::report::Check;

use super::figure;
use super::judge::Facts;
use super::window::Mark;

/// A generator that is later than this does not follow its schedule.
const LATE: Duration = Duration::from_millis(100);
/// The least share of the schedule that must be achieved.
const ACHIEVED: f64 = 0.99;

/// All checks of a run.
pub(super) fn checks(facts: &Facts<'_>) -> Vec<Check> {
    let window = facts.window;
    let bounds = &facts.found.model.bounds;
    let searched = facts.limited_by.is_some();
    let success_bound = if searched {
        bounds.knee_success
    } else {
        bounds.success
    };
    let p99_bound = if searched { bounds.knee_p99 } else { bounds.p99 };
    let total = window.record.total();
    let success = total.succeeded as f64 / (total.offered as f64).max(1.0);
    let p99 = total.latency.value_at_quantile(0.99) as f64 / 1000.0;
    let seconds = window.seconds();
    let offered = total.offered as f64 / seconds;
    let mut checks = Vec::new();
    if !facts.judgement.spares_bounds {
        checks.extend([
            Check::new(
                "success",
                format!("at least {success_bound}"),
                format!(
                    "{:.4}% ({} of {} failed)",
                    success * 100.0,
                    total.failures(),
                    total.offered
                ),
                success >= success_bound.fraction(),
            )
            .of_time_if(is_of_time(&total)),
            Check::new(
                "achieved rate",
                format!("at least {}% of what was offered", ACHIEVED * 100.0),
                format!("{} TPS", figure(total.succeeded as f64 / seconds)),
                total.succeeded as f64 >= total.offered as f64 * ACHIEVED,
            )
            .of_time(),
            Check::new(
                "latency",
                format!("p99 of all transactions up to {p99_bound}"),
                format!("{} ms", figure(p99)),
                p99 <= p99_bound.duration().as_secs_f64() * 1000.0,
            )
            .of_time(),
        ]);
    }
    checks.extend([
        Check::new(
            "offered rate",
            format!("{} TPS ± 1%", figure(window.tps)),
            format!("{} TPS", figure(offered)),
            // A Poisson schedule of n arrivals varies by its root.
            (offered / window.tps - 1.0).abs() < 0.01 + 4.0 / (window.tps * seconds).sqrt(),
        )
        .of_time(),
        Check::new(
            "generator on time",
            format!("never more than {} ms late", LATE.as_millis()),
            format!(
                "{} ms late at most",
                figure(window.lateness.as_secs_f64() * 1000.0)
            ),
            window.lateness <= LATE,
        )
        .of_time(),
    ]);
    checks.extend(outgoing(facts));
    checks.extend(facts.rig.probes.iter().map(|probe| probe()));
    checks.extend(facts.judgement.checks.iter().cloned());
    checks
}

/// Whether all failures are of time: no answer in time, a refusal by waiting time, a request that could not be sent. An
/// answer that is wrong, or a connection that is lost, is so on any machine.
pub(super) fn is_of_time(total: &loadgen::OperationRecord) -> bool {
    use loadgen::FailureKind::{Overflow, Refused, Timeout};
    total.failures_of(&[Timeout, Refused, Overflow]) == total.failures()
}

/// Requests of one kind that the function has sent to a simulator, up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sent {
    /// As many as the answers imply.
    expected: u64,
    received: u64,
    /// Those that were invalid for the simulator.
    invalid: u64,
}

impl Sent {
    /// Those of kind `index`, which the simulator `simulator` receives.
    fn of(mark: &Mark, index: usize, simulator: usize) -> Self {
        let stats = mark.simulators.get(simulator).map(|(stats, _)| stats);
        Self {
            expected: mark.expected.get(index).copied().unwrap_or(0),
            received: stats.map_or(0, |stats| stats.requests),
            invalid: stats.map_or(0, |stats| stats.bad_requests),
        }
    }

    /// Those after an earlier moment.
    fn since(self, earlier: Self) -> Self {
        Self {
            expected: self.expected.saturating_sub(earlier.expected),
            received: self.received.saturating_sub(earlier.received),
            invalid: self.invalid.saturating_sub(earlier.invalid),
        }
    }
}

/// Whether the function has sent its peers what the answers imply.
fn outgoing(facts: &Facts<'_>) -> Vec<Check> {
    // At a knee some requests fail half-way: their outgoing requests were sent without being expected.
    let slack = match facts.limited_by {
        Some(_) => 0.10,
        None => facts.found.model.bounds.outgoing.fraction(),
    };
    let mut checks = Vec::new();
    for (index, outgoing) in facts.rig.outgoing.iter().enumerate() {
        let of = |mark| Sent::of(mark, index, outgoing.simulator);
        let whole = of(facts.end);
        let counted = facts.baseline.map_or(whole, |baseline| whole.since(of(baseline)));
        let period = match facts.baseline {
            Some(_) => "since the search",
            None => "in the whole run",
        };
        checks.extend(sent_as_implied(outgoing.name, counted, slack, period));
        if whole.invalid > 0 {
            checks.push(Check::new(
                format!("{} well formed", outgoing.name),
                "every request made sense to the simulator",
                format!("{} did not", figure(whole.invalid as f64)),
                false,
            ));
        }
    }
    checks
}

/// The check of one kind of outgoing traffic; `None` where there is none.
fn sent_as_implied(name: &str, counted: Sent, slack: f64, period: &str) -> Option<Check> {
    let Sent {
        expected, received, ..
    } = counted;
    if expected == 0 && received == 0 {
        return None;
    }
    let slack = (expected as f64 * slack)
        .max(3.0 * (expected as f64).sqrt())
        .max(50.0);
    Some(Check::new(
        name,
        format!(
            "{} ± {} {period}, as the answers imply",
            figure(expected as f64),
            figure(slack)
        ),
        figure(received as f64),
        (received as f64 - expected as f64).abs() <= slack,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step of the search that failed has sent requests whose answers the generator did not await.
    #[test]
    fn leftovers_of_a_failed_step_do_not_fail_the_run() {
        let baseline = Sent {
            expected: 100_000,
            received: 114_700,
            invalid: 0,
        };
        let end = Sent {
            expected: 137_488,
            received: 152_248,
            invalid: 0,
        };
        let check = |counted| sent_as_implied("forwarded discoveries", counted, 0.10, "").unwrap();
        assert!(!check(end).pass);
        let since = check(end.since(baseline));
        assert!(since.pass, "{since:?}");
        // Too few or too many since then fail as before.
        let lost = Sent {
            received: baseline.received + 30_000,
            ..end
        };
        assert!(!check(lost.since(baseline)).pass);
        assert!(sent_as_implied("none", Sent::default(), 0.1, "").is_none());
    }
}
