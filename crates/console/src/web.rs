//! What browsers get: the pages, their scripts and style, the summary, the stream, the box, followed subscribers, explanations and
//! configurations. Only for our own names and our own pages; each route needs a right, and what is not here does not exist.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post, put};
use axum::{Extension, Json, Router};
use serde::Deserialize;
use telemetry::admin;
use tokio::sync::Semaphore;

use crate::access::{self, Access, Entry, Gate, Right, Visitor, masked};
use crate::assets;
use crate::configuration;
use crate::find::find;
use crate::following::{self, Asked, Form as Wanted};
use crate::policy;
use crate::stream::{Feed, stream};
use crate::summary::Watch;
use crate::why;
use crate::words::words;

/// Scripts, styles and requests of our own only; no frames, no plug-ins, no base. What strangers have written could bring none of
/// it to run even if it became markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";
/// Searches at the same time: each asks several functions.
const SEARCHES: usize = 4;
/// Octets of the body of a request: a message to explain.
const MOST_BODY: usize = 256 << 10;

/// Where something may be changed or asked by another method than GET; each of them has its own methods.
const FOLLOW: &str = "/api/v1/follow";
const WHY: &str = "/api/v1/why";
const RELOAD: &str = "/api/v1/reload";
/// Below it an alarm has its key.
const ALARMS: &str = "/api/v1/alarms/";

/// What requests need.
#[derive(Debug)]
struct Site {
    watch: Arc<Watch>,
    feed: Arc<Feed>,
    searches: Semaphore,
    access: Arc<Access>,
}

/// All that is served; `hosts` are names that browsers know the console by.
pub(crate) fn router(watch: Arc<Watch>, feed: Arc<Feed>, access: Arc<Access>, hosts: &[String]) -> Router {
    let is_secure = access.is_secure();
    let site = Arc::new(Site {
        watch,
        feed,
        searches: Semaphore::new(SEARCHES),
        access: access.clone(),
    });
    let routes = Router::new()
        .merge(assets::open())
        .merge(guarded(assets::seeing().merge(seeing()), &access, Right::See))
        .merge(guarded(assets::tracing().merge(tracing()), &access, Right::Trace))
        .merge(guarded(operating(), &access, Right::Operate))
        .with_state(site)
        .merge(access::routes(&access))
        .fallback(|| async {
            (
                StatusCode::NOT_FOUND,
                "the page does not exist; / is the console\n",
            )
        })
        .layer(DefaultBodyLimit::max(MOST_BODY))
        .layer(from_fn_with_state(access, access::refuse_foreign_changes))
        .layer(from_fn(refuse));
    admin::for_us_only(routes, hosts).layer(from_fn_with_state(is_secure, secure))
}

type Routes = Router<Arc<Site>>;

/// Routes for those who have a right.
fn guarded(routes: Routes, access: &Arc<Access>, right: Right) -> Routes {
    let gate = Gate {
        access: access.clone(),
        right,
    };
    routes.route_layer(from_fn_with_state(gate, access::admit))
}

fn seeing() -> Routes {
    Router::new()
        .route("/text", get(text))
        .route("/api/v1/summary", get(summary))
        .route("/api/v1/stream", get(events))
        .route("/api/v1/find", get(search))
        .route("/api/v1/configuration", get(shown_configuration))
        .route("/api/v1/policy", get(projects))
}

fn tracing() -> Routes {
    Router::new()
        .route(FOLLOW, get(followed).put(change).delete(change))
        .route("/api/v1/follow/message", get(opened))
        .route("/api/v1/policy/explain", get(explained_policy))
        .route(WHY, post(explained))
}

fn operating() -> Routes {
    Router::new()
        .route(RELOAD, post(reload))
        .route(&format!("{ALARMS}{{key}}"), put(acknowledge).delete(acknowledge))
}

