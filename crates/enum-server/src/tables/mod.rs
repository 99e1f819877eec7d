//! What settings are compiled to before a query needs it. Tables are immutable; a reload makes others.

mod check;
mod digits;
mod keys;
mod profile;
mod ranges;
mod tree;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ::numbers::{Load, Map};
use ipnet::{IpNet, Ipv4Net};
use settings::Faults;

use crate::changes::Changes;
use crate::config::Config;
use crate::view::Numbers;

pub(crate) use check::check;
pub use check::check_files;
pub(crate) use digits::Digits;
pub(crate) use keys::Keys;
pub(crate) use profile::{NO_NUMBER, Naptr, Profile};
pub(crate) use ranges::Ranges;
pub(crate) use tree::Tree;

/// Everything that an answer needs of the settings.
pub struct Tables {
    /// Those with longer names first, so that the first one that fits a name is the closest.
    pub(crate) trees: Vec<Tree>,
    pub(crate) profiles: HashMap<String, Arc<Profile>>,
    /// The numbers that were imported, with those that were changed since.
    pub(crate) numbers: Option<Arc<Numbers>>,
    /// Where changes are durable.
    pub(crate) changes: Option<Arc<Changes>>,
    pub(crate) keys: Keys,
    pub(crate) require_tsig: bool,
    pub(crate) udp_bytes: usize,
    clients: Vec<IpNet>,
}

impl Tables {
    /// Compiles settings, and reads the files that they name. Changes stay in effect `before` and after.
    pub(crate) fn load(config: &Config, before: Option<&Self>) -> Result<Self, String> {
        let mut faults = Faults::default();
        check(config, &mut faults);
        if let Some(fault) = faults.into_vec().into_iter().next() {
            return Err(format!("{}: {}; use {}", fault.path, fault.what, fault.expected));
        }
        let changes = match (
            before.and_then(|before| before.changes.clone()),
            &config.directory,
        ) {
            (Some(changes), _) => Some(changes),
            (None, Some(directory)) => Some(Arc::new(Changes::open(directory)?)),
            (None, None) => None,
        };
        let map = match (&config.numbers, &changes) {
            (Some(path), _) => {
                Some(Map::open(path, None, Load::Copied).map_err(|error| format!("numbers: {error}"))?)
            }
            (None, Some(_)) => Some(Map::empty()),
            (None, None) => None,
        };
        let numbers = map.map(|map| Arc::new(Numbers::new(map)));
        if let (Some(changes), Some(numbers)) = (&changes, &numbers) {
            changes.adopt(numbers);
        }
        Self::compile(config, numbers, changes)
    }

    fn compile(
        config: &Config,
        numbers: Option<Arc<Numbers>>,
        changes: Option<Arc<Changes>>,
    ) -> Result<Self, String> {
        let mut faults = Faults::default();
        let profiles = profile::compile(&config.profiles, &mut faults);
        // A serial that a later load never falls behind of, as long as clocks are right (RFC 1982 allows for its end in 2106).
        let serial = SystemTime::now().duration_since(UNIX_EPOCH);
        let serial = serial.map_or(1, |since| since.as_secs() as u32);
        let mut trees: Vec<Tree> = config
            .trees
            .iter()
            .filter_map(|tree| Tree::compile(tree, serial, &profiles, &mut faults))
            .collect();
        trees.sort_by_key(|tree| std::cmp::Reverse(tree.apex.len()));
        Ok(Self {
            trees,
            profiles,
            numbers,
            changes,
            keys: Keys::read(&config.tsig)?,
            require_tsig: config.require_tsig,
            udp_bytes: usize::from(config.udp_bytes),
            clients: config.clients.iter().map(canonical).collect(),
        })
    }

    /// Whether a client is answered.
    pub(crate) fn admits(&self, client: std::net::IpAddr) -> bool {
        let client = client.to_canonical();
        self.clients.is_empty() || self.clients.iter().any(|network| network.contains(&client))
    }
}

/// A network of IPv4 that is written in the form of IPv6, as clients are compared.
fn canonical(network: &IpNet) -> IpNet {
    const MAPPED: u8 = 96;
    let IpNet::V6(written) = network else {
        return *network;
    };
    let length = written.prefix_len().checked_sub(MAPPED);
    let mapped = written.addr().to_ipv4_mapped().zip(length);
    let plain = mapped.and_then(|(address, length)| Ipv4Net::new(address, length).ok());
    plain.map_or(*network, IpNet::V4)
}
