//! Delivery of notifications to SCS/AS (TS 29.122 §5.2.5). Each is a record until it is accepted, refused, or has had all attempts.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use notifier::{Answer, Event as Delivery, Notification, Policy, Publisher, Queue};
use sbi::Response;
use sbi::client::{Client, Origin};
use store::{Batch, Condition, Record, Stored, Sweep, SweepConfig, Table};

use crate::clock::now;
use crate::events::{Counters, Event};
use crate::live::Live;
use crate::record::{Id, Notice};
use crate::repository::Repository;

/// Pause between two looks at whether notifications were deferred.
const PAUSE: Duration = Duration::from_secs(1);
/// Notifications that are deleted from the store at once.
const BATCH: usize = 256;
/// Time in which a notification that is stored is queued, and one that is delivered is deleted.
const GRACE: Duration = Duration::from_secs(5);

/// A notification as it is delivered; `None` if its destination is not a valid URI.
pub(crate) fn notification(notice: &Notice) -> Option<Notification> {
    Some(Notification {
        subscription: notice.about.as_str().into(),
        subject: notice.id.to_string().into(),
        whole: false,
        target: notice.target.parse().ok()?,
        callback: "",
        body: notice.body.to_string().into(),
        set: None,
        mark: 0,
    })
}

/// Queues what was stored before and is not delivered, in the order in which it was stored.
pub(crate) async fn resume(repository: &Repository, queue: &Queue, before: Id) -> Result<(), store::Error> {
    let mut found = Vec::new();
    let each = |notice: Stored<Notice>| found.extend((notice.id < before).then_some(notice.id));
    repository.each(&repository.notices, each).await?;
    found.sort_unstable();
    for id in found {
        let notice = repository.notices.get(&id.key()).await?;
        if let Some(notification) = notice.and_then(|notice| notification(&notice)) {
            queue.push(notification);
        }
    }
    Ok(())
}

/// Queues again what was deferred, as long as the control thread runs. It is what is still stored when all that were queued by then
/// have been accepted or given up. `count` is how many were deferred.
pub(crate) async fn requeue(repository: Repository, queue: Queue, count: impl Fn() -> u64) {
    let mut handled = 0;
    loop {
        tokio::time::sleep(PAUSE).await;
        let (deferred, before) = (count(), Id::new(now()));
        if deferred == handled {
            continue;
        }
        tokio::time::sleep(GRACE).await;
        let queued = queue.pushed();
        while queue.settled() < queued {
            tokio::time::sleep(PAUSE).await;
        }
        tokio::time::sleep(GRACE).await;
        match resume(&repository, &queue, before).await {
            Ok(()) => handled = deferred,
            Err(error) => tracing::warn!(%error, "deferred notifications were not read; it is tried again"),
        }
    }
}

/// Removes notifications, or reports, that `notifications.keep` is over for, as long as the control thread runs: they were not accepted.
pub(crate) async fn expire<T: Record>(table: Table<T>, counters: Arc<Counters>) {
    let sweep = match Sweep::new(table, SweepConfig::default()) {
        Ok(sweep) => sweep,
        Err(error) => {
            return tracing::error!(%error, "notifications that are kept for too long are not removed");
        }
    };
    let mut counted = 0;
    loop {
        if let Err(error) = sweep.round().await {
            tracing::warn!(%error, "notifications that are kept for too long were not removed; it is tried again");
        }
        let removed = sweep.removed() - counted;
        if removed > 0 {
            tracing::warn!(
                count = removed,
                "SCS/AS have not accepted notifications within notifications.keep"
            );
            counters.add(Event::NotificationFailed, removed);
        }
        counted += removed;
        tokio::time::sleep(PAUSE).await;
    }
}

/// How SCS/AS are reached.
pub(crate) struct Servers {
    pub(crate) client: Client,
    pub(crate) repository: Repository,
    pub(crate) live: Arc<Live>,
    pub(crate) counters: Arc<Counters>,
    /// What is to be deleted from the store.
    pub(crate) done: Rc<Done>,
}

/// Notifications that are not sent any more, until they are deleted: those that end while a batch is written are the next one. While the store
/// does not answer they are no more than were queued before: a new one is stored first.
#[derive(Default)]
pub(crate) struct Done {
    ids: RefCell<Vec<Id>>,
    is_writing: Cell<bool>,
}

impl Done {
    /// The next batch; empty if there is none.
    fn take(&self) -> Vec<Id> {
        let mut ids = self.ids.borrow_mut();
        let count = ids.len().min(BATCH);
        ids.drain(..count).collect()
    }
}

impl Servers {
    /// Deletes a notification that is not sent any more.
    fn delete(&self, notification: &Notification) {
        let Some(id) = Id::parse(&notification.subject) else {
            return;
        };
        let done = self.done.clone();
        done.ids.borrow_mut().push(id);
        if !done.is_writing.replace(true) {
            tokio::task::spawn_local(delete(self.repository.clone(), done));
        }
    }
}

/// Deletes what is done, a batch after the other.
async fn delete(repository: Repository, done: Rc<Done>) {
    loop {
        let batch = done.take();
        if batch.is_empty() {
            done.is_writing.set(false);
            return;
        }
        let mut deletions = Batch::default();
        for id in batch {
            deletions.delete(&repository.notices, &id.key(), Condition::Always);
        }
        if let Err(error) = repository.commit(deletions).await {
            // The next start sends them again.
            tracing::warn!(%error, "notifications were not deleted after they were sent");
        }
    }
}

impl Publisher for Servers {
    fn policy(&self) -> Policy {
        self.live.load().config.notifications.policy()
    }

    fn client(&self) -> &Client {
        &self.client
    }

    fn count(&self, event: Delivery) {
        self.counters.count(match event {
            Delivery::Delivered | Delivery::Rerouted | Delivery::Resynced => Event::Notified,
            Delivery::Failed => Event::NotificationFailed,
            Delivery::Dropped => Event::NotificationDeferred,
            Delivery::Redirected => Event::NotificationRedirected,
        });
    }

    fn answered(&self, notification: &Notification, answer: &Answer, _: Option<&Response>) {
        match answer {
            Answer::Delivered => self.delete(notification),
            Answer::Refused => {
                tracing::warn!(target = %notification.target, "an SCS/AS has refused a notification");
                self.delete(notification);
            }
            Answer::Redirect(_) | Answer::Retry(_) => {}
        }
    }

    fn given_up(&self, notification: &Notification) {
        tracing::warn!(target = %notification.target, "an SCS/AS has accepted a notification in no attempt");
        self.delete(notification);
    }

    fn permits(&self, from: &Uri, to: &Origin) -> bool {
        let permitted = self.live.load().destinations.permits_redirection(from, to);
        if !permitted {
            self.counters.count(Event::TargetDenied);
        }
        permitted
    }

    /// Those that waited in the store while too many were pending.
    async fn resync(&self, _: &str, subjects: &[Arc<str>]) -> Vec<Notification> {
        let mut found = Vec::new();
        for id in subjects.iter().filter_map(|subject| Id::parse(subject)) {
            match self.repository.notices.get(&id.key()).await {
                Ok(notice) => found.extend(notice.and_then(|notice| notification(&notice))),
                Err(error) => tracing::warn!(%error, "a notification that waits was not read"),
            }
        }
        found
    }
}
