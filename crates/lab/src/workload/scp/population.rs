//! The producers behind an SCP: their profiles, and whom consumers name.

use std::net::SocketAddr;

use ahash::AHashMap;
use serde_json::{Value, json};

use crate::callmodel::scp::ScpModel;

/// The type that a producer registers as: a location function is a UDR that offers the mapping of groups.
#[must_use]
pub fn registered_as(nf_type: &str) -> &str {
    if nf_type == "SLF" { "UDR" } else { nf_type }
}

/// A producer.
#[derive(Clone, Debug)]
pub struct Member {
    /// NF instance id.
    pub id: String,
    /// Its profile.
    pub profile: Value,
}

/// All producers.
#[derive(Debug, Default)]
pub struct Population {
    /// Every one of them.
    pub members: Vec<Member>,
    /// API roots by type: of those that answer, and of those that fail.
    roots: AHashMap<String, (Vec<String>, Vec<String>)>,
}

impl Population {
    /// The producers of a model. Those that answer are at `well`, those that fail at `failing`, in turn; each
    /// set has one that fails, which no discovery prefers.
    #[must_use]
    pub fn new(model: &ScpModel, well: &[SocketAddr], failing: &[SocketAddr]) -> Self {
        let types = model.producers();
        let mut population = Self::default();
        for number in 0..model.profiles {
            let (nf_type, services) = &types[number as usize % types.len().max(1)];
            let of_type = number / u32::try_from(types.len()).unwrap_or(1).max(1);
            let (set, place) = (of_type / model.set_size, of_type % model.set_size);
            let fails = place + 1 == model.set_size && !failing.is_empty();
            let addresses = if fails { failing } else { well };
            let address = addresses[number as usize % addresses.len()];
            let id = format!("00000000-0000-4000-8000-{number:012x}");
            let services: Vec<Value> = services
                .iter()
                .map(|service| {
                    json!({
                        "serviceInstanceId": service, "serviceName": service, "scheme": "http",
                        "nfServiceStatus": "REGISTERED", "priority": if fails { 9 } else { 1 },
                        "capacity": 100, "load": of_type % 50,
                        "versions": [{"apiVersionInUri": "v1", "apiFullVersion": "1.0.0"}],
                        "ipEndPoints": [{"ipv4Address": address.ip(), "port": address.port()}]
                    })
                })
                .collect();
            let profile = json!({
                "nfInstanceId": id, "nfType": registered_as(nf_type),
                "nfStatus": "REGISTERED", "heartBeatTimer": 86_400,
                "nfSetIdList": [format!("set{set}.{}set.5gc.mnc001.mcc001", nf_type.to_ascii_lowercase())],
                "ipv4Addresses": [address.ip()], "nfServices": services
            });
            let root = format!("http://{address}");
            let (answering, broken) = population.roots.entry((*nf_type).to_owned()).or_default();
            match fails {
                false => answering.push(root),
                true => broken.push(root),
            }
            population.members.push(Member { id, profile });
        }
        population
    }

    /// Whom a consumer names: one after the other, of those that answer or of those that fail.
    #[must_use]
    pub fn target(&self, nf_type: &str, turn: usize, fails: bool) -> &str {
        let Some((answering, broken)) = self.roots.get(nf_type) else {
            return "";
        };
        let list = if fails && !broken.is_empty() {
            broken
        } else {
            answering
        };
        list.get(turn % list.len().max(1)).map_or("", String::as_str)
    }
}
