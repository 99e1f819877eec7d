//! Which requests a worker admits by their sender: access tokens, and the NF instance that a sender has proved.

use function::sbi::Refused;
use sbi::Request;
use sbi::oauth::{Expectation, Verifier};

use crate::live::Effective;

/// A worker's gate.
pub(crate) struct Gate(function::sbi::Gate);

impl Gate {
    pub(crate) fn new(live: &Effective) -> Self {
        let config = &*live.config;
        let tokens = &config.tokens;
        let verifier = tokens.required.then(|| {
            let expectation = Expectation {
                instance: config.nf_instance_id.clone(),
                nf_type: "PCF".to_owned(),
                issuers: tokens.issuers.clone(),
                nf_sets: tokens.nf_sets.clone(),
                ..Expectation::default()
            };
            Verifier::new(live.keys.clone(), expectation, tokens.remembered)
        });
        let authorities = live.authorities.clone();
        Self(function::sbi::Gate::new(
            config.identity.clone(),
            authorities,
            "PCF",
            verifier,
        ))
    }

    /// Admits a request whose sender may use a service; the scope is the name of the service (TS 29.512 §6.1).
    pub(crate) fn admit(&self, request: &Request, service: &str) -> Result<(), Refused> {
        let proofs = self.0.proofs(request, &[service])?;
        if let Some(Err(denied)) = &proofs.token {
            return Err(Refused::Token(denied.clone()));
        }
        let sender = self.0.sender(&proofs, request)?;
        sender.is_known().map_err(Refused::Identity)
    }
}
