//! The state variables of a subscriber, which its associations share.

use std::sync::Weak;

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use function::Page;
use serde_json::{Value, json};

use super::{repository, unavailable};
use crate::association::Association;
use crate::association::ledger::Ledger;
use crate::projects::Projects;
use crate::repository::Repository;
use crate::shared::Pcf;

pub(super) const PAGE: Page = Page {
    name: "variables",
    about: "The state variables of a subscriber by SUPI, which all its associations share (DELETE removes them)",
    path: "/pcf/variables/{}",
    argument: Some("SUPI"),
    columns: &[],
};

/// Serves [`PAGE`].
pub(super) fn routes(pcf: &Weak<Pcf>) -> Router {
    let (shown, removed) = (pcf.clone(), pcf.clone());
    Router::new().route(
        "/pcf/variables/{subscriber}",
        get(move |Path(subscriber): Path<String>| async move { answer(&shown, &subscriber, false).await })
            .delete(move |Path(subscriber): Path<String>| async move {
                answer(&removed, &subscriber, true).await
            }),
    )
}

/// The variables of a subscriber, deleted where an operator wants it.
async fn answer(pcf: &Weak<Pcf>, subscriber: &str, deletes: bool) -> Response {
    let Some(repository) = repository(pcf) else {
        return axum::Json(json!({})).into_response();
    };
    let found = async {
        let stored = repository.state(subscriber).await?;
        if deletes && stored.is_some() {
            repository.remove_state(subscriber).await?;
            tracing::warn!(
                subscriber,
                "an operator has deleted the state variables of a subscriber"
            );
        }
        Ok::<_, store::Error>(stored)
    };
    match found.await {
        Ok(Some(stored)) => axum::Json(stored.record.variables).into_response(),
        Ok(None) => {
            let text = format!("there are no state variables of {subscriber}\n");
            (StatusCode::NOT_FOUND, text).into_response()
        }
        Err(error) => unavailable(&error),
    }
}

/// What the project of an association reads as `$subscriberState`.
pub(super) async fn of(repository: &Repository, projects: &Projects, association: &Association) -> Value {
    let project = &projects.of(association.kind.service()).project;
    let subscriber = Ledger::subscriber_of(association).filter(|_| project.reads_subscriber_state());
    match subscriber {
        Some(subscriber) => match repository.state(subscriber).await {
            Ok(Some(stored)) => Value::Object(stored.record.variables),
            Ok(None) | Err(_) => Value::Null,
        },
        None => Value::Null,
    }
}
