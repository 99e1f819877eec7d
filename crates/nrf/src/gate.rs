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

/// What the sender of a request has to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// That it may use the service.
    Service,
    /// That it may act for the NF instance of the path.
    Instance,
    /// What its handler makes of it: the body names the instance.
    Handler,
}

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

    /// Admits a request whose sender may send it; `id` is the NF instance of the path. Returns the sender for handlers that
    /// judge it.
    pub(crate) fn admit(
        &self,
        request: &Request,
        scope: Option<&str>,
        proof: Proof,
        id: &str,
    ) -> Result<Actor, Refused> {
        if scope.is_none() && proof != Proof::Handler {
            return Ok(Actor::default());
        }
        let proofs = self.0.proofs(request, scope.as_slice())?;
        let sender = self.0.sender(&proofs, request)?;
        let concerned = (proof == Proof::Instance).then_some(id);
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
        Ok(if proof == Proof::Handler {
            sender.to_actor()
        } else {
            Actor::default()
        })
    }
}
