//! Alternate addresses of a name that does not answer (RFC 2782).

use sbi::client::Origin;
use sbi::dns::Dns;
use worker::Random;

use crate::notify::ALTERNATES;

/// Resolver of alternates by SRV records, one per worker.
pub(crate) struct Alternates {
    names: Dns,
    random: Random,
}

impl Alternates {
    pub(crate) fn new(names: Dns) -> Self {
        Self {
            names,
            random: Random::default(),
        }
    }

    /// Returns the alternate addresses in order; none if the host is an address.
    pub(crate) async fn of(&self, origin: &Origin) -> Vec<Origin> {
        let mut found = self.names.alternates(origin, || self.random.next()).await;
        found.retain(|place| place != origin);
        found.truncate(ALTERNATES);
        found
    }
}
