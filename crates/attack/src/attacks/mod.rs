//! The attacks, a file for each family.

use crate::attack::Attack;

mod admin;
mod bsf;
mod diameter;
mod faults;
mod http2;
mod nrf;
mod producer;
mod scp;
mod tokens;

/// All of them, family by family.
#[must_use]
pub fn all() -> Vec<Attack> {
    [
        http2::all(),
        producer::all(),
        scp::all(),
        nrf::all(),
        bsf::all(),
        diameter::all(),
        tokens::all(),
        admin::all(),
        faults::all(),
    ]
    .concat()
}
