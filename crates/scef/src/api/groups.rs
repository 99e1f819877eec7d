//! Data for the devices of a group (TS 29.122 §4.4.5.3.2): one resource, whose data is sent to each member.

use function::records::store_problem;
use http::StatusCode;
use sbi::problem::Problem;
use sbi::response::no_content;
use serde_json::Value;
use store::{Batch, Condition, Stored};

use super::downlinks::{check_room, for_member, sending};
use super::{Answer, created, forbidden, not_found, with_self};
use crate::clock::now;
use crate::events::Event;
use crate::gathered::data;
use crate::orders::Order;
use crate::record::{Configuration, Downlink, GroupDelivery, GroupOutcome, Id, Status};
use crate::repository::Repository;
use crate::worker::Worker;

/// Data for a group that is to be stored.
pub(super) struct Prepared {
    delivery: GroupDelivery,
    /// For each member.
    parts: Vec<Downlink>,
    /// Of members that it is not sent to.
    outcomes: Vec<GroupOutcome>,
}

/// Makes the data for each member; one whose buffer is full does not get it.
pub(super) async fn prepare(
    worker: &Worker,
    group: &Configuration,
    members: &[&Configuration],
    document: Value,
) -> Result<Prepared, Problem> {
    let most = worker.config().nidd.max_packets;
    let pending =
        worker
            .repository()
            .group_deliveries
            .find(GroupDelivery::CONFIGURATION, &group.id.key(), most);
    if pending.await.map_err(store_problem)?.len() >= most {
        worker.count(Event::BufferFull);
        return Err(forbidden(
            "QUOTA_EXCEEDED",
            "as much data is pending for the group as may be (nidd.maxPackets)",
        ));
    }
    let delivery = GroupDelivery {
        id: Id::new(now()),
        configuration: group.id,
        document,
    };
    let (mut parts, mut outcomes) = (Vec::with_capacity(members.len()), Vec::new());
    for member in members {
        let part = for_member(worker, member, &delivery);
        match check_room(worker, &part, None).await {
            Ok(()) => parts.push(part),
            Err(full) if full.status() == StatusCode::FORBIDDEN => {
                outcomes.push(GroupOutcome::new(delivery.id, &member.document, Status::Failure));
            }
            Err(problem) => return Err(problem),
        }
    }
    Ok(Prepared {
        delivery,
        parts,
        outcomes,
    })
}

impl Prepared {
    /// Writes it within a batch.
    pub(super) fn add_to(&self, repository: &Repository, batch: &mut Batch) {
        batch.insert(&repository.group_deliveries, &self.delivery);
        for part in &self.parts {
            batch.insert(&repository.downlinks, part);
        }
        for outcome in &self.outcomes {
            batch.insert(&repository.group_outcomes, outcome);
        }
    }

    /// Hands it to the Diameter node, once it is stored; the resource.
    pub(super) fn begin(&self, worker: &Worker, group: &Configuration) -> Value {
        for part in &self.parts {
            // One that finds no room in the queue is due, and found by the next search.
            worker.orders().send(Order::Deliver {
                configuration: part.configuration,
                waiting: None,
            });
        }
        shown(worker, group, &self.delivery)
    }
}

/// Accepts data for a group: 201, and notifications say what becomes of it.
pub(super) async fn create(worker: &Worker, group: &Stored<Configuration>, document: Value) -> Answer {
    let repository = worker.repository();
    let members = repository.members_of(group.id).await.map_err(store_problem)?;
    let ids = members.iter().map(|one| one.id).chain([group.id]);
    let turns = worker.shared().buffers.turns(ids).await;
    let active: Vec<&Configuration> = members
        .iter()
        .map(|one| &one.record)
        .filter(|one| one.is_active())
        .collect();
    let prepared = prepare(worker, group, &active, document).await?;
    let mut batch = Batch::default();
    prepared.add_to(repository, &mut batch);
    batch.require(&repository.configurations, &group.id.key(), Condition::Present);
    if !repository.commit(batch).await.map_err(store_problem)? {
        return Err(not_found("configuration"));
    }
    drop(turns);
    worker.count(Event::Buffered);
    let shown = prepared.begin(worker, group);
    Ok(created(shown["self"].as_str().unwrap_or_default(), &shown))
}

/// Lists data for a group of which not every outcome is notified.
pub(super) async fn list(worker: &Worker, group: &Configuration) -> Answer {
    let most = worker.config().nidd.max_packets;
    let table = &worker.repository().group_deliveries;
    let found = table.find(GroupDelivery::CONFIGURATION, &group.id.key(), most);
    let found = found.await.map_err(store_problem)?;
    let shown: Vec<Value> = found.iter().map(|one| shown(worker, group, one)).collect();
    Ok(sbi::json::response(StatusCode::OK, &shown))
}

/// Reads data for a group.
pub(super) async fn read(worker: &Worker, group: &Configuration, id: &str) -> Answer {
    let found = existing(worker, group, id).await?;
    Ok(sbi::json::response(StatusCode::OK, &shown(worker, group, &found)))
}

/// Refuses to change data for a group: it is with the devices that are reachable.
pub(super) async fn change(worker: &Worker, group: &Configuration, id: &str) -> Answer {
    existing(worker, group, id).await?;
    Err(sending())
}

/// Cancels data for those members of a group that it was not sent to.
pub(super) async fn cancel(worker: &Worker, group: &Configuration, id: &str) -> Answer {
    let found = existing(worker, group, id).await?;
    let cancelled = data::cancel(worker.repository(), found.id).await;
    cancelled.map_err(store_problem)?;
    Ok(no_content())
}

async fn existing(
    worker: &Worker,
    group: &Configuration,
    id: &str,
) -> Result<Stored<GroupDelivery>, Problem> {
    let id = Id::parse(id).ok_or_else(|| not_found("delivery"))?;
    let found = worker.repository().group_deliveries.get(&id.key()).await;
    found
        .map_err(store_problem)?
        .filter(|one| one.configuration == group.id)
        .ok_or_else(super::downlinks::over)
}

fn shown(worker: &Worker, group: &Configuration, delivery: &GroupDelivery) -> Value {
    let uri = worker.shared().delivery_uri(&group.scs, group.id, delivery.id);
    with_self(&delivery.document, &uri)
}
