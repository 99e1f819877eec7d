//! Decides on each request: who sends it, whether its session has the right, and whether a change was meant by a page of ours.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Redirect, Response};
use cookie::Cookie;
use function::pages::segment;

use super::{Access, Entry, digest_of};
use crate::server::Client;

/// The cookie of a session. Its name has browsers refuse one that another host or a page without TLS would set
/// (RFC 6265bis §4.1.3.2).
pub(super) const COOKIE: &str = "__Host-signalbox";
/// The header with the token that changes need: no page of another site can send it.
const TOKEN: &str = "x-signalbox-token";
/// Characters of a secret.
const SECRET: usize = 64;

/// What a visitor may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// Look at functions.
    See,
    /// See subscribers.
    Trace,
    /// Change what functions do.
    Operate,
}

impl Right {
    fn role(self) -> &'static str {
        match self {
            Self::See => "viewer",
            Self::Trace => "tracer",
            Self::Operate => "operator",
        }
    }
}

/// What [`admit`] decides by.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    pub(crate) access: Arc<Access>,
    pub(crate) right: Right,
}

/// Lets a request pass whose session has the right, with its [`Visitor`](super::Visitor) as an extension.
pub(crate) async fn admit(State(gate): State<Gate>, mut request: Request, next: Next) -> Response {
    let (access, right) = (gate.access, gate.right);
    let from = address(&request);
    let Some(visitor) = access.visitor(secret_of(request.headers()), from, Instant::now()) else {
        return sign_in_first(&request);
    };
    if !is_read(request.method()) && !has_token(request.headers(), &visitor.token) {
        let words = "a change needs the token of the session in X-Signalbox-Token\n";
        return (StatusCode::FORBIDDEN, words).into_response();
    }
    if !visitor.may(right) {
        let about = format!("{} {}", request.method(), request.uri().path());
        let entry = Entry::new("refused: lacks the role", &about).detail(right.role());
        // It is refused whether or not that can be recorded.
        let _ = access.record(&visitor, entry).await;
        let words = format!("this needs the role {}\n", right.role());
        return (StatusCode::FORBIDDEN, words).into_response();
    }
    request.extensions_mut().insert(visitor);
    next.run(request).await
}

/// Refuses changes that were not made by a page of this console: its browser says so (W3C Fetch Metadata), or else names the
/// origin (RFC 6454 §7.3).
pub(crate) async fn refuse_foreign_changes(
    State(access): State<Arc<Access>>,
    request: Request,
    next: Next,
) -> Response {
    if is_read(request.method()) || is_ours(request.headers(), access.is_secure) {
        return next.run(request).await;
    }
    let words = "a change needs Sec-Fetch-Site: same-origin, or the Origin of this console\n";
    (StatusCode::FORBIDDEN, words).into_response()
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

fn is_ours(headers: &HeaderMap, is_secure: bool) -> bool {
    let mut sites = headers.get_all("sec-fetch-site").iter().peekable();
    if sites.peek().is_some() {
        return sites.all(|site| site == "same-origin");
    }
    let scheme = if is_secure { "https" } else { "http" };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let ours = host.map(|host| format!("{scheme}://{host}"));
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let origin = origins.next().and_then(|origin| origin.to_str().ok());
    origin.is_some() && origins.next().is_none() && origin.map(str::to_owned) == ours
}

fn has_token(headers: &HeaderMap, token: &str) -> bool {
    let given = headers.get(TOKEN).and_then(|given| given.to_str().ok());
    // Digests: how much of the token fits shows in no time that passes.
    given.is_some_and(|given| digest_of(given) == digest_of(token))
}

/// The secret that the request has; none where it has several.
pub(super) fn secret_of(headers: &HeaderMap) -> Option<&str> {
    let lines = headers.get_all(header::COOKIE).iter();
    let texts = lines.filter_map(|line| line.to_str().ok());
    let cookies = texts.flat_map(Cookie::split_parse).flatten();
    let mut ours = cookies.filter(|cookie| cookie.name() == COOKIE);
    let one = ours.next().filter(|_| ours.next().is_none())?;
    let secret = one.value_raw()?;
    let is_secret = secret.len() == SECRET && secret.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_secret.then_some(secret)
}

/// Where a request comes from.
pub(super) fn address(request: &Request) -> IpAddr {
    let client = request.extensions().get::<Client>();
    client.map_or(Ipv4Addr::UNSPECIFIED.into(), |client| {
        client.0.ip().to_canonical()
    })
}

/// A page leads to the page for signing in, which leads back.
fn sign_in_first(request: &Request) -> Response {
    let path = request.uri().path();
    if path.starts_with("/api/") || !is_read(request.method()) {
        return (StatusCode::UNAUTHORIZED, "sign in first, at /sign-in\n").into_response();
    }
    Redirect::to(&format!("/sign-in?then={}", segment(path))).into_response()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in all {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn a_change_is_ours_only_by_its_browser_or_its_origin() {
        let host = ("host", "console.example:9000");
        for (line, ours) in [
            (("sec-fetch-site", "same-origin"), true),
            (("sec-fetch-site", "same-site"), false),
            (("sec-fetch-site", "cross-site"), false),
            (("sec-fetch-site", "none"), false),
            (("origin", "https://console.example:9000"), true),
            (("origin", "http://console.example:9000"), false),
            (("origin", "https://console.example"), false),
            (("origin", "https://console.example:9000.evil.example"), false),
            (("origin", "null"), false),
            (("x", "y"), false),
        ] {
            assert_eq!(is_ours(&headers(&[host, line]), true), ours, "{line:?}");
        }
        let both = [
            host,
            ("sec-fetch-site", "cross-site"),
            ("origin", "https://console.example:9000"),
        ];
        assert!(!is_ours(&headers(&both), true));
        assert!(
            !is_ours(&headers(&[("origin", "https://")]), true),
            "without Host"
        );
    }

    #[test]
    fn one_cookie_of_the_right_form_is_a_secret() {
        let (one, other) = ("a".repeat(64), "b".repeat(64));
        let cookie = |text: &str| secret_of(&headers(&[("cookie", text)])).map(str::to_owned);
        assert_eq!(cookie(&format!("x=y; {COOKIE}={one}; z=w")), Some(one.clone()));
        for text in [
            format!("{COOKIE}={one}; {COOKIE}={other}"),
            format!("{COOKIE}={one}x"),
            format!("signalbox={one}"),
            format!("{COOKIE}="),
            ";;;=;".to_owned(),
        ] {
            assert_eq!(cookie(&text), None, "{text}");
        }
    }
}
