use std::cell::{Cell, RefCell};
use std::fmt;
use std::time::{Duration, Instant};

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderValue, Request, StatusCode};
use sbi::Body;
use sbi::client::{Client, SendOptions};
use sbi::headers::TargetApiRoot;

use crate::grant::{self, Grant};

/// Cached tokens at most; a further one evicts the oldest.
const MOST: usize = 256;

/// Cached access tokens for the services of NRFs (TS 29.510 §5.4.2).
///
/// When an NRF answers 401, the client requests a token for that service from the same NRF and uses it until shortly
/// before its expiry. An NRF accepts the tokens that it issued itself, so each NRF has its own.
pub struct OwnTokens {
    instance: String,
    nf_type: String,
    held: RefCell<Vec<Held>>,
    /// Whether the NRF refused the last token request: logged once until it grants one.
    refused: Cell<bool>,
}

struct Held {
    nrf: TargetApiRoot,
    scope: &'static str,
    grant: Grant,
}

impl fmt::Debug for OwnTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tokens are secrets and do not appear in logs.
        write!(f, "OwnTokens({} of {})", self.held.borrow().len(), self.instance)
    }
}

/// The service of a path, if NRFs may require tokens for it.
pub(crate) fn scope_of(path: &str) -> Option<&'static str> {
    let service = path.trim_start_matches('/').split('/').next()?;
    ["nnrf-nfm", "nnrf-disc"]
        .into_iter()
        .find(|scope| *scope == service)
}

impl OwnTokens {
    /// Creates an empty cache for this NF instance.
    #[must_use]
    pub fn new(instance: &str, nf_type: &str) -> Self {
        Self {
            instance: instance.to_owned(),
            nf_type: nf_type.to_owned(),
            held: RefCell::default(),
            refused: Cell::new(false),
        }
    }

    /// Returns the cached token for a service of an NRF.
    pub fn held(&self, nrf: &TargetApiRoot, scope: &str) -> Option<HeaderValue> {
        let mut held = self.held.borrow_mut();
        let now = Instant::now();
        held.retain(|one| now < one.grant.ends);
        let found = held.iter().find(|one| one.nrf == *nrf && one.scope == scope);
        found.map(|one| one.grant.value.clone())
    }

    /// Requests a token from an NRF and replaces the refused one; `None` when the NRF grants none.
    pub async fn fetch(
        &self,
        client: &Client,
        nrf: &TargetApiRoot,
        scope: &'static str,
        timeout: Duration,
    ) -> Option<HeaderValue> {
        let of_it = |one: &Held| one.nrf == *nrf && one.scope == scope;
        self.held.borrow_mut().retain(|one| !of_it(one));
        let form = grant::form(&self.instance, &self.nf_type, "NRF", scope);
        let request = Request::post(format!("{}{}", nrf.prefix, grant::PATH))
            .header(CONTENT_TYPE, grant::FORM)
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
            let why = grant::shown(&body);
            if !self.refused.replace(true) {
                tracing::warn!(%nrf, scope, %status, %why, "the NRF refused an access token for its own service");
            }
            return None;
        }
        self.refused.set(false);
        let grant = grant::read(&body)?;
        let value = grant.value.clone();
        let mut held = self.held.borrow_mut();
        if held.len() >= MOST {
            held.remove(0);
        }
        held.push(Held {
            nrf: nrf.clone(),
            scope,
            grant,
        });
        Some(value)
    }
}
