//! The path of a request as its producer will read it. There is one reading: by it a request is judged, routed,
//! given a token and sent, so that none of these takes it for another than the producer does.
//!
//! Percent-encoded characters that need it not are decoded (RFC 3986 §6.2.2.2); what producers are known to read in
//! different ways is refused: dot segments, also where encoded, backslashes, an empty first segment, and separators
//! or control characters encoded in the API name.

use http::uri::PathAndQuery;
use sbi::headers::TargetApiRoot;
use sbi::problem::{Cause, Problem};

use super::service_of;
use crate::network::Network;

/// The path in its normal form; `None` when it is that already, as nearly all are.
///
/// # Errors
/// When producers may read it in different ways.
pub fn normal(path: &PathAndQuery) -> Result<Option<PathAndQuery>, Problem> {
    let text = path.path();
    if is_plain(text) {
        return Ok(None);
    }
    let decoded = decoded(text).ok_or_else(|| refused("a percent-encoding is not complete"))?;
    check(&decoded)?;
    if decoded == text {
        return Ok(None);
    }
    let whole = match path.query() {
        Some(query) => format!("{decoded}?{query}"),
        None => decoded,
    };
    let parsed = whole.parse();
    parsed.map(Some).map_err(|_| refused("expected a path"))
}

fn refused(why: &str) -> Problem {
    Problem::new(Cause::InvalidMsgFormat)
        .detail("the path of the request can be read in different ways")
        .invalid_param("path", why)
}

/// Whether nothing in a path needs a second look.
fn is_plain(path: &str) -> bool {
    let bytes = path.as_bytes();
    bytes.first() == Some(&b'/')
        && bytes.get(1) != Some(&b'/')
        && !bytes
            .iter()
            .zip(bytes.iter().skip(1).chain(std::iter::once(&b'/')))
            .any(|(one, next)| *one == b'%' || *one == b'\\' || (*one == b'/' && *next == b'.'))
}

/// The path with each encoded character that is unreserved (RFC 3986 §2.3) as itself, and the others in upper case.
fn decoded(path: &str) -> Option<String> {
    let mut found = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = rest.find('%') {
        found.push_str(&rest[..at]);
        let digits = rest.get(at + 1..at + 3)?;
        let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
        let byte = u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)?;
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                found.push(char::from(byte));
            }
            _ => {
                found.push('%');
                found.push_str(&digits.to_ascii_uppercase());
            }
        }
        rest = &rest[at + 3..];
    }
    found.push_str(rest);
    Some(found)
}

/// Refuses a decoded path that producers may read in different ways.
fn check(path: &str) -> Result<(), Problem> {
    let Some(rest) = path.strip_prefix('/') else {
        return Err(refused("it does not begin with a slash"));
    };
    if path.contains('\\') {
        return Err(refused("it has a backslash"));
    }
    let (first, _) = rest.split_once('/').unwrap_or((rest, ""));
    if first.is_empty() && !rest.is_empty() {
        return Err(refused("its first segment is empty"));
    }
    let odd = |code: &str| matches!(code.get(..2), Some("2F" | "5C" | "7F")) || code.starts_with(['0', '1']);
    if first.split('%').skip(1).any(odd) {
        return Err(refused(
            "a separator or control character is encoded in its first segment",
        ));
    }
    // A producer that decodes separators as well, or takes parameters of segments away, sees these.
    let segments = path
        .split('/')
        .flat_map(|one| one.split("%2F"))
        .flat_map(|one| one.split("%5C"));
    let is_dots = |segment: &str| matches!(segment.split(';').next(), Some("." | ".."));
    match segments.into_iter().any(is_dots) {
        true => Err(refused("it has dot segments")),
        false => Ok(()),
    }
}

/// Refuses an API name that only a lenient producer takes for one that is known: in another case (TS 29.501 §4.4.1:
/// names are in lower case), or with parameters behind it.
///
/// # Errors
/// When it is such a name.
pub fn check_name(path: &str, is_known: impl Fn(&str) -> bool) -> Result<(), Problem> {
    let name = service_of(path);
    if !name.bytes().any(|b| b.is_ascii_uppercase() || b == b';') {
        return Ok(());
    }
    let meant = name.split(';').next().unwrap_or_default().to_ascii_lowercase();
    match is_known(&meant) {
        true => Err(refused("the API name is not as its producers write it")),
        false => Ok(()),
    }
}

/// A path, and the API root it is behind.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// The API root, with the prefix that the profile of the producer has.
    pub root: TargetApiRoot,
    /// What comes behind the prefix: the API name first.
    pub path: PathAndQuery,
    /// Whether no profile says where the API name begins although there may be a prefix: any segment may be it.
    pub unsure: bool,
}

