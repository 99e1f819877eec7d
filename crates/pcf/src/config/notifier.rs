//! Servers of the operator that policy projects notify.

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue, Uri};
use policy::{Accepts, Servers};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, Period, Secret, Validate};
use tls::TlsFiles;

/// Servers in the settings.
const MOST_SERVERS: usize = 64;
/// Headers that the PCF sets itself.
const OWN_HEADERS: &[&str] = &[
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "host",
    "idempotency-key",
    "soapaction",
    "transfer-encoding",
];

/// Messages of policy projects (`notify`) to servers of the operator, by HTTP/1.1. Delivery is best effort: a message is sent
/// after its decision is kept, at most `attempts` times, and is lost with the process. No answer waits for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Notifier {
    /// Whether messages are sent. If not, the projects stay as they are and what they make is dropped and counted.
    #[schemars(extend("x-reload" = true))]
    pub enabled: bool,
    /// TLS of the connections to servers with `https`: the authorities that are trusted, for mutual TLS a certificate and its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsFiles>,
    /// How long a connection without a request stays open.
    pub idle_time: Period,
    /// The servers by the name that projects use; at most 64. Without any, a project that notifies one is refused.
    #[schemars(extend("x-reload" = true))]
    pub servers: BTreeMap<String, NotifierServer>,
}

/// A server that policy projects notify.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct NotifierServer {
    /// Its URL (`https://crm.example.org/messages`); `path` of a block follows it.
    pub url: String,
    /// The method of requests. With GET everything is in the URL, and no block may have a content.
    pub method: NotifierMethod,
    /// The content type; empty: by the content, `application/json`, `text/xml; charset=utf-8` or `text/plain; charset=utf-8`.
    pub content_type: String,
    /// The SOAP action of blocks without one: `SOAPAction` (SOAP 1.1), with content type `application/soap+xml` its parameter
    /// `action` (SOAP 1.2). Absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soap_action: Option<String>,
    /// Further headers.
    pub headers: BTreeMap<String, String>,
    /// The header `Authorization`, such as `Basic …` or `Bearer …`, by the file or environment variable that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization: Option<Secret>,
    /// How long it may take to answer, its connection included.
    pub timeout: Period,
    /// Attempts of one message. Another follows no answer in time and statuses 408, 425, 429 and 5xx.
    pub attempts: u32,
    /// Pause before the second attempt; doubles before each further one.
    pub retry_pause: Period,
    /// Messages that each worker has in flight, those in a pause included.
    pub parallel: usize,
    /// Messages that are pending at each worker; beyond, they are dropped.
    pub queue: usize,
    /// Bytes of the messages that are pending at each worker; beyond, they are dropped.
    pub queue_bytes: ByteSize,
}

/// Methods of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum NotifierMethod {
    /// GET.
    Get,
    /// POST.
    #[default]
    Post,
    /// PUT.
    Put,
    /// PATCH.
    Patch,
}

impl Default for Notifier {
    fn default() -> Self {
        Self {
            enabled: true,
            tls: None,
            idle_time: Period::from_secs(30),
            servers: BTreeMap::new(),
        }
    }
}

impl Default for NotifierServer {
    fn default() -> Self {
        Self {
            url: String::new(),
            method: NotifierMethod::default(),
            content_type: String::new(),
            soap_action: None,
            headers: BTreeMap::new(),
            authorization: None,
            timeout: Period::from_secs(2),
            attempts: 3,
            retry_pause: Period::from_millis(500),
            parallel: 32,
            queue: 10_000,
            queue_bytes: ByteSize::mib(8),
        }
    }
}

impl Notifier {
    /// What policy projects may notify, and of what.
    #[must_use]
    pub fn accepted(&self) -> Servers {
        let servers = self.servers.iter();
        servers
            .map(|(name, server)| (name.clone(), server.accepts()))
            .collect()
    }
}

impl NotifierServer {
    fn accepts(&self) -> Accepts {
        match self.method {
            NotifierMethod::Get => Accepts::Nothing,
            _ => Accepts::of_content_type(&self.content_type),
        }
    }

