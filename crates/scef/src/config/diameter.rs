//! Diameter: HSS, MME and SGSN.

use std::net::SocketAddr;

use diameter::{Security, TlsConfig};
use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Listen, Period, Validate};
use tls::{TlsFiles, Watched};

/// The Diameter node of the SCEF: the HSS over S6t and S6m (TS 29.336), MME and SGSN over T6a and T6b (TS 29.128), an SMS-SC over
/// T4 (TS 29.337).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Diameter {
    /// Addresses it listens at.
    pub listen: Listen,
    /// TLS from the first byte, for peers that connect and for all of `peers` (RFC 6733 §13.1); absent: in the clear.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsFiles>,
    /// Its DiameterIdentity, which HSS and MME know as SCEF-ID.
    pub host: String,
    /// Its realm.
    pub realm: String,
    /// Realm of the HSS; empty: `realm`.
    #[schemars(extend("x-reload" = true))]
    pub hss_realm: String,
    /// DiameterIdentity of the HSS; empty: any peer that serves S6t in `hssRealm`, or a router.
    #[schemars(extend("x-reload" = true))]
    pub hss_host: String,
    /// Realm of the SMS-SC; empty: `realm`.
    #[schemars(extend("x-reload" = true))]
    pub sms_sc_realm: String,
    /// DiameterIdentity of the SMS-SC; empty: any peer that serves T4 in `smsScRealm`, or a router.
    #[schemars(extend("x-reload" = true))]
    pub sms_sc_host: String,
    /// Peers it connects to: HSS, MMEs, an SMS-SC, a Diameter router. Others may connect to it. Those of `peers` may also send requests of
    /// others, as a router does.
    pub peers: Vec<Peer>,
    /// Origin-Realms of peers that may connect: exactly, or with a leading dot all realms below. Empty: any, which is for
    /// `listen` on loopback alone, unless `networks` or `tls` says who may connect.
    pub realms: Vec<String>,
    /// Networks that peers may connect from (`192.0.2.0/24`). Empty: any, as for `realms`.
    #[schemars(with = "Vec<String>")]
    pub networks: Vec<IpNet>,
    /// Peers that may be connected without being among `peers`.
    pub max_peers: usize,
    /// Requests of peers that are worked on at once, and requests to peers that are queued; further ones are refused.
    pub max_calls: usize,
    /// How long an HSS, MME, SGSN or SMS-SC may take for its answer.
    #[schemars(extend("x-reload" = true))]
    pub timeout: Period,
}

/// A peer to connect to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Peer {
    /// Its DiameterIdentity.
    pub host: String,
    /// Its addresses, tried in turn.
    #[schemars(with = "Vec<String>")]
    pub addresses: Vec<SocketAddr>,
}

impl Default for Diameter {
    fn default() -> Self {
        Self {
            listen: Listen::local(3890),
            tls: None,
            host: "scef.example.org".to_owned(),
            realm: "example.org".to_owned(),
            hss_realm: String::new(),
            hss_host: String::new(),
            sms_sc_realm: String::new(),
            sms_sc_host: String::new(),
            peers: Vec::new(),
            realms: Vec::new(),
            networks: Vec::new(),
            max_peers: 1_024,
            max_calls: 10_000,
            timeout: Period::from_secs(5),
        }
    }
}

impl Diameter {
    /// How connections are secured; their files are among those that `watched` checks.
    ///
    /// # Errors
    /// When a file cannot be used.
    pub(crate) fn security(&self, watched: &Watched) -> Result<Security, String> {
        match &self.tls {
            None => Ok(Security::None),
            Some(files) => TlsConfig::open(watched, "diameter.tls", files).map(Security::Tls),
        }
    }

    /// Destination-Host and Destination-Realm of requests to the HSS.
    pub(crate) fn hss(&self) -> (Option<&str>, &str) {
        self.destination(&self.hss_host, &self.hss_realm)
    }

    /// Destination-Host and Destination-Realm of requests to the SMS-SC.
    pub(crate) fn sms_sc(&self) -> (Option<&str>, &str) {
        self.destination(&self.sms_sc_host, &self.sms_sc_realm)
    }

    fn destination<'a>(&'a self, host: &'a str, realm: &'a str) -> (Option<&'a str>, &'a str) {
        let named = |name: &&str| !name.is_empty();
        (
            Some(host).filter(named),
            Some(realm).filter(named).unwrap_or(&self.realm),
        )
    }
}

impl Validate for Diameter {
    fn validate(&self, faults: &mut Faults) {
        if let Some(files) = &self.tls {
            files.validate_peer("tls", faults);
        }
        for (name, value, may_be_empty) in [
            ("host", &self.host, false),
            ("realm", &self.realm, false),
            ("hssHost", &self.hss_host, true),
            ("hssRealm", &self.hss_realm, true),
            ("smsScHost", &self.sms_sc_host, true),
            ("smsScRealm", &self.sms_sc_realm, true),
        ] {
            if !(is_identity(value) || may_be_empty && value.is_empty()) {
                faults.at(name).say(
                    format!("`{value}` is not a valid DiameterIdentity"),
                    "a name such as scef.example.org",
                );
            }
        }
        for (name, value) in [("maxPeers", self.max_peers), ("maxCalls", self.max_calls)] {
            if value == 0 {
                faults.at(name).say("is 0", "at least 1");
            }
        }
        if self.timeout.is_zero() {
            faults.at("timeout").say("is 0", "some time, such as 5s");
        }
        for (index, peer) in self.peers.iter().enumerate() {
            if peer.host.is_empty() || peer.addresses.is_empty() {
                faults
                    .at(format!("peers[{index}]"))
                    .say("has no host or no addresses", "a name, and at least one address");
            }
        }
        let open = self.realms.is_empty() && self.networks.is_empty() && self.tls.is_none();
        if open && !self.listen.iter().all(|address| address.ip().is_loopback()) {
            faults.at("listen").say(
                "is open to peers of any realm and network",
                "loopback addresses, or one of `realms`, `networks` and `tls`",
            );
        }
    }
}

/// Whether this may be a DiameterIdentity: a name of letters, digits, dots, hyphens and underscores, with a letter or digit at both
/// ends.
fn is_identity(name: &str) -> bool {
    let bytes = name.as_bytes();
    let mut ends = [bytes.first(), bytes.last()].into_iter();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b".-_".contains(byte);
    bytes.len() <= 255
        && ends.all(|end| end.is_some_and(u8::is_ascii_alphanumeric))
        && bytes.iter().all(is_plain)
        && !name.contains("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_nodes_and_realms_are_diameter_identities() {
        let faults = |change: fn(&mut Diameter)| {
            let mut settings = Diameter::default();
            change(&mut settings);
            let mut faults = Faults::default();
            settings.validate(&mut faults);
            let faults = faults.into_vec();
            faults
                .iter()
                .map(|fault| format!("{fault:?}"))
                .collect::<String>()
        };
        assert_eq!(faults(|_| {}), "");
        assert_eq!(faults(|one| one.hss_host = "HSS_1.example".to_owned()), "");
        let realm = faults(|one| one.realm = "7 8 9".to_owned());
        assert!(realm.contains("`7 8 9` is not a valid"), "{realm}");
        assert!(!faults(|one| one.host = String::new()).is_empty());
        assert!(!faults(|one| one.host = "scef..org".to_owned()).is_empty());
        assert!(!faults(|one| one.hss_realm = "-".to_owned()).is_empty());
        assert!(!faults(|one| one.sms_sc_host = "a".repeat(256)).is_empty());
    }
}
