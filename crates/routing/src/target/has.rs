//! Set of the headers of a request that an SCP interprets.
//!
//! Most requests have one or two of them. One pass over the headers is cheaper than a search for each name.

use sbi_proto::headers::names;
use sbi_proto::{Fields, Name, name};

/// A set of headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Has(u16);

impl Has {
    /// `Via`.
    pub const VIA: Self = Self(1);
    /// `3gpp-Sbi-Target-apiRoot`.
    pub const TARGET_API_ROOT: Self = Self(1 << 1);
    /// Any `3gpp-Sbi-Discovery-*`.
    pub const DISCOVERY: Self = Self(1 << 2);
    /// `3gpp-Sbi-Routing-Binding`.
    pub const ROUTING_BINDING: Self = Self(1 << 3);
    /// `3gpp-Sbi-Max-Forward-Hops`.
    pub const MAX_FORWARD_HOPS: Self = Self(1 << 4);
    /// `3gpp-Sbi-Max-Rsp-Time`.
    pub const MAX_RSP_TIME: Self = Self(1 << 5);
    /// `3gpp-Sbi-Message-Priority`.
    pub const MESSAGE_PRIORITY: Self = Self(1 << 6);
    /// `3gpp-Sbi-Nrf-Uri`.
    pub const NRF_URI: Self = Self(1 << 7);
    /// `3gpp-Sbi-Callback`.
    pub const CALLBACK: Self = Self(1 << 8);

    /// `3gpp-Sbi-Retry-Info`.
    pub const RETRY_INFO: Self = Self(1 << 9);
    /// `3gpp-Sbi-Selection-Info`.
    pub const SELECTION_INFO: Self = Self(1 << 10);
    /// `3gpp-Sbi-NF-Peer-Info`.
    pub const PEER_INFO: Self = Self(1 << 11);
    /// `3gpp-Sbi-Client-Credentials`.
    pub const CLIENT_CREDENTIALS: Self = Self(1 << 12);
    /// `3gpp-Sbi-Sender-Timestamp`.
    pub const SENDER_TIMESTAMP: Self = Self(1 << 13);
    /// `Authorization`.
    pub const AUTHORIZATION: Self = Self(1 << 14);
    /// The request has a header of one value more than once.
    pub const REPEATED: Self = Self(1 << 15);

    /// Headers of one value.
    pub const SINGLE: [(Name<'static>, Self); 12] = [
        (names::TARGET_API_ROOT, Self::TARGET_API_ROOT),
        (names::ROUTING_BINDING, Self::ROUTING_BINDING),
        (names::MAX_FORWARD_HOPS, Self::MAX_FORWARD_HOPS),
        (names::MAX_RSP_TIME, Self::MAX_RSP_TIME),
        (names::MESSAGE_PRIORITY, Self::MESSAGE_PRIORITY),
        (names::NRF_URI, Self::NRF_URI),
        (names::CALLBACK, Self::CALLBACK),
        (names::RETRY_INFO, Self::RETRY_INFO),
        (names::SELECTION_INFO, Self::SELECTION_INFO),
        (names::CLIENT_CREDENTIALS, Self::CLIENT_CREDENTIALS),
        (names::SENDER_TIMESTAMP, Self::SENDER_TIMESTAMP),
        (name::AUTHORIZATION, Self::AUTHORIZATION),
    ];

    /// Returns the set of these headers.
    #[must_use]
    pub fn among(headers: &Fields) -> Self {
        headers.iter().fold(Self::default(), |found, field| {
            let one = match field.name {
                name::VIA => Self::VIA,
                names::TARGET_API_ROOT => Self::TARGET_API_ROOT,
                names::ROUTING_BINDING => Self::ROUTING_BINDING,
                names::MAX_FORWARD_HOPS => Self::MAX_FORWARD_HOPS,
                names::MAX_RSP_TIME => Self::MAX_RSP_TIME,
                names::MESSAGE_PRIORITY => Self::MESSAGE_PRIORITY,
                names::NRF_URI => Self::NRF_URI,
                names::CALLBACK => Self::CALLBACK,
                names::RETRY_INFO => Self::RETRY_INFO,
                names::SELECTION_INFO => Self::SELECTION_INFO,
                names::NF_PEER_INFO => Self::PEER_INFO,
                names::CLIENT_CREDENTIALS => Self::CLIENT_CREDENTIALS,
                names::SENDER_TIMESTAMP => Self::SENDER_TIMESTAMP,
                name::AUTHORIZATION => Self::AUTHORIZATION,
                other if other.discovery_parameter().is_some() => Self::DISCOVERY,
                _ => Self::default(),
            };
            // `Via`, discovery parameters and lists may have several.
            const SINGLE: u16 = 0b0111_0111_1111_1010;
            let repeated = match found.0 & one.0 & SINGLE {
                0 => 0,
                _ => Self::REPEATED.0,
            };
            Self(found.0 | one.0 | repeated)
        })
    }

    /// Whether the set contains this header.
    #[must_use]
    pub fn has(self, one: Self) -> bool {
        self.0 & one.0 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sbi_proto::Value;
    use sbi_proto::headers::discovery;

    #[test]
    fn each_is_found_by_the_name_it_is_sent_by() {
        let known = [
            (name::VIA, Has::VIA),
            (names::TARGET_API_ROOT, Has::TARGET_API_ROOT),
            (names::ROUTING_BINDING, Has::ROUTING_BINDING),
            (names::MAX_FORWARD_HOPS, Has::MAX_FORWARD_HOPS),
            (names::MAX_RSP_TIME, Has::MAX_RSP_TIME),
            (names::MESSAGE_PRIORITY, Has::MESSAGE_PRIORITY),
            (names::NRF_URI, Has::NRF_URI),
            (names::CALLBACK, Has::CALLBACK),
            (names::RETRY_INFO, Has::RETRY_INFO),
            (names::SELECTION_INFO, Has::SELECTION_INFO),
            (names::NF_PEER_INFO, Has::PEER_INFO),
            (names::CLIENT_CREDENTIALS, Has::CLIENT_CREDENTIALS),
            (names::SENDER_TIMESTAMP, Has::SENDER_TIMESTAMP),
            (name::AUTHORIZATION, Has::AUTHORIZATION),
        ];
        let mut all = Fields::new();
        assert_eq!(Has::among(&all), Has::default());
        for (name, expected) in known {
            let mut one = Fields::new();
            one.set(name, Value::from_static("x"));
            assert_eq!(Has::among(&one), expected, "{name}");
            all.set(name, Value::from_static("x"));
            assert!(Has::among(&all).has(expected) && !Has::among(&all).has(Has::DISCOVERY));
        }
        assert!(discovery::set(&mut all, "target-nf-type", "UDM"));
        all.set("3gpp-sbi-lci", Value::from_static("x"));
        assert_eq!(Has::among(&all), Has((1 << 15) - 1));
        for (name, one) in known {
            let mut twice = Fields::new();
            twice.append(name, Value::from_static("x"));
            twice.append(name, Value::from_static("y"));
            let single = Has::SINGLE.iter().any(|(_, single)| *single == one);
            assert_eq!(Has::among(&twice).has(Has::REPEATED), single, "{name}");
        }
    }
}
