//! Pools of OCSs, by realm.

use std::collections::HashMap;

use sbr::pool::position;

use crate::config::Pool;

/// The pools, ready for a choice.
#[derive(Debug)]
pub(crate) struct Pools {
    pools: Vec<Pool>,
    /// Positions by realm; that of the empty one serves the others.
    by_realm: HashMap<String, usize>,
}

impl Pools {
    pub(crate) fn new(pools: &[Pool]) -> Self {
        let positions = pools.iter().enumerate();
        let served = positions.flat_map(|(at, pool)| pool.served().map(move |realm| (realm, at)));
        Self {
            by_realm: served.collect(),
            pools: pools.to_vec(),
        }
    }

    /// The pool of a realm, with its position.
    pub(crate) fn of(&self, realm: &str) -> Option<(u8, &Pool)> {
        let named = self.by_realm.get(&realm.to_ascii_lowercase());
        self.at(*named.or_else(|| self.by_realm.get(""))?)
    }

    /// The pool of this name, with its position.
    pub(crate) fn named(&self, name: &str) -> Option<(u8, &Pool)> {
        self.at(self.pools.iter().position(|pool| pool.name == name)?)
    }

    /// The pool at this position, unless this host is an OCS of others alone: a reload may have changed positions.
    pub(crate) fn holding(&self, at: u8, host: &str) -> Option<&Pool> {
        let pool = self.pools.get(usize::from(at))?;
        let is_in_it = position(&pool.servers, host).is_some();
        (is_in_it || !self.has(host)).then_some(pool)
    }

    /// Whether a host is an OCS of any pool.
    pub(crate) fn has(&self, host: &str) -> bool {
        self.pools
            .iter()
            .any(|pool| position(&pool.servers, host).is_some())
    }

    fn at(&self, position: usize) -> Option<(u8, &Pool)> {
        Some((u8::try_from(position).ok()?, self.pools.get(position)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_serves_its_realms_and_one_without_the_rest() {
        let pool = |name: &str, realms: &[&str]| Pool {
            name: name.to_owned(),
            realms: realms.iter().map(|realm| (*realm).to_owned()).collect(),
            ..Pool::default()
        };
        let pools = Pools::new(&[pool("a", &["One.example"]), pool("b", &[])]);
        let name = |realm: &str| pools.of(realm).map(|(at, pool)| (at, pool.name.as_str()));
        assert_eq!(name("oNE.example"), Some((0, "a")));
        assert_eq!(name("two.example"), Some((1, "b")));
        assert_eq!(name(""), Some((1, "b")));
        assert!(Pools::new(&[pool("a", &["one"])]).of("two").is_none());
        assert!(!pools.has("ocs1") && pools.holding(0, "ocs1").is_some() && pools.holding(9, "").is_none());
    }
}
