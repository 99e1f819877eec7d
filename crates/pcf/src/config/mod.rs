//! Every setting of a PCF; a file per topic.

mod activity;
mod audit;
mod bsf;
mod diameter;
mod emergency;
mod ldap;
mod notifications;
mod notifier;
mod pds;
mod peer_tokens;
mod policy;
mod queue;
mod sd;
mod state;
mod sy;
mod tolerance;
mod ue_policy;
mod usage;

pub use self::ldap::{Ldap, LdapAttribute, LdapFallback, LdapScope, LdapType};
pub use self::pds::{
    Chf, ChfFallback, CounterService, Pds, PdsCache, Udr, UdrFallback, UnknownUser, ValidateUser,
};
pub use self::policy::{Fallback, Policies};
pub use activity::{ActivityLog, JournalFiles, PolicyEvents};
pub use audit::Audit;
pub use bsf::Bsf;
pub use diameter::{Diameter, DiameterPeer};
pub use emergency::Emergency;
pub use function::sbi::config::{ConsumerRate, Nrf, Outgoing, Overload, OverloadLevel, TokenKey, Tokens};
pub use notifications::Notifications;
pub use notifier::{Notifier, NotifierMethod, NotifierServer};
pub use peer_tokens::PeerTokens;
pub use queue::RequestQueue;
pub use sd::{Sd, SdSessions, Tdf};
pub use state::StateVariables;
pub use sy::{Sy, SySessions};
pub use tolerance::Tolerance;
pub use ue_policy::UePolicy;
pub use usage::{Usage, UsageLevel, UsageLimit, UsagePeriod};

use std::net::SocketAddr;
use std::time::Duration;

use function::sbi::Destinations;
use function::sbi::config::Interface;
use sbi::identity::IdentitySettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, Listen, Validate};

