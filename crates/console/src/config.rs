//! Every setting of the console.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Validate};
use tls::TlsFiles;

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
    /// Where browsers connect. An address that other machines reach needs `tls` and `directory`.
    #[schemars(extend("format" = "socket-address"))]
    pub listen: SocketAddr,
    /// Where it has its users (`signalbox console user add`), its audit log (`audit.jsonl`) and its journal. With it,
    /// people sign in; absent: everyone on this machine may use it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// TLS of the pages; absent: cleartext. With `authorities`, browsers may show a certificate, and with
    /// `requireClientCertificate` must.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsFiles>,
    /// Host names that browsers know it by, beside its IP addresses and `localhost`.
    pub hosts: Vec<String>,
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
            directory: None,
            tls: None,
            hosts: Vec::new(),
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
        if !self.listen.ip().is_loopback() && (self.tls.is_none() || self.directory.is_none()) {
            faults.at("listen").say(
                format!("{}: other machines could reach it, which needs TLS and users", self.listen),
                "`console.tls` and `console.directory`; or an address such as 127.0.0.1:9000 and, from elsewhere, `ssh -L 9000:127.0.0.1:9000 HOST`",
            );
        }
        for (index, host) in self.hosts.iter().enumerate() {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            if host.is_empty() || host.len() > 253 || !host.chars().all(is_plain) {
                // `*` would answer for every name, which is what DNS rebinding needs.
                faults.at(format!("hosts[{index}]")).say(
                    format!("`{host}` is not a host name"),
                    "a name such as console.example, without a port",
                );
            }
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
    fn off_loopback_it_needs_tls_and_users() {
        for address in [
            "0.0.0.0:9000",
            "192.0.2.1:9000",
            "[::]:9000",
            "[2001:db8::1]:9000",
        ] {
            let said = refusal(&format!("listen: \"{address}\"\n"));
            assert!(said.contains("needs TLS and users"), "{said}");
            for half in ["directory: /x", "tls: {certificate: c, key: k}"] {
                let said = refusal(&format!("listen: \"{address}\"\n{half}\n"));
                assert!(said.contains("needs TLS and users"), "{said}");
            }
            let whole = format!("listen: \"{address}\"\ndirectory: /x\ntls: {{certificate: c, key: k}}\n");
            settings::from_str::<Config>(&whole, "c.yaml").unwrap();
        }
        for address in ["127.0.0.1:0", "127.9.9.9:1", "[::1]:9000"] {
            settings::from_str::<Config>(&format!("listen: \"{address}\"\n"), "c.yaml").unwrap();
        }
    }

    #[test]
    fn hosts_are_names() {
        for host in ["*", "", "a:9000", "https://a", "a/b"] {
            let said = refusal(&format!("hosts: ['{host}']\n"));
            assert!(said.contains("hosts[0]"), "{said}");
        }
        settings::from_str::<Config>("hosts: [console.example]\n", "c.yaml").unwrap();
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
