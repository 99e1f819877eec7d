//! Every setting of an NRF; a file per topic.

mod bounds;
mod cluster;
mod discovery;
mod forwarding;
mod growth;
mod heartbeat;
mod overload;
mod screening;
mod slf;
mod subscriptions;
mod tokens;

pub use bounds::{Patches, Patterns};
pub use cluster::Cluster;
pub use discovery::Discovery;
pub use forwarding::{ForwardedOperation, Forwarding, ForwardingRule, HomeNetwork};
pub use function::sbi::config::Outgoing;
pub use growth::{Growth, GrowthSet};
pub use heartbeat::HeartBeat;
pub use overload::{Overload, OverloadLevel};
pub use screening::Screening;
pub use slf::{Slf, WhenUnavailable};
pub use subscriptions::Subscriptions;
pub use tokens::{AuthRule, Tokens};

use std::net::SocketAddr;

use function::sbi::Destinations;
use sbi::identity::{IdentityMode, IdentitySettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, Listen, Validate};

/// Settings of an NRF. The defaults are valid.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Config {
    /// NF instance id of this NRF, a UUID: issuer of its tokens, name in its `Via`. Empty: generated at the first start
    /// and kept in the directory of the store.
    pub nf_instance_id: String,
    /// Addresses of the service-based interface.
    pub listen: Listen,
    /// Address of the admin endpoint (`/livez /readyz /metrics /config`).
    #[schemars(extend("format" = "socket-address"))]
    pub admin: SocketAddr,
    /// Worker threads, each with listeners and connections of its own. 0: one per core.
    pub workers: usize,
    /// Cores the workers are pinned to; empty: not pinned.
    pub cores: Vec<usize>,
    /// Root of the URIs that the NRF hands out (`http://nrf.example.org:8010`). Empty: of the first listen
    /// address.
    pub api_root: String,
    /// TLS of the service-based interface; absent: cleartext.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-reload" = true))]
    pub tls: Option<sbi::tls::TlsFiles>,
    /// TLS of the connections this NRF makes; absent: only cleartext peers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-reload" = true))]
    pub client_tls: Option<sbi::tls::TlsFiles>,
    /// Limits of the server.
    pub server: sbi::server::ServerConfig,
    /// Connections to other functions.
    pub client: sbi::client::ClientConfig,
    /// How names are resolved, where `servers` or `dnsSrv` are set; else the system resolves them.
    pub dns: sbi::dns::DnsConfig,
    /// Whether the targets of the SRV records (`_http._tcp`, `_https._tcp`) of a name are tried as well when an NRF that
    /// requests are forwarded to, a location function or a subscriber does not answer (RFC 2782).
    pub dns_srv: bool,
    /// Store of profiles and subscriptions.
    pub store: store::Config,
    /// Several NRFs of a set on one database.
    pub cluster: Cluster,
    /// Largest profile that may be registered.
    #[schemars(extend("x-reload" = true))]
    pub max_profile_size: ByteSize,
    /// Profiles at most; further registrations are refused.
    #[schemars(extend("x-reload" = true))]
    pub max_profiles: usize,
    /// Pending writes at most; further ones are answered 503.
    pub max_waiting_writes: usize,
    /// Bytes of all pending writes at most; further ones are answered 503.
    #[schemars(extend("x-reload" = true))]
    pub max_waiting_bytes: ByteSize,
    /// JSON Patches.
    #[schemars(extend("x-reload" = true))]
    pub patches: Patches,
    /// Regular expressions.
    #[schemars(extend("x-reload" = true))]
    pub patterns: Patterns,
    /// Destinations that requests and registered profiles may name.
    #[schemars(extend("x-reload" = true))]
    pub outgoing: Outgoing,
    /// Admin endpoints of other functions in this process.
    #[serde(skip)]
    #[schemars(skip)]
    pub other_admins: Vec<SocketAddr>,
    /// Heart-beats and what happens without them.
    pub heart_beat: HeartBeat,
    /// Discovery.
    #[schemars(extend("x-reload" = true))]
    pub discovery: Discovery,
    /// Discards under overload.
    #[schemars(extend("x-reload" = true))]
    pub overload: Overload,
    /// Subscriptions and their notifications.
    pub subscriptions: Subscriptions,
    /// Access tokens.
    #[schemars(extend("x-reload" = true))]
    pub tokens: Tokens,
    /// Which senders may act for which NF instances.
    #[schemars(extend("x-reload" = true))]
    pub identity: IdentitySettings,
    /// Subscriber location.
    #[schemars(extend("x-reload" = true))]
    pub slf: Slf,
    /// Other NRFs.
    #[schemars(extend("x-reload" = true))]
    pub forwarding: Forwarding,
    /// Other NRF sets.
    pub growth: Growth,
    /// Screening of registrations.
    #[schemars(extend("x-reload" = true))]
    pub screening: Screening,
}

