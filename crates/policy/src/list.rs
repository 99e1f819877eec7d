//! Match lists: named sets of texts, wildcards, numbers and IP networks.

use std::net::IpAddr;

use ahash::AHashSet;
use ipnet::IpNet;
use serde_json::Value as Json;

use crate::glob::Glob;
use crate::value::Value;
use crate::work::Work;

/// A compiled match list.
#[derive(Debug, Default)]
pub(crate) struct MatchList {
    pub(crate) name: String,
    exact: AHashSet<String>,
    globs: Vec<Glob>,
    networks: Vec<IpNet>,
    numbers: Vec<f64>,
}

impl MatchList {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// Takes an entry; `false` for what cannot be one.
    pub(crate) fn add(&mut self, entry: &Json) -> bool {
        match entry {
            Json::String(text) => {
                if let Some(network) = text.contains('/').then(|| text.parse::<IpNet>().ok()).flatten() {
                    self.networks.push(network);
                    // A prefix may also be compared as text: `ipv6AddressPrefix` is one.
                    self.exact.insert(text.clone());
                    return true;
                }
                match Glob::parse(text) {
                    Glob::Exact(exact) => drop(self.exact.insert(exact)),
                    glob => self.globs.push(glob),
                }
                true
            }
            Json::Number(number) => {
                self.numbers.extend(number.as_f64());
                true
            }
            _ => false,
        }
    }

    /// Whether the list has a text, number or address; of a list of values, any. `None`: that takes more work than there may be.
    pub(crate) fn has(&self, value: &Value<'_>, work: &mut Work) -> Option<bool> {
        match value {
            Value::Text(text) => self.has_text(text, work),
            Value::Made(text) => self.has_text(text, work),
            Value::Int(_) | Value::Float(_) => {
                work.compare(self.numbers.len())?;
                Some(
                    value
                        .as_f64()
                        .is_some_and(|number| self.numbers.contains(&number)),
                )
            }
            Value::Json(Json::Array(items)) => {
                let items = items.iter().filter(|item| !item.is_array());
                self.has_any(items.map(Value::of), work)
            }
            Value::List(list) => {
                let items = list.items.iter().filter(|item| !item.is_list());
                self.has_any(items.copied(), work)
            }
            _ => Some(false),
        }
    }

    fn has_any<'v>(&self, items: impl Iterator<Item = Value<'v>>, work: &mut Work) -> Option<bool> {
        for item in items {
            work.look()?;
            if self.has(&item, work)? {
                return Some(true);
            }
        }
        Some(false)
    }

    fn has_text(&self, text: &str, work: &mut Work) -> Option<bool> {
        work.compare(text.len())?;
        if self.exact.contains(text) {
            return Some(true);
        }
        for glob in &self.globs {
            if glob.matches(text, work)? {
                return Some(true);
            }
        }
        if self.networks.is_empty() {
            return Some(false);
        }
        let inner = text
            .parse::<IpNet>()
            .or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        let Ok(inner) = inner else {
            return Some(false);
        };
        for network in &self.networks {
            work.look()?;
            if network.contains(&inner) {
                return Some(true);
            }
        }
        Some(false)
    }
}
