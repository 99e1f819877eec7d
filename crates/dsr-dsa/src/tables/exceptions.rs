//! The exception tables: subscribers, networks, hosts and realms that measures let pass.

use ahash::AHashMap;
use dsr_app::Digits;

use super::checks::Checks;
use super::{Reading, measures, network};
use crate::csv::Row;
use crate::facts::{Facts, Once};
use crate::measure::Measure;
use crate::network::Network;

/// Measures as bits.
type Set = u32;

const fn bit(measure: Measure) -> Set {
    1 << measure as u32
}

/// What measures let pass.
#[derive(Debug, Default)]
pub(crate) struct Exceptions {
    /// First and last IMSI, filled up to 15 digits; by the first.
    imsis: Vec<(u64, u64, Set)>,
    networks: AHashMap<Network, Set>,
    visited: AHashMap<Network, Set>,
    hosts: AHashMap<String, Set>,
    realms: AHashMap<String, Set>,
}

impl Exceptions {
    pub(super) fn load(reading: &mut Reading<'_>, checks: &Checks) -> Self {
        let mut all = Self::default();
        let set = |row: &Row, column: usize| {
            let named = measures(row, column)?;
            let on = named.iter().filter(|measure| checks.is_on(**measure));
            let set = on.fold(0, |set, measure| set | bit(*measure));
            let off = named.iter().find(|measure| !checks.is_on(**measure));
            match off {
                Some(off) if row.field(column) != "*" => {
                    Err(format!("{} is not on: the row can never match", off.as_str()))
                }
                _ => Ok(set),
            }
        };
        let columns = ["Start_Address", "End_Address", "CounterMeasures"];
        let sheet = reading.sheet("IMSI_Exception_Config", &columns, 3);
        reading.each(&sheet, |row| {
            let set = set(row, 2)?;
            all.add_imsis(row, set)
        });
        for (table, column, is_visited) in [
            ("MCC_MNC_Exception_Config", "MCC_MNC", false),
            ("VPLMN_ID_Exception_Config", "VPLMN_ID", true),
        ] {
            let sheet = reading.sheet(table, &[column, "CounterMeasures"], 2);
            let networks = if is_visited {
                &mut all.visited
            } else {
                &mut all.networks
            };
            reading.each(&sheet, |row| {
                let (network, set) = (network(row.field(0))?, set(row, 1)?);
                taken(networks.insert(network, set), row)
            });
        }
        for (table, column, is_host) in [
            ("Origin_Host_Exception_Config", "Origin_Host", true),
            ("Realm_Exception_Config", "Realm", false),
        ] {
            let sheet = reading.sheet(table, &[column, "CounterMeasures"], 2);
            let names = if is_host { &mut all.hosts } else { &mut all.realms };
            reading.each(&sheet, |row| {
                let set = set(row, 1)?;
                taken(names.insert(row.field(0).to_ascii_lowercase(), set), row)
            });
        }
        all
    }

    fn add_imsis(&mut self, row: &Row, set: Set) -> Result<(), String> {
        let end = match row.field(1) {
            "" => row.field(0),
            end => end,
        };
        let (first, last) = (edge(row.field(0), '0')?, edge(end, '9')?);
        if first > last {
            return Err("the range ends before it begins: it can never match".to_owned());
        }
        let at = self.imsis.partition_point(|(begin, ..)| *begin <= last);
        if let Some((_, end, _)) = at.checked_sub(1).and_then(|at| self.imsis.get(at))
            && *end >= first
        {
            return Err("overlaps another range".to_owned());
        }
        self.imsis.insert(at, (first, last, set));
        Ok(())
    }

    /// Whether a measure lets a message pass.
    pub(crate) fn has(&self, measure: Measure, facts: &Facts<'_>) -> bool {
        let bit = bit(measure);
        let of_imsi = |imsi: &Digits| {
            let value = filled(imsi);
            let at = self.imsis.partition_point(|(begin, ..)| *begin <= value);
            let range = at.checked_sub(1).and_then(|at| self.imsis.get(at));
            let of_network = || {
                let mut sets = Network::of_imsi(imsi).filter_map(|network| self.networks.get(&network));
                sets.any(|set| set & bit != 0)
            };
            range.is_some_and(|(_, end, set)| *end >= value && set & bit != 0) || of_network()
        };
        let of_name = |names: &AHashMap<String, Set>, name: Option<&[u8]>| {
            let name = name.filter(|name| !names.is_empty() && name.len() < 256);
            let name = name.and_then(|name| std::str::from_utf8(name).ok());
            let set = name.and_then(|name| names.get(&name.to_ascii_lowercase()));
            set.is_some_and(|set| set & bit != 0)
        };
        let visited = once(&facts.visited).and_then(Network::of_visited);
        let visited = visited.and_then(|network| self.visited.get(&network));
        // A message that contradicts itself could name an exception beside what it is about.
        let imsi = facts.subscriber().ok().flatten();
        imsi.as_ref().is_some_and(of_imsi)
            || visited.is_some_and(|set| set & bit != 0)
            || of_name(&self.hosts, once(&facts.origin_host))
            || of_name(&self.realms, once(&facts.origin_realm))
    }
}

/// A value that is there once, or always the same.
fn once<'a>(place: &Once<'a>) -> Option<&'a [u8]> {
    place.get("").ok().flatten()
}

fn taken(before: Option<Set>, row: &Row) -> Result<(), String> {
    match before {
        Some(_) => Err(format!("{} is there already", row.field(0))),
        None => Ok(()),
    }
}

/// The first or the last IMSI that begins with these digits.
fn edge(text: &str, fill: char) -> Result<u64, String> {
    let digits = Digits::parse(text.as_bytes()).filter(|_| text.len() >= 5);
    digits.ok_or_else(|| format!("`{text}` is not the beginning of an IMSI; use 5 to 15 digits"))?;
    let all: String = text.chars().chain(std::iter::repeat(fill)).take(15).collect();
    all.parse().map_err(|_| format!("`{text}` is not a number"))
}

/// An IMSI as a number of 15 digits.
fn filled(imsi: &Digits) -> u64 {
    let count = imsi.as_bytes().len();
    let value = imsi.prefix(count).unwrap_or_default();
    value.saturating_mul(10_u64.pow(15_u32.saturating_sub(count as u32)))
}
