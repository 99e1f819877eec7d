//! `3gpp-Sbi-Discovery-*`: discovery parameters for the SCP that discovers on behalf of the sender
//! (TS 29.500 §5.2.3.2.7).
//!
//! The name of such a header continues with the name of a query parameter of the NRF's discovery, and its
//! value is what the parameter's would be. Consumers disagree on whether the value is percent-encoded, so
//! both forms are read; encoded is what is written, because a header cannot hold every character.

use std::borrow::Cow;

use http2::{Fields, Name};
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
    pub header: String,
}

/// The discovery parameters of a message in the order of its headers: name and plain value.
///
/// # Errors
/// When a value is not text.
pub fn parameters(headers: &Fields) -> Result<Vec<(&str, Cow<'_, str>)>, DiscoveryError> {
    let mut found = Vec::new();
    for (name, parameter, value) in headers.discovery_parameters() {
        let text = std::str::from_utf8(value.as_bytes()).ok();
        let plain = text.and_then(|text| percent_decode_str(trim(text)).decode_utf8().ok());
        let plain = plain.ok_or_else(|| DiscoveryError {
            header: name.as_str().to_owned(),
        })?;
        found.push((parameter, plain));
    }
    Ok(found)
}

/// Whether a message has discovery parameters.
#[must_use]
pub fn has_parameters(headers: &Fields) -> bool {
    headers.discovery_parameters().next().is_some()
}

/// Sets a discovery parameter; `false` when its name cannot be part of a header's.
pub fn set(headers: &mut Fields, parameter: &str, value: &str) -> bool {
    let name = format!("{DISCOVERY_PREFIX}{parameter}");
    let lower = name.to_ascii_lowercase();
    Name::new(lower.as_bytes())
        .is_ok_and(|name| headers.set_printed(name, utf8_percent_encode(value, ESCAPED)))
}

/// Removes all discovery parameters, as an SCP does before it forwards a request to the producer.
pub fn remove(headers: &mut Fields) {
    headers.remove_discovery_parameters();
}

#[cfg(test)]
mod tests {
    use super::*;
    use http2::Value;
    use proptest::prelude::*;

    #[test]
    fn both_forms_are_read() {
        let mut headers = Fields::new();
        let slice = http2::name::SBI_DISCOVERY_SNSSAIS;
        headers.set("x-other", Value::from_static("1"));
        assert!(!has_parameters(&headers));
        headers.append(slice, Value::from_static(r#"[{"sst":1}]"#));
        headers.append(slice, Value::from_static("%5B%7B%22sst%22%3A1%7D%5D"));
        let plain = ("snssais", Cow::Borrowed(r#"[{"sst":1}]"#));
        assert_eq!(parameters(&headers).unwrap(), [plain.clone(), plain]);
        headers.append(slice, Value::from_static("%ff"));
        assert_eq!(parameters(&headers).unwrap_err().header, slice.as_str());
        remove(&mut headers);
        assert_eq!(headers.len(), 1);
        assert!(!set(&mut headers, "no header", "1"));
    }

    proptest! {
        #[test]
        fn set_and_read_again(value in "\\PC{0,40}") {
            let mut headers = Fields::new();
            prop_assert!(set(&mut headers, "dnn", &value));
            prop_assert_eq!(&parameters(&headers).unwrap()[0].1, value.as_str());
        }

        #[test]
        fn any_value_is_read_or_refused(value in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(value) = Value::new(&value) {
                let mut headers = Fields::new();
                headers.append("3gpp-sbi-discovery-dnn", value);
                let _ = parameters(&headers);
            }
        }
    }
}
