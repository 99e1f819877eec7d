//! Every setting of an SCEF; a file per topic.

mod diameter;
mod exposure;
mod notifications;

pub use diameter::{Diameter, Peer};
pub use exposure::{Limits, Nidd, Triggering};
pub use function::sbi::config::{Outgoing, Overload, Tokens};
pub use notifications::Notifications;

use std::net::SocketAddr;

use function::sbi::Destinations;
use function::sbi::config::Interface;
use sbi::identity::IdentitySettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, Listen, Validate};

/// Settings of an SCEF. Defaults run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Config {
    /// Instance id of this SCEF, a UUID: the audience of access tokens. Empty: made at the first start and kept in the file
    /// `scef-instance-id` of `store.embedded.directory`.
    pub nf_instance_id: String,
    /// Addresses of T8, the interface to SCS/AS.
    pub listen: Listen,
    /// Address of the admin endpoint (`/livez /readyz /metrics /config`).
    #[schemars(extend("format" = "socket-address"))]
    pub admin: SocketAddr,
    /// Worker threads of T8. The first one has all Diameter connections. 0: one per core.
    pub workers: usize,
    /// Cores the workers are pinned to; empty: not pinned.
    pub cores: Vec<usize>,
    /// Root of the URIs that the SCEF hands out (`https://scef.example.org`). Empty: of the first listen address.
    pub api_root: String,
    /// TLS of T8; absent: cleartext.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-reload" = true))]
    pub tls: Option<sbi::tls::TlsFiles>,
    /// TLS of the connections to SCS/AS for notifications; absent: only cleartext SCS/AS.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-reload" = true))]
    pub client_tls: Option<sbi::tls::TlsFiles>,
    /// Limits of the server.
    pub server: sbi::server::ServerConfig,
    /// Connections to SCS/AS and to authorization servers.
    pub client: sbi::client::ClientConfig,
    /// Where subscriptions, configurations, data and notifications are kept. One SCEF at a time uses a store.
    pub store: store::Config,
    /// Largest body of a request.
    #[schemars(extend("x-reload" = true))]
    pub max_body_size: ByteSize,
    /// Destinations that SCS/AS may name for notifications.
    #[schemars(extend("x-reload" = true))]
    pub outgoing: Outgoing,
    /// Admin endpoints of other functions in this process.
    #[serde(skip)]
    #[schemars(skip)]
    pub other_admins: Vec<SocketAddr>,
    /// Diameter: S6t, S6m, T6a, T6b, T4.
    pub diameter: Diameter,
    /// Non-IP data delivery.
    #[schemars(extend("x-reload" = true))]
    pub nidd: Nidd,
    /// Device triggering.
    #[schemars(extend("x-reload" = true))]
    pub triggering: Triggering,
    /// What one SCS/AS may use.
    #[schemars(extend("x-reload" = true))]
    pub limits: Limits,
    /// Notifications to SCS/AS.
    pub notifications: Notifications,
    /// Limits and discards under overload.
    #[schemars(extend("x-reload" = true))]
    pub overload: Overload,
    /// Access tokens of SCS/AS: scope `3gpp-monitoring-event`, `3gpp-nidd` or `3gpp-device-triggering`.
    #[schemars(extend("x-reload" = true))]
    pub tokens: Tokens,
    /// Who may send requests as which SCS/AS: the subject of a token, or the identity of a certificate, is the `scsAsId` of the path.
    #[schemars(extend("x-reload" = true))]
    pub identity: IdentitySettings,
}

impl Default for Config {
    fn default() -> Self {
        let mut store = store::Config::default();
        store.embedded.directory = "run/scef".into();
        Self {
            nf_instance_id: String::new(),
            listen: Listen::local(8090),
            admin: SocketAddr::from(([127, 0, 0, 1], 9090)),
            workers: 0,
            cores: Vec::new(),
            api_root: String::new(),
            tls: None,
            client_tls: None,
            server: sbi::server::ServerConfig::default(),
            client: sbi::client::ClientConfig {
                user_agent: "SCEF".to_owned(),
                ..sbi::client::ClientConfig::default()
            },
            store,
            max_body_size: ByteSize::kib(64),
            outgoing: Outgoing::default(),
            other_admins: Vec::new(),
            diameter: Diameter::default(),
            nidd: Nidd::default(),
            triggering: Triggering::default(),
            limits: Limits::default(),
            notifications: Notifications::default(),
            overload: Overload::default(),
            tokens: Tokens::default(),
            identity: IdentitySettings::default(),
        }
    }
}

impl Config {
    /// Where SCS/AS may make this SCEF send to.
    pub(crate) fn destinations(&self) -> Destinations {
        let admins = std::iter::once(self.admin).chain(self.other_admins.iter().copied());
        Destinations::new(&self.outgoing, self.listen.iter(), &self.api_root, admins)
            .sparing(self.diameter.listen.iter())
    }
}

impl Validate for Config {
    fn validate(&self, faults: &mut Faults) {
        Interface {
            nf_instance_id: &self.nf_instance_id,
            listen: &self.listen,
            usual_port: 8090,
            api_root: &self.api_root,
            tls: self.tls.as_ref(),
            client_tls: self.client_tls.as_ref(),
            max_candidates: None,
            max_body_size: self.max_body_size,
            max_batch_bytes: self.store.max_batch_bytes,
            tokens: &self.tokens,
            identity: &self.identity,
        }
        .validate(faults);
        faults.within("store", &self.store);
        faults.within("diameter", &self.diameter);
        faults.within("nidd", &self.nidd);
        faults.within("triggering", &self.triggering);
        faults.within("limits", &self.limits);
        faults.within("notifications", &self.notifications);
        faults.within("overload", &self.overload);
    }
}

impl function::sbi::config::TokenSettings for Config {
    fn tokens(&self) -> &Tokens {
        &self.tokens
    }
}
