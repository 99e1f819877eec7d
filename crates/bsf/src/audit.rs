//! The audit: bindings that were left behind are removed.
//!
//! What a BSF can know of a PCF is what the NRF says (TS 29.521 has no question to a PCF about one binding):
//! * The PCF has **restarted** since it made the binding: its `recoveryTime` (of its set, where `bindLevel` is
//!   `NF_SET`) is later than the binding's, and the binding has not been written since (TS 23.527 §6.2). Removed at
//!   once.
//! * The PCF is **gone**: the NRF does not know it, nor another one of its set where the binding holds for the set.
//!   Removed after `audit.attempts` audits in a row; a PCF may lose its registration for a while.
//!
//! While more than a share of all PCFs are gone ([`Census`]), it is rather the NRF that has lost them, and no binding is
//! removed for that.
//!
//! A binding of which the NRF says nothing stays. One without `pcfId` goes when nothing has written it for
//! `audit.lifetime`, if there is one.
//!
//! The [`Brake`] bounds what goes. Where several sites have a table in common, each audits what it has written itself, and
//! what no site has audited for twice as long as it should.

mod expiry;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ahash::AHashSet;
use bounded::{Cache, Limits};
use function::brake::Brake;
use function::records::{Ages, Removals};
use nrf_client::{Nrfs, Subscription};
use store::{Audit as Walk, AuditConfig, Batch, Condition, Decision, Record as _, Scan, Stored};
use telemetry::{AlarmKind, Alarms, Severity};
use tokio::sync::mpsc;

use crate::binding::{Audited, Document, MbsBinding, PcfBinding, UeBinding};
use crate::by_pcf::{OfPcf, PARTS};
use crate::census::Census;
use crate::config::Audit;
use crate::events::{Counters, Event};
use crate::live::Live;
use crate::notify::{Change, Notices};
use crate::peers::pcfs::{Changed, Pcf, Pcfs, micros};
use crate::repository::Repository;
use crate::resource::Resource;

/// The audit has removed as much as it may. The number is ours.
pub(crate) const BRAKED: AlarmKind = AlarmKind {
    number: 10_541,
    name: "BSF Audit Braked",
    severity: Severity::Major,
    text: "The audit would remove more bindings than it may without the word of an operator; they stay.",
    advice: "Check what the NRF says of the PCFs in the detail. `PUT /bsf/audit \"RELEASED\"` lets the audit remove them.",
};

/// What the audit finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finding {
    /// Nothing against it.
    InOrder,
    /// Its PCF has restarted since.
    Restarted,
    /// Its PCF is not registered.
    Missing,
}

/// The set that a binding holds for, if it does not hold for one PCF alone.
fn set_of(document: &Document) -> Option<&str> {
    let for_set = document.text_of("bindLevel") == Some("NF_SET");
    document.text_of("pcfSetId").filter(|_| for_set)
}

/// What is to be said of a binding, last written by a PCF at that time, given what the NRF says of its PCF.
fn judge(document: &Document, written: u64, pcf: &Pcf) -> Finding {
    let Pcf::Registered { recovery, sets } = pcf else {
        return Finding::Missing;
    };
    let began = match set_of(document) {
        Some(set) => sets.iter().find(|(id, _)| id == set).map(|(_, time)| *time),
        None => *recovery,
    };
    let made_by = document.text_of("recoveryTime").and_then(micros);
    match (began, made_by) {
        (Some(began), Some(made_by)) if made_by < began && written < began => Finding::Restarted,
        _ => Finding::InOrder,
    }
}

/// Which bindings a walk is about.
enum Scope {
    /// Those that were not written for long.
    Stale,
    /// Those of PCFs that have restarted, however young; nothing else is written.
    Of(AHashSet<String>),
    /// Those of all PCFs, as after a start: some may have restarted meanwhile.
    Restarted,
}

/// The audit of a BSF.
pub(crate) struct Auditor {
    live: Arc<Live>,
    repository: Repository,
    pcfs: Pcfs,
    asks: bool,
    notices: Notices,
    counters: Arc<Counters>,
    ages: Ages,
    census: RefCell<Census>,
    removals: Removals,
    /// About how many records a table has, by name.
    sizes: RefCell<HashMap<&'static str, u64>>,
}

