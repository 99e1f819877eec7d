//! The collector, and how spans get there.

use std::collections::BTreeMap;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use settings::Faults;
use ureq::http::{HeaderName, HeaderValue};

use super::Config;
use crate::outbound::{self, Server};

/// Where spans go.
pub(super) struct Collector {
    server: Server,
    headers: BTreeMap<String, String>,
}

impl Collector {
    pub(super) fn new(collector: &str, config: &Config) -> Self {
        Self {
            server: Server::new(url(collector), config.certificate_authority.as_deref()),
            headers: config.headers.clone(),
        }
    }

    pub(super) fn url(&self) -> &str {
        self.server.url()
    }

    /// Sends a body, compressed. Blocks.
    ///
    /// # Errors
    /// Why it was not taken.
    pub(super) fn send(&mut self, body: &Value) -> Result<(), String> {
        let mut compressed = GzEncoder::new(Vec::new(), Compression::fast());
        serde_json::to_writer(&mut compressed, body).map_err(|error| error.to_string())?;
        let octets = compressed.finish().map_err(|error| error.to_string())?;
        let own = self.headers.iter();
        let own = own.map(|(name, value)| (name.as_str(), value.as_str()));
        let fields = std::iter::once(("content-encoding", "gzip")).chain(own);
        self.server
            .post(fields, &octets)
            .map_err(|untaken| untaken.reason)
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

/// Reports what is wrong with the settings of a collector.
pub(super) fn validate(config: &Config, collector: &str, faults: &mut Faults) {
    let parsed = outbound::address(&url(collector)).filter(|uri| uri.query().is_none());
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
        Some(uri) => {
            let authority = config.certificate_authority.as_deref();
            outbound::validate_authority(uri, authority, "collector", faults);
        }
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
    use std::path::PathBuf;

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