impl Default for Config {
    fn default() -> Self {
        let mut store = store::Config::default();
        store.embedded.directory = "run/nrf".into();
        Self {
            nf_instance_id: String::new(),
            listen: Listen::local(8010),
            admin: SocketAddr::from(([127, 0, 0, 1], 9010)),
            workers: 0,
            cores: Vec::new(),
            api_root: String::new(),
            tls: None,
            client_tls: None,
            server: sbi::server::ServerConfig::default(),
            client: sbi::client::ClientConfig {
                user_agent: "NRF".to_owned(),
                ..sbi::client::ClientConfig::default()
            },
            dns: sbi::dns::DnsConfig::default(),
            dns_srv: false,
            store,
            cluster: Cluster::default(),
            max_profile_size: ByteSize::kib(512),
            max_profiles: 100_000,
            max_waiting_writes: 10_000,
            max_waiting_bytes: ByteSize::mib(64),
            patches: Patches::default(),
            patterns: Patterns::default(),
            outgoing: Outgoing::default(),
            other_admins: Vec::new(),
            heart_beat: HeartBeat::default(),
            discovery: Discovery::default(),
            overload: Overload::default(),
            subscriptions: Subscriptions::default(),
            tokens: Tokens::default(),
            identity: IdentitySettings::default(),
            slf: Slf::default(),
            forwarding: Forwarding::default(),
            growth: Growth::default(),
            screening: Screening::default(),
        }
    }
}

