use std::cell::{Cell, RefCell};
use std::fmt;
use std::time::{Duration, Instant};

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderValue, Request, StatusCode};
use sbi::Body;
use sbi::client::{Client, SendOptions};
use sbi::headers::TargetApiRoot;
use serde::Deserialize;

/// Before its end a token is not used any more: it has to arrive, and clocks differ.
const MARGIN: Duration = Duration::from_secs(5);
/// How long a token is used whose life the NRF does not say.
const UNTOLD: u64 = 30;
/// Tokens held at most; the oldest is dropped for another.
const MOST: usize = 256;
/// The longest life that is believed: a day, the longest an NRF of ours gives.
const LONGEST: u64 = 86_400;

/// Who asks NRFs, for those that want a token to be asked (TS 29.510 §5.4.2).
///
/// A token is asked for when an NRF answers 401, for the one service that refused, and used until shortly before its
/// end. NRFs accept the tokens they have issued themselves, so each has its own.
pub struct OwnTokens {
    instance: String,
    nf_type: String,
    held: RefCell<Vec<Held>>,
    /// Whether the last answer was a refusal: said once, not for every question.
    refused: Cell<bool>,
}

struct Held {
    nrf: TargetApiRoot,
    scope: &'static str,
    value: HeaderValue,
    ends: Instant,
}

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    expires_in: Option<u64>,
}

impl fmt::Debug for OwnTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never a token.
        write!(f, "OwnTokens({} of {})", self.held.borrow().len(), self.instance)
    }
}

/// The service that a path is of, where tokens are wanted for it.
pub(crate) fn scope_of(path: &str) -> Option<&'static str> {
    let service = path.trim_start_matches('/').split('/').next()?;
    ["nnrf-nfm", "nnrf-disc"]
        .into_iter()
        .find(|scope| *scope == service)
}

impl OwnTokens {
    /// Tokens of this NF instance.
    #[must_use]
    pub fn new(instance: &str, nf_type: &str) -> Self {
        Self {
            instance: instance.to_owned(),
            nf_type: nf_type.to_owned(),
            held: RefCell::default(),
            refused: Cell::new(false),
        }
    }

    /// The token for a service of an NRF, if there is one.
    pub fn held(&self, nrf: &TargetApiRoot, scope: &str) -> Option<HeaderValue> {
        let mut held = self.held.borrow_mut();
        let now = Instant::now();
        held.retain(|one| now < one.ends);
        let found = held.iter().find(|one| one.nrf == *nrf && one.scope == scope);
        found.map(|one| one.value.clone())
    }

    /// Asks an NRF for a token, in place of the one it has refused; `None` when it grants none.
    pub async fn fetch(
        &self,
        client: &Client,
        nrf: &TargetApiRoot,
        scope: &'static str,
        timeout: Duration,
    ) -> Option<HeaderValue> {
        let of_it = |one: &Held| one.nrf == *nrf && one.scope == scope;
        self.held.borrow_mut().retain(|one| !of_it(one));
        let form = format!(
            "grant_type=client_credentials&nfInstanceId={}&nfType={}&targetNfType=NRF&scope={scope}",
            self.instance, self.nf_type
        );
        let request = Request::post(format!("{}/oauth2/token", nrf.prefix))
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(ACCEPT, "application/json, application/problem+json")
            .body(Body::from(form))
            .ok()?;
        let options = SendOptions {
            deadline: timeout,
            priority: 8,
        };
        let response = client.send(&nrf.origin, request, options).await.ok()?;
        let status = response.status();
        let body = response.into_body().into_bytes();
        if status != StatusCode::OK {
            let why = String::from_utf8_lossy(&body[..body.len().min(300)]);
            if !self.refused.replace(true) {
                tracing::warn!(%nrf, scope, %status, %why, "the NRF refused an access token for itself");
            }
            return None;
        }
        self.refused.set(false);
        let granted: Granted = serde_json::from_slice(&body).ok()?;
        let mut value = HeaderValue::from_str(&format!("Bearer {}", granted.access_token)).ok()?;
        value.set_sensitive(true);
        let life = Duration::from_secs(granted.expires_in.unwrap_or(UNTOLD).min(LONGEST));
        let mut held = self.held.borrow_mut();
        if held.len() >= MOST {
            held.remove(0);
        }
        held.push(Held {
            nrf: nrf.clone(),
            scope,
            value: value.clone(),
            ends: Instant::now() + life.saturating_sub(MARGIN),
        });
        Some(value)
    }
}
