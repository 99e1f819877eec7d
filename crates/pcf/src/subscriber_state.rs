//! State variables that all associations of a subscriber share: read for projects that read them, written with the association
//! that a decision is about.
//!
//! The record of a subscriber is written in one batch with the association, on condition that it is as it was read. Where another
//! session of the subscriber was faster, at whichever worker or PCF of the store, the decision is made again on what that one has
//! left, so that no variable is lost.

use serde_json::{Map, Value};
use time::OffsetDateTime;

use crate::activity::{Entry, trail};
use crate::association::Association;
use crate::association::ledger::Draft;
use crate::association::subscriber_state::{Bounds, StateDraft};
use crate::config::StateVariables;
use crate::emergency;
use crate::events::Event;
use crate::worker::Worker;

/// Reads the variables of an association's subscriber into the draft, where the project of its service reads some.
///
/// # Errors
/// When the store cannot be read.
pub(crate) async fn open(
    worker: &Worker,
    association: &Association,
    draft: &mut Draft,
) -> Result<(), store::Error> {
    let project = &worker.projects(association.kind.service()).project;
    match project.reads_subscriber_state() {
        true => read(worker, association, &mut draft.state).await,
        false => Ok(()),
    }
}

/// Puts the variables that a decision sets into the draft; null removes one.
///
/// # Errors
/// When the store cannot be read.
pub(crate) async fn set(
    worker: &Worker,
    association: &Association,
    variables: Map<String, Value>,
    draft: &mut Draft,
) -> Result<(), store::Error> {
    if variables.is_empty() {
        return Ok(());
    }
    let state = &mut draft.state;
    read(worker, association, state).await?;
    let settings = &worker.config().subscriber_state;
    state.set(variables, bounds(settings), OffsetDateTime::now_utc());
    for name in state.refused() {
        tracing::debug!(id = %association.id, name, "a state variable of a subscriber is not kept");
        trail::note(|| Entry::new("decision", format!("subscriber variable {name} refused")));
    }
    Ok(())
}

/// Counts what was written, and what was refused.
pub(crate) fn count(worker: &Worker, draft: &Draft) {
    if draft.state.to_write().is_some() {
        worker.count(Event::SubscriberStateWritten);
    }
    for _ in draft.state.refused() {
        worker.count(Event::SubscriberStateRefused);
    }
}

async fn read(
    worker: &Worker,
    association: &Association,
    state: &mut StateDraft,
) -> Result<(), store::Error> {
    let subscriber = emergency::subscriber_of(worker, association).filter(|_| !state.is_read());
    if let Some(subscriber) = subscriber {
        let stored = worker.repository().state(subscriber).await?;
        state.read(subscriber, stored);
        worker.count(Event::SubscriberStateRead);
    }
    Ok(())
}

fn bounds(settings: &StateVariables) -> Bounds {
    Bounds {
        variables: settings.max_variables,
        bytes: settings.max_size.as_usize(),
        retention: settings.retention.duration(),
    }
}
