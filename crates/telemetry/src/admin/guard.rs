//! Browsers carry requests of pages of other sites here. Two things give those away: the name by which they address
//! us, and what the browser says of the page.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// The names we go by, in lower case.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(Arc<[String]>);

impl Names {
    pub(super) fn new(names: &[String]) -> Self {
        Self(names.iter().map(|name| name.to_ascii_lowercase()).collect())
    }

    /// Whether a client that says `authority` means us. An IP address it has to have connected to; only a name can
    /// have been resolved to us by somebody else's name server.
    fn include(&self, authority: &str) -> bool {
        let host = match authority.strip_prefix('[') {
            Some(rest) => {
                let Some((address, port)) = rest.split_once(']') else {
                    return false;
                };
                return address.parse::<Ipv6Addr>().is_ok() && is_port(port);
            }
            None => match authority.split_once(':') {
                Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
                Some(_) => return false,
                None => authority,
            },
        };
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        host.parse::<IpAddr>().is_ok()
            || host == "localhost"
            || self.0.iter().any(|name| name == "*" || *name == host)
    }
}

/// Has a router refuse what is meant for another host, and changes that pages of other sites ask for. It answers for IP
/// addresses, `localhost` and these names.
pub fn for_us_only(router: Router, names: &[String]) -> Router {
    router.layer(axum::middleware::from_fn_with_state(
        Names::new(names),
        refuse_foreign,
    ))
}

fn is_port(text: &str) -> bool {
    text.is_empty()
        || text
            .strip_prefix(':')
            .is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether a request of HTTP/1.1 has no Host (RFC 9112 §3.2); HTTP/1.0 knows none.
fn lacks_host(request: &Request) -> bool {
    request.version() == Version::HTTP_11 && !request.headers().contains_key(header::HOST)
}

/// Refuses what is meant for another host (RFC 9110 §7.4), and changes that pages of other sites ask for. curl and
/// operators' tools send neither `Origin` nor `Sec-Fetch-Site`.
pub(super) async fn refuse_foreign(State(names): State<Names>, request: Request, next: Next) -> Response {
    if lacks_host(&request) {
        return (
            StatusCode::BAD_REQUEST,
            "a request of HTTP/1.1 names its host (Host)\n",
        )
            .into_response();
    }
    if !is_for_us(&names, &request) {
        let said =
            "this name is not one of ours; an IP address, localhost and the names in admin.hosts are\n";
        return (StatusCode::MISDIRECTED_REQUEST, said).into_response();
    }
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if !reads && comes_from_elsewhere(request.headers()) {
        let said = "changes are not taken from pages of other sites\n";
        return (StatusCode::FORBIDDEN, said).into_response();
    }
    next.run(request).await
}

fn is_for_us(names: &Names, request: &Request) -> bool {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let by_header = hosts.all(|host| host.to_str().is_ok_and(|host| names.include(host)));
    let by_target = request
        .uri()
        .authority()
        .is_none_or(|authority| names.include(authority.as_str()));
    by_header && by_target
}

fn comes_from_elsewhere(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    // What the browser itself says of the page (W3C Fetch Metadata); no page can change it.
    if headers.contains_key("sec-fetch-site")
        && !matches!(text("sec-fetch-site"), Some("same-origin" | "none"))
    {
        return true;
    }
    match headers.get(header::ORIGIN).map(|value| value.to_str()) {
        None => false,
        Some(Err(_)) => true,
        Some(Ok(origin)) => {
            let site = origin.split_once("://").map_or(origin, |(_, site)| site);
            text("host") != Some(site)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_names_and_addresses_are_ours() {
        let names = Names::new(&["Nrf.example".to_owned()]);
        for ours in [
            "localhost",
            "LOCALHOST:9010",
            "127.0.0.1:9010",
            "192.0.2.7",
            "[::1]:9010",
            "[::1]",
            "nrf.example:1",
            "NRF.EXAMPLE.",
        ] {
            assert!(names.include(ours), "{ours}");
        }
        for foreign in [
            "",
            "evil.example",
            "evil.example:9010",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "[::1",
            "[x]",
            "[::1]x",
            "localhost:x",
            "a@localhost",
            "localhost:80:80",
            "xnrf.example",
        ] {
            assert!(!names.include(foreign), "{foreign}");
        }
        assert!(Names::new(&["*".to_owned()]).include("whatever.example:9010"));
    }
}
