//! The attacks, a file for each family.

use crate::attack::Attack;

mod http2;

/// All of them, family by family.
#[must_use]
pub fn all() -> Vec<Attack> {
    [http2::all()].concat()
}
