//! The producers behind an SCP: their profiles, and the choice of the producer that a consumer names.

use std::net::SocketAddr;

use ahash::AHashMap;
use serde_json::{Value, json};

use callmodel::scp::{OfType, ScpModel};
use simulators::network::{address_of, instance_of, name_of};

/// The type that a producer registers as: a location function is a UDR that offers the mapping of groups.
#[must_use]
pub fn registered_as(nf_type: &str) -> &str {
    if nf_type == "SLF" { "UDR" } else { nf_type }
}

/// Addresses of producers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// Each at an address of its own in 127.0.0.0/8, all at this port.
    Own(u16),
    /// In turn at these addresses.
    Shared(Vec<SocketAddr>),
    /// Each at an address of its own in 127.0.0.0/8, at the port of its site.
    Sites(Vec<u16>),
}

impl Addresses {
    /// The address of a producer that is at a site.
    fn of(&self, number: u32, site: u32) -> SocketAddr {
        match self {
            Self::Sites(ports) => {
                let port = ports.get(site as usize).copied().unwrap_or(0);
                (address_of(number), port).into()
            }
            Self::Own(port) => (address_of(number), *port).into(),
            Self::Shared(addresses) => addresses[number as usize % addresses.len()],
        }
    }
}

/// Whether a producer is the last of its set, which fails where some do.
fn is_last(model: &ScpModel, of_type: u32) -> bool {
    of_type % model.set_size + 1 == model.set_size
}

/// The first of the set of a producer beside itself: none of them fails.
fn alternates(model: &ScpModel, number: u32, of_type: u32) -> Vec<u32> {
    let first = number - of_type % model.set_size;
    let of_set = (first..first + model.set_size - 1).filter(|one| *one != number);
    match model.dns_srv {
        Some(dns) if number < dns.records => of_set.collect(),
        _ => Vec::new(),
    }
}

/// A producer in the making.
struct Place<'a> {
    scheme: &'a str,
    number: u32,
    of_type: u32,
    address: SocketAddr,
    /// The region, or the site where a model has several in a region.
    region: u32,
    fails: bool,
}

/// The locality of a site, or of a region that has one.
#[must_use]
pub fn locality_of(region: u32) -> String {
    format!("site-{region}")
}

fn profile(model: &ScpModel, one: &OfType, place: &Place<'_>) -> Value {
    let (address, set) = (place.address, place.of_type / model.set_size);
    let service = |service: &String| {
        json!({
            "serviceInstanceId": service, "serviceName": service, "scheme": place.scheme,
            "nfServiceStatus": "REGISTERED", "priority": if place.fails { 9 } else { 1 },
            "capacity": 100, "load": if model.drill.is_some() { 0 } else { place.of_type % 50 },
            "versions": [{"apiVersionInUri": "v1", "apiFullVersion": "1.0.0"}],
            "ipEndPoints": [{"ipv4Address": address.ip(), "port": address.port()}]
        })
    };
    let services: Vec<Value> = one.services.iter().map(service).collect();
    let in_dns = model.dns_srv.filter(|dns| place.number < dns.records);
    let mut profile = json!({
        "nfInstanceId": instance_of(place.number), "nfType": registered_as(&one.nf_type),
        "nfStatus": "REGISTERED", "heartBeatTimer": 86_400,
        "nfSetIdList": [format!("set{set}.{}set.5gc.mnc001.mcc001", one.nf_type.to_ascii_lowercase())],
        "ipv4Addresses": [address.ip()]
    });
    if model.inter_scp.is_some() || model.sites.is_some() {
        profile["locality"] = locality_of(place.region).into();
    }
    if in_dns.is_some() {
        profile["fqdn"] = name_of(place.number).into();
        // Only DNS names its alternates.
        if place.fails && set.is_multiple_of(2) {
            profile
                .as_object_mut()
                .map(|members| members.remove("nfSetIdList"));
        }
    }
    // A list without members is left out (TS 29.510 §6.1.6.2.2).
    if !services.is_empty() {
        profile["nfServices"] = services.into();
    }
    profile
}

/// A producer.
#[derive(Clone, Debug)]
pub struct Member {
    /// NF instance id.
    pub id: String,
    /// Its type, as the model names it.
    pub nf_type: String,
    /// Whether it is the first of its set.
    pub is_first: bool,
    /// Whether it always fails.
    pub fails: bool,
    /// Numbers of the alternates of its set by the records in DNS, where it has such.
    pub alternates: Vec<u32>,
    /// Its profile.
    pub profile: Value,
}

/// All producers.
#[derive(Debug, Default)]
pub struct Population {
    /// Every one of them.
    pub members: Vec<Member>,
    /// API roots by type.
    roots: AHashMap<String, Roots>,
}

/// API roots of the producers of a type.
#[derive(Debug, Default)]
struct Roots {
    near: Vec<String>,
    failing: Vec<String>,
    far: Vec<String>,
}

/// The kind of producer that a consumer names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    /// A producer of the SCP's own region.
    Near,
    /// A failing one of it, where some fail.
    Failing,
    /// A producer of another region.
    Far,
}

