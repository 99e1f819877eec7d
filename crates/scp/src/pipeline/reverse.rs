//! Reverse proxy: consumers address the resources of producers at this SCP.
//!
//! A consumer that supports SCPs keeps the producer's API root (`3gpp-Sbi-Target-apiRoot`, TS 29.500 §6.10.4) and sends
//! further requests through its SCP. Another consumer sends them to `Location`, past the SCP. For it the SCP replaces
//! the API root of the URI by one of its own, with a prefix (TS 29.501 §4.4.1) that encodes the producer:
//!
//! ```text
//! http://10.0.0.7:8080/nudm-sdm/v2/imsi-1/sdm-subscriptions/5
//! http://scp.example.org:8020/signalbox-scp/to/aHR0cDovLzEwLjAuMC43OjgwODA/nudm-sdm/v2/imsi-1/sdm-subscriptions/5
//! ```
//!
//! The SCP stores no state for it, so the URI stays valid after a restart and at every SCP of the same API root.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Uri;
use sbi::client::Origin;
use sbi::headers::{SbiHeader, TargetApiRoot, names};
use sbi::name::{LOCATION, PATH};
use sbi::{Fields, Request};

use routing::policy::PolicyTable;
use routing::target::{OwnNames, authority, service_of};

/// How the prefix of an API root begins that stands for another.
const PREFIX: &str = "/signalbox-scp/to/";

/// The API root that the prefix of a path encodes, and the path after the prefix.
fn named(path: &str) -> Option<(TargetApiRoot, &str)> {
    let rest = path.strip_prefix(PREFIX)?;
    let (token, behind) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let text = URL_SAFE_NO_PAD.decode(token).ok()?;
    let root = TargetApiRoot::parse(std::str::from_utf8(&text).ok()?).ok()?;
    Some((root, behind))
}

/// Turns a request for a rewritten URI into one for its producer: the path without the prefix, and the API root in
/// `3gpp-Sbi-Target-apiRoot`. A consumer may have split the URI itself and name the API root at this SCP in that
/// header. Any other request stays unchanged.
pub(super) fn undo(request: &mut Request, own: &OwnNames, policies: &PolicyTable) {
    let local = request.peer.local;
    let ours = authority(request).is_none_or(|one| own.has(one, local));
    let covered = match ours {
        true => named(request.target()),
        false => None,
    };
    if let Some((root, behind)) = covered {
        if policies.of(service_of(behind)).reverse_proxy_support {
            // An empty rest is the root path of the producer.
            let behind = match behind {
                "" => "/".to_owned(),
                behind => behind.to_owned(),
            };
            request.head.fields.set_printed(PATH, behind);
            root.set_in(&mut request.head.fields);
        }
        return;
    }
    let target = request.headers().get(names::TARGET_API_ROOT);
    let Some(target) = target
        .and_then(|value| value.to_str().ok())
        .filter(|target| target.contains(PREFIX))
    else {
        return;
    };
    let Ok(target) = TargetApiRoot::parse(target) else {
        return;
    };
    if own.has(target.origin.authority(), local)
        && policies.of(service_of(request.path())).reverse_proxy_support
        && let Some((root, "")) = named(&target.prefix)
    {
        root.set_in(&mut request.head.fields);
    }
}

/// Rewrites `Location` of an answer to a URI at this SCP, whose API root is `own`. `origin` has answered a request to
/// `service`. A URI without the service name in its path stays unchanged.
pub(super) fn cover(headers: &mut Fields, own: &str, origin: &Origin, service: &str) {
    if let Some(covered) = covered(headers, own, origin, service) {
        headers.set_printed(LOCATION, covered);
    }
    // Consumers address the producer at this SCP, not by its own API root.
    headers.remove(names::TARGET_API_ROOT);
}

fn covered(headers: &Fields, own: &str, origin: &Origin, service: &str) -> Option<String> {
    let location: Uri = headers.get(LOCATION)?.to_str().ok()?.parse().ok()?;
    let origin = match location.authority() {
        Some(_) => &Origin::of_uri(&location).ok()?,
        None => origin,
    };
    let path = location.path_and_query()?.as_str();
    // The path before the API name is the prefix of the API root (TS 29.501 §4.4.1).
    let prefix = path.find(&format!("/{service}/"))?;
    let token = URL_SAFE_NO_PAD.encode(format!("{origin}{}", &path[..prefix]));
    Some(format!("{own}{PREFIX}{token}{}", &path[prefix..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cover_one(location: &'static str) -> String {
        let mut headers = Fields::new();
        headers.set_printed(LOCATION, location);
        let origin = "http://udm:80".parse().unwrap();
        cover(&mut headers, "http://scp:8020", &origin, "nudm-sdm");
        headers.get(LOCATION).unwrap().to_str().unwrap().to_owned()
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
