//! Who is let in: access tokens, and the NF instance that the sender has proved.

use std::rc::Rc;

use sbi::identity::{IdentityMode, IdentitySettings, Sender, Shown};
use sbi::oauth::{
    AccessTokenClaims, AssertionClaims, Assertions, Denied, Expectation, Verifier, since_epoch,
};
use sbi::problem::{Cause, Problem};
use sbi::{Request, Response};

use crate::events::Event;
use crate::live::Effective;

/// The scope of the service (TS 29.521 §5.1).
const SCOPE: &str = "nbsf-management";

/// A worker's gate.
pub(crate) struct Gate {
    identity: IdentitySettings,
    assertions: Assertions,
    /// There is one where the service wants a token.
    verifier: Option<Verifier>,
}

/// A request that is not let in.
#[derive(Debug)]
pub(crate) enum Refused {
    /// For its token.
    Token(Denied),
    /// For who sent it.
    Identity(Problem),
}

impl Refused {
    pub(crate) fn event(&self) -> Event {
        match self {
            Self::Token(_) => Event::Denied,
            Self::Identity(_) => Event::IdentityRefused,
        }
    }

    pub(crate) fn into_response(self, root: &str) -> Response {
        match self {
            Self::Token(denied) => denied.into_response(root),
            Self::Identity(problem) => problem.into_response(),
        }
    }
}

/// What a request has proved.
struct Proofs {
    token: Option<Rc<AccessTokenClaims>>,
    assertion: Option<Rc<AssertionClaims>>,
}

impl Proofs {
    fn sender<'a>(
        &'a self,
        settings: &IdentitySettings,
        request: &'a Request,
    ) -> Result<Sender<'a>, Problem> {
        let shown = Shown {
            peer: request.peer.tls.as_ref(),
            assertion: self.assertion.as_ref().map(|claims| claims.sub.as_str()),
            token: self.token.as_ref().map(|claims| claims.sub.as_str()),
        };
        Sender::of(settings, &shown).map_err(|contradiction| contradiction.problem())
    }
}

impl Gate {
    pub(crate) fn new(live: &Effective) -> Self {
        let config = &*live.config;
        let tokens = &config.tokens;
        let verifier = tokens.required.then(|| {
            let expectation = Expectation {
                instance: config.nf_instance_id.clone(),
                nf_type: "BSF".to_owned(),
                issuers: tokens.issuers.clone(),
                nf_sets: tokens.nf_sets.clone(),
                ..Expectation::default()
            };
            Verifier::new(live.keys.clone(), expectation, tokens.remembered)
        });
        Self {
            assertions: Assertions::new(&config.identity.assertions, live.authorities.clone(), "BSF"),
            identity: config.identity.clone(),
            verifier,
        }
    }

    /// Lets a request in whose sender may use the service.
    pub(crate) fn admit(&self, request: &Request) -> Result<(), Refused> {
        let proofs = self.proofs(request)?;
        let sender = proofs.sender(&self.identity, request);
        sender
            .and_then(|sender| sender.is_known())
            .map_err(Refused::Identity)
    }

    /// Whether the sender of a request that was let in may act for an NF instance.
    pub(crate) fn may_act_for(&self, request: &Request, instance: &str) -> Result<(), Problem> {
        // It was let in by the same proofs a moment ago; one that has ended since proves nothing any longer.
        let proofs = self.proofs(request).map_err(|refused| match refused {
            Refused::Token(_) => Problem::new(Cause::Unauthorized),
            Refused::Identity(problem) => problem,
        })?;
        let sender = proofs.sender(&self.identity, request)?;
        sender.may_act_for(instance)
    }

    fn proofs(&self, request: &Request) -> Result<Proofs, Refused> {
        let now = since_epoch();
        let headers = request.headers();
        let token = self.verifier.as_ref();
        let token = token.map(|verifier| verifier.check(headers, &[SCOPE], now.as_secs()));
        let token = token.transpose().map_err(Refused::Token)?;
        let assertion = match self.identity.mode {
            Some(IdentityMode::Off) => None,
            _ => self
                .assertions
                .of_request(headers, now)
                .map_err(|fault| Refused::Identity(fault.problem()))?,
        };
        Ok(Proofs { token, assertion })
    }
}
