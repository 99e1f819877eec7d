//! Who may use a service: `allowed…` of producer and service (TS 29.510 §6.1.6.2.2, §6.1.6.2.3).

use ::discovery::Requester;
use model::{NfProfile, NfService};

use super::profile::{Producer, ProducerService};

/// The consumer of a service, as far as its request identifies it.
#[derive(Clone, Debug, Default)]
pub struct Applicant {
    /// Type, instance, networks and slices that the request names.
    pub requester: Requester,
    /// Scopes of resources and operations that its request needs (`3gpp-Sbi-Access-Scope`).
    pub scopes: Vec<String>,
}

/// The service of a profile's view.
pub fn service_of<'a>(view: &'a NfProfile, service: &ProducerService) -> Option<&'a NfService> {
    let mut services = view.services();
    services.find(|one| {
        one.service_instance_id == *service.instance && one.service_name.as_str() == &*service.name
    })
}

/// Whether the profile says who may use the service.
pub fn restricts(view: &NfProfile, service: &ProducerService) -> bool {
    let of_service = |one: &NfService| {
        !one.allowed.is_open()
            || !one.allowed_operations_per_nf_type.is_empty()
            || !one.allowed_operations_per_nf_instance.is_empty()
    };
    !view.allowed.is_open() || service_of(view, service).is_some_and(of_service)
}

impl Producer {
    /// Whether the applicant may use `service`: the lists of the profile and those of the service must both admit
    /// it. An attribute that the request does not name cannot exclude it. The call evaluates `who` only when one of
    /// the lists restricts consumers.
    pub fn admits<'a>(&self, service: &ProducerService, who: impl FnOnce() -> &'a Applicant) -> bool {
        if !service.restricted {
            return true;
        }
        let who = who();
        let Some(view) = &self.view else {
            let nf_type = who.requester.nf_type.as_ref().map(model::NfType::as_str);
            let lets_in = |list: &[std::sync::Arc<str>]| {
                list.is_empty() || nf_type.is_none_or(|own| list.iter().any(|one| **one == *own))
            };
            return lets_in(&self.allowed_nf_types) && lets_in(&service.allowed_nf_types);
        };
        let kept_out = |allowed| who.requester.is_kept_out(allowed, &view.plmn_list);
        !kept_out(&view.allowed)
            && service_of(view, service)
                .is_none_or(|one| !kept_out(&one.allowed) && operations_allow(one, who))
    }
}

/// Whether the operations that the service allows the applicant's instance or type have one that it needs
/// (`allowedOperationsPerNfType`, `allowedOperationsPerNfInstance`). A request that names only the service is
/// admitted if at least one operation is allowed.
fn operations_allow(service: &NfService, who: &Applicant) -> bool {
    let requester = &who.requester;
    let of_type = requester.nf_type.as_ref();
    let of_type = of_type.and_then(|own| service.allowed_operations_per_nf_type.get(own.as_str()));
    let of_instance = requester.instance.as_ref().map(ToString::to_string);
    let of_instance = of_instance.and_then(|own| service.allowed_operations_per_nf_instance.get(&own));
    if of_type.is_none() && of_instance.is_none() {
        return true;
    }
    let mut allowed = of_type.into_iter().chain(of_instance).flatten().peekable();
    if allowed.peek().is_none() {
        return false;
    }
    let allowed: Vec<&String> = allowed.collect();
    let mut needed = who
        .scopes
        .iter()
        .filter(|scope| **scope != service.service_name.as_str())
        .peekable();
    needed.peek().is_none() || needed.any(|scope| allowed.contains(&scope))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn admits(profile: &Value, who: Applicant) -> bool {
        let producer = Producer::from_value(profile).unwrap();
        assert!(producer.view.is_some());
        producer.admits(&producer.services[0], || &who)
    }

    fn udm(of_profile: &Value, of_service: &Value) -> Value {
        let mut service = json!({"serviceInstanceId": "1", "serviceName": "nudm-sdm", "scheme": "http",
            "versions": [], "nfServiceStatus": "REGISTERED"});
        let mut profile = json!({"nfInstanceId": "4947a69a-f61b-4bc1-b9da-47c9c5d14b64", "nfType": "UDM",
            "nfStatus": "REGISTERED", "ipv4Addresses": ["127.0.0.1"],
            "plmnList": [{"mcc": "001", "mnc": "01"}]});
        let extend = |to: &mut Value, by: &Value| {
            to.as_object_mut()
                .unwrap()
                .extend(by.as_object().unwrap().clone());
        };
        extend(&mut service, of_service);
        extend(&mut profile, of_profile);
        profile["nfServices"] = json!([service]);
        profile
    }

    fn who(change: impl FnOnce(&mut Applicant)) -> Applicant {
        let mut who = Applicant::default();
        change(&mut who);
        who
    }

    #[test]
    fn only_named_attributes_restrict_a_consumer() {
        let nothing = json!({});
        let typed = udm(
            &json!({"allowedNfTypes": ["AMF", "SMF"]}),
            &json!({"allowedNfTypes": ["AMF"]}),
        );
        let of_type = |name: &str| who(|who| who.requester.nf_type = Some(name.into()));
        assert!(admits(&typed, of_type("AMF")) && admits(&typed, who(|_| {})));
        assert!(!admits(&typed, of_type("SMF")) && !admits(&typed, of_type("NEF")));

        let roamers = udm(&json!({"allowedPlmns": [{"mcc": "262", "mnc": "01"}]}), &nothing);
        let of_plmn = |mcc: &str| {
            who(|who| {
                who.requester.plmns = serde_json::from_value(json!([{"mcc": mcc, "mnc": "01"}])).unwrap();
            })
        };
        assert!(admits(&roamers, of_plmn("262")), "named");
        assert!(admits(&roamers, of_plmn("001")), "the producer's own");
        assert!(!admits(&roamers, of_plmn("999")) && admits(&roamers, who(|_| {})));

        let sliced = udm(&nothing, &json!({"allowedNssais": [{"sst": 1}]}));
        let of_slice = |sst: u8| {
            who(|who| who.requester.slices = serde_json::from_value(json!([{"sst": sst}])).unwrap())
        };
        assert!(admits(&sliced, of_slice(1)) && !admits(&sliced, of_slice(2)));

        let domains = udm(&json!({"allowedNfDomains": ["^.*\\.operator\\.com$"]}), &nothing);
        let of_domain = |name: &str| who(|who| who.requester.fqdn = Some(name.into()));
        assert!(admits(&domains, of_domain("amf1.operator.com")));
        assert!(!admits(&domains, of_domain("amf1.elsewhere.com")));
    }

    #[test]
    fn operations_of_a_type() {
        let operations = json!({"allowedOperationsPerNfType": {
            "AMF": ["nudm-sdm:am-data:read"], "NEF": []}});
        let profile = udm(&json!({}), &operations);
        let asks = |name: &str, scopes: &[&str]| {
            admits(
                &profile,
                who(|who| {
                    who.requester.nf_type = Some(name.into());
                    who.scopes = scopes.iter().map(ToString::to_string).collect();
                }),
            )
        };
        assert!(asks("AMF", &[]) && asks("AMF", &["nudm-sdm"]));
        assert!(asks("AMF", &["nudm-sdm", "nudm-sdm:am-data:read"]));
        assert!(!asks("AMF", &["nudm-sdm", "nudm-sdm:sm-data:read"]));
        assert!(!asks("NEF", &[]), "may do nothing");
        assert!(asks("SMF", &["nudm-sdm:sm-data:read"]), "no list names the type");
    }
}
