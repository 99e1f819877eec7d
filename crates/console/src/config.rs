//! Every setting of the console.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Validate};

/// Functions that one console follows at most: each has a connection and up to 5 MB of pages in flight.
const MOST_FUNCTIONS: usize = 64;
/// Ports after the configured one that `signalbox up` tries.
const NEXT_PORTS: u16 = 9;

/// Settings of the console.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Config {
    /// Address of the admin endpoint (`/livez /readyz /metrics /config`).
    #[schemars(extend("format" = "socket-address"))]
    pub admin: SocketAddr,
    /// Where browsers connect. It has no users yet, so it must be an address of this machine alone: 127.0.0.0/8 or ::1.
    #[schemars(extend("format" = "socket-address"))]
    pub listen: SocketAddr,
    /// The functions it follows. Empty: those of the same process and of the same file; a console that is alone and has no
    /// file with other sections follows all functions at their default addresses.
    #[schemars(extend("x-reload" = true))]
    pub functions: Vec<Target>,
    /// Whether the next free port is taken where that of `listen` is not free: for `signalbox up`.
    #[serde(skip)]
    #[schemars(skip)]
    pub may_move: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            admin: SocketAddr::from(([127, 0, 0, 1], 9001)),
            listen: SocketAddr::from(([127, 0, 0, 1], 9000)),
            functions: Vec::new(),
            may_move: false,
        }
    }
}

/// A function that the console follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Target {
    /// Its name on the page: `nrf`, or `nrf-east` where there are several.
    pub name: String,
    /// Its admin endpoint.
    #[schemars(extend("format" = "socket-address"))]
    pub admin: SocketAddr,
}

impl Config {
    /// The addresses to listen at, the configured one first.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        let mut all = vec![self.listen];
        if self.may_move && self.listen.port() != 0 {
            let first = self.listen.port();
            let next = (1..=NEXT_PORTS).filter_map(|step| first.checked_add(step));
            // Port 0: any that is free.
            let ports = next.chain([0]);
            all.extend(ports.map(|port| SocketAddr::new(self.listen.ip(), port)));
        }
        all
    }
}

impl Validate for Config {
    fn validate(&self, faults: &mut Faults) {
        if !self.listen.ip().is_loopback() {
            faults.at("listen").say(
                format!(
                    "{}: other machines could reach it, and the console has neither TLS nor users yet",
                    self.listen
                ),
                "an address such as 127.0.0.1:9000; from elsewhere use `ssh -L 9000:127.0.0.1:9000 HOST`",
            );
        }
        if self.functions.len() > MOST_FUNCTIONS {
            faults.at("functions").say(
                format!("has {} functions", self.functions.len()),
                format!("at most {MOST_FUNCTIONS}; more need a second console"),
            );
        }
        let (mut names, mut admins) = (BTreeSet::new(), BTreeSet::new());
        for (index, one) in self.functions.iter().enumerate() {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            let is_name = (1..=64).contains(&one.name.len()) && one.name.chars().all(is_plain);
            if !is_name || !names.insert(&one.name) {
                faults.at(format!("functions[{index}].name")).say(
                    format!(
                        "`{}` is empty, not plain, or the name of another function",
                        one.name
                    ),
                    "a name of its own: letters, digits, `-`, `_` and `.`, at most 64 of them",
                );
            }
            if one.admin.port() == 0 || !admins.insert(one.admin) {
                faults.at(format!("functions[{index}].admin")).say(
                    format!("{} has port 0, or is that of another function", one.admin),
                    "the address of its own admin endpoint",
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        settings::from_str::<Config>(text, "c.yaml")
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn off_loopback_it_is_refused() {
        for address in [
            "0.0.0.0:9000",
            "192.0.2.1:9000",
            "[::]:9000",
            "[2001:db8::1]:9000",
        ] {
            let said = refusal(&format!("listen: \"{address}\"\n"));
            assert!(said.contains("neither TLS nor users"), "{said}");
        }
        for address in ["127.0.0.1:0", "127.9.9.9:1", "[::1]:9000"] {
            settings::from_str::<Config>(&format!("listen: \"{address}\"\n"), "c.yaml").unwrap();
        }
    }

    #[test]
    fn functions_have_names_and_addresses_of_their_own() {
        let two = |first: &str, second: &str| refusal(&format!("functions: [{{{first}}}, {{{second}}}]\n"));
        let (a, b) = (
            "name: a, admin: \"127.0.0.1:1\"",
            "name: b, admin: \"127.0.0.1:1\"",
        );
        assert!(two(a, b).contains("functions[1].admin"));
        let again = "name: a, admin: \"127.0.0.1:2\"";
        assert!(two(a, again).contains("functions[1].name"));
        for name in ["''", "'<b>'", "'a b'"] {
            let said = refusal(&format!(
                "functions: [{{name: {name}, admin: \"127.0.0.1:1\"}}]\n"
            ));
            assert!(said.contains("functions[0].name"), "{said}");
        }
        let many: Vec<String> = (1..=65)
            .map(|port| format!("{{name: f{port}, admin: \"127.0.0.1:{port}\"}}"))
            .collect();
        assert!(refusal(&format!("functions: [{}]\n", many.join(", "))).contains("at most 64"));
    }
}
