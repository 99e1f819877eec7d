//! MCC_MNC_List and RealmIMSICst_Config: networks of subscribers.

use ahash::{AHashMap, AHashSet};
use dsr_app::Digits;

use super::partners::is_home;
use super::{Reading, country, network};
use crate::csv::Row;
use crate::network::Network;

/// Networks of subscribers.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    /// By number of digits and value.
    networks: AHashMap<(usize, u64), bool>,
    /// By mobile country code.
    assigned: AHashMap<u16, AHashSet<u16>>,
}

impl Subscribers {
    pub(super) fn load(reading: &mut Reading<'_>) -> Self {
        let mut subscribers = Self::default();
        let sheet = reading.sheet("MCC_MNC_List", &["Network_Type", "MCC_MNC"], 2);
        reading.each(&sheet, |row| subscribers.add_network(row));
        let sheet = reading.sheet("RealmIMSICst_Config", &["MCC", "MNC_List"], 2);
        reading.each(&sheet, |row| subscribers.add_country(row));
        subscribers
    }

    fn add_network(&mut self, row: &Row) -> Result<(), String> {
        let is_home = is_home(row.field(0))?;
        let text = row.field(1);
        network(text)?;
        let value = text.parse().map_err(|_| "not a number")?;
        match self.networks.insert((text.len(), value), is_home) {
            Some(_) => Err(format!("the network {text} is there already")),
            None => Ok(()),
        }
    }

    fn add_country(&mut self, row: &Row) -> Result<(), String> {
        let code = country(row.field(0))?;
        let codes = row.list(1).map(|text| {
            let code = text.parse().ok().filter(|_| matches!(text.len(), 2 | 3));
            code.ok_or_else(|| format!("`{text}` is not an MNC of 2 or 3 digits"))
        });
        let codes: AHashSet<u16> = codes.collect::<Result<_, _>>()?;
        if codes.is_empty() {
            return Err("lists no MNC".to_owned());
        }
        match self.assigned.insert(code, codes) {
            Some(_) => Err(format!("the MCC {code} is there already")),
            None => Ok(()),
        }
    }

    /// Whether the network of a subscriber is in the list, and is ours.
    fn is_home(&self, imsi: &Digits) -> Option<bool> {
        [6, 5].into_iter().find_map(|digits| {
            let key = (digits, imsi.prefix(digits)?);
            self.networks.get(&key).copied()
        })
    }

    /// Whether a subscriber is ours.
    pub(crate) fn is_own(&self, imsi: &Digits) -> bool {
        self.is_home(imsi) == Some(true)
    }

    /// Whether a subscriber is ours or of a listed network.
    pub(crate) fn is_listed(&self, imsi: &Digits) -> bool {
        self.is_home(imsi).is_some()
    }

    /// Whether a network exists, as far as its country is in RealmIMSICst_Config.
    pub(crate) fn is_assigned(&self, network: Network) -> bool {
        let codes = self.assigned.get(&network.country);
        codes.is_none_or(|codes| codes.contains(&network.network))
    }
}
