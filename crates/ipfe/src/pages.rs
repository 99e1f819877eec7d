//! The admin pages of a front end.

use std::sync::{Arc, Weak};

use axum::Router;
use axum::routing::get;
use function::Page;

use crate::backend::{BackendRow, Set};
use crate::pair::Pairing;

pub(crate) const PAGES: &[Page] = &[
    Page {
        name: "backends",
        about: "The message processors or servers behind each address, and their state",
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
    },
    Page {
        name: "pair",
        about: "Whether this front end is active or standby, and its mate",
        path: "/ipfe/pair",
        argument: None,
        columns: &[],
    },
];

/// Serves [`PAGES`]. They look at the sets through weak handles: a page must not keep the front end from ending.
pub(crate) fn routes(sets: &[Arc<Set>], pairing: &Arc<Pairing>) -> Router {
    let sets: Vec<Weak<Set>> = sets.iter().map(Arc::downgrade).collect();
    let backends = get(move || async move {
        let sets = sets.iter().filter_map(Weak::upgrade);
        let rows: Vec<BackendRow> = sets.flat_map(|set| set.rows()).collect();
        axum::Json(rows)
    });
    let pairing = Arc::downgrade(pairing);
    let pair = get(move || async move { axum::Json(pairing.upgrade().map(|pairing| pairing.row())) });
    Router::new()
        .route("/ipfe/backends", backends)
        .route("/ipfe/pair", pair)
}
