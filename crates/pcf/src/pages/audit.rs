//! What the audit has removed, and the word of an operator to it.

use std::sync::Weak;
use std::time::Instant;

use axum::Router;
use axum::routing::get;
use function::Page;

use crate::shared::Pcf;

pub(super) const PAGE: Page = Page {
    name: "audit",
    about: "What the audit has removed lately, and whether its brake holds (PUT \"RELEASED\" lets it go on)",
    path: "/pcf/audit",
    argument: None,
    columns: &[
        ("table", "/table"),
        ("removed", "/removed"),
        ("braked", "/braked"),
        ("held back", "/heldBack"),
    ],
};

/// What an operator says to the audit.
#[derive(serde::Deserialize)]
enum Word {
    #[serde(rename = "RELEASED")]
    Released,
}

/// Serves [`PAGE`].
pub(super) fn routes(pcf: &Weak<Pcf>) -> Router {
    let (shown, released) = (pcf.clone(), pcf.clone());
    let put = move |axum::Json(word): axum::Json<Word>| async move {
        let Word::Released = word;
        axum::Json(released.upgrade().map(|pcf| {
            tracing::warn!("an operator has released the brake of the audit");
            pcf.brake.release(Instant::now());
            pcf.brake.shown()
        }))
    };
    let show = move || async move { axum::Json(shown.upgrade().map(|pcf| pcf.brake.shown())) };
    Router::new().route(PAGE.path, get(show).put(put))
}
