//! The discovery query that a request carries in its headers.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use sbi_proto::Fields;
use sbi_proto::headers::{NrfUri, SbiHeader};

/// What is escaped in the value of a query parameter: everything but unreserved characters and those
/// that RFC 3986 §3.4 allows in a query and servers do not treat as separators.
const ESCAPED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'&')
    .add(b'+')
    .add(b'<')
    .add(b'=')
    .add(b'>')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// Parameters whose values are lists of names. In a header white space may follow a comma (RFC 9110 §5.6.1), in a query it
/// may not.
const LISTS: [&str; 6] = [
    "service-names",
    "group-id-list",
    "preferred-nf-instances",
    "exclude-nfinst-list",
    "exclude-nfset-list",
    "exclude-nfserviceset-list",
];

/// Parameters of one value. SCPs and NRFs differ in which of two values they use, so two different values are an error.
const SINGLE: [&str; 4] = [
    "target-nf-type",
    "requester-nf-type",
    "requester-nf-instance-id",
    "target-nf-instance-id",
];

/// A discovery query in canonical form: parameters sorted by name, values escaped one way, so that equal
/// queries are equal texts. It is the key of the cache and the query string of the request to the NRF. The same
/// parameters for another NRF are another query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoveryQuery {
    text: String,
    nrf: Option<Arc<NrfUri>>,
    /// Hash of both: a query is made once, and looked up with each request that carries it.
    hash: u64,
}

impl Hash for DiscoveryQuery {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Default for DiscoveryQuery {
    fn default() -> Self {
        Self::of(String::new(), None)
    }
}

/// An invalid discovery header.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{header}: {expected}")]
pub struct QueryFault {
    /// Name of the header.
    pub header: String,
    /// What would be right.
    pub expected: &'static str,
}

impl DiscoveryQuery {
    /// Takes the query from the headers of a request; `None` when it has no discovery header.
    ///
    /// Values arrive percent-encoded from some consumers and plain from others; both mean the same. Several
    /// headers of one name are one parameter with several values (a comma list).
    ///
    /// # Errors
    /// When a value is not text.
    pub fn from_headers(headers: &Fields) -> Result<Option<Self>, QueryFault> {
        let mut parameters: Vec<(&str, Cow<'_, str>)> = Vec::new();
        for (name, parameter, value) in headers.discovery_parameters() {
            let value = std::str::from_utf8(value.as_bytes())
                .ok()
                .and_then(|value| percent_decode_str(value.trim()).decode_utf8().ok())
                .ok_or_else(|| QueryFault {
                    header: name.as_str().to_owned(),
                    expected: "expected UTF-8 text, plain or percent-encoded",
                })?;
            let value = match LISTS.contains(&parameter) && value.contains(' ') {
                true => value
                    .split(',')
                    .map(str::trim)
                    .collect::<Vec<_>>()
                    .join(",")
                    .into(),
                false => value,
            };
            match parameters.iter_mut().find(|(known, _)| *known == parameter) {
                Some((_, known)) if SINGLE.contains(&parameter) => {
                    if *known != value {
                        return Err(QueryFault {
                            header: name.as_str().to_owned(),
                            expected: "expected one value",
                        });
                    }
                }
                Some((_, values)) => {
                    let values = values.to_mut();
                    values.push(',');
                    values.push_str(&value);
                }
                None => parameters.push((parameter, value)),
            }
        }
        Ok((!parameters.is_empty()).then(|| Self::new(parameters)))
    }

    /// A query of these parameters with plain values.
    pub fn new<'a, V: AsRef<str>>(parameters: impl IntoIterator<Item = (&'a str, V)>) -> Self {
        let mut parameters: Vec<(&str, V)> = parameters.into_iter().collect();
        parameters.sort_by(|a, b| a.0.cmp(b.0));
        let mut text = String::with_capacity(128);
        for (name, value) in &parameters {
            if !text.is_empty() {
                text.push('&');
            }
            // Writing to a `String` cannot fail.
            let _ = write!(text, "{name}={}", utf8_percent_encode(value.as_ref(), ESCAPED));
        }
        Self::of(text, None)
    }

    fn of(text: String, nrf: Option<Arc<NrfUri>>) -> Self {
        // Consumers choose the text: they must not know which texts collide.
        static HASHER: LazyLock<ahash::RandomState> = LazyLock::new(ahash::RandomState::new);
        let hash = HASHER.hash_one((&text, &nrf));
        Self { text, nrf, hash }
    }

    /// This query for the NRF that a request names, if the request names its discovery API.
    ///
    /// # Errors
    /// When the header cannot be read.
    pub fn named(self, headers: &Fields) -> Result<Self, QueryFault> {
        let nrf = NrfUri::of(headers).map_err(|error| QueryFault {
            header: error.header,
            expected: error.expected,
        })?;
        let nrf = nrf.filter(|nrf| nrf.discovery.is_some()).map(Arc::new);
        Ok(Self::of(self.text, nrf))
    }

    /// The NRF that the request names.
    #[must_use]
    pub fn nrf(&self) -> Option<&NrfUri> {
        self.nrf.as_deref()
    }

