//! Every setting of an SCP; a file per topic.

mod discovery;
mod feed;
mod nrf;
mod protection;
mod security;

pub use discovery::{Discovery, Order};
#[cfg(not(feature = "kafka"))]
pub(crate) use feed::WITHOUT_KAFKA;
pub use feed::{Acks, Compression, Feed, FeedPoint, PartitionSelection, SecurityProtocol};
pub use nrf::{AcceptNrfs, AuditMode, NamedNrfs, Nrf, NrfSet};
pub use protection::{
    ConsumerKey, ConsumerRate, ErrorProfile, Federation, OverloadStep, Priorities, PriorityRule,
    ProducerRate, Protection, WhenSilent,
};
pub use sbi::oauth::{AssertionKey, AssertionMode, AssertionSettings};
pub(crate) use security::slice;
pub use security::{AccessRule, Security, ServiceLevel, TokenLevel, TokenUse, Tokens};

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use function::sbi::config::check_root;
use ipnet::IpNet;
use routing::network::Producer;
use routing::policy::{Places, ServicePolicy, StatusProcessing};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use settings::{ByteSize, Faults, Listen, Period, Validate};

use crate::mediation::{Engine, RuleSet};

/// Settings of an SCP. The defaults are valid.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Config {
    /// NF instance id of this SCP, a UUID, for its registration and its requests to NRFs. Empty: generated at the first
    /// start and kept in the file `scp-instance-id` of `directory`.
    pub nf_instance_id: String,
    /// Directory of the file with the NF instance id.
    pub directory: PathBuf,
    /// FQDN of this SCP: its name in `Via` and `Server`, and in its own load and overload information. The own NF
    /// profile names it only if it is set, because other NFs resolve the names of profiles.
    pub fqdn: String,
    /// Further own names and addresses, such as `scp`, `scp.core.svc` or `10.96.0.7:80` of a service before several SCPs,
    /// without a port or with one: requests to them name no producer. `fqdn`, `apiRoot` and the listeners need not be among
    /// them.
    pub names: Vec<String>,
    /// Addresses of the service-based interface.
    pub listen: Listen,
    /// Address of the admin endpoint (`/livez /readyz /metrics /config`).
    #[schemars(extend("format" = "socket-address"))]
    pub admin: SocketAddr,
    /// Worker threads, each with listeners and connections of its own. 0: one per core.
    pub workers: usize,
    /// Cores the workers are pinned to; empty: not pinned.
    pub cores: Vec<usize>,
    /// Root of this SCP's own URIs (`http://scp.example.org:8020`), for the NRF's notifications. Empty: of the
    /// first listen address.
    pub api_root: String,
    /// TLS of the service-based interface; absent: cleartext.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-reload" = true))]
    pub tls: Option<sbi::tls::TlsFiles>,
    /// TLS of the connections this SCP makes; absent: only cleartext peers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-reload" = true))]
    pub client_tls: Option<sbi::tls::TlsFiles>,
    /// Limits of the server.
    pub server: sbi::server::ServerConfig,
    /// Connections to producers, NRFs and other SCPs.
    pub client: sbi::client::ClientConfig,
    /// How the names of producers, NRFs and other SCPs are resolved.
    pub dns: sbi::dns::DnsConfig,
    /// Locality of this SCP, and regions.
    #[schemars(extend("x-reload" = true))]
    pub places: Places,
    /// Routing policies of services; the first policy that names a service counts.
    #[schemars(extend("x-reload" = true))]
    pub policies: Vec<ServicePolicy>,
    /// How the status of producers affects their selection.
    #[schemars(extend("x-reload" = true))]
    pub nf_status: StatusProcessing,
    /// Static NF profiles (TS 29.510 `NFProfile`), known without an NRF.
    #[schemars(extend("x-reload" = true))]
    pub producers: Vec<Value>,
    /// NRFs from which the SCP learns profiles.
    #[schemars(extend("x-reload" = true))]
    pub nrf: Nrf,
    /// Delegated discovery (Model D).
    #[schemars(extend("x-reload" = true))]
    pub discovery: Discovery,
    /// Memory per worker of the route cache: API roots with their targets, and discovery queries. An evicted entry is
    /// computed again at its next use.
    #[schemars(extend("x-reload" = true))]
    pub route_cache: ByteSize,
    /// API roots of the SCPs through which producers of other regions are reached, by the region's name in
    /// `places.regions`, in order of preference.
    #[schemars(extend("x-reload" = true))]
    pub next_hops: BTreeMap<String, Vec<String>>,
    /// The way to other networks.
    #[schemars(extend("x-reload" = true))]
    pub networks: Networks,
    /// Whether the SCP forwards requests to any destination that they name. Otherwise it forwards them to known ones
    /// only: the endpoints of profiles that are learned, static or named in an NRF's answer, NRFs and other SCPs of
    /// these settings, `allowedNetworks`, and callbacks (with `3gpp-Sbi-Callback`) to the hosts of known profiles. It
    /// refuses all other requests. It never sends to link-local, multicast and unspecified addresses or to the admin
    /// endpoints of this process.
    #[schemars(extend("x-reload" = true))]
    pub forward_to_unknown: bool,
    /// Networks (`10.0.0.0/8`) to whose addresses the SCP forwards requests without a known profile; for example those
    /// of unregistered consumers that expect callbacks. Unknown host names match no network.
    #[schemars(extend("x-reload" = true))]
    pub allowed_networks: Vec<IpNet>,
    /// Admin endpoints of other functions in this process.
    #[serde(skip)]
    #[schemars(skip)]
    pub other_admins: Vec<SocketAddr>,
    /// Whether the SCP follows a 307 or 308 of a producer; otherwise the consumer gets it.
    #[schemars(extend("x-reload" = true))]
    pub follow_redirects: bool,
    /// Further SCPs that a request without `3gpp-Sbi-Max-Forward-Hops` may pass; 1 to 99.
    #[schemars(extend("x-reload" = true))]
    pub max_forward_hops: u8,
    /// Requests that have timed out at their consumers.
    #[schemars(extend("x-reload" = true))]
    pub late_requests: LateRequests,
    /// Limits, overload and priorities.
    #[schemars(extend("x-reload" = true))]
    pub protection: Protection,
    /// Access control and authentication.
    #[schemars(extend("x-reload" = true))]
    pub security: Security,
    /// Rules that change, reject or steer messages.
    #[schemars(extend("x-reload" = true))]
    pub mediation: RuleSet,
    /// A copy of messages for analytics.
    #[schemars(extend("x-reload" = true))]
    pub feed: Feed,
}

