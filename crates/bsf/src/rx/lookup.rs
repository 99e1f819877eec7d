//! The binding of the session that an AAR is about.

use store::Error;

use super::identity::Target;
use crate::binding::{PcfBinding, Selection, select};
use crate::repository::Repository;

/// What the bindings say of an AAR.
#[derive(Debug)]
pub(super) enum Found {
    /// No binding of the UE.
    None,
    /// Its binding.
    One(Box<PcfBinding>),
    /// Several sessions fit, and nothing in the AAR decides.
    Ambiguous,
}

/// Finds the binding of a session.
///
/// # Errors
/// When the store cannot be read.
pub(super) async fn find(repository: &Repository, target: &Target) -> Result<Found, Error> {
    let matching = repository.matching(&target.query).await?;
    match select(&matching, &target.query) {
        Selection::One(binding) => return Ok(Found::One(Box::new(binding.clone()))),
        Selection::Ambiguous => {
            for query in target.narrowed() {
                let matching = repository.matching(&query).await?;
                if let Selection::One(binding) = select(&matching, &query) {
                    return Ok(Found::One(Box::new(binding.clone())));
                }
            }
            return Ok(Found::Ambiguous);
        }
        Selection::None => {}
    }
    for (query, other) in target.single_stack() {
        let mut matching = repository.matching(&query).await?;
        matching.retain(|binding| binding.0.member(other).is_none());
        match select(&matching, &query) {
            Selection::One(binding) => return Ok(Found::One(Box::new(binding.clone()))),
            Selection::Ambiguous => return Ok(Found::Ambiguous),
            Selection::None => {}
        }
    }
    Ok(Found::None)
}