    /// As the query string of `GET /nnrf-disc/v1/nf-instances`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The parameters with their plain values, by name.
    #[must_use]
    pub fn pairs(&self) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
        let pairs = self.text.split('&').filter_map(|pair| pair.split_once('='));
        let plain = |value| percent_decode_str(value).decode_utf8_lossy();
        pairs
            .map(|(name, value)| (Cow::Borrowed(name), plain(value)))
            .collect()
    }

    /// The plain value of a parameter.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Cow<'_, str>> {
        self.escaped(name)
            .map(|value| percent_decode_str(value).decode_utf8_lossy())
    }

    /// The escaped value of a parameter. Each request of Model D asks for some of them, most of which it has not:
    /// searches for patterns in text take several times as many instructions as this one for bytes.
    fn escaped(&self, name: &str) -> Option<&str> {
        let mut rest = &*self.text;
        while !rest.is_empty() {
            let end = memchr::memchr(b'&', rest.as_bytes()).unwrap_or(rest.len());
            let pair = &rest[..end];
            if let Some(value) = pair.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')) {
                return Some(value);
            }
            rest = rest.get(end + 1..).unwrap_or_default();
        }
        None
    }

    /// This query with a parameter added, replaced (`Some`) or left out (`None`).
    #[must_use]
    pub fn with(&self, name: &str, value: Option<&str>) -> Self {
        let kept = self.text.split('&').filter_map(|pair| pair.split_once('='));
        let kept = kept.filter(|(key, _)| *key != name);
        let kept: Vec<_> = kept
            .map(|(key, value)| (key, percent_decode_str(value).decode_utf8_lossy()))
            .collect();
        let changed = kept
            .into_iter()
            .chain(value.map(|value| (name, Cow::Borrowed(value))));
        Self::of(Self::new(changed).text, self.nrf.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sbi_proto::Value;

    fn query(headers: &[(&'static str, &'static str)]) -> DiscoveryQuery {
        let mut map = Fields::new();
        for (name, value) in headers {
            map.append(*name, Value::from_static(value));
        }
        DiscoveryQuery::from_headers(&map).unwrap().unwrap()
    }

    #[test]
    fn order_and_encoding_do_not_matter() {
        let plain = query(&[
            ("3gpp-Sbi-Discovery-target-nf-type", "UDM"),
            ("3gpp-Sbi-Discovery-snssais", r#"[{"sst":1}]"#),
        ]);
        let encoded = query(&[
            ("3gpp-Sbi-Discovery-snssais", "%5B%7B%22sst%22%3A1%7D%5D"),
            ("x-other", "1"),
            ("3gpp-Sbi-Discovery-target-nf-type", "%55DM"),
        ]);
        assert_eq!(plain, encoded);
        assert_eq!(
            plain.as_str(),
            "snssais=%5B%7B%22sst%22:1%7D%5D&target-nf-type=UDM"
        );
        assert_eq!(plain.get("snssais").unwrap(), r#"[{"sst":1}]"#);
        assert_eq!(plain.get("sn"), None);
        assert_eq!(plain.get("snssais2"), None);
        assert_eq!(DiscoveryQuery::default().get("snssais"), None);
    }

    #[test]
    fn repeated_headers_are_one_list() {
        let names = query(&[
            ("3gpp-Sbi-Discovery-service-names", "nudm-sdm"),
            ("3gpp-Sbi-Discovery-service-names", "nudm-uecm"),
        ]);
        assert_eq!(names.get("service-names").unwrap(), "nudm-sdm,nudm-uecm");
    }

    #[test]
    fn nothing_to_discover_and_nothing_but_bytes() {
        assert_eq!(DiscoveryQuery::from_headers(&Fields::new()), Ok(None));
        let mut headers = Fields::new();
        headers.set("3gpp-sbi-discovery-dnn", Value::new(b"\xff").unwrap());
        assert_eq!(
            DiscoveryQuery::from_headers(&headers).unwrap_err().header,
            "3gpp-sbi-discovery-dnn"
        );
    }

    #[test]
    fn parameters_are_changed() {
        let query = DiscoveryQuery::new([("target-nf-type", "UDM"), ("limit", "5")]);
        assert_eq!(query.with("limit", None).as_str(), "target-nf-type=UDM");
        assert_eq!(
            query.with("dnn", Some("a b")).as_str(),
            "dnn=a%20b&limit=5&target-nf-type=UDM"
        );
    }

    #[test]
    fn a_question_to_a_named_nrf_is_one_of_its_own() {
        let plain = DiscoveryQuery::new([("target-nf-type", "UDM")]);
        let mut headers = Fields::new();
        let named = |headers: &Fields| plain.clone().named(headers);
        assert_eq!(named(&headers), Ok(plain.clone()));
        let mut at = |value: &'static str| {
            headers.set("3gpp-sbi-nrf-uri", Value::from_static(value));
            named(&headers)
        };
        let one = at("nnrf-disc: \"http://one:80/nnrf-disc/v1\"").unwrap();
        let two = at("nnrf-disc: \"http://two:80/nnrf-disc/v1\"").unwrap();
        assert!(one != plain && one != two);
        assert_eq!(one.with("limit", Some("1")).nrf(), one.nrf());
        // The header names no discovery API.
        assert_eq!(at("nnrf-oauth2: \"http://two:80/oauth2\""), Ok(plain.clone()));
        assert_eq!(at("garbage").unwrap_err().header, "3gpp-sbi-nrf-uri");
    }

    proptest! {
        #[test]
        fn values_come_back_as_they_were(value in "\\PC{0,40}") {
            let query = DiscoveryQuery::new([("dnn", value.as_str())]);
            prop_assert_eq!(query.get("dnn").unwrap(), value);
            prop_assert!(query.as_str().is_ascii());
        }
    }
}