/// Other networks, and the SEPPs that lead to them (TS 29.500 §6.1.4.3).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Networks {
    /// The own networks (`001-01`). A producer is of another network when its name says so
    /// (`ausf.5gc.mnc070.mcc999.3gppnetwork.org`, TS 23.003 §28), else when its `plmnList` has none of these.
    pub plmns: Vec<String>,
    /// API roots of SEPPs, in order of preference. They get all requests for producers of other networks, with
    /// `3gpp-Sbi-Target-apiRoot`. Empty: the SCP connects to these producers itself.
    pub sepps: Vec<String>,
}

/// Detection of requests that have timed out at their sender (TS 29.500 §6.11.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct LateRequests {
    /// Whether `3gpp-Sbi-Sender-Timestamp` counts with `3gpp-Sbi-Max-Rsp-Time`: the SCP answers a timed-out
    /// request with 504 `TIMED_OUT_REQUEST` and does not forward it. Needs synchronised clocks (NTP). Off:
    /// `3gpp-Sbi-Max-Rsp-Time` counts from the reception of the request.
    pub detect: bool,
    /// By how much the clocks of consumers may be behind.
    pub clock_skew: Period,
}

impl Default for LateRequests {
    fn default() -> Self {
        Self {
            detect: true,
            clock_skew: Period::from_millis(50),
        }
    }
}

/// Name of an SCP without the setting; not registered in DNS.
const DEFAULT_FQDN: &str = "scp.signalbox.local";

impl Default for Config {
    fn default() -> Self {
        Self {
            nf_instance_id: String::new(),
            directory: "run/scp".into(),
            fqdn: DEFAULT_FQDN.to_owned(),
            names: Vec::new(),
            listen: Listen::local(8020),
            admin: SocketAddr::from(([127, 0, 0, 1], 9020)),
            workers: 0,
            cores: Vec::new(),
            api_root: String::new(),
            tls: None,
            client_tls: None,
            server: sbi::server::ServerConfig::default(),
            client: sbi::client::ClientConfig {
                user_agent: "SCP".to_owned(),
                ..sbi::client::ClientConfig::default()
            },
            dns: sbi::dns::DnsConfig::default(),
            places: Places::default(),
            policies: Vec::new(),
            nf_status: StatusProcessing::default(),
            producers: Vec::new(),
            nrf: Nrf::default(),
            discovery: Discovery::default(),
            route_cache: ByteSize::mib(64),
            next_hops: BTreeMap::new(),
            networks: Networks::default(),
            forward_to_unknown: false,
            allowed_networks: Vec::new(),
            other_admins: Vec::new(),
            follow_redirects: false,
            max_forward_hops: 10,
            late_requests: LateRequests::default(),
            protection: Protection::default(),
            security: Security::default(),
            mediation: RuleSet::default(),
            feed: Feed::default(),
        }
    }
}