impl Config {
    /// Root of the URIs that the NRF hands out.
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

impl Config {
    /// Where requests and profiles may make this NRF send to.
    #[must_use]
    pub fn destinations(&self) -> Destinations {
        let admins = std::iter::once(self.admin).chain(self.other_admins.iter().copied());
        // A query for the home network names this NRF where it is the home NRF (`hnrf-uri`).
        Destinations::new(&self.outgoing, self.listen.iter(), &self.api_root, admins).reaching_itself()
    }
}

impl Validate for Config {
    fn validate(&self, faults: &mut Faults) {
        if !self.nf_instance_id.is_empty() && model::NfInstanceId::parse(&self.nf_instance_id).is_err() {
            faults.at("nfInstanceId").say(
                "is not a UUID",
                "nothing, or a UUID such as 4947a69a-f61b-4bc1-b9da-47c9c5d14b64",
            );
        }
        if self.listen.first().is_none() {
            faults
                .at("listen")
                .say("is empty", "at least one address such as 127.0.0.1:8010");
        }
        if !self.api_root.is_empty() && self.api_root.parse::<sbi::client::Origin>().is_err() {
            faults
                .at("apiRoot")
                .say("is not an API root", "http://host:port or https://host:port");
        }
        if self.max_waiting_bytes < self.max_profile_size {
            faults.at("maxWaitingBytes").say(
                "is less than maxProfileSize, so that the largest profiles cannot register",
                "at least maxProfileSize",
            );
        }
        faults.within("server", &self.server);
        faults.within("client", &self.client);
        faults.within("discovery", &self.discovery);
        faults.within("subscriptions", &self.subscriptions);
        faults.within("screening", &self.screening);
        faults.within("dns", &self.dns);
        faults.within("store", &self.store);
        faults.within("cluster", &self.cluster);
        self.cluster.check(&self.store, faults);
        faults.within("heartBeat", &self.heart_beat);
        faults.within("slf", &self.slf);
        faults.within("forwarding", &self.forwarding);
        faults.within("growth", &self.growth);
        faults.within("tokens", &self.tokens);
        faults.within("identity", &self.identity);
        let authorities = self.tls.as_ref().and_then(|tls| tls.authorities.as_deref());
        if self.identity.mode == Some(IdentityMode::Required) && !self.identity.is_provable(authorities) {
            faults.at("identity.mode").say(
                "requires a proof that no NF can give: neither mutual TLS nor client credentials assertions are configured",
                "`tls.authorities`, `identity.assertions`, or `whenPresent`",
            );
        }
        faults.within("overload", &self.overload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Settings by which an NRF would not start, or would not do its work, are found before it runs.
    #[test]
    fn settings_that_break_an_nrf_are_found() {
        type Change = fn(&mut Config);
        let breaks: [(&str, Change); 10] = [
            ("server.maxConnections", |config| {
                config.server.max_connections = 0;
            }),
            ("client.connectionsPerOrigin", |config| {
                config.client.connections_per_origin = 0;
            }),
            ("screening.allowedFqdns[0]", |config| {
                config.screening.allowed_fqdns = vec!["(".into()];
            }),
            ("screening.deniedFqdns[0]", |config| {
                config.screening.denied_fqdns = vec!["(".into()];
            }),
            ("screening.allowedPlmns[0]", |config| {
                config.screening.allowed_plmns = vec!["xx".into()];
            }),
            ("discovery.maxProfiles", |config| {
                config.discovery.max_profiles = 0;
            }),
            ("subscriptions.loadThreshold", |config| {
                config.subscriptions.load_threshold = 200;
            }),
            ("subscriptions.attempts", |config| {
                config.subscriptions.attempts = 0;
            }),
            ("subscriptions.queueTotal", |config| {
                config.subscriptions.queue_total = 0;
            }),
            ("subscriptions.timeout", |config| {
                config.subscriptions.timeout = settings::Period::from_secs(0);
            }),
        ];
        for (key, change) in breaks {
            let mut config = Config::default();
            change(&mut config);
            let mut faults = Faults::default();
            config.validate(&mut faults);
            let text = format!("{faults:?}");
            assert!(text.contains(key), "{key}: {text}");
        }
        let mut faults = Faults::default();
        Config::default().validate(&mut faults);
        assert!(faults.is_empty(), "{faults:?}");
    }

    #[test]
    fn identities_that_no_nf_can_prove_are_not_required() {
        let faults = |change: &dyn Fn(&mut Config)| {
            let mut config = Config::default();
            config.identity.mode = Some(IdentityMode::Required);
            change(&mut config);
            let mut faults = Faults::default();
            config.validate(&mut faults);
            format!("{faults:?}")
        };
        let locked = faults(&|_| {});
        assert!(locked.contains("identity.mode"), "{locked}");
        let without_authorities = faults(&|config| config.tls = Some(sbi::tls::TlsFiles::default()));
        assert!(without_authorities.contains("identity.mode"));
        let mutual = faults(&|config| {
            config.tls = Some(sbi::tls::TlsFiles {
                authorities: Some("ca.pem".into()),
                ..sbi::tls::TlsFiles::default()
            });
        });
        assert!(!mutual.contains("identity.mode"), "{mutual}");
        let asserted = faults(&|config| config.identity.assertions.mode = sbi::oauth::AssertionMode::Check);
        assert!(!asserted.contains("identity.mode"), "{asserted}");
        assert!(
            asserted.contains("identity.assertions.mode"),
            "nothing to check by: {asserted}"
        );
    }
}
