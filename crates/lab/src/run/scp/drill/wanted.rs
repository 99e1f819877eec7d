//! Checks that a model asks for while its network changes, and those of them that cannot run.

use settings::Period;
use simulators::Stats;

use crate::run::drill::{Drill, Judgement, Outcome};
use ::report::Check;
use callmodel::scp::ScpModel;

/// Names of the checks.
pub(super) const CHANGES: &str = "changes of the network";
pub(super) const COPIES: [&str; 2] = ["copies of messages", "copies lost"];

/// What producers of a model report in their answers: the check's name, how often each of how many has something new, and
/// the counter of a simulator.
pub(super) fn reports(
    model: &ScpModel,
) -> impl Iterator<Item = (&'static str, Period, u32, fn(&Stats) -> u64)> {
    let loads: fn(&Stats) -> u64 = |stats| stats.loads;
    let overloads: fn(&Stats) -> u64 = |stats| stats.overloads;
    let profiles = model.profiles;
    let lci = model
        .lci
        .map(|lci| ("load information of producers", lci.every, profiles, loads));
    let oci = model.oci.map(|oci| {
        (
            "overload information of producers",
            oci.every,
            oci.instances,
            overloads,
        )
    });
    lci.into_iter().chain(oci)
}

/// A check that did not run has failed: a reader must not take a report without it for one in which it held.
pub(super) fn not_run(name: &str, why: &str) -> Check {
    Check::new(name, "the check runs", format!("not run: {why}"), false)
}

/// Names of the checks that a model asks for.
pub(super) fn names(model: &ScpModel) -> Vec<&'static str> {
    let changes = model.notifications.as_ref().map(|_| CHANGES);
    let copies = model.feed.iter().flat_map(|_| COPIES);
    let reports = reports(model).map(|(name, ..)| name);
    changes.into_iter().chain(copies).chain(reports).collect()
}

/// A drill that cannot run: each of its checks fails with the reason.
pub(super) struct NotRun {
    pub(super) checks: Vec<&'static str>,
    pub(super) why: &'static str,
}

impl Drill for NotRun {
    fn judge(&mut self, _: &Outcome<'_>) -> Judgement {
        let checks = self.checks.iter().map(|name| not_run(name, self.why));
        checks.collect::<Vec<_>>().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_cannot_run_fails() {
        let model = callmodel::find("scp/model-d-10").unwrap().model.scp.unwrap();
        let checks = names(&model);
        assert!(
            checks.contains(&COPIES[0]) && checks.contains(&COPIES[1]),
            "{checks:?}"
        );
        let why = "an SCP that runs already gives no metrics";
        for name in checks {
            let check = not_run(name, why);
            assert!(!check.pass && check.got.starts_with("not run"), "{check:?}");
        }
        let plain = callmodel::find("scp/kill-producer").unwrap().model.scp.unwrap();
        assert!(names(&plain).is_empty());
    }
}