impl Config {
    /// Whether discoveries and tokens come from the same NRFs.
    pub(crate) fn same_nrfs(&self, other: &Self) -> bool {
        self.nrf.same_sets(&other.nrf) && self.places == other.places
    }

    /// The FQDN for the own NF profile: absent without the setting.
    pub(crate) fn public_fqdn(&self) -> Option<&str> {
        Some(&*self.fqdn).filter(|fqdn| *fqdn != DEFAULT_FQDN)
    }

    /// Root of this SCP's own URIs.
    #[must_use]
    pub fn root(&self) -> String {
        if !self.api_root.is_empty() {
            return self.api_root.trim_end_matches('/').to_owned();
        }
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        match self.listen.first() {
            Some(address) => format!("{scheme}://{address}"),
            None => format!("{scheme}://localhost"),
        }
    }
}

/// Whether a text is a PLMN.
fn check_plmn(faults: &mut Faults, at: String, plmn: &str) {
    let fits = plmn.split_once('-').is_some_and(|(mcc, mnc)| {
        mcc.len() == 3
            && (2..=3).contains(&mnc.len())
            && (mcc.bytes().chain(mnc.bytes())).all(|b| b.is_ascii_digit())
    });
    if !fits {
        faults
            .at(at)
            .say(format!("`{plmn}` is not a PLMN"), "MCC-MNC, such as 001-01");
    }
}

