//! What verifies the senders of requests: keys of access tokens, and authorities of client credentials assertions.

use std::sync::Arc;

use ::sbi::identity::IdentitySettings;
use ::sbi::oauth::{AssertionAuthorities, AssertionSettings, Expectation, Keys, Verifier};
use bytes::Bytes;

use super::config::Tokens;
use super::gate::Gate;

/// Keys and authorities, a part of what a function derives from its settings. Clones share them.
#[derive(Clone, Debug)]
pub struct Verification {
    /// Keys that access tokens are verified with.
    pub keys: Arc<Keys>,
    /// Keys and authorities that verify client credentials assertions.
    pub authorities: Arc<AssertionAuthorities>,
    /// Key sets as they were fetched last.
    fetched: Arc<Vec<Bytes>>,
}

impl Verification {
    /// What settings ask for; key sets that were fetched `before` stay.
    ///
    /// # Errors
    /// When a file cannot be used; says which.
    pub fn new(
        tokens: &Tokens,
        assertions: &AssertionSettings,
        before: Option<&Self>,
    ) -> Result<Self, String> {
        let fetched = before.map(|before| before.fetched.clone()).unwrap_or_default();
        let authorities =
            AssertionAuthorities::read(assertions).map_err(|fault| format!("identity.{fault}"))?;
        Ok(Self {
            keys: Arc::new(keys(tokens, &fetched)?),
            authorities: Arc::new(authorities),
            fetched,
        })
    }

    /// The gate of a worker of this NF instance.
    #[must_use]
    pub fn gate(&self, tokens: &Tokens, identity: &IdentitySettings, instance: &str, nf_type: &str) -> Gate {
        let verifier = tokens.required.then(|| {
            let expectation = Expectation {
                instance: instance.to_owned(),
                nf_type: nf_type.to_owned(),
                issuers: tokens.issuers.clone(),
                nf_sets: tokens.nf_sets.clone(),
                ..Expectation::default()
            };
            Verifier::new(self.keys.clone(), expectation, tokens.remembered)
        });
        Gate::new(identity.clone(), self.authorities.clone(), nf_type, verifier)
    }

    /// The same with other key sets that were fetched.
    ///
    /// # Errors
    /// When a file of the settings cannot be used any more.
    pub fn with_fetched(&self, tokens: &Tokens, fetched: Vec<Bytes>) -> Result<Self, String> {
        Ok(Self {
            keys: Arc::new(keys(tokens, &fetched)?),
            fetched: Arc::new(fetched),
            authorities: self.authorities.clone(),
        })
    }

    /// Key sets as they were fetched last.
    #[must_use]
    pub fn fetched(&self) -> &[Bytes] {
        &self.fetched
    }
}

fn keys(tokens: &Tokens, fetched: &[Bytes]) -> Result<Keys, String> {
    let mut keys = tokens.read()?;
    for set in fetched {
        // It was parsed once when it was fetched.
        let _ = keys.add_jwks(set);
    }
    Ok(keys)
}
