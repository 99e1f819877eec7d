//! Requests to an operator's servers: what collects traces, what takes alarms.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use settings::Faults;
use ureq::Agent;
use ureq::http::Uri;
use ureq::tls::{PemItem, RootCerts, TlsConfig};

/// How long a server may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of an answer that are read.
const MOST_ANSWER: u64 = 64 * 1024;

/// A server that takes requests by POST.
pub(crate) struct Server {
    url: String,
    authority: Option<PathBuf>,
    /// Keeps its connection. After a failure the next one reads the authorities again.
    agent: Option<Agent>,
}

/// Why a request was not taken.
#[derive(Debug)]
pub(crate) struct Untaken {
    /// That of the answer; none: there was no answer.
    pub(crate) status: Option<u16>,
    pub(crate) reason: String,
}

impl From<String> for Untaken {
    fn from(reason: String) -> Self {
        Self { status: None, reason }
    }
}

impl Server {
    /// The server at `url`, whose certificate is of one of the authorities in the file `authority`.
    pub(crate) fn new(url: String, authority: Option<&Path>) -> Self {
        Self {
            url,
            authority: authority.map(Path::to_owned),
            agent: None,
        }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Sends JSON with further header fields. Blocks.
    pub(crate) fn post<'a>(
        &mut self,
        fields: impl IntoIterator<Item = (&'a str, &'a str)>,
        octets: &[u8],
    ) -> Result<(), Untaken> {
        let agent = match self.agent.take() {
            Some(agent) => agent,
            None => agent(self.authority.as_deref())?,
        };
        let mut request = agent.post(&self.url).header("content-type", "application/json");
        for (name, value) in fields {
            request = request.header(name, value);
        }
        let mut answer = request.send(octets).map_err(|error| error.to_string())?;
        // What is read to its end leaves the connection for the next one.
        let text = answer
            .body_mut()
            .with_config()
            .limit(MOST_ANSWER)
            .read_to_string();
        if !answer.status().is_success() {
            let text = text.unwrap_or_default();
            let begin: String = text.chars().take(200).collect();
            return Err(Untaken {
                status: Some(answer.status().as_u16()),
                reason: format!("it answered {} {}", answer.status(), begin.trim()),
            });
        }
        self.agent = Some(agent);
        Ok(())
    }
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

/// The address, where it is one of `http` or `https` with a host.
pub(crate) fn address(url: &str) -> Option<Uri> {
    let parsed: Option<Uri> = url.parse().ok();
    parsed.filter(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty())
    })
}

/// Reports authorities without `https`, and `https` without authorities; `what` is the server in words.
pub(crate) fn validate_authority(uri: &Uri, authority: Option<&Path>, what: &str, faults: &mut Faults) {
    match (uri.scheme_str(), authority) {
        (Some("https"), None) => {
            faults.at("certificateAuthority").say(
                "is missing",
                format!("a PEM file with the authorities of the {what}'s certificate"),
            );
        }
        (Some("https"), Some(_)) | (_, None) => {}
        (_, Some(_)) => {
            faults
                .at("certificateAuthority")
                .say("is of no use with http", format!("a {what} with `https`"));
        }
    }
}
