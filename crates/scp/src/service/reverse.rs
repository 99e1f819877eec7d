//! Standing in the place of producers: their resources are at this SCP, as consumers see it.
//!
//! A consumer that knows of SCPs keeps who has served it (`3gpp-Sbi-Target-apiRoot`, TS 29.500 §6.10.4) and goes on
//! through its SCP. One that does not goes where `Location` says, past the SCP. For it the URI of a resource gets
//! an API root at this SCP, with a prefix (TS 29.501 §4.4.1) that says where the resource is:
//!
//! ```text
//! http://10.0.0.7:8080/nudm-sdm/v2/imsi-1/sdm-subscriptions/5
//! http://scp.example.org:8020/signalbox-scp/to/aHR0cDovLzEwLjAuMC43OjgwODA/nudm-sdm/v2/imsi-1/sdm-subscriptions/5
//! ```
//!
//! Nothing is remembered, so the URI outlasts a restart, and every SCP of the same API root understands it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::LOCATION;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Uri};
use sbi::Request;
use sbi::client::Origin;
use sbi::headers::{SbiHeader, TargetApiRoot, names};

use crate::routing::PolicyTable;
use crate::target::{is_own, service_of};

/// How the prefix of an API root begins that stands for another.
const PREFIX: &str = "/signalbox-scp/to/";

/// The API root that a path names by its prefix, and the path behind that.
fn named(path: &str) -> Option<(TargetApiRoot, &str)> {
    let rest = path.strip_prefix(PREFIX)?;
    let (token, behind) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let text = URL_SAFE_NO_PAD.decode(token).ok()?;
    let root = TargetApiRoot::parse(std::str::from_utf8(&text).ok()?).ok()?;
    Some((root, behind))
}

/// Makes of a request for a resource that is told to be at this SCP the one for its producer: its path without the
/// prefix, and the API root in `3gpp-Sbi-Target-apiRoot`. A consumer may have split the URI itself and name the
/// API root at this SCP in that header. What is no such request stays as it is.
pub(super) fn undo(request: &mut Request, own: &[String], policies: &PolicyTable) {
    let uri = request.uri();
    let ours = uri.authority().is_none_or(|one| is_own(own, one.as_str()));
    let of_path = uri.path_and_query().map(PathAndQuery::as_str);
    if let Some((root, behind)) = of_path.filter(|_| ours).and_then(named) {
        if !policies.of(service_of(behind)).reverse_proxy_support {
            return;
        }
        let mut parts = uri.clone().into_parts();
        parts.path_and_query = behind.parse().ok();
        // Both halves were in a URI before.
        let (Ok(uri), Some(root)) = (Uri::from_parts(parts), root.to_value()) else {
            return;
        };
        request.head.uri = uri;
        request.head.headers.insert(names::TARGET_API_ROOT, root);
        return;
    }
    let told = request.headers().get(names::TARGET_API_ROOT);
    let Some(told) = told
        .and_then(|value| value.to_str().ok())
        .filter(|told| told.contains(PREFIX))
    else {
        return;
    };
    let Ok(told) = TargetApiRoot::parse(told) else {
        return;
    };
    if is_own(own, told.origin.authority())
        && policies
            .of(service_of(request.uri().path()))
            .reverse_proxy_support
        && let Some((root, "")) = named(&told.prefix)
        && let Some(root) = root.to_value()
    {
        request.head.headers.insert(names::TARGET_API_ROOT, root);
    }
}

/// Makes the `Location` of an answer one at this SCP, whose API root is `own`. `origin` has answered a request to
/// `service`. A URI in which the service does not appear is not of the service, and stays.
pub(super) fn cover(headers: &mut HeaderMap, own: &str, origin: &Origin, service: &str) {
    if let Some(covered) = covered(headers, own, origin, service) {
        headers.insert(LOCATION, covered);
    }
    // The producer is reached at this SCP, and not by its name.
    headers.remove(names::TARGET_API_ROOT);
}

fn covered(headers: &HeaderMap, own: &str, origin: &Origin, service: &str) -> Option<HeaderValue> {
    let location: Uri = headers.get(LOCATION)?.to_str().ok()?.parse().ok()?;
    let origin = match location.authority() {
        Some(_) => &Origin::of_uri(&location).ok()?,
        None => origin,
    };
    let path = location.path_and_query()?.as_str();
    // What stands before the API name is the prefix of the API root (TS 29.501 §4.4.1).
    let prefix = path.find(&format!("/{service}/"))?;
    let token = URL_SAFE_NO_PAD.encode(format!("{origin}{}", &path[..prefix]));
    let covered = format!("{own}{PREFIX}{token}{}", &path[prefix..]);
    HeaderValue::from_str(&covered).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cover_one(location: &'static str) -> String {
        let mut headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_static(location))]);
        let origin = "http://udm:80".parse().unwrap();
        cover(&mut headers, "http://scp:8020", &origin, "nudm-sdm");
        headers[LOCATION].to_str().unwrap().to_owned()
    }

    #[test]
    fn a_covered_location_names_where_it_was() {
        for (location, root, behind) in [
            (
                "http://udm:80/nudm-sdm/v2/x/1?a=b",
                "http://udm:80",
                "/nudm-sdm/v2/x/1?a=b",
            ),
            ("/nudm-sdm/v2/x/1", "http://udm:80", "/nudm-sdm/v2/x/1"),
            (
                "/pre/fix/nudm-sdm/v2/x",
                "http://udm:80/pre/fix",
                "/nudm-sdm/v2/x",
            ),
            (
                "https://[::1]:9/nudm-sdm/v2/nudm-sdm/v2",
                "https://[::1]:9",
                "/nudm-sdm/v2/nudm-sdm/v2",
            ),
        ] {
            let covered = cover_one(location);
            let path = covered.strip_prefix("http://scp:8020").unwrap();
            let (named, rest) = named(path).unwrap();
            assert_eq!((named.to_string().as_str(), rest), (root, behind));
        }
    }

    #[test]
    fn what_is_not_of_the_service_stays() {
        for location in [
            "http://udm:80/other/v1/x",
            "relative/nudm-sdm/v2/x",
            "",
            "http://udm:80",
        ] {
            assert_eq!(cover_one(location), location);
        }
    }

    #[test]
    fn a_prefix_that_names_nothing_is_none() {
        for path in [
            "/signalbox-scp/to/",
            "/signalbox-scp/to//nudm-sdm/v2",
            "/signalbox-scp/to/!!!/nudm-sdm/v2",
            "/signalbox-scp/to/eHg/nudm-sdm/v2",
            "/nudm-sdm/v2/x",
        ] {
            assert!(named(path).is_none(), "{path}");
        }
    }
}