/// Refuses changes where nothing can be changed, and requests that pages of other sites make, which must cause nothing at
/// functions. A link on another page may lead to the page itself.
async fn refuse(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    // These refuse other methods themselves, and name their own.
    let has_methods = [FOLLOW, WHY, RELOAD, access::SESSION].contains(&path)
        || [access::SESSIONS, ALARMS]
            .iter()
            .any(|below| path.starts_with(below));
    if !matches!(*request.method(), Method::GET | Method::HEAD) && !has_methods {
        let head = [(header::ALLOW, "GET, HEAD")];
        return (
            StatusCode::METHOD_NOT_ALLOWED,
            head,
            "the console only reads here\n",
        )
            .into_response();
    }
    if path.starts_with("/api/") && comes_from_elsewhere(request.headers()) {
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
async fn secure(State(is_secure): State<bool>, request: Request, next: Next) -> Response {
    let mut answer = next.run(request).await;
    let mut add = |name, value| answer.headers_mut().insert(name, HeaderValue::from_static(value));
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
        add(name, value);
    }
    if is_secure {
        // Half a year (RFC 6797 §6.1): a later visit by http is one by https.
        add(header::STRICT_TRANSPORT_SECURITY, "max-age=15768000");
    }
    answer
}

type Shared = State<Arc<Site>>;
type By = Extension<Visitor>;

/// The summary as a visitor may see it.
fn document(site: &Site, visitor: &Visitor) -> serde_json::Value {
    site.watch.attention.pay();
    let document = site.watch.document();
    if visitor.may(Right::Trace) {
        document
    } else {
        masked(document)
    }
}

async fn summary(State(site): Shared, Extension(visitor): By) -> Response {
    Json(document(&site, &visitor)).into_response()
}

async fn text(State(site): Shared, Extension(visitor): By) -> Response {
    words(&document(&site, &visitor)).into_response()
}

async fn events(State(site): Shared, Extension(visitor): By) -> Response {
    stream(&site.feed, &site.watch, site.access.clone(), visitor)
}

/// What was typed into the box.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Form {
    text: String,
}

