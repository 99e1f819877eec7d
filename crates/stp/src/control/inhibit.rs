//! Links of M2PA that an operator inhibits (Q.704 §10).

use std::time::Instant;

use ss7_proto::mtp3::{LinkSet, LinkSetEvent, Refusal};

use super::Control;

/// [`LinkSet::inhibit`] or [`LinkSet::uninhibit`].
pub(crate) type Request = fn(&mut LinkSet, usize, Instant, &mut Vec<LinkSetEvent>) -> Result<(), Refusal>;

impl Control {
    /// Makes a request for a link; what the peer answers shows in the rows of links, and in the log.
    ///
    /// # Errors
    /// Why the request cannot be made.
    pub(crate) fn inhibit(&self, name: &str, request: Request) -> Result<(), String> {
        let mut outcome = Err("not a link of role `m2pa` in a link set".to_owned());
        self.change(|inner| {
            let link = inner.tables.links.iter().position(|link| link.name == name);
            let Some(link) = link.filter(|link| inner.tables.set_of(*link).is_some()) else {
                return;
            };
            inner.with_set(link, |set, at, events| {
                outcome = request(set, at, Instant::now(), events).map_err(|refusal| refusal.to_string());
            });
        });
        outcome
    }
}
