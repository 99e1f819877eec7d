//! The admin pages of a front end.

use std::sync::{Arc, Weak};

use axum::Router;
use axum::routing::get;
use function::Page;

use crate::backend::{BackendRow, Set};

pub(crate) const PAGES: &[Page] = &[Page {
    name: "backends",
    about: "The message processors behind each address, and their state",
    path: "/ipfe/backends",
    argument: None,
    columns: &[
        ("target set", "/targetSet"),
        ("backend", "/name"),
        ("address", "/address"),
        ("state", "/state"),
        ("connections", "/connections"),
        ("in", "/bytesIn"),
        ("out", "/bytesOut"),
    ],
}];

/// Serves [`PAGES`]. They look at the sets through weak handles: a page must not keep the front end from ending.
pub(crate) fn routes(sets: &[Arc<Set>]) -> Router {
    let sets: Vec<Weak<Set>> = sets.iter().map(Arc::downgrade).collect();
    let backends = get(move || async move {
        let sets = sets.iter().filter_map(Weak::upgrade);
        let rows: Vec<BackendRow> = sets.flat_map(|set| set.rows().collect::<Vec<_>>()).collect();
        axum::Json(rows)
    });
    Router::new().route("/ipfe/backends", backends)
}