/// Settings of a PCF. Defaults run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Config {
    /// NF instance id of this PCF, a UUID. Empty: made at the first start, and kept beside the store.
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
    /// Root of the URIs that the PCF hands out (`http://pcf.example.org:8040`). Empty: of the first listen
    /// address.
    pub api_root: String,
    /// TLS of the service-based interface; absent: cleartext.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-reload" = true))]
    pub tls: Option<sbi::tls::TlsFiles>,
    /// TLS of the connections this PCF makes; absent: only cleartext peers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-reload" = true))]
    pub client_tls: Option<sbi::tls::TlsFiles>,
    /// Limits of the server.
    pub server: sbi::server::ServerConfig,
    /// Connections to other functions.
    pub client: sbi::client::ClientConfig,
    /// How names of consumers, NRFs and other functions are resolved, where `servers` are set; otherwise by the system.
    pub dns: sbi::dns::DnsConfig,
    /// Where associations are kept.
    pub store: store::Config,
    /// Members of bodies that count as absent.
    #[schemars(extend("x-reload" = true))]
    pub tolerance: Tolerance,
    /// Largest body of a request.
    #[schemars(extend("x-reload" = true))]
    pub max_body_size: ByteSize,
    /// Largest association: its context and its decision with all application sessions that are bound to it. A request that
    /// would make one larger is refused; what is larger already can be reduced and deleted.
    pub max_association_size: ByteSize,
    /// Associations of one address or subscriber that a query reads.
    pub max_candidates: usize,
    /// Policy projects.
    #[schemars(extend("x-reload" = true))]
    pub policy: Policies,
    /// Policy associations that were left behind.
    #[schemars(extend("x-reload" = true))]
    pub audit: Audit,
    /// Diameter: PCEFs over Gx, AFs over Rx.
    pub diameter: Diameter,
    /// QoS and charging of the media that AFs ask for, over N5 and Rx.
    #[schemars(extend("x-reload" = true))]
    pub media: pcc::Mapping,
    /// Policies of background data transfers.
    #[schemars(extend("x-reload" = true))]
    pub bdt: pcc::bdt::Model,
    /// Emergency sessions.
    #[schemars(extend("x-reload" = true))]
    pub emergency: Emergency,
    /// Data of subscribers.
    pub pds: Pds,
    /// Application detection at TDFs.
    #[schemars(extend("x-reload" = true))]
    pub sd: Sd,
    /// Quotas of subscribers.
    #[schemars(extend("x-reload" = true))]
    pub usage: Usage,
    /// State variables that all associations of a subscriber share.
    #[schemars(extend("x-reload" = true))]
    pub subscriber_state: StateVariables,
    /// Delivery of UE policies to UEs.
    #[schemars(extend("x-reload" = true))]
    pub ue_policy: UePolicy,
    /// Destinations that requests and registered profiles may name.
    #[schemars(extend("x-reload" = true))]
    pub outgoing: Outgoing,
    /// Admin endpoints of other functions in this process.
    #[serde(skip)]
    #[schemars(skip)]
    pub other_admins: Vec<SocketAddr>,
    /// Notifications of consumers.
    pub notifications: Notifications,
    /// Servers of the operator that policy projects notify.
    pub notifier: Notifier,
    /// Whether a session that is established again replaces the one before, which still lives: one of the same SUPI and
    /// `pduSessionId` (N7), of the same Session-Id (Gx), or of the same address, domain, DNN and slice. Its binding and its AF sessions
    /// end.
    #[schemars(extend("x-reload" = true))]
    pub collision_detection: bool,
    /// The activity of chosen subscribers, for troubleshooting.
    pub activity_log: ActivityLog,
    /// Records of policy events.
    pub policy_events: PolicyEvents,
    /// Limits and discards under overload.
    #[schemars(extend("x-reload" = true))]
    pub overload: Overload,
    /// Requests that a worker works on at once.
    #[schemars(extend("x-reload" = true))]
    pub request_queue: RequestQueue,
    /// Registration at the NRF.
    pub nrf: Nrf,
    /// Bindings of sessions at the BSF.
    #[schemars(extend("x-reload" = true))]
    pub bsf: Bsf,
    /// Access tokens towards other functions, which the NRFs of `nrf.apiRoots` grant.
    pub peer_tokens: PeerTokens,
    /// Access tokens of consumers.
    #[schemars(extend("x-reload" = true))]
    pub tokens: Tokens,
    /// Which NF instances may send requests.
    #[schemars(extend("x-reload" = true))]
    pub identity: IdentitySettings,
}

impl Default for Config {
    fn default() -> Self {
        let mut store = store::Config::default();
        store.embedded.directory = "run/pcf".into();
        Self {
            nf_instance_id: String::new(),
            listen: Listen::local(8040),
            admin: SocketAddr::from(([127, 0, 0, 1], 9040)),
            workers: 0,
            cores: Vec::new(),
            api_root: String::new(),
            tls: None,
            client_tls: None,
            server: sbi::server::ServerConfig::default(),
            client: sbi::client::ClientConfig {
                user_agent: "PCF".to_owned(),
                ..sbi::client::ClientConfig::default()
            },
            dns: sbi::dns::DnsConfig::default(),
            store,
            tolerance: Tolerance::default(),
            max_body_size: ByteSize::kib(64),
            max_association_size: ByteSize::kib(256),
            max_candidates: 256,
            policy: Policies::default(),
            audit: Audit::default(),
            diameter: Diameter::default(),
            media: pcc::Mapping::default(),
            bdt: pcc::bdt::Model::default(),
            emergency: Emergency::default(),
            pds: Pds::default(),
            sd: Sd::default(),
            usage: Usage::default(),
            subscriber_state: StateVariables::default(),
            ue_policy: UePolicy::default(),
            outgoing: Outgoing::default(),
            other_admins: Vec::new(),
            notifications: Notifications::default(),
            notifier: Notifier::default(),
            collision_detection: false,
            activity_log: ActivityLog::default(),
            policy_events: PolicyEvents::default(),
            overload: Overload::default(),
            request_queue: RequestQueue::default(),
            nrf: Nrf::default(),
            bsf: Bsf::default(),
            peer_tokens: PeerTokens::default(),
            tokens: Tokens::default(),
            identity: IdentitySettings::default(),
        }
    }
}

