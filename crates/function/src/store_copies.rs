//! `/store/backup`: a copy of the embedded store of a function that serves.
//!
//! A request begins it and is answered at once, since a copy may take longer than a client waits; GET says what has become of
//! it. The request names the directory, in which this process must be able to write.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Instant;

use ::store::{BackupError, Store};
use axum::extract::Query;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

/// The path of the page.
pub const PATH: &str = "/store/backup";

/// Where a copy is wanted.
#[derive(Debug, Deserialize)]
struct Wanted {
    to: PathBuf,
}

/// What has become of the last request.
type Last = Arc<Mutex<Value>>;

/// The page of a function with this store.
pub fn routes<F: Send + Sync + 'static>(function: &Weak<F>, store: fn(&F) -> &Store) -> Router {
    let (function, last) = (function.clone(), Last::default());
    let shown = last.clone();
    let begin = move |Query(Wanted { to }): Query<Wanted>| async move {
        let Some(store) = function.upgrade().map(|function| store(&function).clone()) else {
            return (StatusCode::SERVICE_UNAVAILABLE, "the function stops\n").into_response();
        };
        begin(store, &to, &last).await
    };
    let show = move || async move { Json(shown.lock().clone()) };
    Router::new().route(PATH, get(show).post(begin))
}

/// Begins a copy; what becomes of it is found at the page.
async fn begin(store: Store, to: &Path, last: &Last) -> Response {
    let begun = json!({ "state": "inProgress", "to": to });
    {
        let mut last = last.lock();
        if last["state"] == "inProgress" {
            let busy = BackupError::Busy(PathBuf::from(last["to"].as_str().unwrap_or_default()));
            return (StatusCode::CONFLICT, format!("{busy}\n")).into_response();
        }
        *last = begun.clone();
    }
    let (to, state, began) = (to.to_owned(), last.clone(), Instant::now());
    tokio::spawn(async move {
        let outcome = store.backup(&to).await;
        let seconds = began.elapsed().as_secs_f64();
        let figures = json!({ "to": to, "seconds": seconds });
        *state.lock() = match outcome {
            Ok(made) => {
                tracing::info!(
                    to = %to.display(),
                    files = made.files,
                    bytes = made.bytes,
                    linked = made.linked,
                    seconds,
                    "backup of the store complete"
                );
                merged(figures, &json!({ "state": "complete", "made": made }))
            }
            Err(error) => {
                tracing::error!(to = %to.display(), %error, "no backup of the store was made");
                merged(
                    figures,
                    &json!({ "state": "failed", "reason": error.to_string(), "status": status(&error) }),
                )
            }
        };
    });
    (StatusCode::ACCEPTED, Json(begun)).into_response()
}

fn merged(mut one: Value, other: &Value) -> Value {
    if let (Some(one), Some(other)) = (one.as_object_mut(), other.as_object()) {
        one.extend(other.clone());
    }
    one
}

/// What kind of failure it is, as a status of HTTP.
fn status(error: &BackupError) -> u16 {
    match error {
        BackupError::Busy(_) => 409,
        BackupError::Database => 501,
        BackupError::Target { .. } => 422,
        BackupError::Failed(_) => 500,
    }
}
