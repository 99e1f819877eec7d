//! The configuration of freeDiameter: the Diameter side of a PCRF.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::sections::{Sections, address};
use super::source::Part;

/// Its ports, unless it names others: in the clear, and with TLS from the first byte (RFC 6733 §2.1).
const PORT: u64 = 3868;
const SECURE_PORT: u64 = 5658;

/// One statement: `Name = value;` or `Name;`.
#[derive(Debug)]
struct Statement {
    line: usize,
    name: String,
    value: String,
}

/// A file.
#[derive(Debug)]
pub(crate) struct Peers {
    name: String,
    statements: Vec<Statement>,
    remarks: Vec<String>,
    is_used: bool,
}

impl Peers {
    pub(crate) fn parse(text: &str, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            statements: statements(text),
            remarks: Vec::new(),
            is_used: false,
        }
    }

    pub(crate) fn file_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or_default()
    }

    /// Lines of what is not carried over.
    pub(crate) fn remarks(&self) -> Vec<String> {
        if self.is_used {
            return self.remarks.clone();
        }
        vec![format!(
            "{}: not carried over: no file of a PCRF names it",
            self.name
        )]
    }

    /// Carries it into the section of the PCF.
    pub(crate) fn carry(&mut self, sections: &mut Sections) {
        self.is_used = true;
        let mut diameter = Diameter::default();
        let mut remarks = Vec::new();
        for statement in &self.statements {
            if let Some(reason) = diameter.take(statement) {
                remarks.push(format!(
                    "{}:{}: {}: not carried over: {reason}",
                    self.name, statement.line, statement.name
                ));
            }
        }
        if diameter.wants_tls != Some(true) {
            let of_tls = |statement: &&Statement| statement.name.to_lowercase().starts_with("tls_");
            remarks.extend(self.statements.iter().filter(of_tls).map(|statement| {
                format!(
                    "{}:{}: {}: not carried over: no peer connects with TLS",
                    self.name, statement.line, statement.name
                )
            }));
        }
        self.remarks = remarks;
        diameter.write(sections);
    }
}

/// Statements without comments; `#` within quotes begins none.
fn statements(text: &str) -> Vec<Statement> {
    let mut all = Vec::new();
    let (mut depth, mut begun, mut open) = (0_usize, 1, String::new());
    for (number, line) in text.lines().enumerate() {
        let mut is_quoted = false;
        for c in line.chars() {
            match c {
                '"' => is_quoted = !is_quoted,
                '#' if !is_quoted => break,
                '{' if !is_quoted => depth += 1,
                '}' if !is_quoted => depth = depth.saturating_sub(1),
                _ => {}
            }
            if open.trim().is_empty() {
                begun = number + 1;
            }
            if c == ';' && depth == 0 && !is_quoted {
                let whole = std::mem::take(&mut open);
                let (name, value) = whole.split_once('=').unwrap_or((&whole, ""));
                all.push(Statement {
                    line: begun,
                    name: name.trim().to_owned(),
                    value: value.trim().to_owned(),
                });
            } else {
                open.push(c);
            }
        }
        open.push(' ');
    }
    all
}

/// The texts in quotes.
fn quoted(value: &str) -> Vec<String> {
    value.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// What both forms of the configuration have.
#[derive(Debug, Default)]
struct Diameter {
    host: Option<String>,
    realm: Option<String>,
    port: Option<u64>,
    secure_port: Option<u64>,
    hosts: Vec<String>,
    peers: Vec<String>,
    files: Vec<String>,
    authorities: Option<String>,
    /// What the first peer wants: the PCF listens with TLS or without.
    wants_tls: Option<bool>,
}

impl Diameter {
    /// Takes a statement, or says why not.
    fn take(&mut self, statement: &Statement) -> Option<&'static str> {
        let Statement { name, value, .. } = statement;
        let mut texts = quoted(value);
        match name.to_lowercase().as_str() {
            "identity" => self.host = texts.pop(),
            "realm" => self.realm = texts.pop(),
            "port" => self.port = value.parse().ok(),
            "listenon" => self.hosts.append(&mut texts),
            "tls_cred" => self.files = texts,
            "tls_ca" => self.authorities = texts.pop(),
            "connectpeer" => {
                let wants_tls = !value.to_lowercase().contains("no_tls");
                let connect = value.split("ConnectTo").nth(1).map(quoted);
                self.peers.extend(connect.and_then(|to| to.into_iter().next()));
                if *self.wants_tls.get_or_insert(wants_tls) != wants_tls {
                    return Some("the PCF listens either with TLS or without, as the first peer has it");
                }
                return Some("the peer connects to the PCF; its address is among diameter.networks");
            }
            "norelay" => {}
            "loadextension" => return Some("Gx and Rx are built in"),
            "secport" => self.secure_port = value.parse().ok(),
            "no_sctp" | "no_ip" | "no_ipv6" | "prefer_tcp" | "sctp_streams" => {
                return Some("the PCF listens over TCP; SCTP is for the Diameter router (dsr)");
            }
            "twtimer" | "tctimer" => return Some("timers of the PCF are its own"),
            _ => return Some("it is not known here"),
        }
        None
    }

    fn write(self, sections: &mut Sections) {
        let mut set = |path: &str, value: Value| sections.set("pcf", &["diameter", path], value);
        set("enabled", true.into());
        if let Some(host) = self.host {
            set("host", host.into());
        }
        let tls = match (self.files.as_slice(), self.authorities, self.wants_tls) {
            ([certificate, key], Some(authorities), Some(true)) => {
                Some(json!({"certificate": certificate, "key": key, "authorities": authorities}))
            }
            _ => None,
        };
        let port = match &tls {
            Some(_) => self.secure_port.unwrap_or(SECURE_PORT),
            None => self.port.unwrap_or(PORT),
        };
        let mut listen: Vec<String> = self.hosts.iter().map(|host| address(host, port)).collect();
        if listen.is_empty() {
            listen.push(address("0.0.0.0", port));
        }
        set("listen", json!(listen));
        if let Some(realm) = self.realm {
            // Peers of its own realm alone may connect.
            set("realms", json!([realm]));
            set("realm", realm.into());
        }
        let addresses = self.peers.iter().filter_map(|peer| peer.parse::<IpAddr>().ok());
        let networks: Vec<String> = addresses
            .map(|peer| format!("{peer}/{}", if peer.is_ipv4() { 32 } else { 128 }))
            .collect();
        if !networks.is_empty() && networks.len() == self.peers.len() {
            set("networks", json!(networks));
        }
        if let Some(tls) = tls {
            set("tls", tls);
        }
    }
}

/// Carries the form that stands within the YAML of Open5GS.
pub(crate) fn carry_inline(sections: &mut Sections, part: &Part<'_>) {
    let text = |key: &str| part.get(key).text().map(str::to_owned);
    let mut diameter = Diameter {
        host: text("identity"),
        realm: text("realm"),
        port: part.get("port").number(),
        ..Diameter::default()
    };
    diameter.hosts.extend(text("listen_on"));
    for listen in part.get("listen").items() {
        diameter
            .hosts
            .extend(listen.get("address").text().map(str::to_owned));
    }
    for peer in part.get("connect").items() {
        diameter
            .peers
            .extend(peer.get("address").text().map(str::to_owned));
    }
    diameter.write(sections);
}
