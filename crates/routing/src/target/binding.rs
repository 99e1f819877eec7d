//! Producers that a routing binding names, and their order (TS 29.500 §6.12.1, §6.12.2).

use sbi_proto::headers::{BindingLevel, RoutingBinding};

use crate::network::{Network, ServiceRef};
use crate::query::DiscoveryQuery;

/// The order in which a request prefers its candidates; it precedes priority, capacity and load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preference {
    /// The position of the first item that a candidate matches is its rank.
    order: Vec<Preferred>,
}

/// A service instance that a request prefers.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Preferred {
    /// This service instance of an NF instance.
    Service { nf: Option<String>, service: String },
    /// Any of an NF service set.
    ServiceSet(String),
    /// Any of an NF instance, in lower case.
    Instance(String),
}

impl Preferred {
    fn is(&self, one: &ServiceRef) -> bool {
        let is_nf = |nf: &String| **nf == *one.producer.id;
        match self {
            Self::Service { nf, service } => {
                *one.service().instance == **service && nf.as_ref().is_none_or(is_nf)
            }
            Self::ServiceSet(set) => one.service().sets.iter().any(|own| **own == **set),
            Self::Instance(nf) => is_nf(nf),
        }
    }
}

impl Preference {
    /// Returns the preference of a binding: the entity that its level names, then the wider entities
    /// (TS 29.500 §6.12.1), then the backup instances (`backupnf`, `backupamfinst`).
    pub fn of_binding(binding: &RoutingBinding) -> Self {
        let nf = || binding.nf_instance().map(str::to_ascii_lowercase);
        let instance = || nf().map(Preferred::Instance);
        let set = || {
            binding
                .service_set()
                .map(|set| Preferred::ServiceSet(set.to_owned()))
        };
        let service = || {
            let service = binding.service_instance()?.to_owned();
            Some(Preferred::Service { nf: nf(), service })
        };
        let order: Vec<Option<Preferred>> = match binding.level {
            BindingLevel::NfInstance => vec![instance()],
            BindingLevel::ServiceInstance => vec![service(), set(), instance()],
            BindingLevel::ServiceSet => vec![set(), instance()],
            BindingLevel::NfSet => Vec::new(),
        };
        let backups = backups(binding).map(Preferred::Instance);
        Self {
            order: order.into_iter().flatten().chain(backups).collect(),
        }
    }

    /// Returns the preference of a discovery (TS 29.510 table 6.2.3.2.3.1-1).
    pub fn of_query(query: &DiscoveryQuery) -> Option<Self> {
        const NAMES: [&str; 2] = ["preferred-nf-instances", "preferred-target-nf-instance-id"];
        let order: Vec<Preferred> = NAMES
            .iter()
            .filter_map(|name| query.get(name))
            .flat_map(|ids| {
                let ids: Vec<String> = ids.split(',').map(|id| id.trim().to_ascii_lowercase()).collect();
                ids.into_iter().map(Preferred::Instance)
            })
            .collect();
        (!order.is_empty()).then_some(Self { order })
    }

    /// The rank of a candidate, 0 first.
    pub fn place(&self, one: &ServiceRef) -> u8 {
        let place = self.order.iter().position(|preferred| preferred.is(one));
        u8::try_from(place.unwrap_or(self.order.len())).unwrap_or(u8::MAX)
    }

    /// Whether the request names this candidate: then the SCP tries it whatever its locality.
    pub fn names(&self, one: &ServiceRef) -> bool {
        let first = self.order.first();
        first.is_some_and(|first| !matches!(first, Preferred::ServiceSet(_)) && first.is(one))
    }

    /// Describes the first item; `None` without a preference.
    pub fn describe(&self) -> Option<String> {
        self.order.first().map(|first| match first {
            Preferred::Service { service, .. } => format!("service instance {service}"),
            Preferred::ServiceSet(set) => format!("NF service set {set}"),
            Preferred::Instance(nf) => nf.clone(),
        })
    }
}

/// The backup NF instances of a binding.
fn backups(binding: &RoutingBinding) -> impl Iterator<Item = String> + '_ {
    let names = ["backupnf", "backupamfinst"];
    names
        .into_iter()
        .filter_map(|name| binding.get(name))
        .map(str::to_ascii_lowercase)
}

