//! The console's own admin page.

use std::sync::{Arc, Weak};

use axum::Router;
use axum::routing::get;
use function::Page;

use crate::summary::Watch;

pub(crate) const PAGES: &[Page] = &[Page {
    name: "functions",
    about: "The functions that it follows, and how they are doing",
    path: "/console/functions",
    argument: None,
    columns: &[
        ("name", "/name"),
        ("state", "/state"),
        ("since", "/since"),
        ("admin", "/admin"),
        ("last answer", "/lastAnswer"),
        ("per second", "/figures/perSecond"),
        ("failures", "/figures/failureShare"),
    ],
}];

/// Serves [`PAGES`], through a weak handle: a page must not keep the console from ending.
pub(crate) fn routes(watch: &Arc<Watch>) -> Router {
    let watch: Weak<Watch> = Arc::downgrade(watch);
    let rows = get(move || async move { axum::Json(watch.upgrade().map(|watch| watch.rows())) });
    Router::new().route("/console/functions", rows)
}