impl Validate for Config {
    fn validate(&self, faults: &mut Faults) {
        let id = &self.nf_instance_id;
        if !id.is_empty() && model::NfInstanceId::parse(id).is_err() {
            faults.at("nfInstanceId").say(
                "is not a UUID",
                "a UUID such as 4947a69a-f61b-4bc1-b9da-47c9c5d14b64",
            );
        }
        let (tls, client_tls) = (self.tls.as_ref(), self.client_tls.as_ref());
        if let Some(wrong) = function::sbi::contradiction(id, tls, client_tls) {
            faults
                .at("nfInstanceId")
                .say(wrong, "the instance that the certificate names");
        }
        if self.fqdn.is_empty()
            || !self
                .fqdn
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b))
        {
            faults.at("fqdn").say("is not a host name", "scp1.example.org");
        }
        if self.listen.first().is_none() {
            faults
                .at("listen")
                .say("is empty", "at least one address such as 127.0.0.1:8020");
        }
        if !self.api_root.is_empty() {
            check_root(&self.api_root, "apiRoot", faults);
        }
        for (i, policy) in self.policies.iter().enumerate() {
            for (member, expected) in policy.faults() {
                faults
                    .at(format!("policies[{i}].{member}"))
                    .say("is out of range", expected);
            }
        }
        for (i, profile) in self.producers.iter().enumerate() {
            if let Err(error) = Producer::from_value(profile) {
                faults
                    .at(format!("producers[{i}]"))
                    .say(error.to_string(), "an NFProfile of TS 29.510");
            }
        }
        for (i, plmn) in self.networks.plmns.iter().enumerate() {
            check_plmn(faults, format!("networks.plmns[{i}]"), plmn);
        }
        for (i, root) in self.networks.sepps.iter().enumerate() {
            check_root(root, &format!("networks.sepps[{i}]"), faults);
        }
        if !self.networks.sepps.is_empty() && self.networks.plmns.is_empty() {
            faults.at("networks.plmns").say(
                "is empty, so that every network would be another one",
                "the own networks, such as 001-01",
            );
        }
        for (i, name) in self.names.iter().enumerate() {
            let authority = sbi::client::Origin::new(sbi::client::Scheme::Http, name);
            if authority.is_err() {
                faults.at(format!("names[{i}]")).say(
                    format!("`{name}` is not a host name or address"),
                    "such as scp.core or 10.96.0.7:80",
                );
            }
        }
        for (region, hops) in &self.next_hops {
            if !self.places.regions.contains_key(region) {
                faults.at(format!("nextHops.{region}")).say(
                    "is not a region of `places.regions`",
                    "the name of a region there",
                );
            }
            for (i, root) in hops.iter().enumerate() {
                check_root(root, &format!("nextHops.{region}[{i}]"), faults);
            }
        }
        for (i, set) in self.nrf.sets.iter().enumerate() {
            for (j, region) in set.regions.iter().enumerate() {
                if !self.places.regions.contains_key(region) {
                    faults.at(format!("nrf.sets[{i}].regions[{j}]")).say(
                        "is not a region of `places.regions`",
                        "the name of a region there",
                    );
                }
            }
        }
        if !(1..=99).contains(&self.max_forward_hops) {
            faults.at("maxForwardHops").say("is out of range", "1 to 99");
        }
        if let Err(mistakes) = Engine::compile(&self.mediation) {
            for fault in mistakes {
                faults
                    .at(format!("mediation.{}", fault.path))
                    .say(fault.message, "see docs/scp.md");
            }
        }
        let authorities = self.tls.as_ref().and_then(|tls| tls.authorities.as_ref());
        let tokens = &self.security.tokens;
        let provable = authorities.is_some() || self.security.assertions.mode != AssertionMode::Ignore;
        if tokens.enabled && tokens.require_proof && !provable {
            faults.at("security.tokens.requireProof").say(
                "requires a proof that no consumer can give: neither mutual TLS nor assertions are configured",
                "`tls.authorities`, `security.assertions`, or false",
            );
        }
        faults.within("dns", &self.dns);
        faults.within("nrf", &self.nrf);
        faults.within("discovery", &self.discovery);
        faults.within("protection", &self.protection);
        faults.within("security", &self.security);
        faults.within("feed", &self.feed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use settings::Period;

    #[test]
    fn the_marked_settings_can_be_reloaded() {
        let expected = [
            "allowedNetworks",
            "clientTls",
            "discovery",
            "feed",
            "followRedirects",
            "forwardToUnknown",
            "lateRequests",
            "maxForwardHops",
            "mediation",
            "networks",
            "nextHops",
            "nfStatus",
            "nrf",
            "places",
            "policies",
            "producers",
            "protection",
            "routeCache",
            "security",
            "tls",
        ];
        let mut keys = settings::reload::keys::<Config>();
        keys.sort();
        assert_eq!(keys, expected);
    }

    fn faults(change: impl FnOnce(&mut Config)) -> String {
        let mut config = Config::default();
        change(&mut config);
        let mut faults = Faults::default();
        config.validate(&mut faults);
        format!("{faults:?}")
    }

    #[test]
    fn mistakes_name_their_setting() {
        let set = |roots: &[&str], plmns: &[&str]| NrfSet {
            roots: roots.iter().map(ToString::to_string).collect(),
            plmns: plmns.iter().map(ToString::to_string).collect(),
            ..NrfSet::default()
        };
        let path = faults(|config| config.nrf.roots = vec!["http://nrf:8010/nnrf-nfm/v1".into()]);
        assert!(
            path.contains("nrf.roots[0]") && path.contains("http://nrf:8010"),
            "{path}"
        );
        let prefix = faults(|config| config.nrf.roots = vec!["http://nrf:8010/core/north".into()]);
        assert!(!prefix.contains("nrf.roots"), "{prefix}");
        let sepp = faults(|config| config.networks.sepps = vec!["http://sepp:1".into()]);
        assert!(sepp.contains("networks.plmns"), "{sepp}");
        let name = faults(|config| config.names = vec!["http://x".into()]);
        assert!(name.contains("names[0]"), "{name}");
        let good = faults(|config| config.nrf.sets = vec![set(&["http://n:1"], &["262-01"])]);
        for (text, place) in [
            (
                faults(|config| config.nrf.sets = vec![set(&[], &[])]),
                "nrf.sets[0].roots",
            ),
            (
                faults(|config| config.nrf.sets = vec![set(&["http://n:1"], &["26201"])]),
                "nrf.sets[0].plmns[0]",
            ),
            (
                faults(|config| config.protection.federation.peers = vec!["scp2".into()]),
                "protection.federation.peers[0]",
            ),
            (
                faults(|config| config.protection.federation.silent_after = Period::from_millis(1)),
                "protection.federation.silentAfter",
            ),
            (faults(|config| config.dns.attempts = 0), "dns.attempts"),
            (
                faults(|config| {
                    config.security.tokens.enabled = true;
                    config.security.tokens.require_proof = true;
                }),
                "security.tokens.requireProof",
            ),
            (
                faults(|config| config.dns.timeout = Period::from_millis(0)),
                "dns.timeout",
            ),
        ] {
            assert!(text.contains(place) && !good.contains(place), "{place}: {text}");
        }
    }
}
