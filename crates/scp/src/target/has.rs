//! Which of the headers that an SCP heeds a request has.
//!
//! Most requests have one or two of them. Looking for each by its name costs far more than going once through
//! those that are there.

use http::HeaderMap;

/// A set of headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Has(u16);

impl Has {
    /// `Via`.
    pub const VIA: Self = Self(1);
    /// `traceparent`.
    pub const TRACEPARENT: Self = Self(1 << 1);
    /// `3gpp-Sbi-Target-apiRoot`.
    pub const TARGET_API_ROOT: Self = Self(1 << 2);
    /// Any `3gpp-Sbi-Discovery-*`.
    pub const DISCOVERY: Self = Self(1 << 3);
    /// `3gpp-Sbi-Routing-Binding`.
    pub const ROUTING_BINDING: Self = Self(1 << 4);
    /// `3gpp-Sbi-Max-Forward-Hops`.
    pub const MAX_FORWARD_HOPS: Self = Self(1 << 5);
    /// `3gpp-Sbi-Max-Rsp-Time`.
    pub const MAX_RSP_TIME: Self = Self(1 << 6);
    /// `3gpp-Sbi-Message-Priority`.
    pub const MESSAGE_PRIORITY: Self = Self(1 << 7);
    /// `3gpp-Sbi-Nrf-Uri`.
    pub const NRF_URI: Self = Self(1 << 8);
    /// `3gpp-Sbi-Callback`.
    pub const CALLBACK: Self = Self(1 << 9);

    /// Those among these headers.
    #[must_use]
    pub fn among(headers: &HeaderMap) -> Self {
        headers.keys().fold(Self::default(), |found, name| {
            let one = match name.as_str() {
                "via" => Self::VIA,
                "traceparent" => Self::TRACEPARENT,
                name => match name.strip_prefix("3gpp-sbi-") {
                    None => Self::default(),
                    Some("target-apiroot") => Self::TARGET_API_ROOT,
                    Some("routing-binding") => Self::ROUTING_BINDING,
                    Some("max-forward-hops") => Self::MAX_FORWARD_HOPS,
                    Some("max-rsp-time") => Self::MAX_RSP_TIME,
                    Some("message-priority") => Self::MESSAGE_PRIORITY,
                    Some("nrf-uri") => Self::NRF_URI,
                    Some("callback") => Self::CALLBACK,
                    Some(rest) if rest.starts_with("discovery-") => Self::DISCOVERY,
                    Some(_) => Self::default(),
                },
            };
            Self(found.0 | one.0)
        })
    }

    /// Whether this one is there.
    #[must_use]
    pub fn has(self, one: Self) -> bool {
        self.0 & one.0 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::{HeaderName, HeaderValue, VIA};
    use sbi::headers::{discovery, names};

    #[test]
    fn each_is_found_by_the_name_it_is_sent_by() {
        let known = [
            (VIA, Has::VIA),
            (
                HeaderName::from_static(telemetry::trace::TRACEPARENT),
                Has::TRACEPARENT,
            ),
            (names::TARGET_API_ROOT, Has::TARGET_API_ROOT),
            (names::ROUTING_BINDING, Has::ROUTING_BINDING),
            (names::MAX_FORWARD_HOPS, Has::MAX_FORWARD_HOPS),
            (names::MAX_RSP_TIME, Has::MAX_RSP_TIME),
            (names::MESSAGE_PRIORITY, Has::MESSAGE_PRIORITY),
            (names::NRF_URI, Has::NRF_URI),
            (names::CALLBACK, Has::CALLBACK),
        ];
        let mut all = HeaderMap::new();
        assert_eq!(Has::among(&all), Has::default());
        for (name, expected) in known {
            let one = HeaderMap::from_iter([(name.clone(), HeaderValue::from_static("x"))]);
            assert_eq!(Has::among(&one), expected, "{name}");
            all.insert(name, HeaderValue::from_static("x"));
            assert!(Has::among(&all).has(expected) && !Has::among(&all).has(Has::DISCOVERY));
        }
        assert!(discovery::set(&mut all, "target-nf-type", "UDM"));
        all.insert("3gpp-sbi-lci", HeaderValue::from_static("x"));
        assert_eq!(Has::among(&all), Has((1 << 10) - 1));
    }
}
