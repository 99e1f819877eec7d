//! The audit: associations whose consumer has lost them, or is lost itself, are removed.
//!
//! What nothing has written for `audit.walk.olderThan` is checked, at `audit.walk.rate`: its consumer gets a notification without
//! a change (a PCEF a RAR), so that it can cross no other.
//! * The consumer **does not know the association** (404, DIAMETER_UNKNOWN_SESSION_ID): it is removed at once.
//! * It **answers** otherwise: the association is written again, and so checked when it has become old again.
//! * It **does not answer**: that is noted with the association. It is removed after `audit.attempts` walks in a row in which
//!   the NRF did not know the consumer either, or when `audit.lifetime` is over.
//!
//! The brake of crate `function` bounds what goes. Where several sites have a table in common, each audits what it has
//! written itself, and what no site has audited for twice as long as it should. The first worker audits.

mod consumers;

use std::rc::Rc;
use std::time::Duration;

use function::records::{Ages, Removals};
use store::{Audit as Walk, Decision, Record as _, Stored};
use telemetry::{AlarmKind, Severity};

use self::consumers::{Answer, Consumers};
use crate::activity::{Entry, trail};
use crate::association::gx::PcefSession;
use crate::association::unanswered::Unanswered;
use crate::association::{Association, Kind};
use crate::config::Audit;
use crate::events::Event;
use crate::worker::{Front, Worker};
use crate::{change, delivery, pds, reassessment};

/// The audit has removed as much as it may. The number is ours.
pub(crate) const BRAKED: AlarmKind = AlarmKind {
    number: 10_562,
    name: "PCF Audit Braked",
    severity: Severity::Major,
    text: "The audit would remove more policy associations than it may without the word of an operator; they stay.",
    advice: "Check the consumers that the log names. `PUT /pcf/audit \"RELEASED\"` lets the audit remove their associations.",
};
/// The least pause between two walks.
const LEAST_PAUSE: Duration = Duration::from_millis(10);

/// Audits until the worker ends.
pub(crate) async fn run(front: Rc<Front>) {
    if front.seat().context.index != 0 {
        return;
    }
    let (brake, alarms) = (front.function().brake.clone(), front.function().alarms.clone());
    let auditor = Auditor {
        removals: Removals::new(brake, alarms, &BRAKED),
        front,
        consumers: Consumers::default(),
        ages: Ages::default(),
    };
    loop {
        let pause = auditor.worker().config().audit.walk.pause.duration();
        tokio::select! {
            () = tokio::time::sleep(pause.max(LEAST_PAUSE)) => {}
            // What was held back is found again.
            () = auditor.removals.released() => {}
        }
        if let Err(error) = auditor.walk().await {
            tracing::warn!(%error, "the audit has stopped in the middle; it begins again later");
        }
    }
}

struct Auditor {
    front: Rc<Front>,
    consumers: Consumers,
    ages: Ages,
    removals: Removals,
}

impl Auditor {
    /// The worker as of now: a walk outlives reloads.
    fn worker(&self) -> Rc<Worker> {
        self.front.worker()
    }

    async fn walk(&self) -> Result<(), store::Error> {
        let settings = self.worker().config().audit.clone();
        if !settings.walk.enabled {
            return Ok(());
        }
        let table = self.front.function().repository.associations().clone();
        let total = table.count().await?;
        let walk = Walk::new(table, settings.walk, self.ages.clock.clone());
        let mut decide = async |stored: &Stored<Association>| self.decide(stored, total).await;
        let walked = walk.round(&mut decide).await;
        for one in walk.take_unreadable() {
            self.front.function().repository.unreadable().note(&one);
        }
        walked
    }

    async fn decide(&self, stored: &Stored<Association>, total: u64) -> Decision<Association> {
        let worker = self.worker();
        let settings = worker.config().audit.clone();
        let is_audited = stored.record.kind != Kind::Tdf;
        let (site, due) = (&worker.config().store.site, settings.walk.older_than.duration());
        if !is_audited || self.ages.is_of_another_site(stored, site, due) {
            return Decision::Keep;
        }
        worker.count(Event::Audited);
        let audited = async {
            trail::concerns(&stored.record);
            self.judge(&worker, stored, &settings, total).await
        };
        trail::own(worker.activity(), audited).await
    }

    async fn judge(
        &self,
        worker: &Rc<Worker>,
        stored: &Stored<Association>,
        settings: &Audit,
        total: u64,
    ) -> Decision<Association> {
        let mut association = stored.record.clone();
        let before = Unanswered::get(&association);
        let (event, why) = match self.consumers.ask(worker, &association, settings).await {
            Answer::Unknown => (Event::AuditUnknown, "its consumer does not know it"),
            Answer::Known => {
                worker.count(Event::AuditConfirmed);
                Unanswered::forget(&mut association);
                return Decision::Refresh(association);
            }
            Answer::None => {
                worker.count(Event::AuditUnanswered);
                let is_lost = self.consumers.is_lost(worker, &association, settings).await;
                let now = Unanswered {
                    lost: match is_lost {
                        true => before.map_or(0, |before| before.lost).saturating_add(1),
                        false => 0,
                    },
                    since: before.map_or(self.written(stored), |before| before.since),
                };
                if now.lost >= settings.attempts {
                    (
                        Event::AuditLost,
                        "its consumer does not answer and is not registered",
                    )
                } else if self.ages.is_over(now.since, settings.lifetime.duration()) {
                    (
                        Event::AuditExpired,
                        "its consumer has not answered for audit.lifetime",
                    )
                } else {
                    now.put(&mut association);
                    return Decision::Refresh(association);
                }
            }
        };
        if self.may_go(worker, settings, total).await {
            let removed = remove(worker, stored, event, why).await;
            if !removed {
                self.removals.unused(Association::TABLE.name);
            }
        }
        Decision::Keep
    }

    /// When an association was last written, by what is not the audit; now for a time that cannot be right.
    fn written(&self, stored: &Stored<Association>) -> u64 {
        let written = stored.modified();
        if self.ages.is_plausible(written) {
            written
        } else {
            self.ages.clock.micros()
        }
    }

    /// Waits until an association may go; `false`: it stays.
    async fn may_go(&self, worker: &Worker, settings: &Audit, total: u64) -> bool {
        let table = Association::TABLE.name;
        let may_go = self.removals.permit(table, total, &settings.bounds()).await;
        if !may_go {
            worker.count(Event::AuditBraked);
        }
        may_go
    }
}

/// Removes an association as its consumer would, unless it was written since the audit has read it; whether it is removed.
async fn remove(worker: &Rc<Worker>, stored: &Stored<Association>, event: Event, why: &'static str) -> bool {
    let (id, kind) = (stored.record.id, stored.record.kind);
    trail::note(|| Entry::new("audit", format!("{} association removed: {why}", kind.name())));
    let removed = change::remove_version(worker, id, stored.version).await;
    let (association, draft) = match removed {
        Ok(Some(removed)) => removed,
        Ok(None) => return false,
        Err(error) => {
            tracing::warn!(%id, ?error, "the audit could not remove a policy association");
            return false;
        }
    };
    worker.count(event);
    let pcef = PcefSession::get(&association).map(|session| session.host);
    let consumer = pcef.as_deref().or(association.text_of("notificationUri"));
    tracing::info!(%id, kind = kind.name(), consumer, why, "the audit has removed a policy association");
    reassessment::after(worker, id, &draft);
    pds::close(worker, &association).await;
    delivery::close(worker, &association);
    true
}