/// Finds where the API name is in what the producer will see: behind the prefix that its profile has, whatever of it
/// the request calls the prefix. `None` when it is where the request has it, and that is sure.
///
/// # Errors
/// When the prefix can be read in different ways.
pub fn placed(
    root: &TargetApiRoot,
    path: &PathAndQuery,
    network: &Network,
) -> Result<Option<Placed>, Problem> {
    if root.prefix.is_empty() && !network.has_prefixes() {
        return Ok(None);
    }
    let whole: PathAndQuery = format!("{}{path}", root.prefix)
        .parse()
        .map_err(|_| refused("expected a path"))?;
    let whole = normal(&whole)?.unwrap_or(whole);
    let known = network.endpoints_at(&root.origin);
    let behind = |prefix: &str| {
        whole
            .path()
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
    let named = whole.as_str().strip_suffix(path.as_str()).unwrap_or(&root.prefix);
    let unsure = Placed {
        root: TargetApiRoot {
            origin: root.origin.clone(),
            prefix: named.to_owned(),
        },
        path: path.clone(),
        unsure: true,
    };
    let Some(prefix) = prefix else {
        // Nobody knows what is there.
        return Ok((!root.prefix.is_empty() || known.clone().next().is_some()).then_some(unsure));
    };
    let rest = whole
        .as_str()
        .get(prefix.len()..)
        .and_then(|rest| rest.parse().ok());
    Ok(Some(match rest {
        Some(path) => Placed {
            root: TargetApiRoot {
                origin: root.origin.clone(),
                prefix: prefix.to_owned(),
            },
            path,
            // Its profile has no prefix, and the request another one.
            unsure: prefix.is_empty(),
        },
        None => unsure,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Producer;
    use proptest::prelude::*;
    use sbi::headers::SbiHeader;
    use serde_json::json;
    use std::sync::Arc;

    fn of(path: &str) -> Result<String, ()> {
        let path: PathAndQuery = path.parse().map_err(|_| ())?;
        match normal(&path) {
            Ok(Some(other)) => Ok(other.to_string()),
            Ok(None) => Ok(path.to_string()),
            Err(_) => Err(()),
        }
    }

    #[test]
    fn what_is_the_same_is_made_the_same() {
        for (path, expected) in [
            ("/nudm-sdm/v2/x?a=%2e%2e/b", "/nudm-sdm/v2/x?a=%2e%2e/b"),
            ("/%6eudm-sdm/v2", "/nudm-sdm/v2"),
            ("/%6E%75dm%2Dsdm/v2/%7e?q=%6e", "/nudm-sdm/v2/~?q=%6e"),
            ("/nudm-sdm/v2/nai-a%40b%2fc", "/nudm-sdm/v2/nai-a%40b%2Fc"),
            ("/nudm-sdm/v2/...", "/nudm-sdm/v2/..."),
            ("/nudm-sdm/v2/.well-known/%2e", "refused"),
            ("/nudm-sdm/v2/.well-known", "/nudm-sdm/v2/.well-known"),
            ("/a//b/", "/a//b/"),
            ("/", "/"),
            ("/%252e%252e/x", "/%252e%252e/x"),
        ] {
            let expected = Some(expected).filter(|one| *one != "refused").map(str::to_owned);
            assert_eq!(of(path).ok(), expected, "{path}");
        }
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused() {
        for path in [
            "/x/../nudm-sdm/v2",
            "/./nudm-sdm/v2",
            "/nudm-ee/..",
            "/x/%2e%2E/nudm-sdm/v2",
            "/x/.%2e/nudm-sdm/v2",
            "/x/..%2fnudm-sdm/v2",
            "/x/%2e%2e%5cnudm-sdm/v2",
            "/x/..;a=b/nudm-sdm/v2",
            "//nudm-sdm/v2",
            "/nudm-sdm%2fv2/x",
            "/x%5cnudm-sdm/v2",
            "/nudm-sdm%00/v2",
            "/nudm-sdm%0d%0a/v2",
            "/x\\..\\nudm-sdm/v2",
            "/nudm-sdm/v2/%",
            "/nudm-sdm/v2/%6",
            "/nudm-sdm/v2/%zz",
            "/nudm-sdm/v2/%+1",
            "*",
        ] {
            assert_eq!(of(path), Err(()), "{path}");
        }
    }

    #[test]
    fn names_in_another_case_are_refused_where_the_name_is_known() {
        let check = |path| check_name(path, |name| name == "nudm-sdm").is_ok();
        assert!(check("/nudm-sdm/v2") && check("/Callback/7") && check("/cb;a=b/7"));
        assert!(!check("/NUDM-SDM/v2") && !check("/nudm-sdM") && !check("/nudm-sdm;a=b/v2"));
    }

    proptest! {
        /// What is in its normal form stays so.
        #[test]
        fn normal_is_normal(path in "/([a-z%./;2eEfF5c]|%[0-9a-fA-F]{2}){0,30}") {
            if let Ok(once) = of(&path) {
                prop_assert_eq!(of(&once), Ok(once.clone()));
                prop_assert!(!once.split('/').any(|segment| segment == ".." || segment == "."));
            }
        }
    }

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
            let placed = placed(&root, &path.parse().unwrap(), &network).ok()?;
            Some(placed.map(|one| (one.root.to_string(), one.path.to_string(), one.unsure)))
        };
        let found = |root: &str, path: &str, unsure| Some(Some((root.to_owned(), path.to_owned(), unsure)));
        // As the profiles have it.
        assert_eq!(of("http://127.0.0.1:1", "/nudm-sdm/v2"), Some(None));
        assert_eq!(of("http://127.0.0.1:2/x/y", "/nudm-sdm/v2?a=b"), Some(None));
        assert_eq!(of("http://127.0.0.1:9", "/nudm-sdm/v2"), Some(None));
        // Cut in other places.
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
        // Where nobody knows.
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