impl Auditor {
    pub(crate) fn new(
        live: Arc<Live>,
        notices: Notices,
        nrfs: Rc<Nrfs>,
        counters: Arc<Counters>,
        (brake, alarms): (Arc<Brake>, Alarms),
    ) -> Self {
        Self {
            removals: Removals::new(brake, alarms, &BRAKED),
            sizes: RefCell::default(),
            live,
            repository: notices.repository.clone(),
            asks: !nrfs.is_empty(),
            pcfs: Pcfs::new(nrfs),
            notices,
            counters,
            ages: Ages::default(),
            census: RefCell::default(),
        }
    }

    fn settings(&self) -> Audit {
        self.live.load().config.audit.clone()
    }

    /// Audits until dropped. Without NRFs only lifetimes end.
    pub(crate) async fn run(self, changes: mpsc::Receiver<Changed>) {
        if !self.asks {
            drop(changes);
            tokio::join!(expiry::run(&self), self.follow_releases());
            return;
        }
        let suspects: RefCell<AHashSet<String>> = RefCell::default();
        let changed = tokio::sync::Notify::new();
        tokio::join!(
            self.follow(),
            self.follow_changes(changes, &suspects, &changed),
            self.walk_suspects(&suspects, &changed),
            self.walk_stale(),
            expiry::run(&self),
        );
    }

    /// What was held back is found by the next walk.
    async fn follow_releases(&self) {
        loop {
            self.removals.released().await;
        }
    }

    /// Stays subscribed to what changes of PCFs.
    async fn follow(&self) {
        /// How soon it is tried again.
        const AGAIN: Duration = Duration::from_secs(5);
        let mut held: Option<Subscription> = None;
        loop {
            let config = self.live.load().config.clone();
            let wanted = config.audit.walk.enabled && config.audit.subscribe;
            held = match (wanted, held.take()) {
                (true, held) => self.pcfs.subscribe(held.as_ref(), &config).await,
                (false, None) => None,
                (false, Some(held)) => {
                    self.pcfs.unsubscribe(&held).await;
                    None
                }
            };
            let next = held.as_ref().map(Subscription::renew_at);
            let pause = next.map_or(AGAIN, |at| at.saturating_duration_since(Instant::now()));
            tokio::time::sleep(pause).await;
        }
    }

    /// Asks the NRF about every PCF that it has notified of; those that have restarted are suspects.
    async fn follow_changes(
        &self,
        mut changes: mpsc::Receiver<Changed>,
        suspects: &RefCell<AHashSet<String>>,
        changed: &tokio::sync::Notify,
    ) {
        let mut known: Cache<String, Pcf> = Cache::new(Limits::entries(self.settings().max_pcfs));
        while let Some(Changed { pcf: id }) = changes.recv().await {
            let settings = self.settings();
            if !settings.walk.enabled {
                continue;
            }
            self.pcfs.forget(&id);
            let Some(pcf) = self.ask(&id, &settings).await else {
                continue;
            };
            if *pcf == Pcf::Gone {
                // The walk gives it its chances.
                known.remove(&id);
                continue;
            }
            known.set_limits(Limits::entries(settings.max_pcfs));
            if known.insert(id.clone(), Pcf::clone(&pcf)).as_ref() != Some(&*pcf) {
                suspects.borrow_mut().insert(id);
                changed.notify_one();
            }
        }
    }

    /// First all bindings, then those of suspects whenever there are some.
    async fn walk_suspects(&self, suspects: &RefCell<AHashSet<String>>, changed: &tokio::sync::Notify) {
        self.walk(&Scope::Restarted).await;
        loop {
            tokio::select! {
                () = changed.notified() => {
                    let these = std::mem::take(&mut *suspects.borrow_mut());
                    if !these.is_empty() {
                        self.walk(&Scope::Of(these)).await;
                    }
                }
                // What was held back is found again.
                () = self.removals.released() => self.walk(&Scope::Restarted).await,
            }
        }
    }

