//! Match lists: named sets of texts, wildcards, numbers and IP networks.

use std::net::IpAddr;

use ahash::AHashSet;
use ipnet::IpNet;
use serde_json::Value as Json;

use crate::glob::Glob;
use crate::value::Value;

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

    /// Whether the list has a text, number or address; of a list of values, any.
    pub(crate) fn has(&self, value: &Value<'_>) -> bool {
        match value {
            Value::Text(text) => self.has_text(text),
            Value::Made(text) => self.has_text(text),
            Value::Int(_) | Value::Float(_) => value
                .as_f64()
                .is_some_and(|number| self.numbers.contains(&number)),
            Value::Json(Json::Array(items)) => items
                .iter()
                .any(|item| !item.is_array() && self.has(&Value::of(item))),
            Value::List(list) => list.items.iter().any(|item| !item.is_list() && self.has(item)),
            _ => false,
        }
    }

    fn has_text(&self, text: &str) -> bool {
        if self.exact.contains(text) || self.globs.iter().any(|glob| glob.matches(text)) {
            return true;
        }
        if self.networks.is_empty() {
            return false;
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return self.networks.iter().any(|network| network.contains(&address));
        }
        text.parse::<IpNet>()
            .is_ok_and(|inner| self.networks.iter().any(|network| network.contains(&inner)))
    }
}
