//! The ends of notifications that were owed ([`crate::owed`]), and what the run before has left.

use std::time::Duration;

use store::{Condition, Scan, Stored};

use crate::binding::{PcfBinding, UeBinding};
use crate::notify::{Change, Notices};
use crate::owed::{Awaited, Kind, OwedRecord};
use crate::repository::Repository;
use crate::resource::Resource;

const ROUND: Duration = Duration::from_millis(200);
/// Marks of a page.
const PAGE: usize = 256;

/// Takes marks away whose notifications have ended, until the control thread ends.
pub(crate) async fn settle(notices: Notices) {
    let mut rounds = tokio::time::interval(ROUND);
    loop {
        rounds.tick().await;
        for one in notices.owed.ended(notices.queue.settled()) {
            // One that stays after a failure is owed at the next start.
            if let Err(error) = end(&notices.repository, &one).await {
                tracing::debug!(%error, binding = %one.id, "failed to remove the mark of a notified change");
            }
        }
    }
}

async fn end(repository: &Repository, one: &Awaited) -> Result<(), store::Error> {
    let held: Option<Stored<OwedRecord>> = repository.owed.get(&one.id.0).await?;
    let Some(held) = held.filter(|held| held.modified() <= one.at) else {
        return Ok(());
    };
    let mut batch = store::Batch::default();
    batch.delete(&repository.owed, &one.id.0, Condition::Version(held.version));
    repository.store().commit(batch).await.map(drop)
}

/// Notifies of the changes whose marks the last run has left.
pub(crate) async fn pay(notices: &Notices) -> Result<(), store::Error> {
    let repository = &notices.repository;
    let mut next = Some(Scan::all(PAGE));
    while let Some(scan) = next {
        let page = repository.owed.scan(&scan).await?;
        for stored in &page.records {
            let mark = &stored.record;
            if let Some(session) = repository.sessions.get(&mark.id.0).await? {
                notices.session(&session.record, Change::Registered).await;
            } else if let Some(ue) = repository.ues.get(&mark.id.0).await? {
                notices.ue(&ue.record, Change::Registered).await;
            } else if let Some((kind, text)) = &mark.removed {
                let Ok(value) = serde_json::from_slice(text) else {
                    continue;
                };
                let document = repository.document(mark.id, value);
                match kind {
                    Kind::Session => {
                        notices
                            .session(&PcfBinding::of(document), Change::Deregistered)
                            .await;
                    }
                    Kind::Ue => {
                        notices.ue(&UeBinding::of(document), Change::Deregistered).await;
                    }
                }
            } else {
                notices.owed.pushed(0, mark.id);
            }
        }
        next = page.next;
    }
    Ok(())
}