    async fn walk_stale(&self) {
        loop {
            let pause = self.settings().walk.pause.duration();
            tokio::time::sleep(pause.max(Duration::from_millis(10))).await;
            self.census.borrow_mut().begin();
            self.walk(&Scope::Stale).await;
            self.warn_of_missing();
        }
    }

    /// Says so when a walk has removed nothing because too many PCFs are gone.
    fn warn_of_missing(&self) {
        let settings = self.settings();
        let census = self.census.borrow();
        if settings.walk.enabled && census.is_suspicious(settings.most_gone) {
            let (gone, all) = census.figures();
            tracing::warn!(
                gone,
                all,
                "the NRF does not know most PCFs that bindings name; their bindings stay (audit.mostGone)"
            );
        }
    }

    async fn walk(&self, scope: &Scope) {
        let settings = self.settings();
        if !settings.walk.enabled {
            return;
        }
        let config = match scope {
            Scope::Stale => settings.walk.clone(),
            Scope::Of(_) | Scope::Restarted => AuditConfig {
                older_than: settings::Period::from_millis(0),
                rate: settings.restart_rate.max(1),
                ..settings.walk.clone()
            },
        };
        if let Err(error) = self.measure().await {
            tracing::warn!(%error, "the size of a table is not known; the audit begins again later");
            return;
        }
        let sessions = Walk::new(
            self.repository.sessions.clone(),
            config.clone(),
            self.ages.clock.clone(),
        );
        let mut decide = async |stored: &Stored<PcfBinding>| self.decide(stored, scope, &settings).await;
        let of_sessions = async {
            match scope {
                Scope::Of(these) if self.is_indexed(these.len()) => {
                    self.walk_pcfs(these, scope, &settings).await
                }
                _ => sessions.round(&mut decide).await.map(drop),
            }
        };
        // Side by side: a large table does not keep the others from being audited.
        let walked = tokio::try_join!(
            of_sessions,
            self.walk_few::<UeBinding>(scope, &settings, &config),
            self.walk_few::<MbsBinding>(scope, &settings, &config),
        );
        if let Err(error) = walked {
            tracing::warn!(%error, "the audit has stopped in the middle; it begins again later");
        }
    }

    /// Whether sessions of this many PCFs are found by the index of PCFs: a database takes a query for each part of it.
    fn is_indexed(&self, pcfs: usize) -> bool {
        let sessions = self.sizes.borrow().get(PcfBinding::TABLE.name).copied();
        let queries = u64::from(PARTS).saturating_mul(pcfs as u64);
        !self.repository.is_shared() || sessions.is_some_and(|sessions| sessions > queries)
    }

    /// Looks at the bindings of some PCFs, wherever they are in the table.
    async fn walk_pcfs(
        &self,
        these: &AHashSet<String>,
        scope: &Scope,
        settings: &Audit,
    ) -> Result<(), store::Error> {
        for pcf in these {
            let mut bindings = OfPcf::new(pcf);
            loop {
                let begun = tokio::time::Instant::now();
                let found = bindings.more(&self.repository).await?;
                if found.is_empty() {
                    break;
                }
                for stored in &found {
                    // Nothing but a walk of stale bindings writes any.
                    let _ = self.decide(stored, scope, settings).await;
                }
                let count = u32::try_from(found.len()).unwrap_or(u32::MAX);
                tokio::time::sleep_until(
                    begun + Duration::from_secs(1) * count / settings.restart_rate.max(1),
                )
                .await;
            }
        }
        Ok(())
    }

    /// Notes how many records there are, of which the brake lets a share go.
    async fn measure(&self) -> Result<(), store::Error> {
        let sizes = [
            (PcfBinding::TABLE.name, self.repository.sessions.count().await?),
            (
                UeBinding::TABLE.name,
                UeBinding::table(&self.repository).count().await?,
            ),
            (
                MbsBinding::TABLE.name,
                MbsBinding::table(&self.repository).count().await?,
            ),
        ];
        self.sizes.borrow_mut().extend(sizes);
        Ok(())
    }