impl Population {
    /// The producers of a model. Healthy ones are at `well`, failing ones at `failing`; if some fail, each set has one,
    /// which no discovery prefers.
    #[must_use]
    pub fn new(model: &ScpModel, scheme: &str, well: &Addresses, failing: Option<&Addresses>) -> Self {
        let mut population = Self::default();
        let regions = model.regions();
        for one in model.population() {
            for of_type in 0..one.count {
                let number = u32::try_from(population.members.len()).unwrap_or(u32::MAX);
                let region = match model.sites {
                    Some(sites) => of_type % sites.count(),
                    None => regions.get(number as usize).copied().unwrap_or(0),
                };
                let failing = failing.filter(|_| is_last(model, of_type) && region == 0);
                let address = failing.unwrap_or(well).of(number, region);
                let place = Place {
                    scheme,
                    number,
                    of_type,
                    address,
                    region,
                    fails: failing.is_some(),
                };
                let profile = profile(model, &one, &place);
                let root = format!("{scheme}://{address}");
                let roots = population.roots.entry(one.nf_type.clone()).or_default();
                match (place.fails, region) {
                    (true, _) => roots.failing.push(root),
                    (false, 0) => roots.near.push(root),
                    (false, _) => roots.far.push(root),
                }
                population.members.push(Member {
                    id: instance_of(number),
                    nf_type: one.nf_type.clone(),
                    is_first: of_type.is_multiple_of(model.set_size),
                    fails: place.fails,
                    alternates: alternates(model, number, of_type),
                    profile,
                });
            }
        }
        population
    }

    /// Numbers of this many producers, spread over all; each the first of a full set, so that the set has an alternate:
    /// the last set of a type may have one member, or one beside a member that fails.
    #[must_use]
    pub fn some(model: &ScpModel, count: u32) -> Vec<u32> {
        let mut number = 0;
        let mut well = Vec::new();
        for one in model.population() {
            for of_type in 0..one.count {
                let is_full = of_type + model.set_size <= one.count;
                if of_type.is_multiple_of(model.set_size) && is_full && !one.services.is_empty() {
                    well.push(number);
                }
                number += 1;
            }
        }
        let step = (well.len() / (count.max(1) as usize)).max(1);
        well.into_iter().step_by(step).take(count as usize).collect()
    }

    /// The producer that a consumer names: one after the other; one of the own region where there is no other.
    #[must_use]
    pub fn target(&self, nf_type: &str, turn: usize, whom: Whom) -> &str {
        let Some(roots) = self.roots.get(nf_type) else {
            return "";
        };
        let list = match whom {
            Whom::Failing if !roots.failing.is_empty() => &roots.failing,
            Whom::Far if !roots.far.is_empty() => &roots.far,
            _ => &roots.near,
        };
        list.get(turn % list.len().max(1)).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_has_its_profiles_and_no_empty_lists() {
        let models = callmodel::names().filter_map(|name| callmodel::find(name).ok()?.model.scp);
        for model in models {
            let population = Population::new(&model, "http", &Addresses::Own(1), Some(&Addresses::Own(2)));
            assert_eq!(population.members.len(), model.profiles as usize);
            for member in &population.members {
                assert_ne!(member.profile["nfServices"], json!([]), "{}", member.nf_type);
            }
        }
    }

    /// Of a set that reports overload at its first member and fails at its last another one is left.
    #[test]
    fn those_that_report_overload_are_members_of_full_sets() {
        for name in ["scp/model-c-1", "scp/model-c-2", "scp/model-d-3"] {
            let model = callmodel::find(name).unwrap().model.scp.unwrap();
            let wanted = model.oci.unwrap().instances;
            let some = Population::some(&model, wanted);
            assert_eq!(some.len(), wanted as usize, "{name}");
            let mut first = 0;
            for one in model.population() {
                let full = one.count / model.set_size * model.set_size;
                let of_type = some.iter().filter(|at| (first..first + one.count).contains(at));
                assert!(
                    of_type.into_iter().all(|at| at - first < full),
                    "{name}: {}",
                    one.nf_type
                );
                first += one.count;
            }
        }
    }

    #[test]
    fn a_share_of_each_type_is_in_other_regions() {
        let model = |name| callmodel::find(name).unwrap().model.scp.unwrap();
        let (c1, c2, d1) = (
            model("scp/model-c-1"),
            model("scp/model-c-2"),
            model("scp/model-d-1"),
        );
        assert!(d1.regions().iter().all(|region| *region == 0) && d1.crossing() == 0.0);
        assert!((c1.crossing() - 0.4).abs() < 1e-9, "{}", c1.crossing());
        assert!((0.05..0.1).contains(&c2.crossing()), "{}", c2.crossing());
        let mut used: Vec<u32> = c1.regions();
        used.sort_unstable();
        used.dedup();
        assert_eq!(used, (0..22).collect::<Vec<_>>(), "every region has a producer");
        for (model, concerned) in [(&c1, &[][..]), (&c2, &["UDM", "AUSF", "UDR"][..])] {
            let population = Population::new(model, "http", &Addresses::Own(1), Some(&Addresses::Own(2)));
            let regions = model.regions();
            assert_eq!(regions.len(), population.members.len());
            for (nf_type, roots) in &population.roots {
                let far = roots.far.len() as f64 / (roots.far.len() + roots.near.len()) as f64;
                let mut of = population.members.iter().filter(|one| one.nf_type == *nf_type);
                let offers = of.any(|one| one.profile["nfServices"].is_array());
                let share = model.inter_scp.as_ref().unwrap().share.fraction();
                match offers && (concerned.is_empty() || concerned.contains(&nf_type.as_str())) {
                    true => assert!((far - share).abs() < 0.2, "{nf_type}: {far}"),
                    false => assert_eq!(roots.far.len(), 0, "{nf_type}"),
                }
            }
            for (member, region) in population.members.iter().zip(regions) {
                assert_eq!(member.profile["locality"], locality_of(region));
                assert!(region == 0 || !member.fails);
            }
        }
    }
}
