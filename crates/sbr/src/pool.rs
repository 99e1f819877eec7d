//! Pools of servers: which one a subscriber without a session gets.
//!
//! The choice is a hash of the subscriber and the names of the servers (rendezvous, weighted): routers that share nothing choose
//! alike, and where a server is lost only its subscribers move.

use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::Faults;

use crate::session::Party;

/// A server of a pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Server {
    /// The Destination-Host that requests get.
    pub host: String,
    /// The Destination-Realm that they get; empty: they keep theirs.
    pub realm: String,
    /// Its part of the subscribers, in relation to the weights of the others; 0: it gets no new ones.
    pub weight: u32,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            host: String::new(),
            realm: String::new(),
            weight: 1,
        }
    }
}

impl Server {
    /// It as one end of a session.
    #[must_use]
    pub fn party(&self) -> Party {
        Party {
            host: self.host.clone(),
            realm: self.realm.clone(),
        }
    }
}

/// Until when servers are chosen last, by their hosts.
pub type Suspects = HashMap<String, Instant>;

/// Positions of those that were tried are bits of a number.
const MOST_SERVERS: usize = 64;

/// Reports mistakes in the servers of a pool; `at` is the key that has them.
pub fn validate_servers(servers: &[Server], at: &str, faults: &mut Faults) {
    if servers.is_empty() || servers.len() > MOST_SERVERS {
        let expected = format!("1 to {MOST_SERVERS}");
        faults
            .at(at)
            .say(format!("has {} entries", servers.len()), expected);
    }
    if !servers.is_empty() && servers.iter().all(|server| server.weight == 0) {
        faults.at(at).say(
            "has no server that gets new subscribers: each weight is 0",
            "a weight of at least 1 for one of them",
        );
    }
    let mut hosts = BTreeSet::new();
    for (number, server) in servers.iter().enumerate() {
        let names = [("host", &server.host), ("realm", &server.realm)];
        for (key, name) in names {
            let is_absent = key == "realm" && name.is_empty();
            if !is_absent && !is_identity(name) {
                faults.at(format!("{at}[{number}].{key}")).say(
                    format!("`{name}` is not a valid DiameterIdentity"),
                    "a name such as pcrf1.epc.example.org, as its peer has it",
                );
            }
        }
        if !hosts.insert(server.host.to_ascii_lowercase()) {
            faults
                .at(format!("{at}[{number}].host"))
                .say("is that of another entry", "each server once");
        }
    }
}

/// Whether this may be a DiameterIdentity, as the router has it of its peers: a name of letters, digits, dots, hyphens and
/// underscores. It has a letter or digit at both ends: nothing leads to one that has not.
fn is_identity(name: &str) -> bool {
    let bytes = name.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    bytes.len() <= 255
        && ends
            .into_iter()
            .all(|end| end.is_some_and(u8::is_ascii_alphanumeric))
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(byte))
        && !name.contains("..")
}

/// The position of a host in a pool.
#[must_use]
pub fn position(servers: &[Server], host: &str) -> Option<usize> {
    servers
        .iter()
        .position(|server| server.host.eq_ignore_ascii_case(host))
}

/// The server of a pool for a subscriber, without those that were tried (bits by position); of two, rather one that is not
/// suspect.
#[must_use]
pub fn choose<'p>(
    servers: &'p [Server],
    subscriber: &[u8],
    tried: u64,
    suspects: &Suspects,
    now: Instant,
) -> Option<(usize, &'p Server)> {
    let all = servers.iter().enumerate();
    let left = all.filter(|(position, server)| tried & (1 << position) == 0 && server.weight > 0);
    let rank = |(_, server): &(usize, &Server)| {
        let is_suspect = suspects.get(&server.host).is_some_and(|until| now < *until);
        (is_suspect, distance(subscriber, server))
    };
    left.min_by(|one, other| {
        let ((one_suspect, one_far), (other_suspect, other_far)) = (rank(one), rank(other));
        one_suspect
            .cmp(&other_suspect)
            .then(one_far.total_cmp(&other_far))
    })
}

/// The smallest one wins, as often as its weight says.
fn distance(subscriber: &[u8], server: &Server) -> f64 {
    let name = server.host.bytes().map(|byte| byte.to_ascii_lowercase());
    let hash = mix(subscriber.iter().copied().chain([0]).chain(name));
    // Between 0 and 1, and neither.
    let share = ((hash >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    -share.ln() / f64::from(server.weight)
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

    fn pool(weights: &[u32]) -> Vec<Server> {
        let server = |(position, weight): (usize, &u32)| Server {
            host: format!("server{position}.example"),
            weight: *weight,
            ..Server::default()
        };
        weights.iter().enumerate().map(server).collect()
    }

    fn chosen(pool: &[Server], number: u32, tried: u64) -> Option<usize> {
        let subscriber = format!("i{number:015}");
        let found = choose(
            pool,
            subscriber.as_bytes(),
            tried,
            &Suspects::new(),
            Instant::now(),
        );
        found.map(|(position, _)| position)
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
    fn servers_have_names_that_peers_can_have_and_one_of_them_has_a_weight() {
        let faults = |servers: &[Server]| {
            let mut faults = Faults::default();
            validate_servers(servers, "pools[0].pcrfs", &mut faults);
            let faults = faults.into_vec();
            let said: Vec<String> = faults.iter().map(|fault| format!("{fault:?}")).collect();
            said.join("\n")
        };
        assert_eq!(faults(&pool(&[0, 1])), "");
        let all = faults(&pool(&[0, 0]));
        assert!(
            all.contains("pools[0].pcrfs") && all.contains("each weight is 0"),
            "{all}"
        );
        for odd in [
            "",
            "a b",
            "pcrf:3868",
            "aaa://pcrf",
            ".pcrf",
            "pcrf.",
            "a..b",
            "pcrf\n",
            "pcrfé",
        ] {
            let mut servers = pool(&[1]);
            servers[0].host = odd.to_owned();
            let found = faults(&servers);
            assert!(found.contains("pools[0].pcrfs[0].host"), "{odd:?}: {found}");
        }
        let mut servers = pool(&[1, 1]);
        servers[1].realm = "a b".to_owned();
        servers[1].host = servers[0].host.to_uppercase();
        let found = faults(&servers);
        assert!(
            found.contains("[1].realm") && found.contains("is that of another entry"),
            "{found}"
        );
    }

    #[test]
    fn a_suspect_is_chosen_last() {
        let (all, now) = (pool(&[1, 1]), Instant::now());
        let mut suspects = Suspects::new();
        let at = |suspects: &Suspects, now| choose(&all, b"i1", 0, suspects, now).unwrap().0;
        let usual = at(&suspects, now);
        let end = now + Duration::from_secs(1);
        suspects.insert(all[usual].host.clone(), end);
        assert_ne!(at(&suspects, now), usual);
        assert_eq!(at(&suspects, end), usual);
        suspects.extend(all.iter().map(|server| (server.host.clone(), end)));
        assert_eq!(at(&suspects, now), usual);
    }
}
