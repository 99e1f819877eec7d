//! Admin pages for a browser: the command line's tables as plain HTML, from the columns that the pages declare.
//!
//! Everything shown may come from unauthenticated peers (names of NFs, AVPs), so all of it becomes escaped text, there is no
//! script, and the Content-Security-Policy admits none. Clients that do not prefer `text/html` get the pages as they are.

mod markup;

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Query, Request};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;
use serde::Deserialize;
use serde_json::Value;
use tower::ServiceExt as _;

use crate::contract::Page;
use crate::pages::COMMON;

/// The largest page that becomes HTML; larger ones are for programs.
const MOST_BYTES: usize = 64 << 20;

/// No script, no frames, no requests elsewhere; forms and the style sheet are of the endpoint itself.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

const STYLE: &str = "\
body{font-family:sans-serif;margin:1em 1.5em;line-height:1.4}
nav a{margin-right:1em}
table{border-collapse:collapse;margin:.5em 0}
.wide{overflow-x:auto}
th,td{text-align:left;vertical-align:top;padding:.2em .8em .2em 0;border-bottom:1px solid #8886;overflow-wrap:anywhere;unicode-bidi:isolate}
pre{overflow-x:auto;unicode-bidi:isolate}
input{font:inherit;min-width:16em}
@media (prefers-color-scheme:dark){body{background:#111;color:#eee}a{color:#8bf}}
";

/// The function whose pages these are.
#[derive(Debug)]
struct Site {
    function: &'static str,
    pages: &'static [Page],
}

impl Site {
    fn all(&self) -> impl Iterator<Item = &'static Page> {
        self.pages.iter().chain(COMMON)
    }

    /// The page that a path belongs to.
    fn page(&self, path: &str) -> Option<&'static Page> {
        let fits = |page: &&Page| {
            let own = page.path.split('?').next().unwrap_or_default();
            match own.split_once("{}") {
                Some((before, after)) => {
                    let rest = path
                        .strip_prefix(before)
                        .and_then(|rest| rest.strip_suffix(after));
                    rest.is_some_and(|rest| !rest.is_empty() && !rest.contains('/'))
                }
                None => own == path,
            }
        };
        self.all().filter(|page| page.method() == "GET").find(fits)
    }

    fn named(&self, name: &str) -> Option<&'static Page> {
        self.all()
            .filter(|page| page.method() == "GET")
            .find(|page| page.name == name)
    }
}

/// Serves the pages of `router` to browsers as HTML, and to all others as they are.
pub fn pages(router: Router, function: &'static str, pages: &'static [Page]) -> Router {
    let site = Arc::new(Site { function, pages });
    let opened = site.clone();
    Router::new()
        .route(
            "/style.css",
            get(|| async { ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE) }),
        )
        .route(
            "/open",
            get(move |Query(form): Query<Form>| async move { open(&opened, &form) }),
        )
        .fallback(move |request: Request| {
            let (router, site) = (router.clone(), site.clone());
            async move { answer(router, &site, request).await }
        })
}

/// A form: the page that it opens, and its argument.
#[derive(Debug, Deserialize)]
struct Form {
    page: String,
    #[serde(default)]
    argument: String,
}

/// Leads to the page that a form asks for.
fn open(site: &Site, form: &Form) -> Response {
    let argument = form.argument.trim();
    match site.named(&form.page) {
        Some(page) if !page.path.contains("{}") => Redirect::to(page.path).into_response(),
        Some(page) if !argument.is_empty() => Redirect::to(&page.path_for(argument)).into_response(),
        Some(page) => {
            let text = format!("the page {} needs an argument: {}", page.name, page.about);
            html(StatusCode::BAD_REQUEST, markup::text(site, page.name, &text))
        }
        None => html(
            StatusCode::NOT_FOUND,
            markup::text(site, "open", "the page does not exist"),
        ),
    }
}

/// What of a query is for the rendering.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct View {
    /// Only rows that contain it.
    filter: String,
    /// `json`: the page as it is.
    format: String,
}

