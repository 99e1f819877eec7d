//! What browsers get: the pages, their scripts and style, the summary, the stream, the box and followed subscribers. Only for our
//! own names and our own pages, and only GET but for following.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use serde::Deserialize;
use telemetry::admin;
use telemetry::journal::Kind;
use tokio::sync::Semaphore;

use crate::find::find;
use crate::following::{self, Asked, Form as Wanted};
use crate::stream::{Feed, stream};
use crate::summary::Watch;
use crate::words::words;

/// Scripts, styles and requests of our own only; no frames, no plug-ins, no base. What strangers have written could bring none of
/// it to run even if it became markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";
/// Searches at the same time: each asks several functions.
const SEARCHES: usize = 4;

const PAGE: &str = include_str!("../web/index.html");
const SCRIPT: &str = include_str!("../web/app.js");
const FOLLOW_PAGE: &str = include_str!("../web/follow.html");
const FOLLOW_SCRIPT: &str = include_str!("../web/follow.js");
const VIEW: &str = include_str!("../web/view.js");
const STYLE: &str = include_str!("../web/style.css");

/// The one address at which something may be changed.
const FOLLOW: &str = "/api/v1/follow";

/// What requests need.
#[derive(Debug)]
struct Site {
    watch: Arc<Watch>,
    feed: Arc<Feed>,
    searches: Semaphore,
}

/// All that is served.
pub(crate) fn router(watch: Arc<Watch>, feed: Arc<Feed>) -> Router {
    let site = Arc::new(Site {
        watch,
        feed,
        searches: Semaphore::new(SEARCHES),
    });
    let file = |media_type: &'static str, text: &'static str| {
        get(move || async move { ([(header::CONTENT_TYPE, media_type)], text) })
    };
    let router = Router::new()
        .route("/", file("text/html; charset=utf-8", PAGE))
        .route("/app.js", file("text/javascript; charset=utf-8", SCRIPT))
        .route("/view.js", file("text/javascript; charset=utf-8", VIEW))
        .route("/style.css", file("text/css; charset=utf-8", STYLE))
        .route("/follow", file("text/html; charset=utf-8", FOLLOW_PAGE))
        .route(
            "/follow.js",
            file("text/javascript; charset=utf-8", FOLLOW_SCRIPT),
        )
        .route("/text", get(text))
        .route("/api/v1/summary", get(summary))
        .route("/api/v1/stream", get(events))
        .route("/api/v1/find", get(search))
        .route(FOLLOW, get(followed).put(change).delete(change))
        .with_state(site)
        .fallback(|| async {
            (
                StatusCode::NOT_FOUND,
                "the page does not exist; / is the console\n",
            )
        })
        .layer(from_fn(refuse));
    admin::for_us_only(router, &[]).layer(from_fn(secure))
}

/// Refuses changes of anything but who is followed, and requests that pages of other sites make, which must cause nothing at
/// functions. A link on another page may lead to the page itself.
async fn refuse(request: Request, next: Next) -> Response {
    // The route of FOLLOW refuses other methods itself, and names its own.
    if !matches!(*request.method(), Method::GET | Method::HEAD) && request.uri().path() != FOLLOW {
        let head = [(header::ALLOW, "GET, HEAD")];
        return (
            StatusCode::METHOD_NOT_ALLOWED,
            head,
            "the console only reads here\n",
        )
            .into_response();
    }
    let is_api = request.uri().path().starts_with("/api/");
    if is_api && comes_from_elsewhere(request.headers()) {
        return (StatusCode::FORBIDDEN, "not for pages of other sites\n").into_response();
    }
    next.run(request).await
}

/// What the browser says of the page that asks (W3C Fetch Metadata); curl says nothing.
fn comes_from_elsewhere(headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all("sec-fetch-site").iter();
    sites.any(|site| !matches!(site.to_str(), Ok("same-origin" | "none")))
}

/// Adds what keeps a page safe in a browser to every answer, refusals included.
async fn secure(request: Request, next: Next) -> Response {
    let mut answer = next.run(request).await;
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ] {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

async fn summary(State(site): State<Arc<Site>>) -> Response {
    site.watch.attention.pay();
    axum::Json(site.watch.document()).into_response()
}

async fn text(State(site): State<Arc<Site>>) -> Response {
    site.watch.attention.pay();
    words(&site.watch.document()).into_response()
}

async fn events(State(site): State<Arc<Site>>) -> Response {
    stream(&site.feed, &site.watch)
}

/// What was typed into the box.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Form {
    text: String,
}

async fn search(State(site): State<Arc<Site>>, Query(typed): Query<Form>) -> Response {
    let Ok(_search) = site.searches.try_acquire() else {
        return busy();
    };
    let functions: Vec<(String, String, SocketAddr)> = site
        .watch
        .functions()
        .into_iter()
        .map(|(kind, followed)| (kind, followed.name, followed.admin))
        .collect();
    match find(&typed.text, &functions).await {
        Ok(found) => axum::Json(found).into_response(),
        Err(words) => (StatusCode::BAD_REQUEST, format!("{words}\n")).into_response(),
    }
}

fn asked(site: &Site) -> Vec<Asked> {
    let functions = site.watch.functions().into_iter();
    functions
        .map(|(_, followed)| (followed.name, followed.admin))
        .collect()
}

/// The messages of a subscriber.
async fn followed(State(site): State<Arc<Site>>, Query(form): Query<Wanted>) -> Response {
    let Ok(_search) = site.searches.try_acquire() else {
        return busy();
    };
    axum::Json(following::shown(&form.identity, asked(&site)).await).into_response()
}

/// Begins or ends following a subscriber.
async fn change(State(site): State<Arc<Site>>, method: Method, Query(form): Query<Wanted>) -> Response {
    let Ok(_search) = site.searches.try_acquire() else {
        return busy();
    };
    if form.identity.is_empty() {
        return (StatusCode::BAD_REQUEST, "identity= names the subscriber\n").into_response();
    }
    let about = format!("{method} {FOLLOW} {}", form.identity);
    let by = "a browser at the console";
    site.watch.journal.record_by(Kind::Operator, &about, "", by);
    axum::Json(following::change(&form, method, asked(&site)).await).into_response()
}

fn busy() -> Response {
    let words = format!("{SEARCHES} searches are in progress; try again\n");
    (StatusCode::SERVICE_UNAVAILABLE, words).into_response()
}
