//! What is wrong with settings.

use std::collections::HashSet;
use std::path::Path;
use std::str::FromStr as _;

use domain::base::Name;
use numbers::{Load, Map};
use settings::{Faults, Validate};

use super::{Tree, keys, profile};
use crate::config::Config;

impl Validate for Config {
    fn validate(&self, faults: &mut Faults) {
        check(self, faults);
        if !(512..=4_096).contains(&self.udp_bytes) {
            let what = format!("is {}", self.udp_bytes);
            faults.at("udpBytes").say(what, "512 to 4096");
        }
        if self.require_tsig && self.tsig.is_empty() {
            let what = "is true without keys, so that every query is refused";
            faults.at("requireTsig").say(what, "keys in `tsig`");
        }
        faults.within("rate", &self.rate);
        faults.within("tcp", &self.tcp);
    }
}

/// Reports everything that is wrong with trees, profiles and keys. Files are not read.
pub(crate) fn check(config: &Config, faults: &mut Faults) {
    let profiles = profile::compile(&config.profiles, faults);
    let mut apexes = HashSet::new();
    for (index, tree) in config.trees.iter().enumerate() {
        let mut within = Faults::default();
        Tree::compile(tree, 1, &profiles, &mut within);
        for fault in within.into_vec() {
            let at = format!("trees[{index}].{}", fault.path);
            faults.at(at).say(fault.what, fault.expected);
        }
        if !apexes.insert(tree.apex.trim_end_matches('.').to_ascii_lowercase()) {
            let at = format!("trees[{index}].apex");
            faults
                .at(at)
                .say("is that of another tree", "one tree for each apex");
        }
    }
    check_servers(config, faults);
    keys::check(&config.tsig, faults);
}

/// Reports name servers within a tree: this server has no addresses of theirs (A, AAAA), so that resolvers would find none.
fn check_servers(config: &Config, faults: &mut Faults) {
    let name = |text: &str| {
        Name::<Vec<u8>>::from_str(text)
            .ok()
            .filter(|name| !name.is_root())
    };
    let apexes: Vec<_> = config.trees.iter().filter_map(|tree| name(&tree.apex)).collect();
    for (index, tree) in config.trees.iter().enumerate() {
        for (number, server) in tree.name_servers.iter().enumerate() {
            let is_within = |server: Name<Vec<u8>>| apexes.iter().any(|apex| server.ends_with(apex));
            if name(server).is_some_and(is_within) {
                let at = format!("trees[{index}].nameServers[{number}]");
                let what =
                    format!("`{server}` is within a tree of this server, which has no addresses (A, AAAA)");
                faults.at(at).say(what, "a name outside all trees");
            }
        }
    }
}

/// Reports files that cannot be used.
pub fn check_files(config: &Config, faults: &mut Faults) {
    let open = |path: &Path| Map::open(path, None, Load::Mapped).map(drop);
    if let Some(path) = &config.numbers
        && let Err(error) = open(path)
    {
        let expected = "a file of `signalbox numbers import`";
        faults.at("enum.numbers").say(error.to_string(), expected);
    }
    for (index, key) in config.tsig.iter().enumerate() {
        if let Err(error) = keys::read(key) {
            let expected = "a key in base64, 16 octets or more";
            faults
                .at(format!("enum.tsig[{index}].secret"))
                .say(error, expected);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_servers_within_a_tree_are_refused() {
        let tree = |apex: &str, server: &str| crate::config::Tree {
            apex: apex.to_owned(),
            name_servers: vec![server.to_owned()],
            ..crate::config::Tree::default()
        };
        let paths = |trees| {
            let mut faults = Faults::default();
            let config = Config {
                trees,
                ..Config::default()
            };
            check(&config, &mut faults);
            faults
                .into_vec()
                .into_iter()
                .map(|fault| fault.path)
                .collect::<Vec<_>>()
        };
        let good = tree("a.example", "ns.xa.example");
        assert_eq!(paths(vec![good.clone()]), Vec::<String>::new());
        for within in ["NS1.A.example", "a.example."] {
            let wrong = tree("b.example", within);
            assert_eq!(
                paths(vec![good.clone(), wrong]),
                ["trees[1].nameServers[0]"],
                "{within}"
            );
        }
    }
}
