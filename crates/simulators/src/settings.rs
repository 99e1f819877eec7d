//! Settings of a simulator.

mod diameter;
mod policy;

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Listen, Period, Validate};

use super::Misbehaviour;
use super::ReportingSettings;
pub use diameter::DiameterSettings;
use loadgen::engine::TlsFiles;
pub use policy::{PolicyCounters, PolicySubscribers};

/// Settings of a simulator.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Settings {
    /// Its role.
    pub role: RoleName,
    /// Listen addresses; port 0 for any that is free.
    pub listen: Listen,
    /// How many ports it takes for each address of `listen` with port 0, to be as many peers.
    pub ports: u16,
    /// Latency of its answers.
    pub latency: Period,
    /// How it misbehaves.
    pub misbehave: Misbehaviour,
    /// Streams a peer may have open per connection.
    pub max_streams: u32,
    /// Seed of everything random.
    pub seed: u64,
    /// The server at the other end, for the role `wire`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "socket-address"))]
    pub upstream: Option<SocketAddr>,
    /// Settings of the role `slf`.
    pub slf: SlfSettings,
    /// Settings of the role `nrf`.
    pub nrf: RemoteNrfSettings,
    /// Settings of the role `producer`.
    pub producer: ProducerSettings,
    /// Settings of the role `nameServer`.
    pub names: NameServerSettings,
    /// Settings of the role `udr`.
    pub udr: PolicySubscribers,
    /// Settings of the role `chf`.
    pub chf: PolicyCounters,
    /// Settings of the roles that speak Diameter.
    pub diameter: DiameterSettings,
    /// TLS of the roles that speak HTTP; absent: cleartext.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsFiles>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            role: RoleName::Consumer,
            listen: Listen::local(0),
            ports: 1,
            latency: Period::from_millis(0),
            misbehave: Misbehaviour::default(),
            max_streams: 4096,
            seed: 1,
            upstream: None,
            slf: SlfSettings::default(),
            nrf: RemoteNrfSettings::default(),
            producer: ProducerSettings::default(),
            names: NameServerSettings::default(),
            udr: PolicySubscribers::default(),
            chf: PolicyCounters::default(),
            diameter: DiameterSettings::default(),
            tls: None,
        }
    }
}

/// Role of a simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RoleName {
    /// Takes notifications: answers 204 to anything that is posted.
    Consumer,
    /// A producer of services: answers 200 with a body.
    Producer,
    /// A subscriber location function: Nudr_GroupIDmap (TS 29.504).
    Slf,
    /// Another NRF: answers discoveries.
    Nrf,
    /// Home subscriber servers (S6a, Diameter).
    Hss,
    /// Policy control functions at their Rx end (Diameter).
    PcfRx,
    /// PCRFs of one pool at their Gx and Rx ends (Diameter).
    Pcrf,
    /// OCSs of one pool at their Gy end (Diameter).
    Ocs,
    /// Home subscriber servers at their S6t and S6m ends (Diameter), for an SCEF.
    ExposureHss,
    /// SMS-SCs at their T4 end (Diameter), for an SCEF.
    SmsSc,
    /// A wire to a server, whose answers come later; it knows no protocol.
    Wire,
    /// A name server for producers (UDP).
    NameServer,
    /// A UDR with policy data: Nudr_DataRepository (TS 29.519).
    Udr,
    /// A CHF with policy counters: Nchf_SpendingLimitControl (TS 29.594).
    Chf,
    /// An AMF that delivers UE policies: Namf_Communication (TS 29.518); takes any notification.
    Amf,
}

impl RoleName {
    /// Whether it speaks Diameter instead of HTTP.
    #[must_use]
    pub fn is_diameter(self) -> bool {
        matches!(
            self,
            Self::Hss | Self::PcfRx | Self::Pcrf | Self::Ocs | Self::ExposureHss | Self::SmsSc
        )
    }
}

/// Which group a subscriber belongs to.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct SlfSettings {
    /// The first range that holds the subscriber, for the type asked for, gives the group; 404 when none does.
    pub groups: Vec<GroupRange>,
}

/// A range of subscribers and their group.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct GroupRange {
    /// The type of function that has the group.
    pub nf_type: String,
    /// First subscriber: the digits of a SUPI.
    pub from: u64,
    /// Last subscriber.
    pub to: u64,
    /// The group.
    pub group: String,
}

/// Answers of another NRF.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct RemoteNrfSettings {
    /// Profiles in each answer.
    pub profiles: u32,
    /// Bytes of each profile.
    pub profile_bytes: u32,
}

impl Default for RemoteNrfSettings {
    fn default() -> Self {
        Self {
            profiles: 6,
            profile_bytes: 3200,
        }
    }
}

/// Answers of a producer.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct ProducerSettings {
    /// Status code.
    pub status: u16,
    /// Bytes of the body.
    pub body_bytes: u32,
    /// Load and overload that producers report.
    pub reporting: ReportingSettings,
    /// Producers with a higher latency.
    pub far: FarSettings,
}

/// Zone of a name server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct NameServerSettings {
    /// The port of all producers.
    pub port: u16,
    /// Producers with SRV records.
    pub alternates: Vec<AlternatesOf>,
    /// Producers whose names lead to the address of another one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<MovedName>,
}

/// A producer whose name leads elsewhere, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct MovedName {
    /// Its name …
    pub of: u32,
    /// … has the address of this one.
    pub to: u32,
}

/// Alternates of a producer, by their numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct AlternatesOf {
    /// For this one.
    pub of: u32,
    /// The alternates, the first choice first.
    pub are: Vec<u32>,
}

/// Producers with a higher latency than the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct FarSettings {
    /// Their latency, instead of `latency`.
    pub latency: Period,
    /// Their numbers: requests at 127.1.x.y are for them.
    pub numbers: Vec<u32>,
}

impl Default for ProducerSettings {
    fn default() -> Self {
        Self {
            status: 200,
            body_bytes: 1000,
            reporting: ReportingSettings::default(),
            far: FarSettings::default(),
        }
    }
}

impl Validate for Settings {
    fn validate(&self, faults: &mut Faults) {
        for (at, range) in self.slf.groups.iter().enumerate() {
            if range.from > range.to {
                faults.at(format!("slf.groups[{at}].to")).say(
                    format!("{} is before `from`", range.to),
                    format!("at least {}", range.from),
                );
            }
        }
        if !(200..=599).contains(&self.producer.status) {
            faults.at("producer.status").say(
                format!("{} is not a final status", self.producer.status),
                "200 to 599",
            );
        }
        if self.role == RoleName::Wire && self.upstream.is_none() {
            faults
                .at("upstream")
                .say("is missing", "the address of the server, such as 127.0.0.1:8010");
        }
        if self.max_streams == 0 {
            faults
                .at("maxStreams")
                .say("is 0, so no request is accepted", "at least 1");
        }
        faults.within("misbehave", &self.misbehave);
        faults.within("diameter", &self.diameter);
    }
}