async fn answer(router: Router, site: &Site, request: Request) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let path = request.uri().path().to_owned();
    let page = site.page(&path);
    // The query of such a page is its argument.
    let takes_query = page.is_some_and(|page| page.path.contains('?'));
    let view = match Query::<View>::try_from_uri(request.uri()) {
        Ok(Query(view)) if !takes_query => view,
        _ => View::default(),
    };
    if !reads || !prefers_html(request.headers()) || view.format == "json" {
        return varying(call(router, request).await);
    }
    if path == "/" {
        let first = call(router, plain(request, "/status")).await;
        return index(site, first).await;
    }
    let target = match takes_query {
        true => request.uri().to_string(),
        false => path,
    };
    let answer = call(router, plain(request, &target)).await;
    let (head, body) = answer.into_parts();
    let media_type = head.headers.get(header::CONTENT_TYPE);
    let media_type = media_type
        .and_then(|one| one.to_str().ok())
        .unwrap_or("text/plain");
    let (is_json, is_text) = (
        media_type.contains("json"),
        media_type.starts_with("text/") || media_type.contains("openmetrics"),
    );
    if !is_json && !is_text {
        return Response::from_parts(head, body);
    }
    let title = page.map_or(target.as_str(), |page| page.name);
    let Ok(bytes) = to_bytes(body, MOST_BYTES).await else {
        let words = format!("the page has more than {MOST_BYTES} bytes; get it without a browser");
        return html(StatusCode::OK, markup::text(site, title, &words));
    };
    let value = match is_json {
        true => serde_json::from_slice::<Value>(&bytes).ok(),
        false => None,
    };
    let content = match value {
        Some(value) => markup::value(site, title, page, &value, &view.filter),
        None => markup::text(site, title, &String::from_utf8_lossy(&bytes)),
    };
    html(head.status, content)
}

/// The first page: how the function is doing, and what there is to see.
async fn index(site: &Site, status: Response) -> Response {
    let code = status.status();
    let bytes = to_bytes(status.into_body(), MOST_BYTES).await.unwrap_or_default();
    match serde_json::from_slice::<Value>(&bytes) {
        Ok(status) if code.is_success() => html(code, markup::index(site, &status)),
        // The endpoint refuses the request itself: it is for another host.
        _ => html(
            code,
            markup::text(site, "pages", &String::from_utf8_lossy(&bytes)),
        ),
    }
}

/// The request for a page as it is. HEAD becomes GET: the length is that of the HTML.
fn plain(mut request: Request, target: &str) -> Request {
    if let Ok(uri) = target.parse::<Uri>() {
        *request.uri_mut() = uri;
    }
    *request.method_mut() = Method::GET;
    request
        .headers_mut()
        .insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    request
}

async fn call(router: Router, request: Request) -> Response {
    router
        .oneshot(request)
        .await
        .unwrap_or_else(|never| match never {})
}

fn html(status: StatusCode, content: String) -> Response {
    let mut answer = Response::new(Body::from(content));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (header::VARY, "Accept"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}

fn varying(mut answer: Response) -> Response {
    answer
        .headers_mut()
        .append(header::VARY, HeaderValue::from_static("Accept"));
    answer
}

/// Whether a client prefers HTML to JSON and text (RFC 9110 §12.5.1): browsers name it, `*/*` does not ask for it.
fn prefers_html(headers: &HeaderMap) -> bool {
    let mut best = [0.0_f32; 2];
    for value in headers.get_all(header::ACCEPT) {
        for range in value.to_str().unwrap_or_default().split(',') {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default().to_ascii_lowercase();
            let quality = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
            let quality = quality.map_or(1.0, |quality| quality.parse().unwrap_or(0.0));
            let place = match name.as_str() {
                "text/html" | "application/xhtml+xml" => 0,
                "application/json" | "text/plain" | "application/openmetrics-text" => 1,
                _ => continue,
            };
            best[place] = best[place].max(quality);
        }
    }
    best[0] > 0.0 && best[0] >= best[1]
}

#[cfg(test)]
mod tests;
