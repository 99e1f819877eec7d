//! Parses the members of an `NFProfile` (TS 29.510 §6.1.6.2.2) that routing needs.
//!
//! The parser skips all other members without an allocation.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use model::NfProfile;
use sbi_proto::headers::{SbiHeader as _, TargetApiRoot};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::path::major;

/// A producer network function.
#[derive(Clone, Debug, PartialEq)]
pub struct Producer {
    /// `nfInstanceId`, lower case.
    pub id: Arc<str>,
    /// `nfType`.
    pub nf_type: Arc<str>,
    /// `nfStatus`.
    pub status: NfStatus,
    /// `locality`.
    pub locality: Option<Arc<str>>,
    /// `fqdn`, lower case.
    pub fqdn: Option<Arc<str>>,
    /// `fqdn`, `ipv4Addresses` and `ipv6Addresses`, in lower case: the hosts that may receive callbacks.
    pub hosts: Vec<Arc<str>>,
    /// `nfSetIdList`.
    pub sets: Vec<Arc<str>>,
    /// `load`, 0 to 100; 0 where the profile has none.
    pub load: u8,
    /// `loadTimeStamp`, when the load was measured, in milliseconds since 1970.
    pub load_measured: Option<i64>,
    /// `allowedNfTypes`; empty: every type.
    pub allowed_nf_types: Vec<Arc<str>>,
    /// `defaultNotificationSubscriptions`.
    pub notifications: Vec<Notification>,
    /// `nfServices` or `nfServiceList`.
    pub services: Vec<ProducerService>,
    /// The full typed view of the profile, for discovery and access control; absent when [`Producer::parse`] read the
    /// profile, or when a member that routing does not need violates the standard's schema.
    pub view: Option<Arc<NfProfile>>,
}

/// Where a function takes a kind of notification without a subscription (TS 29.510 §6.1.6.2.4).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Notification {
    /// `notificationType`.
    #[serde(rename = "notificationType")]
    pub kind: Arc<str>,
    /// `callbackUri`.
    #[serde(rename = "callbackUri")]
    pub uri: Arc<str>,
    /// `n1MessageClass`.
    pub n1_message_class: Option<Arc<str>>,
    /// `n2InformationClass`.
    pub n2_information_class: Option<Arc<str>>,
}

/// A service instance of a producer.
#[derive(Clone, Debug, PartialEq)]
pub struct ProducerService {
    /// `serviceInstanceId`.
    pub instance: Arc<str>,
    /// `serviceName`.
    pub name: Arc<str>,
    /// The numbers in `apiVersionInUri` of its versions (1 of `v1`); `None` of one that has none.
    pub majors: Vec<Option<u32>>,
    /// `nfServiceStatus`; never better than the status of its producer.
    pub status: NfStatus,
    /// `priority`, 0 (first) to 65535; the producer's where the service has none, else 0.
    pub priority: u16,
    /// `capacity`, 0 to 65535; the producer's where the service has none, else 100.
    pub capacity: u16,
    /// `load`, 0 to 100; the producer's where the service has none.
    pub load: u8,
    /// `fqdn` of the service, lower case.
    pub fqdn: Option<Arc<str>>,
    /// `nfServiceSetIdList`.
    pub sets: Vec<Arc<str>>,
    /// `allowedNfTypes` of the service; empty: as the producer says.
    pub allowed_nf_types: Vec<Arc<str>>,
    /// Whether service or producer restrict their consumers; if not, requests skip the access check.
    pub restricted: bool,
    /// Endpoints in the order of the profile; never empty.
    pub endpoints: Vec<Endpoint>,
    /// Other names of the endpoints, by which consumers may know them: the FQDN where the profile has addresses as well.
    pub aliases: Vec<Endpoint>,
}

impl ProducerService {
    /// Whether it offers this major version of its API; a profile without versions may have any (TS 29.501 §4.3.1).
    #[must_use]
    pub fn offers(&self, version: u32) -> bool {
        self.majors.is_empty() || self.majors.contains(&Some(version))
    }
}

/// An address at which a service listens.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// `http` or `https`.
    pub scheme: Scheme,
    /// `host:port`, IPv6 in brackets, lower case.
    pub authority: Arc<str>,
    /// `apiPrefix`, empty or `/…` without a slash at its end.
    pub prefix: Arc<str>,
}

/// The URI scheme of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Cleartext HTTP/2 with prior knowledge.
    #[default]
    Http,
    /// HTTP/2 over TLS.
    Https,
}

