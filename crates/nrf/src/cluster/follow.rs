//! The task of a member: it polls, and hands what it has read to the registrar.

use std::collections::BTreeSet;

use telemetry::health::Component;
use telemetry::{AlarmKind, Alarms, Severity};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use super::handoff::Drift;
use super::member::Cluster;
use super::membership::View;
use super::record::Standing;
use super::sweep::Sweeper;

/// A member of the cluster died.
pub(crate) const MEMBER_DEAD: AlarmKind = AlarmKind {
    number: 10_512,
    name: "NRF Cluster Member Dead",
    severity: Severity::Major,
    text: "The record of another NRF on the same database is not updated any more; the other NRFs send its notifications.",
    advice: "Check that NRF and its connection to the database; the alarm clears when it is back, or after `cluster.keepChanges`.",
};

/// Polls until the registrar ends, then leaves the cluster.
pub(crate) async fn follow(
    mut cluster: Cluster,
    drifts: mpsc::Sender<Drift>,
    health: Component,
    alarms: Alarms,
) {
    let mut ticks = tokio::time::interval(cluster.settings.poll.duration());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The store retries for longer; an unreadable journal must be detected earlier.
    let patience = cluster.settings.dead_after.duration() / 2;
    health.ready();
    let mut alarmed = BTreeSet::new();
    let mut failing = false;
    let mut sweeping = std::pin::pin!(Sweeper::new(&cluster).run());
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = drifts.closed() => break,
            () = &mut sweeping => {}
        }
        let outcome = match tokio::time::timeout(patience, cluster.poll()).await {
            Ok(outcome) => outcome.map_err(|error| error.to_string()),
            Err(_) => Err(format!("no answer within {patience:?}")),
        };
        match outcome {
            Ok(drift) => {
                if std::mem::take(&mut failing) {
                    tracing::info!("journal of the cluster is readable again");
                    health.ready();
                }
                alarm(&drift.view, &mut alarmed, &alarms);
                if drifts.send(drift).await.is_err() {
                    break;
                }
            }
            Err(reason) => {
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(reason, "journal of the cluster cannot be read");
                }
                cluster.watch.interrupted();
                health.not_ready(format!("the cluster's journal cannot be read: {reason}"));
            }
        }
    }
    if tokio::time::timeout(patience, cluster.leave()).await.is_err() {
        tracing::warn!("this NRF could not leave its cluster in time; the others will mark it dead");
    }
}

/// Raises an alarm for each dead member that has not come back.
fn alarm(view: &View, alarmed: &mut BTreeSet<String>, alarms: &Alarms) {
    let with = |standing| {
        let records = view.records().filter(move |one| one.standing == standing);
        records.map(|one| one.instance.clone()).collect::<BTreeSet<_>>()
    };
    let dead: BTreeSet<String> = &with(Standing::Dead) - &with(Standing::Active);
    for instance in &dead {
        alarms.set(
            &MEMBER_DEAD,
            instance,
            Some("its record is not updated".to_owned()),
        );
    }
    for instance in std::mem::take(alarmed).difference(&dead) {
        alarms.set(&MEMBER_DEAD, instance, None);
    }
    *alarmed = dead;
}
