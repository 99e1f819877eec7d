//! Foreign_WL_Peers_Cfg_Sets and Realm_List: foreign peers, and whose a realm is.

use ahash::AHashMap;

use super::{Reading, network};
use crate::csv::Row;
use crate::network::Network;

/// Where a request comes from and goes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    /// From a foreign peer.
    Ingress,
    /// To a foreign realm.
    Egress,
}

/// The position of the partner to whom a peer of no set belongs.
pub(crate) const UNLISTED: u16 = u16::MAX;

/// A realm of the list.
#[derive(Debug)]
pub(crate) struct Realm {
    pub(crate) is_home: bool,
    /// Its network, where its name does not say it.
    network: Option<Network>,
    /// The partner behind it.
    partner: u16,
}

/// Partners by the names of their peers, and realms.
#[derive(Debug, Default)]
pub(crate) struct Partners {
    names: Vec<String>,
    /// By name, where each is in `names`.
    positions: AHashMap<String, u16>,
    /// In lower case.
    peers: AHashMap<String, u16>,
    realms: AHashMap<String, Realm>,
    /// Realms that end like this, with the full stop.
    suffixes: AHashMap<String, Realm>,
}

/// Bound on the length of a name (RFC 1035 §2.3.4).
const MAX_NAME: usize = 255;

impl Partners {
    pub(super) fn load(reading: &mut Reading<'_>) -> Self {
        let mut partners = Self::default();
        let sheet = reading.sheet("Foreign_WL_Peers_Cfg_Sets", &["Cfg_Set_Name", "Peers"], 2);
        reading.each(&sheet, |row| partners.add_set(row));
        let columns = ["Network_Type", "Realm", "MCC_MNC", "Cfg_Set_Name"];
        let sheet = reading.sheet("Realm_List", &columns, 2);
        reading.each(&sheet, |row| partners.add_realm(row));
        partners
    }

    fn add_set(&mut self, row: &Row) -> Result<(), String> {
        let name = row.field(0);
        if name.is_empty() || name == "unlisted" {
            return Err("needs a Cfg_Set_Name other than `unlisted`".to_owned());
        }
        if self.positions.contains_key(name) {
            return Err(format!("the set `{name}` is there already"));
        }
        let position = u16::try_from(self.names.len())
            .ok()
            .filter(|position| *position < UNLISTED);
        let position = position.ok_or("too many sets")?;
        for peer in row.list(1) {
            if let Some(known) = self.peers.insert(peer.to_ascii_lowercase(), position) {
                let known = self.names.get(usize::from(known)).map_or(name, String::as_str);
                return Err(format!("the peer {peer} is in the set `{known}` already"));
            }
        }
        self.names.push(name.to_owned());
        self.positions.insert(name.to_owned(), position);
        if row.list(1).next().is_none() {
            return Err(format!("the set `{name}` has no peers: it can never match"));
        }
        Ok(())
    }

    fn add_realm(&mut self, row: &Row) -> Result<(), String> {
        let is_home = is_home(row.field(0))?;
        let name = row.field(1).to_ascii_lowercase();
        let of_network = match row.field(2) {
            "" => None,
            text => Some(network(text)?),
        };
        let partner = match row.field(3) {
            "" => UNLISTED,
            name => self.position(name)?,
        };
        let realm = Realm {
            is_home,
            network: of_network,
            partner,
        };
        let there = || format!("the realm {name} is there already");
        if let Some(suffix) = name.strip_prefix('*') {
            if !suffix.starts_with('.') || suffix.len() < 2 {
                return Err(format!("`{name}`; use *.example for each realm below example"));
            }
            return match self.suffixes.insert(suffix.to_owned(), realm) {
                Some(_) => Err(there()),
                None => Ok(()),
            };
        }
        if name.is_empty() || name.len() > MAX_NAME {
            return Err(format!("`{name}` is not a realm"));
        }
        match self.realms.insert(name.clone(), realm) {
            Some(_) => Err(there()),
            None => Ok(()),
        }
    }

    /// The partner of that name.
    pub(super) fn position(&self, name: &str) -> Result<u16, String> {
        let position = self.positions.get(name).copied();
        position.ok_or_else(|| format!("unknown set `{name}` of Foreign_WL_Peers_Cfg_Sets"))
    }

    /// The name of a partner.
    pub(crate) fn name(&self, partner: u16) -> &str {
        self.names
            .get(usize::from(partner))
            .map_or("unlisted", String::as_str)
    }

    /// The partner whose peer this is.
    fn of_peer(&self, peer: &str) -> Option<u16> {
        find_lower(peer.as_bytes(), |name| self.peers.get(name).copied())
    }

    /// A realm of the list: by its name, otherwise by the longest end of it.
    pub(crate) fn realm(&self, name: &[u8]) -> Option<&Realm> {
        find_lower(name, |name| {
            self.realms.get(name).or_else(|| {
                let mut ends = name.match_indices('.').filter(|(at, _)| *at > 0);
                ends.find_map(|(at, _)| self.suffixes.get(name.get(at..)?))
            })
        })
    }

    /// The network of a realm: as the list says it, or its name.
    pub(crate) fn network(&self, realm: &[u8]) -> Option<Network> {
        let listed = self.realm(realm).and_then(|realm| realm.network);
        listed.or_else(|| Network::of_name(realm))
    }

    /// Whether a peer of no set is ours: its name is in a home realm. The router itself has no name.
    fn is_own(&self, peer: &str) -> bool {
        let mut realm = peer;
        while let Some((_, above)) = realm.split_once('.') {
            realm = above;
            if let Some(known) = self.realm(realm.as_bytes()) {
                return known.is_home;
            }
        }
        peer.is_empty()
    }

    /// Whether a realm is not one of ours.
    pub(crate) fn is_foreign(&self, realm: &[u8]) -> bool {
        self.realm(realm).is_none_or(|realm| !realm.is_home)
    }

    /// From where or to where a request goes, and whose it is; none: it stays at home. A request of a peer that is not ours
    /// comes in, whatever it says of itself; of ours one comes in that names a foreign origin.
    pub(crate) fn direction(
        &self,
        peer: &str,
        origin: Option<&[u8]>,
        destination: Option<&[u8]>,
    ) -> Option<(Direction, u16)> {
        if let Some(partner) = self.of_peer(peer) {
            return Some((Direction::Ingress, partner));
        }
        let is_foreign = |realm: &[u8]| self.is_foreign(realm);
        let partner = |realm: &[u8]| self.realm(realm).map_or(UNLISTED, |realm| realm.partner);
        if !self.is_own(peer) {
            return Some((Direction::Ingress, UNLISTED));
        }
        match (origin, destination) {
            (Some(origin), _) if is_foreign(origin) => Some((Direction::Ingress, partner(origin))),
            (_, Some(destination)) if is_foreign(destination) => {
                Some((Direction::Egress, partner(destination)))
            }
            _ => None,
        }
    }
}

/// Whether a network or realm is of our own.
pub(super) fn is_home(kind: &str) -> Result<bool, String> {
    match kind {
        "Home_Network" => Ok(true),
        "Foreign_Network" => Ok(false),
        other => Err(format!(
            "Network_Type `{other}`; use Home_Network or Foreign_Network"
        )),
    }
}

/// Looks a name up in lower case, without an allocation. A longer one than names can be is not known.
pub(super) fn find_lower<'t, T>(name: &[u8], find: impl FnOnce(&str) -> Option<T> + 't) -> Option<T> {
    let mut lower = [0; MAX_NAME];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    find(std::str::from_utf8(lower).ok()?)
}
