//! The position of the API name in the path that a producer receives.

use sbi_proto::headers::TargetApiRoot;
use sbi_proto::problem::Problem;

use crate::network::Network;
use crate::path::{normal, path_of};

/// A path and its API root.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// The API root, with the `apiPrefix` of the producer's profile.
    pub root: TargetApiRoot,
    /// The path after the prefix; it begins with the API name.
    pub path: String,
    /// Whether the path may have a prefix that no profile names: any segment may then be the API name.
    pub unsure: bool,
}

/// Finds the API name in the path that the producer receives: it follows the `apiPrefix` of the profile, whatever prefix
/// the request names. `None` when the request has it at that position already.
///
/// # Errors
/// When producers may interpret the prefix differently.
pub fn placed(root: &TargetApiRoot, path: &str, network: &Network) -> Result<Option<Placed>, Problem> {
    if root.prefix.is_empty() && !network.has_prefixes() {
        return Ok(None);
    }
    let whole = format!("{}{path}", root.prefix);
    let whole = normal(&whole)?.unwrap_or(whole);
    let known = network.endpoints_at(&root.origin);
    let behind = |prefix: &str| {
        path_of(&whole)
            .strip_prefix(prefix)
            .is_some_and(|rest| rest.starts_with('/'))
    };
    let prefix = known
        .clone()
        .map(|one| &*one.prefix)
        .filter(|prefix| behind(prefix))
        .max_by_key(|one| one.len());
    if prefix == Some(&*root.prefix) {
        return Ok(None);
    }
    let named = whole.strip_suffix(path).unwrap_or(&root.prefix);
    let unsure = Placed {
        root: TargetApiRoot {
            origin: root.origin.clone(),
            prefix: named.to_owned(),
        },
        path: path.to_owned(),
        unsure: true,
    };
    let Some(prefix) = prefix else {
        // No profile names this origin and prefix.
        return Ok((!root.prefix.is_empty() || known.clone().next().is_some()).then_some(unsure));
    };
    Ok(Some(match whole.get(prefix.len()..) {
        Some(rest) => Placed {
            root: TargetApiRoot {
                origin: root.origin.clone(),
                prefix: prefix.to_owned(),
            },
            path: rest.to_owned(),
            // The profile has no prefix, and the request names one.
            unsure: prefix.is_empty(),
        },
        None => unsure,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Producer;
    use sbi_proto::headers::SbiHeader;
    use serde_json::json;
    use std::sync::Arc;

    #[test]
    fn the_profile_says_where_the_api_name_begins() {
        let udm = |id: &str, port: u16, prefix: Option<&str>| {
            let profile = json!({
                "nfInstanceId": id, "nfType": "UDM", "nfStatus": "REGISTERED", "ipv4Addresses": ["127.0.0.1"],
                "nfServices": [{"serviceInstanceId": "s", "serviceName": "nudm-sdm", "scheme": "http",
                    "nfServiceStatus": "REGISTERED", "versions": [], "ipEndPoints": [{"port": port}],
                    "apiPrefix": prefix}]
            });
            Arc::new(Producer::from_value(&profile).unwrap())
        };
        let network = Network::new([udm("a", 1, None), udm("b", 2, Some("x/y"))]);
        let of = |root: &str, path: &str| {
            let root = TargetApiRoot::parse(root).unwrap();
            let placed = placed(&root, path, &network).ok()?;
            Some(placed.map(|one| (one.root.to_string(), one.path, one.unsure)))
        };
        let found = |root: &str, path: &str, unsure| Some(Some((root.to_owned(), path.to_owned(), unsure)));
        // The requests name the prefixes of the profiles.
        assert_eq!(of("http://127.0.0.1:1", "/nudm-sdm/v2"), Some(None));
        assert_eq!(of("http://127.0.0.1:2/x/y", "/nudm-sdm/v2?a=b"), Some(None));
        assert_eq!(of("http://127.0.0.1:9", "/nudm-sdm/v2"), Some(None));
        // The requests split prefix and path at other positions.
        let (one, two) = ("http://127.0.0.1:1", "http://127.0.0.1:2/x/y");
        assert_eq!(
            of("http://127.0.0.1:1/nudm-sdm", "/v2/echo"),
            found(one, "/nudm-sdm/v2/echo", true)
        );
        assert_eq!(
            of("http://127.0.0.1:2", "/x/y/nudm-sdm/v2?a"),
            found(two, "/nudm-sdm/v2?a", false)
        );
        assert_eq!(
            of("http://127.0.0.1:2/x", "/y/nudm-sdm/v2"),
            found(two, "/nudm-sdm/v2", false)
        );
        assert_eq!(
            of("http://127.0.0.1:2/x/y/nudm-sdm", "/v2"),
            found(two, "/nudm-sdm/v2", false)
        );
        assert_eq!(
            of("http://127.0.0.1:2/%78/y/%6eudm-sdm", "/v2"),
            found(two, "/nudm-sdm/v2", false)
        );
        // The origin is unknown.
        let unknown = "http://127.0.0.1:9/nudm-sdm";
        assert_eq!(of(unknown, "/v2"), found(unknown, "/v2", true));
        assert_eq!(
            of("http://127.0.0.1:2", "/xx/nudm-sdm"),
            found("http://127.0.0.1:2", "/xx/nudm-sdm", true)
        );
        assert_eq!(
            of("http://127.0.0.1:9/%6eudm-sdm", "/v2"),
            found(unknown, "/v2", true)
        );
        assert_eq!(of("http://127.0.0.1:2/x/..", "/nudm-sdm/v2"), None);
    }
}