    /// Whether it is reached over TLS.
    fn is_secure(&self) -> bool {
        let scheme = self.url.split(':').next().unwrap_or_default();
        scheme.eq_ignore_ascii_case("https")
    }
}

impl Validate for Notifier {
    fn validate(&self, faults: &mut Faults) {
        if self.servers.len() > MOST_SERVERS {
            let what = format!("has {} servers", self.servers.len());
            faults.at("servers").say(what, format!("at most {MOST_SERVERS}"));
        }
        let trusts = self.tls.as_ref().is_some_and(|files| files.authorities.is_some());
        for (name, server) in &self.servers {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            if name.is_empty() || !name.chars().all(is_plain) {
                faults
                    .at(format!("servers.{name}"))
                    .say("is not the name of a server", "letters, digits, `-`, `_` and `.`");
            }
            faults.within(format!("servers.{name}"), server);
            if server.is_secure() && !trusts {
                faults.at("tls.authorities").say(
                    format!("is missing, so that no certificate of `{name}` would be trusted"),
                    "a PEM file of authorities",
                );
            }
        }
    }
}

impl Validate for NotifierServer {
    fn validate(&self, faults: &mut Faults) {
        let uri: Option<Uri> = self.url.parse().ok();
        let is_right = uri.is_some_and(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https"))
                && uri.authority().is_some_and(|host| !host.as_str().contains('@'))
                && !self.url.contains('#')
        });
        if !is_right {
            faults.at("url").say(
                "is not the URL of a server",
                "http://host:port/path or https://host:port/path, without a user",
            );
        }
        if HeaderValue::from_str(&self.content_type).is_err() {
            faults
                .at("contentType")
                .say("is not a content type", "such as text/xml; charset=utf-8");
        }
        if let Some(action) = &self.soap_action {
            let is_quotable = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
            if !action.bytes().all(is_quotable) {
                faults
                    .at("soapAction")
                    .say("is not a SOAP action", "a URI in visible ASCII");
            }
        }
        for (name, value) in &self.headers {
            let own = OWN_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own));
            if own
                || HeaderName::from_bytes(name.as_bytes()).is_err()
                || HeaderValue::from_str(value).is_err()
            {
                faults.at(format!("headers.{name}")).say(
                    "is not a header that can be added",
                    format!(
                        "a name and a value in ASCII; not one of {}",
                        OWN_HEADERS.join(", ")
                    ),
                );
            }
        }
        for (name, value) in [
            ("parallel", self.parallel),
            ("queue", self.queue),
            ("attempts", self.attempts as usize),
        ] {
            if value == 0 {
                faults.at(name).say("is 0", "at least 1");
            }
        }
        if self.timeout.is_zero() {
            faults.at("timeout").say("is 0", "some time, such as 2s");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_in_a_server_is_named() {
        let server = |url: &str| NotifierServer {
            url: url.to_owned(),
            ..NotifierServer::default()
        };
        let faults = |server: NotifierServer| {
            let notifier = Notifier {
                servers: [("crm".to_owned(), server)].into(),
                ..Notifier::default()
            };
            let mut faults = Faults::default();
            notifier.validate(&mut faults);
            let faults = faults.into_vec().into_iter().map(|fault| fault.path);
            faults.collect::<Vec<_>>()
        };
        assert!(faults(server("http://crm.example.org:8080/a?b=c")).is_empty());
        for wrong in ["", "crm", "ftp://a/", "http://", "http://user@a/", "http://a/#b"] {
            assert_eq!(faults(server(wrong)), ["servers.crm.url"], "{wrong}");
        }
        assert_eq!(faults(server("https://a/")), ["tls.authorities"]);
        let odd = NotifierServer {
            soap_action: Some("a b".to_owned()),
            headers: [
                ("Content-Type".to_owned(), "a".to_owned()),
                ("X-A".to_owned(), "b\n".to_owned()),
            ]
            .into(),
            queue: 0,
            ..server("http://a/")
        };
        assert_eq!(
            faults(odd),
            [
                "servers.crm.soapAction",
                "servers.crm.headers.Content-Type",
                "servers.crm.headers.X-A",
                "servers.crm.queue"
            ]
        );
    }
}
