//! Admin pages about followed subscribers (crate `follow`).
//!
//! | request | what |
//! |---|---|
//! | `GET /follow` | who is followed, until when, by which further identities |
//! | `PUT /follow/{identity}?for=60s` | follows a subscriber, or until another moment |
//! | `DELETE /follow/{identity}` | ends that, and drops the copies |
//! | `GET /follow/messages?after=N&identity=X` | the copies after a number, a page of them |

use axum::extract::{Path, Query};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use follow::{FollowError, Room};
use serde::Deserialize;
use serde_json::{Value, json};
use settings::Period;

/// How long a subscriber is followed without `for`.
const USUAL: Period = Period::from_secs(60);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    #[serde(rename = "for")]
    period: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct After {
    after: u64,
    identity: Option<String>,
}

/// Serves the pages.
pub(crate) fn routes(room: &Room) -> Router {
    let (listed, added, removed, shown) = (room.clone(), room.clone(), room.clone(), room.clone());
    Router::new()
        .route("/follow", get(move || async move { private(list(&listed)) }))
        .route(
            "/follow/messages",
            get(move |Query(wanted): Query<After>| async move {
                private(shown.page(wanted.after, wanted.identity.as_deref()))
            }),
        )
        .route(
            "/follow/{identity}",
            put(
                move |Path(identity): Path<String>, Query(wanted): Query<Wanted>| async move {
                    add(&added, &identity, wanted.period.as_deref())
                },
            )
            .delete(move |Path(identity): Path<String>| async move { remove(&removed, &identity) }),
        )
}

/// Personal data, which caches must not store.
fn private(page: impl serde::Serialize) -> Response {
    ([(header::CACHE_CONTROL, "no-store")], Json(page)).into_response()
}

fn list(room: &Room) -> Value {
    json!({ "version": 1, "start": room.start(), "followed": room.list(), "bytes": room.held() })
}

fn refusal(status: StatusCode, why: impl std::fmt::Display) -> Response {
    (status, format!("{why}\n")).into_response()
}

fn add(room: &Room, identity: &str, period: Option<&str>) -> Response {
    let period = match period.map(str::parse::<Period>) {
        None => USUAL,
        Some(Ok(period)) => period,
        Some(Err(error)) => return refusal(StatusCode::BAD_REQUEST, format!("for: {error}")),
    };
    match room.follow(identity, period.duration()) {
        Ok(()) => {
            tracing::warn!(identity, %period, "an operator follows a subscriber");
            private(list(room))
        }
        Err(error @ FollowError::Invalid(_)) => refusal(StatusCode::BAD_REQUEST, error),
        Err(error @ FollowError::Full) => refusal(StatusCode::CONFLICT, error),
    }
}

fn remove(room: &Room, identity: &str) -> Response {
    if !room.unfollow(identity) {
        let why = format!("{identity} is not followed; GET /follow lists who is");
        return refusal(StatusCode::NOT_FOUND, why);
    }
    tracing::warn!(identity, "an operator follows a subscriber no more");
    private(list(room))
}
