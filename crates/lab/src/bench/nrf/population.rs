//! What is registered, and what is asked for.

use serde_json::json;

use loadgen::client::Request;
use simulators::network::{address_of, instance_of};

/// Groups of subscribers, and the UDMs that serve one: what a discovery finds.
const GROUPS: u32 = 8;
const UDMS: u32 = 6;
/// Subscribers of a group that are asked for.
const SUBSCRIBERS: u32 = 16;
/// Functions of other types.
const OTHERS: [(&str, &str, u32); 3] = [
    ("AUSF", "nausf-auth", 32),
    ("PCF", "npcf-smpolicycontrol", 32),
    ("SMF", "nsmf-pdusession", 64),
];

fn supi(group: u32, subscriber: u32) -> String {
    format!("imsi-00101{:010}", group * 1_000_000 + subscriber)
}

/// Registrations of the population.
pub(in crate::bench) fn profiles() -> Vec<Request> {
    let mut all = Vec::new();
    for number in 0..GROUPS * UDMS {
        let group = number / UDMS;
        let info = json!({ "supiRanges": [{
            "start": supi(group, 0).trim_start_matches("imsi-"),
            "end": supi(group, 999_999).trim_start_matches("imsi-")
        }]});
        let services = ["nudm-sdm", "nudm-uecm", "nudm-ueau"];
        all.push(profile(number, "UDM", &services, Some(("udmInfo", info))));
    }
    let mut next = GROUPS * UDMS;
    for (nf_type, service, count) in OTHERS {
        all.extend((next..next + count).map(|number| profile(number, nf_type, &[service], None)));
        next += count;
    }
    all
}

fn profile(
    number: u32,
    nf_type: &str,
    services: &[&str],
    info: Option<(&str, serde_json::Value)>,
) -> Request {
    let (id, address) = (instance_of(number), address_of(number));
    let host = format!(
        "{}{number}.5gc.mnc001.mcc001.3gppnetwork.org",
        nf_type.to_lowercase()
    );
    let services: Vec<_> = services
        .iter()
        .map(|service| {
            json!({
                "serviceInstanceId": format!("{service}-1"), "serviceName": service, "scheme": "http",
                "nfServiceStatus": "REGISTERED",
                "versions": [{"apiVersionInUri": "v2", "apiFullVersion": "2.1.3"}],
                "ipEndPoints": [{"ipv4Address": address, "transport": "TCP", "port": 8080}],
                "priority": 10, "capacity": 100, "supportedFeatures": "3F"
            })
        })
        .collect();
    let mut profile = json!({
        "nfInstanceId": id, "nfType": nf_type, "nfStatus": "REGISTERED", "heartBeatTimer": 3600,
        "plmnList": [{"mcc": "001", "mnc": "01"}],
        "sNssais": [{"sst": 1}, {"sst": 1, "sd": "000001"}, {"sst": 2, "sd": "000002"}],
        "fqdn": host, "ipv4Addresses": [address],
        "priority": 10, "capacity": 100, "locality": "site-1", "nfServices": services
    });
    if let Some((name, info)) = info {
        profile[name] = info;
    }
    Request::new("PUT", format!("/nnrf-nfm/v1/nf-instances/{id}"))
        .with("application/json", profile.to_string())
}

/// Path of all discoveries, and with their queries.
pub(super) const PATH: &str = "/nnrf-disc/v1/nf-instances";

/// Discoveries of the UDMs of subscribers, of all groups in turn.
pub(super) fn queries() -> Vec<String> {
    (0..SUBSCRIBERS)
        .flat_map(|subscriber| {
            (0..GROUPS).map(move |group| {
                format!(
                    "{PATH}?target-nf-type=UDM&requester-nf-type=AMF&service-names=nudm-sdm&supi={}",
                    supi(group, subscriber * 1_000)
                )
            })
        })
        .collect()
}