/// Returns the candidates that a binding names for a request to `service`. A callback is not for `service`: it goes to the
/// service that the binding names (`servname`), else to any service of the function.
#[must_use]
pub fn bound(binding: &RoutingBinding, service: &str, callback: bool, network: &Network) -> Vec<ServiceRef> {
    let service = match callback || binding.is_of_callbacks() {
        true => binding.get("servname"),
        false => Some(service),
    };
    let mut found: Vec<ServiceRef> = Vec::new();
    let mut add = |one: &ServiceRef| {
        // Without a service name, one service of each function is enough.
        let same = |known: &ServiceRef| match service {
            Some(_) => known.is(one),
            None => known.producer.id == one.producer.id,
        };
        let fits = service.is_none_or(|service| *one.service().name == *service);
        if fits && !found.iter().any(same) {
            found.push(one.clone());
        }
    };
    let instance = binding.nf_instance().map(str::to_ascii_lowercase);
    let mut named: Vec<ServiceRef> = Vec::new();
    if let Some(instance) = &instance {
        named.extend(network.services_of(instance));
        named.iter().for_each(&mut add);
    }
    if let Some(set) = binding.service_set() {
        network.in_service_set(set).iter().for_each(&mut add);
    }
    if let Some(set) = binding.nf_set() {
        network.all_in_set(set).iter().for_each(&mut add);
    }
    for backup in backups(binding) {
        network.services_of(&backup).for_each(|one| add(&one));
    }
    // An instance without a set in the binding brings in the sets of its profile.
    for one in &named {
        network.alternates(one).iter().for_each(&mut add);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Producer;
    use sbi_proto::headers::SbiHeader as _;
    use serde_json::json;
    use std::sync::Arc;

    fn smf(id: &str, set: &str, port: u16) -> Arc<Producer> {
        let service = |instance: &str, service_set: &str, port: u16| {
            json!({"serviceInstanceId": instance, "serviceName": "nsmf-pdusession", "scheme": "http",
                "nfServiceStatus": "REGISTERED", "versions": [], "ipEndPoints": [{"port": port}],
                "nfServiceSetIdList": [format!("{service_set}-{set}")]})
        };
        let profile = json!({
            "nfInstanceId": id, "nfType": "SMF", "nfStatus": "REGISTERED", "nfSetIdList": [set],
            "ipv4Addresses": ["127.0.0.1"],
            "nfServices": [service("s", "x", port), service("t", "y", port + 100)]
        });
        Arc::new(Producer::from_value(&profile).unwrap())
    }

    /// Candidates of a binding, in the order in which the SCP tries them.
    fn order(text: &str, callback: bool) -> Vec<String> {
        let network = Network::new([smf("b", "s1", 2), smf("a", "s1", 1), smf("c", "s2", 3)]);
        let binding = RoutingBinding::parse(text).unwrap();
        let preference = Preference::of_binding(&binding);
        let mut found = bound(&binding, "nsmf-pdusession", callback, &network);
        found.sort_by_key(|one| (preference.place(one), one.producer.id.clone()));
        let name = |one: &ServiceRef| format!("{}{}", one.producer.id, one.service().instance);
        found.iter().map(name).collect()
    }

    #[test]
    fn a_level_prefers_its_entity_and_falls_back_to_wider_ones() {
        let instance_first = ["bs", "bt", "as", "at"];
        assert_eq!(order("bl=nf-instance; nfinst=B; nfset=s1", false), instance_first);
        assert_eq!(order("bl=nf-instance; nfinst=b", false), instance_first);
        assert_eq!(order("bl=nf-set; nfset=s2", false), ["cs", "ct"]);
        assert_eq!(order("bl=nf-instance; nfinst=z", false), [""; 0]);
        let service = "bl=nfservice-instance; nfservinst=t; nfinst=b; nfset=s1";
        assert_eq!(order(service, false), ["bt", "bs", "as", "at"]);
        let service_set = "bl=nfservice-set; nfserviceset=y-s1; nfset=s1";
        assert_eq!(order(service_set, false), ["at", "bt", "as", "bs"]);
        let backup = "bl=nf-instance; nfinst=z; backupnf=C";
        assert_eq!(order(backup, false), ["cs", "ct"]);
        let backup = "bl=nf-instance; nfinst=b; nfset=s1; backupamfinst=c";
        assert_eq!(order(backup, false), ["bs", "bt", "cs", "ct", "as", "at"]);
    }

    #[test]
    fn a_callback_goes_to_the_service_that_the_binding_names_or_to_any() {
        assert_eq!(order("bl=nf-set; nfset=s1", true), ["as", "bs"]);
        assert_eq!(order("bl=nf-set; nfset=s1; scope=callback", false), ["as", "bs"]);
        let named = "bl=nf-set; nfset=s2; servname=nsmf-pdusession";
        assert_eq!(order(named, true), ["cs", "ct"]);
        assert_eq!(order("bl=nf-set; nfset=s2; servname=other", true), [""; 0]);
    }
}
