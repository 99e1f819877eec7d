//! The admin endpoint of a function: HTTP/1.1 for Prometheus, probes, browsers and curl.
//!
//! | path | what |
//! |---|---|
//! | `GET /livez` | 200 while every worker beats, 503 with the reasons otherwise |
//! | `GET /readyz` | 200 when all that the function needs is there, 503 with the reasons otherwise |
//! | `GET /status` | how it is doing: what is wrong and the remedy, what it needs of others, version, configuration |
//! | `GET /journal` | what has changed: starts, reloads, alarms, certificates, peers, operators' changes |
//! | `GET /` | the pages |
//! | `GET /metrics` | metrics of the function, those of the process at its first one; text, or OpenMetrics by `Accept` |
//! | `GET /alarms` | active and recently cleared alarms |
//! | `GET /config` | the configuration in effect, passwords in addresses blotted out |
//! | `POST /config/reload` | reloads the configuration, where the function can |
//! | `GET`, `POST /log-level` | shows, changes what is logged |
//!
//! A function adds pages of its own ([`Admin::routes`], named on the index by [`Admin::page`]).

mod config;
mod guard;
mod serve;
mod standing;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};

use crate::alarms::Alarms;
use crate::health::Health;
use crate::journal::Journal;
use crate::logging;
use crate::metrics::{Format, Registry, render_as};

pub use config::Config;
pub use guard::for_us_only;
pub use serve::{Limits, METRICS, Serving, register, serve, serve_at, serve_within};

/// The reload hook: gets who wants the reload, returns what has changed, or why nothing has. Where a part was refused, the
/// answer lists it as `invalid`: the status is then 422 as well.
pub type Reload = Arc<dyn Fn(&str) -> Result<Value, String> + Send + Sync>;

/// The name of the dependency that says whether and where a function is registered.
pub const REGISTRATION: &str = "registration";

/// What clients get in place of the pages as they are: the same for a browser.
type Wrap = Arc<dyn Fn(Router) -> Router + Send + Sync>;

/// The admin pages of a function.
#[derive(Clone)]
pub struct Admin {
    function: &'static str,
    registries: Vec<Registry>,
    health: Health,
    alarms: Option<Alarms>,
    config: Option<Arc<dyn Fn() -> Value + Send + Sync>>,
    reload: Option<Reload>,
    routes: Router,
    pages: Vec<(&'static str, &'static str)>,
    names: guard::Names,
    release: &'static str,
    configuration: Option<Arc<dyn Fn() -> Value + Send + Sync>>,
    wrap: Option<Wrap>,
}

impl std::fmt::Debug for Admin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Admin({})", self.function)
    }
}

impl Admin {
    /// The pages of `function` (its short name), with the metrics of `registry`.
    #[must_use]
    pub fn new(function: &'static str, registry: Registry) -> Self {
        Self {
            function,
            registries: vec![registry],
            health: Health::new(),
            alarms: None,
            config: None,
            reload: None,
            routes: Router::new(),
            pages: Vec::new(),
            names: guard::Names::default(),
            release: env!("CARGO_PKG_VERSION"),
            configuration: None,
            wrap: None,
        }
    }

    /// Shows these metrics as well: those of the process.
    #[must_use]
    pub fn also(mut self, registry: Registry) -> Self {
        self.registries.push(registry);
        self
    }

    /// Shows this health at `/livez` and `/readyz`.
    #[must_use]
    pub fn health(mut self, health: Health) -> Self {
        self.health = health;
        self
    }

    /// Shows these alarms.
    #[must_use]
    pub fn alarms(mut self, alarms: Alarms) -> Self {
        self.alarms = Some(alarms);
        self
    }

    /// Shows this configuration, asked for each time.
    #[must_use]
    pub fn config(mut self, config: impl Fn() -> Value + Send + Sync + 'static) -> Self {
        self.config = Some(Arc::new(config));
        self
    }

    /// Reloads the configuration with this.
    #[must_use]
    pub fn reload(mut self, reload: Reload) -> Self {
        self.reload = Some(reload);
        self
    }

