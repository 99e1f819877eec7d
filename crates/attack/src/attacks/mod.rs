//! The attacks, a file for each family.

use crate::attack::Attack;

mod admin;
mod bsf;
mod diameter;
mod faults;
mod front_end;
mod http2;
mod nrf;
mod pcf;
mod producer;
mod scp;
mod secure;
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
        front_end::all(),
        pcf::all(),
        secure::all(),
        tokens::all(),
        admin::all(),
        faults::all(),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn each_attack_has_a_name_of_its_own() {
        let all = super::all();
        let names: BTreeSet<_> = all.iter().map(|attack| attack.name).collect();
        assert_eq!(names.len(), all.len());
        assert!(names.iter().all(|name| name.contains('.') && name.len() <= 32));
    }
}
