//! Simulated functions that prove who they are: by a certificate that names their NF instance, and by access tokens of the
//! NRF (TS 33.501 §13.4.1.1).

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::Value;

use loadgen::client::{Client, Request};
use loadgen::engine::{ClientTls, TlsFiles, client_tls};

/// Validity of a token that does not state one.
const UNSTATED: u64 = 60;

/// Who a function is, and its certificate.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    nf_type: String,
    instance: String,
    tls: ClientTls,
}

impl Identity {
    /// Reads the files of its certificate.
    ///
    /// # Errors
    /// When one cannot be used.
    pub(crate) fn new(nf_type: &str, instance: &str, files: &TlsFiles) -> io::Result<Self> {
        Ok(Self {
            nf_type: nf_type.to_owned(),
            instance: instance.to_owned(),
            tls: client_tls(files)?,
        })
    }

    /// Connects to a function.
    ///
    /// # Errors
    /// When that fails.
    pub(crate) fn connect(&self, peer: SocketAddr, patience: Duration) -> io::Result<Client> {
        Client::connect_secure(peer, patience, &self.tls)
    }
}

/// What a token opens: the type of the producer, and its service.
pub(crate) type Scope = (&'static str, &'static str);

/// The access tokens of a function.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    held: BTreeMap<Scope, Token>,
}

#[derive(Debug)]
struct Token {
    value: String,
    /// From now on another is asked for.
    renew: Instant,
}

impl Tokens {
    /// Forgets all of them.
    pub(crate) fn clear(&mut self) {
        self.held.clear();
    }

    /// Forgets one that was refused.
    pub(crate) fn refuse(&mut self, scope: Scope) {
        self.held.remove(&scope);
    }

    /// The value of `authorization` for a service, by a token that the NRF grants when none is held.
    ///
    /// # Errors
    /// When the NRF does not answer.
    pub(crate) fn authorization(
        &mut self,
        identity: &Identity,
        nrf: &mut Client,
        scope: Scope,
    ) -> io::Result<Option<String>> {
        let held = self.held.get(&scope);
        if let Some(token) = held.filter(|token| Instant::now() < token.renew) {
            return Ok(Some(token.value.clone()));
        }
        self.held.remove(&scope);
        let granted = request(identity, nrf, scope)?;
        let value = granted.as_ref().map(|token| token.value.clone());
        self.held.extend(granted.map(|token| (scope, token)));
        Ok(value)
    }
}

/// Asks for a token (TS 29.510 §5.4.2.2); `None` when the NRF grants none.
fn request(identity: &Identity, nrf: &mut Client, (target, service): Scope) -> io::Result<Option<Token>> {
    let Identity {
        nf_type, instance, ..
    } = identity;
    let form = format!(
        "grant_type=client_credentials&nfInstanceId={instance}&nfType={nf_type}&targetNfType={target}&scope={service}"
    );
    let request = Request::new("POST", "/oauth2/token").with("application/x-www-form-urlencoded", form);
    let answers = nrf.exchange(&[request])?;
    let granted: Value = answers
        .first()
        .filter(|answer| answer.status == 200)
        .and_then(|answer| serde_json::from_slice(&answer.body).ok())
        .unwrap_or_default();
    let seconds = granted["expires_in"].as_u64().unwrap_or(UNSTATED);
    Ok(granted["access_token"].as_str().map(|token| Token {
        value: format!("Bearer {token}"),
        renew: Instant::now() + Duration::from_secs(seconds / 2),
    }))
}
