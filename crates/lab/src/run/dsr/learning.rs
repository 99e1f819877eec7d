//! A new security application: it learns who is where, then its measures block by a reload of its settings, and attackers come.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;

use super::drills::Router;
use crate::run::admin::ask;
use crate::run::drill::{Drill, Judgement, Outcome, Part};
use crate::run::figure;
use crate::run::rig::{RigError, write_config};
use ::report::Check;
use callmodel::dsr::Learning;
use loadgen::FailureKind;
use report::measure::Metrics;
use workload::dsr::{HONEST, Roams};

/// What a router counts that learns.
#[derive(Debug, Default)]
struct Learned {
    screened: AtomicU64,
    found: AtomicU64,
}

/// The drill.
pub(super) struct Learns {
    learning: Learning,
    router: Arc<Router>,
    roams: Arc<Roams>,
    learned: Arc<Learned>,
}

impl Learns {
    pub(super) fn new(learning: Learning, router: Router, roams: &Arc<Roams>) -> Self {
        // Attackers come when the router blocks.
        roams.let_attack(false);
        Self {
            learning,
            router: Arc::new(router),
            roams: roams.clone(),
            learned: Arc::default(),
        }
    }
}

impl Drill for Learns {
    fn parts(&self) -> Vec<Part> {
        let share = self.learning.learns.fraction();
        let (router, roams, learned) = (self.router.clone(), self.roams.clone(), self.learned.clone());
        let blocks = Part::new("blocking", 1.0 - share, 1.0).beginning(move |_| {
            count(router.admin, &learned)?;
            block(&router)?;
            roams.let_attack(true);
            Ok(())
        });
        vec![Part::new("learning", share, 1.0), blocks]
    }

    fn judge(&mut self, outcome: &Outcome<'_>) -> Judgement {
        let (screened, found) = (&self.learned.screened, &self.learned.found);
        let (screened, found) = (screened.load(Ordering::Relaxed), found.load(Ordering::Relaxed));
        let (refused, attacks) = self.roams.attacks();
        let mut checks = vec![Check::new(
            "nothing is found while it learns",
            "no finding",
            format!("{} in {} messages", figure(found as f64), figure(screened as f64)),
            found == 0 && screened > 0,
        )];
        for part in outcome.parts {
            let honest = HONEST.map(|name| outcome.of_operation([part], name));
            let served: u64 = honest.iter().map(|one| one.succeeded).sum();
            let refused: u64 = honest
                .iter()
                .map(|one| one.failed[FailureKind::Status as usize])
                .sum();
            checks.push(Check::new(
                format!("honest requests while it is {}", part.name),
                "none refused",
                format!(
                    "{} refused, {} answered",
                    figure(refused as f64),
                    figure(served as f64)
                ),
                refused == 0 && served > 0,
            ));
        }
        let of_attacks = outcome.names.iter().filter(|name| name.starts_with("attack: "));
        let passed: u64 = of_attacks
            .map(|name| outcome.of_operation(outcome.parts, name))
            .map(|one| one.failed[FailureKind::Wrong as usize])
            .sum();
        checks.push(Check::new(
            "attacks when it blocks",
            "none passes",
            format!("{passed} of {attacks} passed, {refused} were refused"),
            refused > 0 && passed == 0,
        ));
        checks.into()
    }
}

/// Notes what the router has counted.
fn count(admin: SocketAddr, learned: &Learned) -> Result<(), RigError> {
    let metrics = Metrics::read(admin)
        .ok_or_else(|| RigError::Settings("the router does not report its metrics".to_owned()))?;
    for (name, place) in [("screened", &learned.screened), ("detections", &learned.found)] {
        let counted = metrics.sum(&format!("signalbox_dsr_security_{name}_total"), &[]);
        place.store(counted as u64, Ordering::Relaxed);
    }
    Ok(())
}

/// Ends the time of learning by a reload.
fn block(router: &Router) -> Result<(), RigError> {
    let mut made = router.made.clone();
    made["dsr"]["applications"][0]["dsa"]["learning"] = json!("0s");
    write_config(&router.file, made, router.over.as_deref())?;
    match ask(router.admin, "POST", "/config/reload") {
        Some((200, _)) => Ok(()),
        other => Err(RigError::Settings(format!(
            "the router does not reload its settings: {other:?}"
        ))),
    }
}
