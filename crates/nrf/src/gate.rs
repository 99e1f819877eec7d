//! Admission of requests: tokens for the services of this NRF, and the authenticated NF instance of the sender.

use std::sync::Arc;

use function::sbi::Refused;
use http::Method;
use sbi::Request;
use sbi::identity::Actor;
use sbi::oauth::{Denied, Expectation, Verifier};

use crate::live::Effective;

/// Verified tokens that a worker caches.
const CACHED_TOKENS: usize = 10_000;

/// The first segments of a path.
pub(crate) type At<'a> = (Option<&'a str>, Option<&'a str>, Option<&'a str>, Option<&'a str>);

/// A worker's gate.
pub(crate) struct Gate(function::sbi::Gate);

impl Gate {
    pub(crate) fn new(live: &Effective) -> Self {
        let config = &live.config;
        let verifier = config.tokens.protect_own_services.then(|| {
            let expectation = Expectation {
                instance: config.nf_instance_id.clone(),
                nf_type: "NRF".to_owned(),
                issuers: vec![config.nf_instance_id.clone()],
                ..Expectation::default()
            };
            Verifier::new(Arc::new(live.issuer.keys()), expectation, CACHED_TOKENS)
        });
        let tls = config.tls.as_ref();
        let identity = config
            .identity
            .settled(tls.is_some_and(|tls| tls.require_client_certificate == Some(true)));
        let authorities = live.authorities.clone();
        Self(function::sbi::Gate::new(identity, authorities, "NRF", verifier))
    }

    /// Whether the services of this NRF require a token.
    pub(crate) fn wants_tokens(&self) -> bool {
        self.0.asks_for_tokens()
    }

    /// Admits a request whose sender may send it. Returns the sender for operations whose body names the NF instance that
    /// they concern.
    pub(crate) fn admit(&self, at: At<'_>, request: &Request) -> Result<Actor, Refused> {
        // Another set reads what management lists.
        let scope = match at.0 {
            Some(crate::growth::API) => Some("nnrf-nfm"),
            other => other.filter(|service| matches!(*service, "nnrf-disc" | "nnrf-nfm")),
        };
        let grants = (at.0, at.1) == (Some("oauth2"), Some("token"));
        if scope.is_none() && !grants {
            return Ok(Actor::default());
        }
        let proofs = self.0.proofs(request, scope.as_slice())?;
        let sender = self.0.sender(&proofs, request)?;
        let concerned = match at {
            (Some("nnrf-nfm"), _, Some("nf-instances"), id) if *request.method() != Method::GET => id,
            _ => None,
        };
        if let Some(Err(denied)) = &proofs.token {
            // An NF that is authenticated registers without a token: it gets its tokens as the NF that is registered
            // (TS 29.510 §6.1.8: authorisation of this API by tokens depends on local configuration).
            let registers = *denied == Denied::Missing
                && *request.method() == Method::PUT
                && concerned.is_some_and(|id| sender.is_authenticated_as(id));
            if !registers {
                return Err(Refused::Token(denied.clone()));
            }
        }
        if let Some(id) = concerned {
            sender.may_act_for(id).map_err(Refused::Identity)?;
        }
        let later = grants || (at.0, at.2) == (Some("nnrf-nfm"), Some("subscriptions"));
        Ok(match later {
            true => sender.to_actor(),
            false => Actor::default(),
        })
    }
}
