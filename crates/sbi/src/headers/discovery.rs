//! `3gpp-Sbi-Discovery-*`: discovery parameters for whoever discovers on behalf of the sender
//! (TS 29.500 §5.2.3.2.7).
//!
//! The name of such a header continues with the name of a query parameter of the NRF's discovery, and its
//! value is what the parameter's would be. Consumers disagree on whether the value is percent-encoded, so
//! both forms are read; encoded is what is written, because a header cannot hold every character.

use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::lexis::trim;
use super::names::DISCOVERY_PREFIX;

/// What a header value cannot hold (or not at its ends), what would be taken for the separator of a list of headers, and `%`.
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'%').add(b'"').add(b',');

/// A discovery header whose value is not text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("header {header}: expected UTF-8 text, percent-encoded or plain")]
pub struct DiscoveryError {
    /// Name of the header.
    pub header: HeaderName,
}

/// The discovery parameters of a message in the order of its headers: name and plain value.
///
/// # Errors
/// When a value is not text.
pub fn parameters(headers: &HeaderMap) -> Result<Vec<(&str, String)>, DiscoveryError> {
    let mut found = Vec::new();
    for (header, value) in headers {
        let Some(name) = header.as_str().strip_prefix(DISCOVERY_PREFIX) else {
            continue;
        };
        let text = std::str::from_utf8(value.as_bytes()).ok();
        let plain = text.and_then(|text| percent_decode_str(trim(text)).decode_utf8().ok());
        let plain = plain.ok_or_else(|| DiscoveryError {
            header: header.clone(),
        })?;
        found.push((name, plain.into_owned()));
    }
    Ok(found)
}

/// Whether a message has discovery parameters.
#[must_use]
pub fn has_parameters(headers: &HeaderMap) -> bool {
    headers
        .keys()
        .any(|name| name.as_str().starts_with(DISCOVERY_PREFIX))
}

/// Sets a discovery parameter; `false` when its name cannot be part of a header's.
pub fn set(headers: &mut HeaderMap, parameter: &str, value: &str) -> bool {
    let name = format!("{DISCOVERY_PREFIX}{parameter}");
    let encoded = utf8_percent_encode(value, ESCAPED).to_string();
    match (HeaderName::try_from(name), HeaderValue::try_from(encoded)) {
        (Ok(name), Ok(value)) => {
            headers.insert(name, value);
            true
        }
        _ => false,
    }
}

/// Removes all discovery parameters, as an SCP does before it forwards a request to the producer.
pub fn remove(headers: &mut HeaderMap) {
    let names: Vec<HeaderName> = headers
        .keys()
        .filter(|name| name.as_str().starts_with(DISCOVERY_PREFIX))
        .cloned()
        .collect();
    for name in names {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_forms_are_read() {
        let mut headers = HeaderMap::new();
        let slice = HeaderName::from_static("3gpp-sbi-discovery-snssais");
        headers.insert("x-other", HeaderValue::from_static("1"));
        assert!(!has_parameters(&headers));
        headers.append(&slice, HeaderValue::from_static(r#"[{"sst":1}]"#));
        headers.append(&slice, HeaderValue::from_static("%5B%7B%22sst%22%3A1%7D%5D"));
        let plain = ("snssais", r#"[{"sst":1}]"#.to_owned());
        assert_eq!(parameters(&headers).unwrap(), [plain.clone(), plain]);
        headers.append(&slice, HeaderValue::from_static("%ff"));
        assert_eq!(parameters(&headers).unwrap_err().header, slice);
        remove(&mut headers);
        assert_eq!(headers.len(), 1);
        assert!(!set(&mut headers, "no header", "1"));
    }

    proptest! {
        #[test]
        fn set_and_read_again(value in "\\PC{0,40}") {
            let mut headers = HeaderMap::new();
            prop_assert!(set(&mut headers, "dnn", &value));
            prop_assert_eq!(&parameters(&headers).unwrap()[0].1, &value);
        }

        #[test]
        fn any_value_is_read_or_refused(value in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                let headers = HeaderMap::from_iter([(HeaderName::from_static("3gpp-sbi-discovery-dnn"), value)]);
                let _ = parameters(&headers);
            }
        }
    }
}
