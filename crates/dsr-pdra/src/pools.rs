//! Pools of PCRFs: which one a subscriber without a session gets.
//!
//! The choice is a hash of the subscriber and the names of the PCRFs (rendezvous, weighted): routers that share nothing choose
//! alike, and where a PCRF is lost only its subscribers move.

use std::collections::HashMap;
use std::time::Instant;

use crate::config::{Pcrf, Pool};
use crate::facts::network_identifier;

/// The pools, ready for a choice.
#[derive(Debug)]
pub(crate) struct Pools {
    pools: Vec<Pool>,
    /// Positions by APN; that of the empty one serves the others.
    by_apn: HashMap<String, usize>,
}

/// Until when PCRFs are chosen last, by their hosts.
pub(crate) type Suspects = HashMap<String, Instant>;

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

    /// Whether a host is a PCRF of any pool.
    pub(crate) fn has(&self, host: &str) -> bool {
        self.pools.iter().any(|pool| position(pool, host).is_some())
    }
}

/// The position of a host in a pool.
pub(crate) fn position(pool: &Pool, host: &str) -> Option<usize> {
    pool.pcrfs
        .iter()
        .position(|pcrf| pcrf.host.eq_ignore_ascii_case(host))
}

/// The PCRF of a pool for a subscriber, without those that were tried (bits by position); of two, rather one that is not
/// suspect.
pub(crate) fn choose<'p>(
    pool: &'p Pool,
    subscriber: &[u8],
    tried: u64,
    suspects: &Suspects,
    now: Instant,
) -> Option<(usize, &'p Pcrf)> {
    let all = pool.pcrfs.iter().enumerate();
    let left = all.filter(|(position, pcrf)| tried & (1 << position) == 0 && pcrf.weight > 0);
    let rank = |(_, pcrf): &(usize, &Pcrf)| {
        let is_suspect = suspects.get(&pcrf.host).is_some_and(|until| now < *until);
        (is_suspect, distance(subscriber, pcrf))
    };
    left.min_by(|one, other| {
        let ((one_suspect, one_far), (other_suspect, other_far)) = (rank(one), rank(other));
        one_suspect
            .cmp(&other_suspect)
            .then(one_far.total_cmp(&other_far))
    })
}

/// The smallest one wins, as often as its weight says.
fn distance(subscriber: &[u8], pcrf: &Pcrf) -> f64 {
    let name = pcrf.host.bytes().map(|byte| byte.to_ascii_lowercase());
    let hash = mix(subscriber.iter().copied().chain([0]).chain(name));
    // Between 0 and 1, and neither.
    let share = ((hash >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    -share.ln() / f64::from(pcrf.weight)
}

/// FNV-1a with the last step of MurmurHash3: the same in every process.
fn mix(bytes: impl Iterator<Item = u8>) -> u64 {
    let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let mut hash = bytes.fold(0xcbf2_9ce4_8422_2325, fnv);
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        hash = (hash ^ (hash >> 33)).wrapping_mul(factor);
    }
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn pool(weights: &[u32]) -> Pool {
        let pcrf = |(position, weight): (usize, &u32)| Pcrf {
            host: format!("pcrf{position}.example"),
            realm: String::new(),
            weight: *weight,
        };
        Pool {
            name: "all".to_owned(),
            apns: Vec::new(),
            pcrfs: weights.iter().enumerate().map(pcrf).collect(),
        }
    }

    fn chosen(pool: &Pool, number: u32, tried: u64) -> Option<usize> {
        let subscriber = format!("i{number:015}");
        choose(
            pool,
            subscriber.as_bytes(),
            tried,
            &Suspects::new(),
            Instant::now(),
        )
        .map(|(position, _)| position)
    }

    #[test]
    fn weights_share_the_subscribers_and_one_that_is_lost_moves_only_its_own() {
        let all = pool(&[1, 3, 0]);
        let mut counts = [0_u32; 3];
        for number in 0..4_000 {
            let at = chosen(&all, number, 0).unwrap();
            counts[at] += 1;
            if at != 0 {
                assert_eq!(chosen(&all, number, 1), Some(at));
            }
        }
        assert!((850..1_150).contains(&counts[0]) && counts[2] == 0, "{counts:?}");
        assert_eq!(chosen(&all, 1, 0b11), None);
    }

    #[test]
    fn a_suspect_is_chosen_last() {
        let (all, now) = (pool(&[1, 1]), Instant::now());
        let mut suspects = Suspects::new();
        let at = |suspects: &Suspects, now| choose(&all, b"i1", 0, suspects, now).unwrap().0;
        let usual = at(&suspects, now);
        let end = now + Duration::from_secs(1);
        suspects.insert(all.pcrfs[usual].host.clone(), end);
        assert_ne!(at(&suspects, now), usual);
        assert_eq!(at(&suspects, end), usual);
        suspects.extend(all.pcrfs.iter().map(|pcrf| (pcrf.host.clone(), end)));
        assert_eq!(at(&suspects, now), usual);
    }

    #[test]
    fn a_pool_serves_its_apns_and_one_without_the_rest() {
        let mut ims = pool(&[1]);
        (ims.name, ims.apns) = ("ims".to_owned(), vec!["IMS.mnc001.mcc001.gprs".to_owned()]);
        let both = Pools::new(&[ims.clone(), pool(&[1])]);
        let name = |pools: &Pools, apn: &str| pools.of(apn).map(|pool| pool.name.clone());
        assert_eq!(name(&both, "ims").as_deref(), Some("ims"));
        assert_eq!(name(&both, "internet").as_deref(), Some("all"));
        assert_eq!(name(&Pools::new(&[ims]), "internet"), None);
        assert!(both.has("PCRF0.example") && !both.has("other"));
    }
}
