//! Pools of PCRFs, by APN.

use std::collections::HashMap;

use sbr::pool::position;

use crate::config::Pool;
use crate::facts::network_identifier;

/// The pools, ready for a choice.
#[derive(Debug)]
pub(crate) struct Pools {
    pools: Vec<Pool>,
    /// Positions by APN; that of the empty one serves the others.
    by_apn: HashMap<String, usize>,
}

impl Pools {
    pub(crate) fn new(pools: &[Pool]) -> Self {
        let mut by_apn = HashMap::new();
        for (position, pool) in pools.iter().enumerate() {
            let named = pool.apns.iter().map(|apn| network_identifier(apn.as_bytes()));
            by_apn.extend(named.map(|apn| (apn, position)));
            if pool.apns.is_empty() {
                by_apn.insert(String::new(), position);
            }
        }
        Self {
            pools: pools.to_vec(),
            by_apn,
        }
    }

    /// The pool of an APN.
    pub(crate) fn of(&self, apn: &str) -> Option<&Pool> {
        let position = self.by_apn.get(apn).or_else(|| self.by_apn.get(""))?;
        self.pools.get(*position)
    }

    /// The pool of this name.
    pub(crate) fn named(&self, name: &str) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.name == name)
    }

    /// Whether a host is a PCRF of any pool.
    pub(crate) fn has(&self, host: &str) -> bool {
        self.pools
            .iter()
            .any(|pool| position(&pool.pcrfs, host).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Pcrf;

    fn pool() -> Pool {
        let pcrf = Pcrf {
            host: "pcrf0.example".to_owned(),
            ..Pcrf::default()
        };
        Pool {
            name: "all".to_owned(),
            apns: Vec::new(),
            pcrfs: vec![pcrf],
        }
    }

    #[test]
    fn a_pool_serves_its_apns_and_one_without_the_rest() {
        let mut ims = pool();
        (ims.name, ims.apns) = ("ims".to_owned(), vec!["IMS.mnc001.mcc001.gprs".to_owned()]);
        let both = Pools::new(&[ims.clone(), pool()]);
        let name = |pools: &Pools, apn: &str| pools.of(apn).map(|pool| pool.name.clone());
        assert_eq!(name(&both, "ims").as_deref(), Some("ims"));
        assert_eq!(name(&both, "internet").as_deref(), Some("all"));
        assert_eq!(name(&Pools::new(&[ims]), "internet"), None);
        assert!(both.has("PCRF0.example") && !both.has("other"));
    }
}