async fn search(State(site): Shared, Extension(visitor): By, Query(typed): Query<Form>) -> Response {
    let Ok(_search) = site.searches.try_acquire() else {
        return busy();
    };
    let may_trace = visitor.may(Right::Trace);
    if let Err(words) = site
        .access
        .record(&visitor, Entry::new("searches", &typed.text))
        .await
    {
        return unavailable(&words);
    }
    let functions: Vec<(String, String, SocketAddr)> = site
        .watch
        .functions()
        .into_iter()
        .map(|(kind, followed)| (kind, followed.name, followed.admin))
        .collect();
    match find(&typed.text, &functions, may_trace).await {
        Ok(found) if may_trace => Json(found).into_response(),
        Ok(found) => Json(masked(found)).into_response(),
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
async fn followed(State(site): Shared, Extension(visitor): By, Query(form): Query<Wanted>) -> Response {
    let Ok(_search) = site.searches.try_acquire() else {
        return busy();
    };
    if let Err(words) = site.access.record_reading(&visitor, &form.identity).await {
        return unavailable(&words);
    }
    Json(following::shown(&form, asked(&site)).await).into_response()
}

/// A message of a subscriber with all its content.
async fn opened(
    State(site): Shared,
    Extension(visitor): By,
    Query(wanted): Query<following::Opened>,
) -> Response {
    let Ok(_search) = site.searches.try_acquire() else {
        return busy();
    };
    if let Err(words) = site.access.record_reading(&visitor, &wanted.identity).await {
        return unavailable(&words);
    }
    match following::opened(&wanted, &asked(&site)).await {
        Ok(opened) => Json(opened).into_response(),
        Err(words) => (StatusCode::NOT_FOUND, format!("{words}\n")).into_response(),
    }
}

/// Begins or ends following a subscriber.
async fn change(
    State(site): Shared,
    Extension(visitor): By,
    method: Method,
    Query(form): Query<Wanted>,
) -> Response {
    let Ok(_search) = site.searches.try_acquire() else {
        return busy();
    };
    if form.identity.is_empty() {
        return (StatusCode::BAD_REQUEST, "identity= names the subscriber\n").into_response();
    }
    let what = if method == Method::PUT {
        "follows"
    } else {
        "ends following"
    };
    if let Err(words) = site
        .access
        .record(
            &visitor,
            Entry::change(what, &format!("identity={}", form.identity)),
        )
        .await
    {
        return unavailable(&words);
    }
    Json(following::change(&form, method, asked(&site)).await).into_response()
}

/// What would become of a message.
async fn explained(
    State(site): Shared,
    Extension(visitor): By,
    form: Result<Json<why::Form>, axum::extract::rejection::JsonRejection>,
) -> Response {
    let Ok(_search) = site.searches.try_acquire() else {
        return busy();
    };
    let Ok(Json(form)) = form else {
        let words = format!(
            "expected JSON with `text`, a message of at most {} KB\n",
            MOST_BODY >> 10
        );
        return (StatusCode::BAD_REQUEST, words).into_response();
    };
    let question = match why::Question::new(&form) {
        Ok(question) => question,
        Err(words) => return (StatusCode::BAD_REQUEST, format!("{words}\n")).into_response(),
    };
    if let Err(words) = site
        .access
        .record(&visitor, Entry::new("asks why", &question.about))
        .await
    {
        return unavailable(&words);
    }
    Json(why::explained(&question, &site.watch.functions()).await).into_response()
}

/// The configuration in effect in a function, beside that of another one.
async fn shown_configuration(
    State(site): Shared,
    Extension(visitor): By,
    Query(form): Query<configuration::Form>,
) -> Response {
    let Ok(_search) = site.searches.try_acquire() else {
        return busy();
    };
    for_all(configuration::shown(&form, &asked(&site)).await, &visitor)
}

/// What every visitor may see, without identities where he may not see subscribers; a request that cannot be answered is wrong.
fn for_all(shown: Result<serde_json::Value, String>, visitor: &Visitor) -> Response {
    match shown {
        Ok(shown) if visitor.may(Right::Trace) => Json(shown).into_response(),
        Ok(shown) => Json(masked(shown)).into_response(),
        Err(words) => (StatusCode::BAD_REQUEST, format!("{words}\n")).into_response(),
    }
}

/// The policy projects of a PCF. They may name subscribers.
async fn projects(State(site): Shared, Extension(visitor): By, Query(form): Query<policy::Form>) -> Response {
    let Ok(_search) = site.searches.try_acquire() else {
        return busy();
    };
    for_all(policy::shown(&form, &asked(&site)).await, &visitor)
}

/// What the policy project in effect decides for a subscriber.
async fn explained_policy(
    State(site): Shared,
    Extension(visitor): By,
    Query(form): Query<policy::Form>,
) -> Response {
    let Ok(_search) = site.searches.try_acquire() else {
        return busy();
    };
    let entry = Entry::new("asks for decisions", &form.subscriber);
    if let Err(words) = site.access.record(&visitor, entry).await {
        return unavailable(&words);
    }
    for_all(policy::explained(&form, &asked(&site)).await, &visitor)
}

/// Has a function read its file again.
async fn reload(
    State(site): Shared,
    Extension(visitor): By,
    Query(form): Query<configuration::Form>,
) -> Response {
    let Ok(_search) = site.searches.try_acquire() else {
        return busy();
    };
    if let Err(words) = site
        .access
        .record(&visitor, Entry::change("reloads", &form.function))
        .await
    {
        return unavailable(&words);
    }
    match configuration::reload(&form.function, &asked(&site)).await {
        Ok(answer) => Json(answer).into_response(),
        Err(words) => (StatusCode::BAD_REQUEST, format!("{words}\n")).into_response(),
    }
}

/// Why an alarm is acknowledged.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Comment {
    comment: String,
}

/// Acknowledges an alarm, or withdraws that.
async fn acknowledge(
    State(site): Shared,
    Extension(visitor): By,
    method: Method,
    Path(key): Path<String>,
    Query(form): Query<Comment>,
) -> Response {
    let document = site.watch.document();
    let active = document["alarms"]["active"].as_array();
    let alarm = active.into_iter().flatten().find(|alarm| alarm["key"] == *key);
    let Some(alarm) = alarm else {
        return (StatusCode::NOT_FOUND, "the alarm is not active any more\n").into_response();
    };
    let about = format!("{} {} {}", alarm["function"], alarm["number"], alarm["about"]).replace('"', "");
    let is_set = method == Method::PUT;
    let what = if is_set {
        "acknowledges an alarm"
    } else {
        "withdraws an acknowledgement"
    };
    let entry = Entry::change(what, &about).detail(&form.comment);
    if let Err(words) = site.access.record(&visitor, entry).await {
        return unavailable(&words);
    }
    let all = site.watch.acknowledged.clone();
    let set = move || all.set(&key, visitor.name(), is_set.then_some(form.comment.as_str()));
    match tokio::task::spawn_blocking(set).await {
        Ok(Ok(())) => StatusCode::NO_CONTENT.into_response(),
        Ok(Err(words)) => unavailable(&words),
        Err(error) => unavailable(&error.to_string()),
    }
}

fn busy() -> Response {
    unavailable(&format!("{SEARCHES} searches are in progress; try again"))
}

fn unavailable(words: &str) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, format!("{words}\n")).into_response()
}