    /// Names the release, with the commit.
    #[must_use]
    pub fn release(mut self, release: &'static str) -> Self {
        self.release = release;
        self
    }

    /// Shows on `/status` whether the configuration on the disk is in effect: members `inEffect` and `detail`.
    #[must_use]
    pub fn configuration(mut self, configuration: impl Fn() -> Value + Send + Sync + 'static) -> Self {
        self.configuration = Some(Arc::new(configuration));
        self
    }

    /// Serves what this makes of the pages.
    #[must_use]
    pub fn wrap(mut self, wrap: impl Fn(Router) -> Router + Send + Sync + 'static) -> Self {
        self.wrap = Some(Arc::new(wrap));
        self
    }

    fn journal(&self) -> Option<&Journal> {
        self.alarms.as_ref().map(Alarms::journal)
    }

    /// Adds pages of the function's own.
    #[must_use]
    pub fn routes(mut self, routes: Router) -> Self {
        self.routes = self.routes.merge(routes);
        self
    }

    /// Names a page of the function's own on the index; `{}` in its path stands for an argument.
    #[must_use]
    pub fn page(mut self, path: &'static str, about: &'static str) -> Self {
        self.pages.push((path, about));
        self
    }

    /// Answers requests for these names as well; without any, those for an IP address and `localhost`.
    #[must_use]
    pub fn hosts(mut self, names: &[String]) -> Self {
        self.names = guard::Names::new(names);
        self
    }

    /// All pages.
    pub fn router(self) -> Router {
        let routes = self.routes.clone();
        let names = self.names.clone();
        let wrap = self.wrap.clone();
        let journal = self.journal().cloned().unwrap_or_default();
        let router = Router::new()
            .route("/", get(index))
            .route("/status", get(standing::status))
            .route("/journal", get(standing::journal))
            .route("/livez", get(livez))
            .route("/readyz", get(readyz))
            .route("/metrics", get(metrics))
            .route("/alarms", get(alarms))
            .route("/config", get(config))
            .route("/config/reload", post(reload))
            .route("/log-level", get(log_level).post(set_log_level))
            .with_state(Arc::new(self))
            .merge(routes)
            .fallback(nothing_here)
            .layer(axum::middleware::from_fn_with_state(journal, standing::record))
            .layer(axum::middleware::from_fn_with_state(names, guard::refuse_foreign))
            .layer(axum::extract::DefaultBodyLimit::max(64 << 10));
        match wrap {
            Some(wrap) => wrap(router),
            None => router,
        }
    }
}

/// The pages of a function that is being started, which its own pages follow: a client meanwhile gets health, alarms and
/// metrics, and is not refused.
#[derive(Clone, Debug)]
pub struct Entrance {
    starting: Router,
    started: Arc<std::sync::OnceLock<Router>>,
}

impl Entrance {
    /// Answers with these pages until [`Entrance::open`].
    #[must_use]
    pub fn new(starting: Admin) -> Self {
        Self {
            starting: starting.router(),
            started: Arc::default(),
        }
    }

    /// Answers with these pages from now on.
    pub fn open(&self, pages: Admin) {
        let _ = self.started.set(pages.router());
    }

    /// What the server asks.
    pub fn router(&self) -> Router {
        let this = self.clone();
        Router::new().fallback(move |request: axum::extract::Request| {
            let router = this.started.get().unwrap_or(&this.starting).clone();
            TowerToHyperService::new(router).call(request)
        })
    }
}

type Shared = State<Arc<Admin>>;

/// The pages of every function: method, path, content.
const PAGES: [(&str, &str, &str); 10] = [
    ("GET", "/status", "How it is doing, what is wrong and the remedy"),
    ("GET", "/journal", "What has changed, the oldest first"),
    ("GET", "/livez", "Whether its threads work"),
    (
        "GET",
        "/readyz",
        "Whether it can serve, with the reasons when it cannot",
    ),
    ("GET", "/metrics", "Metrics, as text or OpenMetrics"),
    ("GET", "/alarms", "Active alarms, and those cleared last"),
    ("GET", "/config", "The configuration in effect"),
    ("POST", "/config/reload", "Reload the configuration file"),
    ("GET", "/log-level", "The log filter"),
    (
        "POST",
        "/log-level",
        "Change the log filter, such as info,nrf=debug",
    ),
];

