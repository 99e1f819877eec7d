//! The settings of an online charging DRA.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sbr::config::{Charging, Settings};
use sbr::pool::{Server, validate_servers};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};

/// Online charging DRA: keeps each credit-control session (Gy, Ro, RFC 8506) at one OCS.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Ocdra {
    /// Where sessions are kept.
    pub repository: Charging,
    /// Pools of OCSs, by realm.
    pub pools: Vec<Pool>,
    /// OCSs that one request is sent to, at most, one after another.
    pub attempts: u8,
    /// Time that an OCS which was unreachable or did not answer is chosen last.
    pub suspect: Period,
    /// What becomes of a request of a session that is not known.
    pub unknown_session: UnknownSession,
}

impl Default for Ocdra {
    fn default() -> Self {
        Self {
            repository: Charging::default(),
            pools: Vec::new(),
            attempts: 3,
            suspect: Period::from_secs(10),
            unknown_session: UnknownSession::default(),
        }
    }
}

/// A pool of OCSs.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Pool {
    /// Name.
    pub name: String,
    /// Destination-Realms whose sessions it serves; empty: those of no other pool.
    pub realms: Vec<String>,
    /// Its OCSs.
    pub servers: Vec<Server>,
    /// Whether its OCSs share their sessions and find requests that come twice, so that one takes over from another which may
    /// have got a request, whatever CC-Session-Failover says. Otherwise a session moves only where its last answer had
    /// FAILOVER_SUPPORTED.
    pub shared: bool,
}

/// What becomes of a request of a session that is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum UnknownSession {
    /// It is answered with DIAMETER_UNKNOWN_SESSION_ID.
    #[default]
    Answer,
    /// It goes on as it is: to the host that it names, or by its realm. For sessions that began before the router knew of them.
    Route,
}

impl Ocdra {
    /// The directory of its repository; none: a database.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        self.repository.directory()
    }

    /// A name by which its repository differs from others.
    #[must_use]
    pub fn repository_name(&self) -> PathBuf {
        self.repository.name()
    }
}

impl Validate for Ocdra {
    fn validate(&self, faults: &mut Faults) {
        faults.within("repository", &self.repository);
        if self.pools.is_empty() || self.pools.len() > MOST_POOLS {
            let expected = format!("1 to {MOST_POOLS} pools of OCSs");
            faults
                .at("pools")
                .say(format!("has {} entries", self.pools.len()), expected);
        }
        if self.attempts == 0 {
            faults.at("attempts").say("is 0", "at least 1");
        }
        let (mut names, mut realms) = (BTreeSet::new(), BTreeSet::new());
        for (index, pool) in self.pools.iter().enumerate() {
            let at = format!("pools[{index}]");
            if pool.name.is_empty() || pool.name.len() > MAX_NAME || !names.insert(&pool.name) {
                faults.at(format!("{at}.name")).say(
                    "is empty, too long, or that of another pool",
                    "a name of its own of at most 100 bytes",
                );
            }
            validate_servers(&pool.servers, &format!("{at}.servers"), faults);
            if pool.served().any(|realm| !realms.insert(realm)) {
                faults.at(format!("{at}.realms")).say(
                    "has a realm of another pool, or as that has none",
                    "each realm in one pool",
                );
            }
        }
    }
}

/// A pool is noted with a transaction in one byte.
pub(crate) const MOST_POOLS: usize = 250;
const MAX_NAME: usize = 100;

impl Pool {
    /// Its realms as they are compared; the empty one stands for all that no pool names.
    pub(crate) fn served(&self) -> impl Iterator<Item = String> {
        let rest = self.realms.is_empty().then(String::new);
        let named = self.realms.iter().map(|realm| realm.to_ascii_lowercase());
        named.chain(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(name: &str, realms: &[&str]) -> Pool {
        let server = Server {
            host: "ocs1.example".to_owned(),
            ..Server::default()
        };
        Pool {
            name: name.to_owned(),
            realms: realms.iter().map(|realm| (*realm).to_owned()).collect(),
            servers: vec![server],
            ..Pool::default()
        }
    }

    fn is_valid(pools: &[Pool]) -> bool {
        let settings = Ocdra {
            pools: pools.to_vec(),
            ..Ocdra::default()
        };
        let mut faults = Faults::default();
        settings.validate(&mut faults);
        faults.is_empty()
    }

    #[test]
    fn each_realm_is_in_one_pool() {
        assert!(is_valid(&[pool("a", &["one", "two"]), pool("b", &[])]));
        assert!(!is_valid(&[pool("a", &["one"]), pool("b", &["ONE"])]));
        assert!(!is_valid(&[pool("a", &[]), pool("b", &[])]));
        assert!(!is_valid(&[pool("a", &["one"]), pool("a", &[])]));
        assert!(!is_valid(&[]));
    }
}
