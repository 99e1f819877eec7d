//! Who is let in: tokens for this NRF's own services, and the NF instance that the sender has proved.

use std::rc::Rc;

use http::Method;
use sbi::identity::{Actor, IdentityMode, IdentitySettings, Sender, Shown};
use sbi::oauth::{
    AccessTokenClaims, AssertionClaims, Assertions, Denied, Expectation, Verifier, since_epoch,
};
use sbi::problem::Problem;
use sbi::{Request, Response};

use crate::live::Live;
use crate::tokens::unix_now;

/// Tokens a worker remembers as verified.
const KNOWN_TOKENS: usize = 10_000;

/// The first segments of a path.
pub(super) type At<'a> = (Option<&'a str>, Option<&'a str>, Option<&'a str>, Option<&'a str>);

/// A worker's gate.
pub(crate) struct Gate {
    identity: IdentitySettings,
    assertions: Assertions,
    /// There is one where this NRF's own services want a token.
    verifier: Option<Verifier>,
}

/// A request that is not let in.
#[derive(Debug)]
pub(super) enum Refused {
    /// For its token.
    Token(Denied),
    /// For who sent it.
    Identity(Problem),
}

impl Refused {
    pub(super) fn into_response(self, root: &str) -> Response {
        match self {
            Self::Token(denied) => denied.into_response(root),
            Self::Identity(problem) => problem.into_response(),
        }
    }
}

impl Gate {
    pub(super) fn new(live: &Live) -> Self {
        let config = &live.config;
        let verifier = config.tokens.protect_own_services.then(|| {
            let expectation = Expectation {
                instance: config.nf_instance_id.clone(),
                nf_type: "NRF".to_owned(),
                issuers: vec![config.nf_instance_id.clone()],
                ..Expectation::default()
            };
            Verifier::new(std::sync::Arc::new(live.issuer.keys()), expectation, KNOWN_TOKENS)
        });
        Self {
            identity: config.identity.settled(
                config
                    .tls
                    .as_ref()
                    .is_some_and(|tls| tls.require_client_certificate),
            ),
            assertions: Assertions::new(&config.identity.assertions, live.authorities.clone(), "NRF"),
            verifier,
        }
    }

    /// Whether this NRF's own services want a token.
    pub(super) fn wants_tokens(&self) -> bool {
        self.verifier.is_some()
    }

    /// Lets a request in whose sender may send it; answers who it is, where only what it asks for tells which instance
    /// it concerns.
    pub(super) fn admit(&self, at: At<'_>, request: &Request) -> Result<Actor, Refused> {
        // Another set reads what management lists.
        let scope = match at.0 {
            Some(crate::growth::API) => Some("nnrf-nfm"),
            other => other.filter(|service| matches!(*service, "nnrf-disc" | "nnrf-nfm")),
        };
        let grants = (at.0, at.1) == (Some("oauth2"), Some("token"));
        if scope.is_none() && !grants {
            return Ok(Actor::default());
        }
        let assertion = self.assertion(request)?;
        let token = scope
            .zip(self.verifier.as_ref())
            .map(|(scope, verifier)| verifier.check(request.headers(), &[scope], unix_now()));
        let claims: Option<&Rc<AccessTokenClaims>> = token.as_ref().and_then(|token| token.as_ref().ok());
        let shown = Shown {
            peer: request.peer.tls.as_ref(),
            assertion: assertion.as_ref().map(|claims| claims.sub.as_str()),
            token: claims.map(|claims| claims.sub.as_str()),
        };
        let sender = Sender::of(&self.identity, &shown)
            .map_err(|contradiction| Refused::Identity(contradiction.problem()))?;
        let concerned = match at {
            (Some("nnrf-nfm"), _, Some("nf-instances"), id) if *request.method() != Method::GET => id,
            _ => None,
        };
        if let Some(Err(denied)) = &token {
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

    /// The claims of the request's assertion, where assertions are looked at (TS 29.500 §6.7.5).
    fn assertion(&self, request: &Request) -> Result<Option<Rc<AssertionClaims>>, Refused> {
        if self.identity.mode == Some(IdentityMode::Off) {
            return Ok(None);
        }
        let claims = self.assertions.of_request(request.headers(), since_epoch());
        claims.map_err(|fault| Refused::Identity(fault.problem()))
    }
}
