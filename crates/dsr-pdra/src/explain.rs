//! Which PCRF, since when, by which rule: for pages.

use std::net::IpAddr;

use dsr_app::session::moment;
use model::Ipv6Prefix;
use sbr::{Repository, Session};
use serde_json::{Value, json};

use crate::Pdra;

impl Pdra {
    /// What is known of `session:ID`, or of `binding:KEY`: an IMSI, an MSISDN, an address or a prefix. None: it is asked about
    /// something else.
    pub(crate) fn explain(&self, subject: &str) -> Option<Value> {
        let (kind, key) = subject.split_once(':')?;
        let (repository, key) = (self.shared.opened.repository().clone(), key.to_owned());
        let is_session = match kind {
            "session" => true,
            "binding" => false,
            _ => return None,
        };
        let found = self.shared.opened.ask(async move {
            match is_session {
                true => Ok(repository.session(key.as_bytes()).await?.into_iter().collect()),
                false => bound(&repository, &key).await,
            }
        });
        Some(match found {
            Some(Ok(sessions)) => json!({"sessions": sessions.iter().map(row).collect::<Vec<_>>()}),
            Some(Err(error)) => json!({"error": error.to_string()}),
            None => json!({"error": "the repository does not answer in time"}),
        })
    }
}

/// The sessions under a key, whatever it is.
async fn bound(repository: &Repository, key: &str) -> Result<Vec<Session>, store::Error> {
    if let Ok(prefix) = key.parse::<Ipv6Prefix>() {
        return repository.by_prefix(&prefix).await;
    }
    match key.parse() {
        Ok(IpAddr::V4(address)) => repository.by_ipv4(address).await,
        Ok(IpAddr::V6(address)) => repository.by_prefix(&Ipv6Prefix::new(address, 128)).await,
        Err(_) => {
            let found = repository.by_imsi(key).await?;
            match found.is_empty() {
                true => repository.by_msisdn(key).await,
                false => Ok(found),
            }
        }
    }
}

fn row(session: &Session) -> Value {
    let binding = session.binding.clone().unwrap_or_default();
    let prefixes = binding.prefixes.iter();
    let prefixes = prefixes.map(|prefix| format!("{}/{}", prefix.address(), prefix.length()));
    let addresses = binding.ipv4.iter().map(ToString::to_string).chain(prefixes);
    json!({
        "session": String::from_utf8_lossy(&session.id),
        "pcrf": session.server.host,
        "since": moment(session.began),
        "rule": session.rule,
        "pool": session.pool,
        "apn": session.apn,
        "imsi": binding.imsi,
        "msisdn": binding.msisdn,
        "addresses": addresses.collect::<Vec<_>>(),
        "client": session.client.host,
        "conflict": if session.has_yielded() { "an older binding has won" } else { "" },
        "applicationId": session.application,
        "expires": moment(session.expires),
    })
}
