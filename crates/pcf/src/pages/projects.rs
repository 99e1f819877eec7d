//! The policy projects in effect: their files, and what their folders have now.

use std::sync::{Arc, Weak};

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use function::Page;
use policy::Service;
use serde_json::{Value, json};

use crate::projects::{Files, Pair, Projects};
use crate::shared::Pcf;

pub(super) const PAGE: Page = Page {
    name: "projects",
    about: "The policy projects in effect, one for each service",
    path: "/pcf/projects",
    argument: None,
    columns: &[
        ("service", "/service"),
        ("project", "/name"),
        ("description", "/description"),
        ("built in", "/builtIn"),
        ("blocks", "/blocks"),
    ],
};

pub(super) const ONE: Page = Page {
    name: "project",
    about: "The policy project of a service (sm, am, ue): its files as they are in effect, those in its folder now, and why a reload would refuse these",
    path: "/pcf/projects/{}",
    argument: Some("SERVICE"),
    columns: &[],
};

/// Serves [`PAGE`] and [`ONE`].
pub(super) fn routes(pcf: &Weak<Pcf>) -> Router {
    let (all, one) = (pcf.clone(), pcf.clone());
    Router::new()
        .route(PAGE.path, get(move || async move { list(&all) }))
        .route(
            "/pcf/projects/{service}",
            get(move |Path(service): Path<String>| async move { whole(&one, &service).await }),
        )
}

fn list(pcf: &Weak<Pcf>) -> Response {
    let lines = pcf.upgrade().map(|pcf| {
        let live = pcf.live.load();
        live.projects.all().map(line)
    });
    axum::Json(lines).into_response()
}

fn line(pair: &Pair) -> Value {
    let project = &pair.project;
    json!({
        "service": project.service().name(),
        "name": project.name(),
        "description": project.description(),
        "builtIn": Arc::ptr_eq(project, &pair.built_in),
        "blocks": project.blocks(),
    })
}

async fn whole(pcf: &Weak<Pcf>, service: &str) -> Response {
    let known = [Service::Sm, Service::Am, Service::Ue];
    let Some(service) = known.into_iter().find(|known| known.name() == service) else {
        let text = "there are policy projects of sm, am and ue\n";
        return (StatusCode::NOT_FOUND, text).into_response();
    };
    let Some(pcf) = pcf.upgrade() else {
        return axum::Json(Value::Null).into_response();
    };
    let live = pcf.live.load_full();
    let read = move || {
        let pair = live.projects.of(service);
        let mut shown = line(pair);
        shown["files"] = files(&pair.files);
        if let Some(draft) = Projects::draft(&live.config, service) {
            let differs = draft.files != pair.files;
            shown["folder"] = json!({
                "differs": differs,
                "files": if differs { files(&draft.files) } else { json!([]) },
                "mistakes": draft.mistakes,
            });
        }
        shown
    };
    // It reads and compiles files.
    match tokio::task::spawn_blocking(read).await {
        Ok(shown) => axum::Json(shown).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

fn files(files: &Files) -> Value {
    let each = files
        .iter()
        .map(|(name, text)| json!({"name": name, "text": text}));
    each.collect()
}
