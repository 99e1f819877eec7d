//! Query parameters that say which profiles fit (TS 29.510 table 6.2.3.2.3.1), by subject.
//!
//! What a profile does not restrict, it offers to all: a block without ranges serves every subscriber, a
//! profile without PLMNs every network of this NRF. Where the standard makes the attribute the point of the
//! question (a GUAMI, a PGW name, a set), a profile without it does not fit.

mod access;
mod network;
mod session;
mod special;
mod subscriber;

use crate::fault::ParamFault;
use crate::test::{Param, Test};
use crate::view::View;

pub use session::Session;
pub(crate) use subscriber::{fits_gpsi_in, fits_supi_in};
pub use subscriber::{gpsi_ranges, serves_a_group_only, supi_ranges};

/// The test that a parameter stands for; `None` for parameters that test nothing or are not known.
///
/// # Errors
/// When the value cannot be used.
pub fn test_of(param: Param<'_>) -> Result<Option<Test>, ParamFault> {
    for family in [
        subscriber::test_of,
        network::test_of,
        session::test_of,
        access::test_of,
        special::test_of,
    ] {
        if let Some(test) = family(param)? {
            return Ok(Some(test));
        }
    }
    Ok(None)
}

/// Whether everything wanted is among what is offered; who names no offer offers everything.
fn all_or(offered: &[String], wanted: &[String]) -> bool {
    offered.is_empty() || wanted.iter().all(|one| offered.contains(one))
}

/// Whether one of `items` fits; no items at all fit everything.
fn open_or<'a, T: 'a>(items: impl IntoIterator<Item = &'a T>, fits: impl FnMut(&'a T) -> bool) -> bool {
    let mut items = items.into_iter().peekable();
    items.peek().is_none() || items.any(fits)
}

/// Whether any block of a kind fits; a profile without such a block restricts nothing.
fn block_or<'a, T: 'a>(blocks: impl Iterator<Item = &'a T>, fits: impl FnMut(&'a T) -> bool) -> bool {
    open_or(blocks, fits)
}

/// A test of an attribute that must be there to fit.
fn must(predicate: impl Fn(&View<'_>) -> bool + 'static) -> Result<Option<Test>, ParamFault> {
    Ok(Some(Test::new(predicate)))
}

/// A boolean that asks for a capability: `false` asks for nothing.
fn capability(
    param: Param<'_>,
    has: impl Fn(&View<'_>) -> bool + 'static,
) -> Result<Option<Test>, ParamFault> {
    let wanted = param.boolean()?;
    Ok(Some(Test::new(move |profile| !wanted || has(profile))))
}

/// A boolean that must not contradict the profile's: one that says nothing may have the capability or not.
fn unless_contradicted(
    param: Param<'_>,
    said: impl Fn(&View<'_>) -> Option<bool> + 'static,
) -> Result<Option<Test>, ParamFault> {
    let wanted = param.boolean()?;
    Ok(Some(Test::new(move |profile| {
        said(profile).is_none_or(|said| said == wanted)
    })))
}

/// A boolean that must equal the profile's.
fn exactly(param: Param<'_>, has: impl Fn(&View<'_>) -> bool + 'static) -> Result<Option<Test>, ParamFault> {
    let wanted = param.boolean()?;
    Ok(Some(Test::new(move |profile| has(profile) == wanted)))
}
