//! A message of the feed: JSON with the facts, the headers, and the body.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::Copied;
use crate::config::Config;

/// What the copies of one exchange have in common.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    /// Unique within this SCP while it runs.
    pub(crate) number: u64,
    /// The consumer's `User-Agent`.
    pub(crate) consumer: Option<Arc<str>>,
    /// `host:port` of the producer.
    pub(crate) producer: Option<Arc<str>>,
    /// NF instance id of the producer.
    pub(crate) instance: Option<Arc<str>>,
    /// 0 for the first producer that is tried.
    pub(crate) attempt: u8,
}

/// Who feeds.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Source {
    nf_type: &'static str,
    nf_fqdn: String,
    nf_instance_id: String,
    #[serde(skip)]
    redacted: Vec<String>,
    /// Makes correlation ids of several runs and SCPs distinct.
    #[serde(skip)]
    run: u64,
}

impl Source {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            nf_type: "SCP",
            nf_fqdn: config.fqdn.clone(),
            nf_instance_id: config.nf_instance_id.clone(),
            redacted: config
                .feed
                .redacted_headers
                .iter()
                .map(|name| name.to_ascii_lowercase())
                .collect(),
            run: rand::random(),
        }
    }

    /// The correlation id of an exchange.
    pub(super) fn correlation(&self, exchange: &Exchange) -> String {
        format!("{:016x}{:016x}", self.run, exchange.number)
    }

    /// The text of a copy.
    pub(super) fn encode(&self, copied: &Copied) -> Vec<u8> {
        let whole = copied.body.to_bytes();
        let json = std::str::from_utf8(&whole)
            .ok()
            .filter(|text| !text.is_empty())
            .and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
        let binary = (json.is_none() && !whole.is_empty()).then(|| STANDARD.encode(&whole));
        let exchange = &copied.exchange;
        let message = Message {
            version: "1.0",
            metadata: Metadata {
                correlation_id: self.correlation(exchange),
                timestamp: copied.at.to_string(),
                message_direction: copied.point.as_str(),
                consumer_id: exchange.consumer.as_deref(),
                producer_id: exchange.instance.as_deref(),
                producer_fqdn: exchange.producer.as_deref(),
                hop_by_hop_id: format!("{:x}.{}", exchange.number, exchange.attempt),
                feed_source: self,
            },
            method: copied.method.as_str(),
            path: &copied.target,
            status: copied.status.map(|status| status.as_u16()),
            headers: Headers(&copied.headers, &self.redacted),
            body: json,
            binary_body: binary.as_deref(),
        };
        // Texts, numbers and JSON that was just checked: it always serialises.
        serde_json::to_vec(&message).unwrap_or_default()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Message<'a> {
    version: &'static str,
    #[serde(rename = "metadata-list")]
    metadata: Metadata<'a>,
    method: &'a str,
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(rename = "header-list")]
    headers: Headers<'a>,
    #[serde(rename = "5g-sbi-message", skip_serializing_if = "Option::is_none")]
    body: Option<&'a RawValue>,
    #[serde(rename = "5g-sbi-message-base64", skip_serializing_if = "Option::is_none")]
    binary_body: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Metadata<'a> {
    correlation_id: String,
    /// Nanoseconds since 1970, as text: numbers of that size lose digits in many readers.
    timestamp: String,
    message_direction: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    consumer_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    producer_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    producer_fqdn: Option<&'a str>,
    hop_by_hop_id: String,
    feed_source: &'a Source,
}

/// Headers, those of one name joined by commas, secrets left out.
struct Headers<'a>(&'a sbi::Fields, &'a [String]);

impl Serialize for Headers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (at, name) in self.0.iter().map(|field| field.name).enumerate() {
            if self.0.iter().take(at).any(|field| field.name == name) {
                continue;
            }
            if self.1.iter().any(|redacted| redacted == name.as_str()) {
                map.serialize_entry(name.as_str(), "(redacted)")?;
                continue;
            }
            let mut values = self.0.get_all(name);
            let first = values.next().map_or(&b""[..], |value| value.as_bytes());
            let mut whole = String::from_utf8_lossy(first);
            for value in values {
                let whole = whole.to_mut();
                whole.push_str(", ");
                whole.push_str(&String::from_utf8_lossy(value.as_bytes()));
            }
            map.serialize_entry(name.as_str(), &whole)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FeedPoint;
    use http::{Method, StatusCode};
    use serde_json::{Value, json};
    use std::time::Instant;

    fn copied(body: &'static [u8]) -> Copied {
        let mut headers = sbi::Fields::new();
        headers.set_printed("authorization", "Bearer x");
        headers.append_printed("via", "2.0 a");
        headers.append_printed("via", "2.0 b");
        Copied {
            point: FeedPoint::TxResponse,
            at: 1_700_000_000_000_000_001,
            given: Instant::now(),
            exchange: Exchange {
                number: 7,
                consumer: Some("AMF-1".into()),
                producer: Some("udm:80".into()),
                instance: None,
                attempt: 1,
            },
            method: Method::PUT,
            target: "/nudm-sdm/v2/x?y=1".into(),
            status: Some(StatusCode::CREATED),
            headers,
            body: body.into(),
            cost: 0,
        }
    }

    #[test]
    fn facts_headers_and_body() {
        let source = Source::new(&Config::default());
        let text = source.encode(&copied(b"{\"a\": [1, 2]}"));
        let value: Value = serde_json::from_slice(&text).unwrap();
        let metadata = &value["metadata-list"];
        assert_eq!(metadata["message-direction"], "TxResponse");
        assert_eq!(metadata["timestamp"], "1700000000000000001");
        assert_eq!(metadata["consumer-id"], "AMF-1");
        assert_eq!(metadata["hop-by-hop-id"], "7.1");
        assert_eq!(metadata["feed-source"]["nf-type"], "SCP");
        assert!(metadata.get("producer-id").is_none());
        assert_eq!(value["status"], 201);
        assert_eq!(value["path"], "/nudm-sdm/v2/x?y=1");
        assert_eq!(
            value["header-list"],
            json!({"authorization": "(redacted)", "via": "2.0 a, 2.0 b"})
        );
        assert_eq!(value["5g-sbi-message"], json!({"a": [1, 2]}));
    }

    #[test]
    fn bodies_that_are_no_json_are_kept_as_they_are() {
        let source = Source::new(&Config::default());
        let value: Value = serde_json::from_slice(&source.encode(&copied(b"\xff\x00"))).unwrap();
        assert_eq!(value["5g-sbi-message-base64"], "/wA=");
        let value: Value = serde_json::from_slice(&source.encode(&copied(b""))).unwrap();
        assert!(value.get("5g-sbi-message").is_none() && value.get("5g-sbi-message-base64").is_none());
    }
}
