//! Every setting of a BSF; a file per topic.

mod audit;
mod notifications;
mod rx;
mod scoring;
mod tolerance;

pub use audit::Audit;
pub use function::sbi::config::{ConsumerRate, Nrf, Outgoing, Overload, OverloadLevel, TokenKey, Tokens};
pub use notifications::Notifications;
pub use rx::{NoBinding, Rx, RxMode, RxPeer, RxTransport};
pub use scoring::{AlarmPoints, Scoring};
pub use tolerance::Tolerance;

use std::net::SocketAddr;

use function::sbi::Destinations;
use function::sbi::config::Interface;
use sbi::identity::IdentitySettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, Listen, Period, Validate};

/// Settings of a BSF. Defaults run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Config {
    /// NF instance id of this BSF, a UUID: under it the BSF registers, and an operator's switches are stored. Empty: made at
    /// the first start and kept in the file `bsf-instance-id` of `store.embedded.directory`, also with a database.
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
    /// Root of the URIs that the BSF hands out (`http://bsf.example.org:8030`). Empty: of the first listen
    /// address.
    pub api_root: String,
    /// TLS of the service-based interface; absent: cleartext.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-reload" = true))]
    pub tls: Option<sbi::tls::TlsFiles>,
    /// TLS of the connections this BSF makes; absent: only cleartext peers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-reload" = true))]
    pub client_tls: Option<sbi::tls::TlsFiles>,
    /// Limits of the server.
    pub server: sbi::server::ServerConfig,
    /// Connections to other functions.
    pub client: sbi::client::ClientConfig,
    /// How names of subscribers, NRFs and key sets are resolved, where `servers`, `notifications.dnsSrv`,
    /// `nrf.dnsSrv` or `rx.peers[].names` are set; otherwise by the system.
    pub dns: sbi::dns::DnsConfig,
    /// Where bindings are kept.
    pub store: store::Config,
    /// Largest body of a request; a patch does not make a binding larger than this either.
    #[schemars(extend("x-reload" = true))]
    pub max_body_size: ByteSize,
    /// Bindings of one address or subscriber that a discovery reads at once; up to 64 times as many of
    /// an address, 8 times as many of a subscriber, where these do not decide.
    #[schemars(extend("x-reload" = true))]
    pub max_candidates: usize,
    /// What counts as absent in bodies.
    #[schemars(extend("x-reload" = true))]
    pub tolerance: Tolerance,
    /// Destinations that requests and registered profiles may name.
    #[schemars(extend("x-reload" = true))]
    pub outgoing: Outgoing,
    /// Admin endpoints of other functions in this process.
    #[serde(skip)]
    #[schemars(skip)]
    pub other_admins: Vec<SocketAddr>,
    /// Notifications of subscribers.
    pub notifications: Notifications,
    /// Limits and discards under overload.
    #[schemars(extend("x-reload" = true))]
    pub overload: Overload,
    /// Diameter Rx.
    pub rx: Rx,
    /// Registration at the NRF.
    pub nrf: Nrf,
    /// How long a binding of a PDU session stays when no PCF writes it and the audit does not confirm it; 0s: for ever. The
    /// audit confirms a binding, at `audit.walk`, when the NRF says something of its PCF: where it does so the lifetime is at
    /// least twice `audit.walk.olderThan`. Removals are bounded as those of the audit are.
    #[schemars(extend("x-reload" = true))]
    pub binding_lifetime: Period,
    /// Removal of bindings whose PCF is gone.
    #[schemars(extend("x-reload" = true))]
    pub audit: Audit,
    /// Access tokens of consumers.
    #[schemars(extend("x-reload" = true))]
    pub tokens: Tokens,
    /// Who may send requests for which NF instances: a binding that names its PCF (`pcfId`) is made by that PCF.
    #[schemars(extend("x-reload" = true))]
    pub identity: IdentitySettings,
    /// The score of this instance.
    #[schemars(extend("x-reload" = true))]
    pub scoring: Scoring,
}