    /// Walks a table that is small beside that of the sessions, as a whole: by modification, the embedded store
    /// would read the log of all tables.
    async fn walk_few<T: Resource>(
        &self,
        scope: &Scope,
        settings: &Audit,
        config: &AuditConfig,
    ) -> Result<(), store::Error> {
        const PAGE: usize = 100;
        let age = u64::try_from(config.older_than.duration().as_micros()).unwrap_or(u64::MAX);
        let before = self.ages.clock.micros().saturating_sub(age);
        let table = T::table(&self.repository);
        let mut next = Some(Scan::all(PAGE));
        while let Some(scan) = next {
            let begun = tokio::time::Instant::now();
            let page = table.scan(&scan).await?;
            let count = u32::try_from(page.records.len()).unwrap_or(u32::MAX).max(1);
            let is_due = |modified: u64| modified < before || !self.ages.is_plausible(modified);
            for stored in page.records.iter().filter(|stored| is_due(stored.modified())) {
                if let Decision::Refresh(record) = self.decide(stored, scope, settings).await {
                    let mut batch = Batch::default();
                    batch.update(table, &record, stored.version);
                    match self.repository.store().commit(batch).await {
                        Ok(_) | Err(store::Error::Conflict { .. }) => {}
                        Err(error) => return Err(error),
                    }
                }
            }
            next = page.next;
            tokio::time::sleep_until(begun + Duration::from_secs(1) * count / config.rate.max(1)).await;
        }
        Ok(())
    }

    async fn ask(&self, id: &str, settings: &Audit) -> Option<Rc<Pcf>> {
        let answer = self
            .pcfs
            .get(id, settings.remember.duration(), settings.max_pcfs)
            .await;
        match answer {
            Some((pcf, asked)) => {
                if asked {
                    self.counters.count(Event::AuditAsked);
                }
                Some(pcf)
            }
            None => {
                self.counters.count(Event::AuditUnanswered);
                None
            }
        }
    }

    async fn decide<T: Resource>(&self, stored: &Stored<T>, scope: &Scope, settings: &Audit) -> Decision<T> {
        let document = stored.record.document();
        if matches!(scope, Scope::Stale) && self.is_of_another_site(stored, settings) {
            return Decision::Keep;
        }
        let Some(id) = document.text_of("pcfId").map(str::to_ascii_lowercase) else {
            let lifetime = settings.lifetime.duration();
            if matches!(scope, Scope::Stale) && self.ages.is_over(stored.modified(), lifetime) {
                self.remove(stored, Event::AuditExpired, settings).await;
            }
            return Decision::Keep;
        };
        if matches!(scope, Scope::Of(these) if !these.contains(&id)) {
            return Decision::Keep;
        }
        self.counters.count(Event::Audited);
        let Some(pcf) = self.ask(&id, settings).await else {
            return Decision::Keep;
        };
        let before = document.audited();
        let written = self.written(stored, before.map(|audited| audited.written));
        let mut finding = judge(document, written, &pcf);
        if finding == Finding::Missing
            && let Some(set) = set_of(document)
        {
            let lives = self
                .pcfs
                .set_lives(set, settings.remember.duration(), settings.max_pcfs);
            match lives.await {
                Some(true) => finding = Finding::InOrder,
                Some(false) => {}
                None => return Decision::Keep,
            }
        }
        let stale = matches!(scope, Scope::Stale);
        if stale {
            let gone = finding == Finding::Missing;
            self.census.borrow_mut().count(&id, gone, settings.max_pcfs);
        }
        let mut attempts = match finding {
            Finding::Restarted => {
                self.remove(stored, Event::AuditRestarted, settings).await;
                return Decision::Keep;
            }
            // Only walks that are far enough apart count.
            _ if !stale => return Decision::Keep,
            Finding::InOrder => 0,
            Finding::Missing => before.map_or(0, |audited| audited.attempts) + 1,
        };
        if attempts >= settings.attempts && self.census.borrow().is_suspicious(settings.most_gone) {
            self.counters.count(Event::AuditHeldBack);
            // The next walk decides.
            attempts = settings.attempts.saturating_sub(1);
        }
        if attempts >= settings.attempts {
            self.remove(stored, Event::AuditGone, settings).await;
            return Decision::Keep;
        }
        if finding == Finding::Missing {
            self.counters.count(Event::AuditMissed);
        }
        Decision::Refresh(T::of(document.after_audit(Audited {
            attempts,
            at: self.ages.clock.micros(),
            written,
        })))
    }

