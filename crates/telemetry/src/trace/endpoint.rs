//! The collector, and how spans get there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use settings::Faults;
use ureq::Agent;
use ureq::http::{HeaderName, HeaderValue, Uri};
use ureq::tls::{PemItem, RootCerts, TlsConfig};

use super::Config;

/// How long the collector may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Where spans go.
pub(super) struct Collector {
    url: String,
    authority: Option<PathBuf>,
    headers: BTreeMap<String, String>,
    /// Keeps its connection. After a failure the next one reads the authorities again.
    agent: Option<Agent>,
}

impl Collector {
    pub(super) fn new(collector: &str, config: &Config) -> Self {
        Self {
            url: url(collector),
            authority: config.certificate_authority.clone(),
            headers: config.headers.clone(),
            agent: None,
        }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Sends a body, compressed. Blocks.
    ///
    /// # Errors
    /// Why it was not taken.
    pub(super) fn send(&mut self, body: &Value) -> Result<(), String> {
        let agent = match self.agent.take() {
            Some(agent) => agent,
            None => agent(self.authority.as_deref())?,
        };
        let mut compressed = GzEncoder::new(Vec::new(), Compression::fast());
        serde_json::to_writer(&mut compressed, body).map_err(|error| error.to_string())?;
        let octets = compressed.finish().map_err(|error| error.to_string())?;
        let mut request = agent
            .post(&self.url)
            .header("content-type", "application/json")
            .header("content-encoding", "gzip");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let mut answer = request.send(&octets).map_err(|error| error.to_string())?;
        // What is read to its end leaves the connection for the next one.
        let text = answer.body_mut().with_config().limit(64 * 1024).read_to_string();
        if !answer.status().is_success() {
            let text = text.unwrap_or_default();
            let begin: String = text.chars().take(200).collect();
            return Err(format!("it answered {} {}", answer.status(), begin.trim()));
        }
        self.agent = Some(agent);
        Ok(())
    }
}

/// The address of OTLP's traces. A collector without a scheme is one of `http`.
fn url(collector: &str) -> String {
    let base = if collector.contains("://") {
        collector.to_owned()
    } else {
        format!("http://{collector}")
    };
    format!("{}/v1/traces", base.trim_end_matches('/'))
}

fn agent(authority: Option<&Path>) -> Result<Agent, String> {
    let mut tls = TlsConfig::builder();
    if let Some(path) = authority {
        tls = tls.root_certs(RootCerts::Specific(Arc::new(authorities(path)?)));
    }
    let config = Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .tls_config(tls.build());
    Ok(config.build().into())
}

/// The certificates of a file.
fn authorities(path: &Path) -> Result<Vec<ureq::tls::Certificate<'static>>, String> {
    let pem = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let items: Result<Vec<_>, _> = ureq::tls::parse_pem(&pem).collect();
    let items = items.map_err(|error| format!("{}: {error}", path.display()))?;
    let certificates: Vec<_> = items
        .into_iter()
        .filter_map(|item| match item {
            PemItem::Certificate(certificate) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(format!("{}: no certificate is in it", path.display()));
    }
    Ok(certificates)
}

/// Reports what is wrong with the settings of a collector.
pub(super) fn validate(config: &Config, collector: &str, faults: &mut Faults) {
    let parsed: Option<Uri> = url(collector).parse().ok();
    let parsed = parsed.filter(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.query().is_none()
            && uri.host().is_some_and(|host| !host.is_empty())
    });
    let expected =
        "host and port, such as `127.0.0.1:4318`, or a URL such as `https://otel.example.org:4318`";
    match &parsed {
        None => faults.at("collector").say(
            format!("`{collector}` is not an address of a collector"),
            expected,
        ),
        Some(uri) if uri.port().is_none() && !collector.contains("://") => {
            faults
                .at("collector")
                .say(format!("`{collector}` has no port"), expected);
        }
        Some(uri) => match (uri.scheme_str(), &config.certificate_authority) {
            (Some("https"), None) => {
                faults.at("certificateAuthority").say(
                    "is missing",
                    "a PEM file with the authorities of the collector's certificate",
                );
            }
            (Some("https"), Some(_)) => {}
            (_, Some(_)) => {
                faults
                    .at("certificateAuthority")
                    .say("is of no use with http", "a collector with `https`");
            }
            (_, None) => {}
        },
    }
    for (name, value) in &config.headers {
        if name.parse::<HeaderName>().is_err() || value.parse::<HeaderValue>().is_err() {
            let what = format!("`{name}` is not a field of HTTP");
            faults.at("headers").say(what, "a name and a text in one line");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_collectors() {
        assert_eq!(url("127.0.0.1:4318"), "http://127.0.0.1:4318/v1/traces");
        assert_eq!(url("https://otel/base/"), "https://otel/base/v1/traces");
        let faults = |config: &Config, collector: &str| {
            let mut faults = Faults::default();
            validate(config, collector, &mut faults);
            let paths = faults.into_vec().into_iter().map(|fault| fault.path);
            paths.collect::<Vec<_>>()
        };
        let faulty = |collector: &str| !faults(&Config::default(), collector).is_empty();
        for right in [
            "127.0.0.1:4318",
            "[::1]:4318",
            "otel:4318",
            "http://otel",
            "http://otel:1/x",
        ] {
            assert!(!faulty(right), "{right}");
        }
        for wrong in [
            "",
            "otel",
            "ftp://otel:1",
            "http://",
            "otel:4318?x",
            "https://otel:4318",
        ] {
            assert!(faulty(wrong), "{wrong}");
        }
        let with_authority = Config {
            certificate_authority: Some(PathBuf::from("ca.pem")),
            ..Config::default()
        };
        assert_eq!(faults(&with_authority, "otel:4318"), ["certificateAuthority"]);
        assert!(faults(&with_authority, "https://otel:4318").is_empty());
    }
}