impl Default for Config {
    fn default() -> Self {
        let mut store = store::Config::default();
        store.embedded.directory = "run/bsf".into();
        Self {
            nf_instance_id: String::new(),
            listen: Listen::local(8030),
            admin: SocketAddr::from(([127, 0, 0, 1], 9030)),
            workers: 0,
            cores: Vec::new(),
            api_root: String::new(),
            tls: None,
            client_tls: None,
            server: sbi::server::ServerConfig::default(),
            client: sbi::client::ClientConfig {
                user_agent: "BSF".to_owned(),
                ..sbi::client::ClientConfig::default()
            },
            dns: sbi::dns::DnsConfig::default(),
            store,
            max_body_size: ByteSize::kib(64),
            max_candidates: 256,
            tolerance: Tolerance::default(),
            outgoing: Outgoing::default(),
            other_admins: Vec::new(),
            notifications: Notifications::default(),
            overload: Overload::default(),
            rx: Rx::default(),
            nrf: Nrf::default(),
            binding_lifetime: Period::from_secs(0),
            audit: Audit::default(),
            tokens: Tokens::default(),
            identity: IdentitySettings::default(),
            scoring: Scoring::default(),
        }
    }
}

impl Config {
    /// Where requests and profiles may make this BSF send to.
    #[must_use]
    pub fn destinations(&self) -> Destinations {
        let admins = std::iter::once(self.admin).chain(self.other_admins.iter().copied());
        Destinations::new(&self.outgoing, self.listen.iter(), &self.api_root, admins)
            .sparing(self.rx.listen.iter())
    }
}

impl Validate for Config {
    fn validate(&self, faults: &mut Faults) {
        Interface {
            nf_instance_id: &self.nf_instance_id,
            listen: &self.listen,
            usual_port: 8030,
            api_root: &self.api_root,
            tls: self.tls.as_ref(),
            client_tls: self.client_tls.as_ref(),
            max_candidates: Some(self.max_candidates),
            max_body_size: self.max_body_size,
            max_batch_bytes: self.store.max_batch_bytes,
            tokens: &self.tokens,
            identity: &self.identity,
        }
        .validate(faults);
        faults.within("dns", &self.dns);
        faults.within("store", &self.store);
        faults.within("overload", &self.overload);
        faults.within("rx", &self.rx);
        faults.within("nrf", &self.nrf);
        faults.within("notifications", &self.notifications);
        faults.within("audit", &self.audit);
        faults.within("scoring", &self.scoring);
        let confirms = self.audit.walk.enabled && !self.nrf.api_roots.is_empty();
        let least = self.audit.walk.older_than.duration().saturating_mul(2);
        if confirms && !self.binding_lifetime.is_zero() && self.binding_lifetime.duration() < least {
            faults.at("bindingLifetime").say(
                format!(
                    "is {}, too short for the audit to confirm bindings in time (audit.walk.olderThan)",
                    self.binding_lifetime
                ),
                format!("at least {}", Period(least)),
            );
        }
    }
}

impl function::sbi::config::TokenSettings for Config {
    fn tokens(&self) -> &Tokens {
        &self.tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_leaves_the_audit_time_to_confirm() {
        let faults_of = |lifetime, nrf: Option<&str>| {
            let mut config = Config {
                binding_lifetime: lifetime,
                ..Config::default()
            };
            config.nrf.api_roots = nrf.into_iter().map(str::to_owned).collect();
            let mut faults = Faults::default();
            config.validate(&mut faults);
            faults.into_vec().len()
        };
        let nrf = Some("http://nrf.example.org");
        let (short, long) = (Period::from_secs(86_400), Period::from_secs(2 * 86_400));
        assert_eq!(faults_of(short, nrf), 1);
        assert_eq!(faults_of(short, None), 0);
        assert_eq!(faults_of(long, nrf), 0);
        assert_eq!(faults_of(Period::from_secs(0), nrf), 0);
    }
}
