//! Who may send a request: access tokens, assertions, and the NF instance that a sender has proved to be.

use std::rc::Rc;
use std::sync::Arc;

use ::sbi::identity::{Actor, IdentityMode, IdentitySettings, Sender, Shown};
use ::sbi::oauth::{
    AccessTokenClaims, AssertionAuthorities, AssertionClaims, Assertions, Denied, Verifier, since_epoch,
};
use ::sbi::problem::{Cause, Problem};
use ::sbi::{Request, Response};

/// A worker's gate; verified tokens and assertions are cached in it.
pub struct Gate {
    identity: IdentitySettings,
    assertions: Assertions,
    verifier: Option<Verifier>,
}

/// Why a request is refused.
#[derive(Debug)]
pub enum Refused {
    /// For its access token.
    Token(Denied),
    /// For its sender.
    Identity(Problem),
}

impl Refused {
    /// The answer to the request; `root` is the root of the function's own URIs.
    #[must_use]
    pub fn into_response(self, root: &str) -> Response {
        match self {
            Self::Token(denied) => denied.into_response(root),
            Self::Identity(problem) => problem.into_response(),
        }
    }
}

/// What the sender of a request has shown.
pub struct Proofs {
    /// The claims of its access token or why that is denied; none where no token is asked for.
    pub token: Option<Result<Rc<AccessTokenClaims>, Denied>>,
    assertion: Option<Rc<AssertionClaims>>,
}

impl Gate {
    /// A gate of a function of this type; `verifier` is there where its services ask for tokens.
    #[must_use]
    pub fn new(
        identity: IdentitySettings,
        authorities: Arc<AssertionAuthorities>,
        nf_type: &str,
        verifier: Option<Verifier>,
    ) -> Self {
        Self {
            assertions: Assertions::new(&identity.assertions, authorities, nf_type),
            identity,
            verifier,
        }
    }

    /// Admits a request whose sender may use a service; the scope is the name of the service.
    ///
    /// # Errors
    /// Why the sender may not.
    pub fn admit(&self, request: &Request, service: &str) -> Result<(), Refused> {
        let proofs = self.proofs(request, &[service])?;
        if let Some(Err(denied)) = &proofs.token {
            return Err(Refused::Token(denied.clone()));
        }
        let sender = self.sender(&proofs, request)?;
        sender.is_known().map_err(Refused::Identity)
    }

    /// Whether the sender of an admitted request may act for an NF instance.
    ///
    /// # Errors
    /// Why it may not.
    pub fn may_act_for(&self, request: &Request, service: &str, instance: &str) -> Result<(), Problem> {
        let problem = |refused| match refused {
            Refused::Token(_) => Problem::new(Cause::Unauthorized),
            Refused::Identity(problem) => problem,
        };
        let proofs = self.proofs(request, &[service]).map_err(problem)?;
        // The token admitted the request a moment ago; one that has expired since proves nothing.
        if let Some(Err(_)) = &proofs.token {
            return Err(Problem::new(Cause::Unauthorized));
        }
        self.sender(&proofs, request)
            .map_err(problem)?
            .may_act_for(instance)
    }

    /// The sender of an admitted request; of a notification where no `services` are named, since producers send no tokens with these.
    ///
    /// # Errors
    /// When its proofs contradict one another, or an assertion is invalid.
    pub fn actor(&self, request: &Request, services: &[&str]) -> Result<Actor, Problem> {
        let problem = |refused| match refused {
            Refused::Token(_) => Problem::new(Cause::Unauthorized),
            Refused::Identity(problem) => problem,
        };
        let proofs = self.proofs(request, services).map_err(problem)?;
        let sender = self.sender(&proofs, request).map_err(problem)?;
        Ok(sender.to_actor())
    }

    /// Whether services ask for tokens.
    #[must_use]
    pub fn asks_for_tokens(&self) -> bool {
        self.verifier.is_some()
    }

    /// Verifies what the sender shows; a token only where `scopes` are asked for, one of which it must have.
    ///
    /// # Errors
    /// When the assertion is invalid (TS 29.500 §6.7.5).
    pub fn proofs(&self, request: &Request, scopes: &[&str]) -> Result<Proofs, Refused> {
        let now = since_epoch();
        let headers = request.headers();
        let assertion = match self.identity.mode {
            Some(IdentityMode::Off) => None,
            _ => self
                .assertions
                .of_request(headers, now)
                .map_err(|fault| Refused::Identity(fault.problem()))?,
        };
        let verifier = self.verifier.as_ref().filter(|_| !scopes.is_empty());
        let token = verifier.map(|verifier| verifier.check(headers, scopes, now.as_secs()));
        Ok(Proofs { token, assertion })
    }

    /// Which NF instance the sender has proved to be.
    ///
    /// # Errors
    /// When its proofs contradict one another.
    pub fn sender<'a>(&self, proofs: &'a Proofs, request: &'a Request) -> Result<Sender<'a>, Refused> {
        let claims = proofs.token.as_ref().and_then(|token| token.as_ref().ok());
        let shown = Shown {
            peer: request.peer.tls.as_ref(),
            assertion: proofs.assertion.as_ref().map(|claims| claims.sub.as_str()),
            token: claims.map(|claims| claims.sub.as_str()),
        };
        Sender::of(&self.identity, &shown).map_err(|contradiction| Refused::Identity(contradiction.problem()))
    }
}