    /// When a PCF wrote a binding last; 0 for a time that cannot be right: nothing is known of it.
    fn written<T>(&self, stored: &Stored<T>, before_audits: Option<u64>) -> u64 {
        let written = before_audits.unwrap_or(stored.modified());
        if self.ages.is_plausible(written) {
            written
        } else {
            0
        }
    }

    fn is_of_another_site<T>(&self, stored: &Stored<T>, settings: &Audit) -> bool {
        let live = self.live.load();
        let due = settings.walk.older_than.duration();
        self.ages.is_of_another_site(stored, &live.config.store.site, due)
    }

    /// Waits until a binding may go; `false`: it stays.
    async fn may_go<T: Resource>(&self, settings: &Audit) -> bool {
        let table = T::TABLE.name;
        let total = self.sizes.borrow().get(table).copied().unwrap_or_default();
        let may_go = self.removals.permit(table, total, &settings.bounds()).await;
        if !may_go {
            self.counters.count(Event::AuditBraked);
        }
        may_go
    }

    /// Removes a binding, unless it was written meanwhile or the brake holds, and notifies its subscribers.
    async fn remove<T: Resource>(&self, stored: &Stored<T>, why: Event, settings: &Audit) {
        if !self.may_go::<T>(settings).await {
            return;
        }
        let mut batch = Batch::default();
        let key = stored.record.key();
        batch.delete(
            T::table(&self.repository),
            &key,
            Condition::Version(stored.version),
        );
        self.repository.owe(&mut batch, stored.record.owed_removal());
        match self.repository.store().commit(batch).await {
            Ok(_) => {
                self.counters.count(why);
                let document = stored.record.document();
                tracing::debug!(binding = %document.id, ?why, "the audit has removed a binding");
                stored.record.notify(&self.notices, Change::Deregistered).await;
            }
            Err(error) => {
                self.removals.unused(T::TABLE.name);
                if !matches!(error, store::Error::Conflict { .. }) {
                    tracing::warn!(%error, "the audit could not remove a binding");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binding::BindingId;
    use serde_json::{Value, json};

    fn document(more: Value) -> Document {
        let mut value = json!({"dnn": "internet", "pcfId": "a", "recoveryTime": "1970-01-01T00:00:10Z"});
        json_patch::merge(&mut value, &more);
        Document::new(BindingId([0; 16]), value, true)
    }

    #[test]
    fn a_restart_after_the_last_write_loses_the_binding() {
        let since = |recovery| Pcf::Registered {
            recovery,
            sets: vec![("set1".to_owned(), 30_000_000)],
        };
        let own = document(json!({}));
        let of_set = document(json!({"pcfSetId": "set1", "bindLevel": "NF_SET"}));
        let timeless = document(json!({"recoveryTime": null}));
        for (document, written, recovery, expected) in [
            (&own, 11_000_000, Some(10_000_000), Finding::InOrder),
            (&own, 11_000_000, Some(20_000_000), Finding::Restarted),
            // Another PCF has taken it over since.
            (&own, 21_000_000, Some(20_000_000), Finding::InOrder),
            (&own, 11_000_000, None, Finding::InOrder),
            (&timeless, 11_000_000, Some(20_000_000), Finding::InOrder),
            // What holds for a set is lost when the whole set restarts.
            (&of_set, 11_000_000, Some(20_000_000), Finding::Restarted),
            (&of_set, 31_000_000, Some(40_000_000), Finding::InOrder),
        ] {
            assert_eq!(
                judge(document, written, &since(recovery)),
                expected,
                "{document:?}"
            );
        }
        assert_eq!(judge(&own, 0, &Pcf::Gone), Finding::Missing);
    }
}
