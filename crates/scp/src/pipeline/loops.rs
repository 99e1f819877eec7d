//! Step 4, loops: a request that has passed this SCP, or has no hop left, goes no further.

use routing::target::{self, Has};
use sbi::Fields;
use sbi::headers::MaxForwardHops;
use sbi::name::VIA;

use super::message::Step;
use crate::refusal::Refusal;

/// The hops that a request may make after the SCP of this name (TS 29.500 §6.10.10).
pub(super) fn hops(headers: &Fields, has: Has, name: &str, usual: u8) -> Step<MaxForwardHops> {
    if has.has(Has::VIA) && has_passed(headers, name) {
        return Err(Refusal::Loop.into());
    }
    if !has.has(Has::MAX_FORWARD_HOPS) {
        return Ok(MaxForwardHops(usual));
    }
    target::hops(headers, usual).map_err(|problem| Refusal::Hops.with(problem))
}

/// Whether a message has passed the proxy of this name before, by `Via`.
fn has_passed(headers: &Fields, name: &str) -> bool {
    headers
        .get_all(VIA)
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|hop| {
            hop.trim()
                .split(' ')
                .nth(1)
                .is_some_and(|by| by.eq_ignore_ascii_case(name))
        })
}