async fn index(State(admin): Shared) -> Response {
    let title = format!(
        "{} {}, process {}",
        admin.function,
        env!("CARGO_PKG_VERSION"),
        std::process::id()
    );
    let own = admin.pages.iter().map(|(path, about)| ("GET", *path, *about));
    let mut text = format!("{title}\n\n");
    for (method, path, about) in own.chain(PAGES) {
        let path = path.replace("{}", "{ID}");
        text.push_str(&format!("{method:<5}{path:<24}{about}\n"));
    }
    text.into_response()
}

async fn nothing_here(uri: Uri) -> Response {
    let said = format!("the page {} does not exist; / lists the pages\n", uri.path());
    (StatusCode::NOT_FOUND, said).into_response()
}

fn verdict(good: &str, reasons: &std::collections::BTreeMap<String, String>) -> Response {
    if reasons.is_empty() {
        return format!("{good}\n").into_response();
    }
    let said: String = lines(reasons).map(|line| line + "\n").collect();
    (StatusCode::SERVICE_UNAVAILABLE, said).into_response()
}

fn lines(reasons: &std::collections::BTreeMap<String, String>) -> impl Iterator<Item = String> {
    reasons.iter().map(|(name, reason)| format!("{name}: {reason}"))
}

async fn livez(State(admin): Shared) -> Response {
    verdict("alive", &admin.health.not_alive())
}

async fn readyz(State(admin): Shared) -> Response {
    // Who asks for the status alone is not disturbed by what is behind the first line.
    let mut good = vec!["ready".to_owned()];
    good.extend(lines(&admin.health.remarks()));
    good.extend(standing::alarm_lines(&admin));
    verdict(&good.join("\n"), &admin.health.not_ready())
}

async fn metrics(State(admin): Shared, headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let format = Format::accepted(accept.unwrap_or_default());
    let head = [(header::CONTENT_TYPE, format.content_type())];
    (head, render_as(&admin.registries, format)).into_response()
}

async fn alarms(State(admin): Shared) -> Response {
    let page = admin.alarms.as_ref().map_or_else(
        || json!({ "active": [], "cleared": [] }),
        |alarms| json!({ "active": alarms.active(), "cleared": alarms.cleared() }),
    );
    axum::Json(page).into_response()
}

async fn config(State(admin): Shared) -> Response {
    match &admin.config {
        Some(config) => axum::Json(settings::redacted(config())).into_response(),
        None => (StatusCode::NOT_FOUND, "this function has no configuration\n").into_response(),
    }
}

async fn reload(State(admin): Shared, request: axum::extract::Request) -> Response {
    let Some(reload) = admin.reload.clone() else {
        let said = "this function cannot reload its configuration; restart it\n";
        return (StatusCode::NOT_IMPLEMENTED, said).into_response();
    };
    let by = standing::sender(&request);
    // It reads files; other pages are served meanwhile.
    match tokio::task::spawn_blocking(move || reload(&by)).await {
        Ok(Ok(changed)) => {
            let invalid = changed.get("invalid").and_then(Value::as_array);
            let status = match invalid.is_some_and(|invalid| !invalid.is_empty()) {
                true => StatusCode::UNPROCESSABLE_ENTITY,
                false => StatusCode::OK,
            };
            (status, axum::Json(changed)).into_response()
        }
        Ok(Err(report)) => (StatusCode::UNPROCESSABLE_ENTITY, report + "\n").into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

async fn log_level() -> String {
    logging::filter().unwrap_or_else(|| "logging has not been started".to_owned()) + "\n"
}

async fn set_log_level(text: String) -> Response {
    match logging::set_filter(&text) {
        Ok(()) => log_level().await.into_response(),
        Err(said) => (StatusCode::BAD_REQUEST, said + "\n").into_response(),
    }
}
