//! What is derived from settings and changes with them.

use function::sbi::{Completion, Verification};

use crate::config::Config;

/// What is derived from settings.
#[derive(Clone, Debug)]
pub struct Derived {
    /// What completes answers.
    pub(crate) completion: Completion,
    /// What verifies the senders of requests.
    pub(crate) verification: Verification,
}

/// The settings in effect, and what is derived from them.
pub(crate) type Effective = function::live::Effective<Config, Derived>;
/// Holds what is in effect.
pub(crate) type Live = function::live::Live<Config, Derived>;

impl Derived {
    /// What settings ask for; key sets that were fetched stay.
    pub(crate) fn new(config: &Config, before: Option<&Effective>) -> Result<Self, String> {
        let workers = worker::count(config.workers);
        let (conveyed, instance) = (&config.overload.convey, &config.nf_instance_id);
        let completed = before.map(|before| &before.completion);
        let verified = before.map(|before| &before.verification);
        Ok(Self {
            completion: Completion::new("SDS", instance, conveyed, workers, completed),
            verification: Verification::new(&config.tokens, &config.identity.assertions, verified)?,
        })
    }
}

impl AsRef<Verification> for Derived {
    fn as_ref(&self) -> &Verification {
        &self.verification
    }
}

impl AsMut<Verification> for Derived {
    fn as_mut(&mut self) -> &mut Verification {
        &mut self.verification
    }
}