/// `NFStatus` (TS 29.510 §6.1.6.3.7), worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum NfStatus {
    /// The NF is discoverable and serves requests.
    #[default]
    Registered,
    /// The NF serves its resources; only consumers of a canary release discover it.
    CanaryRelease,
    /// The NF is registered and not discoverable; it may serve the resources that are bound to it.
    Undiscoverable,
    /// The NF has missed heart-beats, or its status is unknown to this release: used only when no other is available.
    Suspended,
}

/// Why a profile cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("NF profile not usable: {0}")]
pub struct ProfileError(#[from] serde_json::Error);

impl Scheme {
    /// Returns the scheme as a URI writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port where a profile names none (TS 29.510 §6.1.6.2.5).
    #[must_use]
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

impl Endpoint {
    /// The host, IPv6 without brackets.
    pub fn host(&self) -> Option<&str> {
        let (host, _) = self.authority.rsplit_once(':')?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        Some(bare.unwrap_or(host))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme.as_str(), self.authority, self.prefix)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<'de> Deserialize<'de> for NfStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(match text.as_str() {
            "REGISTERED" => Self::Registered,
            "CANARY_RELEASE" => Self::CanaryRelease,
            "UNDISCOVERABLE" => Self::Undiscoverable,
            // SUSPENDED, and values of later releases: an NF in an unknown state gets no new traffic.
            _ => Self::Suspended,
        })
    }
}

impl Producer {
    /// Reads the members of a profile that routing needs, without [`Producer::view`].
    ///
    /// # Errors
    /// When the text is not JSON or a member that is needed has another type than the standard's.
    pub fn parse(profile: &[u8]) -> Result<Self, ProfileError> {
        Ok(serde_json::from_slice::<RawProfile>(profile)?.into_producer(None))
    }

    /// Reads a profile that an NRF delivered, with the view for discovery and access control.
    ///
    /// # Errors
    /// As [`Producer::parse`].
    pub fn learned(profile: &[u8]) -> Result<Self, ProfileError> {
        let view = serde_json::from_slice::<NfProfile>(profile);
        Ok(serde_json::from_slice::<RawProfile>(profile)?.into_producer(view.ok()))
    }

    /// As [`Producer::learned`], from a value.
    ///
    /// # Errors
    /// As [`Producer::parse`].
    pub fn from_value(profile: &Value) -> Result<Self, ProfileError> {
        let view = NfProfile::deserialize(profile);
        Ok(RawProfile::deserialize(profile)?.into_producer(view.ok()))
    }

    /// Whether this profile says that the function has begun to serve: it is new, no longer suspended, or started again
    /// (`recoveryTime`).
    #[must_use]
    pub fn begins_after(&self, before: Option<&Self>) -> bool {
        let recovered = |producer: &Self| producer.view.as_ref().and_then(|view| view.recovery_time.clone());
        self.status == NfStatus::Registered
            && before.is_none_or(|before| {
                before.status == NfStatus::Suspended || recovered(before) != recovered(self)
            })
    }

    /// Whether another profile of this instance says the same but for its load.
    #[must_use]
    pub fn differs_in_load_only(&self, other: &Self) -> bool {
        fn idle(producer: &Producer) -> Producer {
            let mut idle = producer.clone();
            idle.load = 0;
            idle.load_measured = None;
            idle.services.iter_mut().for_each(|service| service.load = 0);
            if let Some(view) = &mut idle.view {
                let view = Arc::make_mut(view);
                (view.load, view.load_time_stamp) = (None, None);
                let services = view.nf_services.iter_mut();
                for service in services.chain(view.nf_service_list.values_mut()) {
                    service.load = None;
                }
            }
            idle
        }
        idle(self) == idle(other)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawProfile {
    nf_instance_id: String,
    nf_type: Arc<str>,
    #[serde(default)]
    nf_status: NfStatus,
    locality: Option<Arc<str>>,
    #[serde(default)]
    nf_set_id_list: Vec<Arc<str>>,
    priority: Option<u16>,
    capacity: Option<u16>,
    load: Option<u8>,
    load_time_stamp: Option<String>,
    fqdn: Option<String>,
    #[serde(default)]
    ipv4_addresses: Vec<String>,
    #[serde(default)]
    ipv6_addresses: Vec<String>,
    #[serde(default)]
    allowed_nf_types: Vec<Arc<str>>,
    #[serde(default)]
    default_notification_subscriptions: Vec<Value>,
    #[serde(default)]
    nf_services: Vec<RawService>,
    #[serde(default)]
    nf_service_list: indexmap::IndexMap<String, RawService>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawService {
    service_instance_id: Arc<str>,
    service_name: Arc<str>,
    #[serde(default)]
    versions: Vec<RawVersion>,
    #[serde(default)]
    scheme: Scheme,
    #[serde(default)]
    nf_service_status: NfStatus,
    fqdn: Option<String>,
    #[serde(default)]
    ip_end_points: Vec<RawEndPoint>,
    api_prefix: Option<String>,
    priority: Option<u16>,
    capacity: Option<u16>,
    load: Option<u8>,
    #[serde(default)]
    nf_service_set_id_list: Vec<Arc<str>>,
    #[serde(default)]
    allowed_nf_types: Vec<Arc<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawVersion {
    api_version_in_uri: Arc<str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawEndPoint {
    ipv4_address: Option<String>,
    ipv6_address: Option<String>,
    port: Option<u16>,
}

impl RawProfile {
    fn into_producer(mut self, view: Option<NfProfile>) -> Producer {
        let mut raw_services = std::mem::take(&mut self.nf_services);
        // A profile may repeat the instances of the array in the map (TS 29.510 §6.1.6.2.2).
        for service in std::mem::take(&mut self.nf_service_list).into_values() {
            let id = &service.service_instance_id;
            if !raw_services.iter().any(|known| known.service_instance_id == *id) {
                raw_services.push(service);
            }
        }
        let mut services: Vec<ProducerService> = raw_services
            .into_iter()
            .filter_map(|service| self.service(service))
            .collect();
        if let Some(view) = &view {
            for service in &mut services {
                service.restricted |= super::admission::restricts(view, service);
            }
        }
        // An entry of an invalid form does not invalidate the others.
        let notifications = std::mem::take(&mut self.default_notification_subscriptions);
        let notifications = notifications
            .into_iter()
            .filter_map(|one| serde_json::from_value(one).ok());
        let addresses = self.ipv4_addresses.iter().chain(&self.ipv6_addresses);
        let hosts = addresses.chain(&self.fqdn).map(|host| canonical(host).into());
        Producer {
            notifications: notifications.collect(),
            hosts: hosts.collect(),
            id: self.nf_instance_id.to_ascii_lowercase().into(),
            nf_type: self.nf_type,
            status: self.nf_status,
            locality: self.locality,
            fqdn: self.fqdn.map(|name| name.to_ascii_lowercase().into()),
            sets: self.nf_set_id_list,
            load: self.load.unwrap_or(0).min(100),
            load_measured: self.load_time_stamp.as_deref().and_then(model::unix_millis),
            allowed_nf_types: self.allowed_nf_types,
            services,
            view: view.map(Arc::new),
        }
    }

    fn service(&self, service: RawService) -> Option<ProducerService> {
        let endpoints = self.endpoints(&service);
        let aliases = self.aliases(&service, &endpoints);
        (!endpoints.is_empty()).then(|| ProducerService {
            instance: service.service_instance_id,
            name: service.service_name,
            majors: service
                .versions
                .iter()
                .map(|version| major(&*version.api_version_in_uri))
                .collect(),
            status: service.nf_service_status.max(self.nf_status),
            priority: service.priority.or(self.priority).unwrap_or(0),
            capacity: service.capacity.or(self.capacity).unwrap_or(100),
            load: service.load.or(self.load).unwrap_or(0).min(100),
            fqdn: service.fqdn.map(|name| name.to_ascii_lowercase().into()),
            sets: service.nf_service_set_id_list,
            restricted: !service.allowed_nf_types.is_empty() || !self.allowed_nf_types.is_empty(),
            allowed_nf_types: service.allowed_nf_types,
            aliases,
            endpoints,
        })
    }

    /// The FQDN of the service, else of the profile, with the ports of the endpoints.
    fn aliases(&self, service: &RawService, endpoints: &[Endpoint]) -> Vec<Endpoint> {
        let Some(fqdn) = service.fqdn.as_deref().or(self.fqdn.as_deref()) else {
            return Vec::new();
        };
        let mut aliases: Vec<Endpoint> = Vec::new();
        for endpoint in endpoints {
            let Some((_, port)) = endpoint.authority.rsplit_once(':') else {
                continue;
            };
            let authority = format!("{}:{port}", fqdn.to_ascii_lowercase());
            let known = endpoints
                .iter()
                .chain(&aliases)
                .any(|one| *one.authority == *authority);
            if !known && is_usable(endpoint.scheme, &authority, &endpoint.prefix) {
                aliases.push(Endpoint {
                    authority: authority.into(),
                    ..endpoint.clone()
                });
            }
        }
        aliases
    }

    /// TS 29.510 §6.1.6.2.3: the service's FQDN or endpoints, where absent those of the profile; an
    /// endpoint may give only a port for the profile's addresses. With TLS the FQDN goes first, because
    /// certificates name it. The parser drops invalid addresses, ports and paths; a service with an invalid prefix has
    /// no endpoints and gets no requests.
    fn endpoints(&self, service: &RawService) -> Vec<Endpoint> {
        let scheme = service.scheme;
        if let Some(root) = service
            .api_prefix
            .as_deref()
            .filter(|prefix| prefix.contains("://"))
        {
            return endpoint_of_root(root).into_iter().collect();
        }
        let prefix: Arc<str> = match service.api_prefix.as_deref().map(|p| p.trim_matches('/')) {
            None | Some("") => "".into(),
            Some(prefix) => format!("/{prefix}").into(),
        };
        let port = |end_point: &RawEndPoint| end_point.port.unwrap_or(scheme.default_port());
        let first_port = service.ip_end_points.first().map_or(scheme.default_port(), port);
        let mut authorities: Vec<String> = Vec::new();
        for end_point in &service.ip_end_points {
            match (&end_point.ipv4_address, &end_point.ipv6_address) {
                (Some(address), _) if address.parse::<Ipv4Addr>().is_ok() => {
                    authorities.push(format!("{address}:{}", port(end_point)));
                }
                (None, Some(address)) if address.parse::<Ipv6Addr>().is_ok() => {
                    authorities.push(format!("[{}]:{}", canonical(address), port(end_point)));
                }
                (Some(_), _) | (None, Some(_)) => {}
                (None, None) => {}
            }
        }
        let fqdn = service
            .fqdn
            .as_deref()
            .or(self.fqdn.as_deref())
            .map(|name| format!("{}:{first_port}", canonical(name)));
        // An endpoint with an invalid address does not fall back to the addresses of the profile.
        let named = |one: &RawEndPoint| one.ipv4_address.is_some() || one.ipv6_address.is_some();
        let has_addresses = service.ip_end_points.iter().any(named);
        if !has_addresses && service.fqdn.is_none() {
            authorities.extend(
                self.ipv4_addresses
                    .iter()
                    .map(|address| format!("{address}:{first_port}")),
            );
            authorities.extend(
                self.ipv6_addresses
                    .iter()
                    .map(|address| format!("[{}]:{first_port}", canonical(address))),
            );
        }
        match fqdn {
            Some(fqdn) if scheme == Scheme::Https || (authorities.is_empty() && !has_addresses) => {
                authorities.insert(0, fqdn);
            }
            _ => {}
        }
        authorities
            .into_iter()
            .filter(|authority| is_usable(scheme, authority, &prefix))
            .map(|authority| Endpoint {
                scheme,
                authority: authority.to_ascii_lowercase().into(),
                prefix: prefix.clone(),
            })
            .collect()
    }
}

/// A host as it is compared: names in lower case and without the dot of the root, IPv6 addresses in one form (RFC 5952; the
/// texts of an address are many).
pub(crate) fn canonical(host: &str) -> String {
    match host.parse::<Ipv6Addr>() {
        Ok(address) => address.to_string(),
        Err(_) => host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase(),
    }
}

/// The endpoint of a whole API root that a profile has in place of a prefix, as some projects write it.
fn endpoint_of_root(root: &str) -> Option<Endpoint> {
    let root = TargetApiRoot::parse(root).ok()?;
    let scheme = match root.origin.scheme() {
        sbi_proto::Scheme::Http => Scheme::Http,
        sbi_proto::Scheme::Https => Scheme::Https,
    };
    let host = canonical(root.origin.host());
    let port = root.origin.port();
    let authority = match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    };
    is_usable(scheme, &authority, &root.prefix).then(|| Endpoint {
        scheme,
        authority: authority.into(),
        prefix: root.prefix.into(),
    })
}

/// Whether this authority and prefix form a valid, unambiguous URI.
fn is_usable(scheme: Scheme, authority: &str, prefix: &str) -> bool {
    let root = TargetApiRoot::parse(&format!("{}://{authority}{prefix}", scheme.as_str()));
    let as_path = || matches!(crate::path::normal(prefix), Ok(None));
    root.is_ok_and(|root| root.prefix == prefix) && (prefix.is_empty() || as_path())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn urls(profile: Value) -> Vec<String> {
        let producer = Producer::from_value(&profile).unwrap();
        producer
            .services
            .iter()
            .flat_map(|s| &s.endpoints)
            .map(ToString::to_string)
            .collect()
    }

    fn with(service: Value) -> Value {
        let mut profile = json!({
            "nfInstanceId": "A0", "nfType": "UDM", "nfStatus": "REGISTERED", "fqdn": "udm.Example.org",
            "ipv4Addresses": ["127.0.0.9"], "priority": 7, "capacity": 50, "load": 40, "nfServices": []
        });
        let mut whole = json!({"serviceInstanceId": "1", "serviceName": "nudm-sdm",
            "versions": [{"apiVersionInUri": "v2", "apiFullVersion": "2.0.0"}], "scheme": "http",
            "nfServiceStatus": "REGISTERED"});
        whole
            .as_object_mut()
            .unwrap()
            .extend(service.as_object().unwrap().clone());
        profile["nfServices"] = json!([whole]);
        profile
    }

    #[test]
    fn endpoints_follow_service_then_profile() {
        assert_eq!(urls(with(json!({}))), ["http://127.0.0.9:80"]);
        assert_eq!(
            urls(with(json!({"ipEndPoints": [{"port": 8080}]}))),
            ["http://127.0.0.9:8080"]
        );
        assert_eq!(
            urls(with(
                json!({"ipEndPoints": [{"ipv4Address": "127.0.0.2", "port": 1}, {"ipv6Address": "::1", "port": 2}],
                    "apiPrefix": "/x/"})
            )),
            ["http://127.0.0.2:1/x", "http://[::1]:2/x"]
        );
        assert_eq!(
            urls(with(json!({"fqdn": "s.example.org"}))),
            ["http://s.example.org:80"]
        );
        assert_eq!(
            urls(with(
                json!({"scheme": "https", "ipEndPoints": [{"ipv4Address": "127.0.0.2", "port": 9}]})
            )),
            ["https://udm.example.org:9", "https://127.0.0.2:9"]
        );
    }

    #[test]
    fn what_makes_no_uri_is_not_used() {
        let none: [Value; 0] = [];
        for service in [
            json!({"ipEndPoints": [{"port": 0}]}),
            json!({"ipEndPoints": [{"ipv4Address": "127.0.0.1/x", "port": 1}]}),
            json!({"ipEndPoints": [{"ipv4Address": "127.0.0.1:9/x", "port": 1}], "fqdn": "a b"}),
            json!({"ipEndPoints": [{"ipv6Address": "::1]:9/[", "port": 1}], "fqdn": ""}),
            json!({"fqdn": "user@s.example.org"}),
            json!({"apiPrefix": "x?y"}),
            json!({"apiPrefix": "x#y"}),
            json!({"apiPrefix": "x\r\ny"}),
            json!({"apiPrefix": "x/../y"}),
            json!({"apiPrefix": "%6e"}),
            json!({"apiPrefix": "x\\y"}),
        ] {
            let mut profile = with(service.clone());
            if service.get("fqdn").is_some() {
                profile["ipv4Addresses"] = json!(none);
            }
            assert_eq!(urls(profile), none, "{service}");
        }
        let mixed = json!({"ipEndPoints": [{"ipv4Address": "127.0.0.2", "port": 0},
            {"ipv4Address": "127.0.0.3", "port": 3}]});
        assert_eq!(urls(with(mixed)), ["http://127.0.0.3:3"]);
    }

    #[test]
    fn services_inherit_and_override() {
        let producer =
            Producer::from_value(&with(json!({"priority": 1, "allowedNfTypes": ["AMF"]}))).unwrap();
        let service = &producer.services[0];
        assert_eq!((service.priority, service.capacity, service.load), (1, 50, 40));
        assert_eq!(&*producer.id, "a0");
        assert!(service.restricted);
    }

    #[test]
    fn a_service_offers_the_versions_of_its_profile() {
        let offers = |versions: serde_json::Value| {
            let producer = Producer::from_value(&with(json!({"versions": versions}))).unwrap();
            [1, 2].map(|version| producer.services[0].offers(version))
        };
        let version = |uri: &str| json!({"apiVersionInUri": uri, "apiFullVersion": "1.0.0"});
        assert_eq!(offers(json!([version("v2")])), [false, true]);
        assert_eq!(offers(json!([version("v1"), version("v2")])), [true, true]);
        assert_eq!(offers(json!([version("2")])), [false, false]);
        assert_eq!(offers(json!([])), [true, true]);
    }

    #[test]
    fn the_worse_status_counts_and_unknown_is_suspended() {
        let mut profile = with(json!({}));
        profile["nfStatus"] = json!("SUSPENDED");
        assert_eq!(
            Producer::from_value(&profile).unwrap().services[0].status,
            NfStatus::Suspended
        );
        let profile = with(json!({"nfServiceStatus": "OF_ANOTHER_RELEASE"}));
        assert_eq!(
            Producer::from_value(&profile).unwrap().services[0].status,
            NfStatus::Suspended
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = (Producer::parse(&bytes), Producer::learned(&bytes));
        }
    }
}