impl Config {
    /// Where requests and profiles may make this PCF send to.
    #[must_use]
    pub fn destinations(&self) -> Destinations {
        let admins = std::iter::once(self.admin).chain(self.other_admins.iter().copied());
        Destinations::new(&self.outgoing, self.listen.iter(), &self.api_root, admins)
            .sparing(self.diameter.listen.iter())
    }
}

impl Config {
    /// How long the attempts take to remove the subscriptions and the binding of an association that has ended.
    pub(crate) fn end_attempts(&self) -> Duration {
        let attempts = self.bsf.attempts.clamp(1, 10);
        let pauses = self
            .bsf
            .retry_pause
            .duration()
            .saturating_mul(1 << (attempts - 1));
        let all = self.bsf.timeout.duration().saturating_mul(attempts);
        let all = all.saturating_add(pauses).max(self.pds.deadline.duration());
        all.saturating_add(Duration::from_secs(1))
    }

    /// Whether a sender can prove which NF instance it is: by a certificate, an access token or an assertion.
    pub(crate) fn proves_senders(&self) -> bool {
        let authorities = self.tls.as_ref().and_then(|tls| tls.authorities.as_deref());
        self.tokens.required || self.identity.is_provable(authorities)
    }
}

impl Validate for Config {
    fn validate(&self, faults: &mut Faults) {
        Interface {
            nf_instance_id: &self.nf_instance_id,
            listen: &self.listen,
            usual_port: 8040,
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
        if self.max_association_size < self.max_body_size {
            faults.at("maxAssociationSize").say(
                format!(
                    "{} is less than maxBodySize ({})",
                    self.max_association_size, self.max_body_size
                ),
                "at least maxBodySize, such as 256KiB",
            );
        }
        faults.within("dns", &self.dns);
        faults.within("store", &self.store);
        faults.within("policy", &self.policy);
        faults.within("diameter", &self.diameter);
        faults.within("audit", &self.audit);
        for (name, value) in [
            ("sessions", self.media.sessions),
            ("components", self.media.components),
            ("flows", self.media.flows),
        ] {
            if value == 0 {
                faults.at(format!("media.{name}")).say("is 0", "at least 1");
            }
        }
        faults.within("bdt", &self.bdt);
        faults.within("emergency", &self.emergency);
        faults.within("pds", &self.pds);
        self.pds.validate_with(&self.nrf.api_roots, faults);
        faults.within("usage", &self.usage);
        faults.within("subscriberState", &self.subscriber_state);
        faults.within("sd", &self.sd);
        if self.sd.enabled && !self.diameter.enabled {
            faults
                .at("sd.enabled")
                .say("needs Diameter, which is disabled", "`diameter.enabled: true`");
        }
        if self.pds.sy.enabled && !self.diameter.enabled {
            faults
                .at("pds.sy.enabled")
                .say("needs Diameter, which is disabled", "`diameter.enabled: true`");
        }
        faults.within("uePolicy", &self.ue_policy);
        faults.within("activityLog", &self.activity_log);
        faults.within("policyEvents", &self.policy_events);
        faults.within("overload", &self.overload);
        faults.within("requestQueue", &self.request_queue);
        faults.within("nrf", &self.nrf);
        faults.within("bsf", &self.bsf);
        faults.within("notifications", &self.notifications);
        faults.within("notifier", &self.notifier);
    }
}

impl function::sbi::config::TokenSettings for Config {
    fn tokens(&self) -> &Tokens {
        &self.tokens
    }
}
