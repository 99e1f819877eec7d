//! Discovery among the cached profiles, with the result of an NRF or not at all.

use std::borrow::Cow;

use ::discovery::{Preferences, Query, Whom, params};
use model::{NfProfile, NfServiceStatus};

use routing::network::{Network, NfStatus, Producer, ServiceRef, service_of};
use routing::query::DiscoveryQuery;

/// Returns the service instances of the cached profiles that match a query; none if the query needs data that only an
/// NRF has.
#[must_use]
pub fn local(query: &DiscoveryQuery, network: &Network) -> Vec<ServiceRef> {
    judge(query, network).unwrap_or_default()
}

/// As [`local`]; `None`: only an NRF can answer.
fn judge(query: &DiscoveryQuery, network: &Network) -> Option<Vec<ServiceRef>> {
    let mut pairs = query.pairs();
    let mut cut = |name: &str| {
        let at = pairs.iter().position(|(known, _)| known == name)?;
        Some(pairs.swap_remove(at).1)
    };
    let (supi, gpsi) = (cut("supi"), cut("gpsi"));
    // The NRF refuses an invalid query.
    let query = Query::parse(&pairs).ok()?;
    // An unknown preference excludes no profile: an NRF ignores it as well (TS 29.510 §5.3.2.2.2).
    let narrows = |name: &String| !name.starts_with("preferred-");
    if query.unknown.iter().any(narrows) || query.home_nrf.is_some() {
        return None;
    }
    let target = query.target.as_ref()?.as_str();
    let mut found: Vec<(Vec<u32>, ServiceRef)> = Vec::new();
    let (near, whom) = (query.preferences.nearness(), (supi, gpsi));
    for producer in network.producers().filter(|one| *one.nf_type == *target) {
        let view = producer.view.as_ref()?;
        if (whom.0.is_some() || whom.1.is_some()) && !query.names_groups && params::serves_a_group_only(view)
        {
            // Only a location function knows the group of the subscriber.
            return None;
        }
        if !fits(&query, view, &whom) {
            continue;
        }
        let distances = query.preferences.distances(view, near);
        let services = services_of(&query, producer, view);
        found.extend(services.map(|service| (distances.clone(), service)));
    }
    // As an NRF does: suspended NFs only if no other matches.
    let has_registered = found
        .iter()
        .any(|(_, one)| one.service().status == NfStatus::Registered);
    let wanted = match has_registered {
        true => NfStatus::Registered,
        false => NfStatus::Suspended,
    };
    found.retain(|(_, one)| one.service().status == wanted);
    Some(ranked(&found))
}

/// Preferences of a query; `None` without any, or if the query is invalid.
pub(crate) fn preferences(query: &DiscoveryQuery) -> Option<Preferences> {
    if !query.as_str().contains("preferred-") {
        return None;
    }
    Query::parse(&query.pairs()).ok().map(|query| query.preferences)
}

/// Ranks the candidates by their distance from the preferences: equal distances are equal ranks.
pub(crate) fn ranked(found: &[(Vec<u32>, ServiceRef)]) -> Vec<ServiceRef> {
    let mut ranks: Vec<&Vec<u32>> = found.iter().map(|(distances, _)| distances).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let rank = |distances: &Vec<u32>| ranks.binary_search(&distances).unwrap_or_default();
    let ranked = found
        .iter()
        .map(|(distances, one)| one.preferred(rank(distances)));
    ranked.collect()
}

fn fits(query: &Query, view: &NfProfile, whom: &(Option<Cow<'_, str>>, Option<Cow<'_, str>>)) -> bool {
    let whom = Whom {
        supi: whom.0.as_deref(),
        gpsi: whom.1.as_deref(),
        group: None,
    };
    let matches = match &query.guami {
        Some(guami) => query.matches_with_guami(view, whom, guami, |entry| &entry.guami_list),
        None => query.matches(view, whom),
    };
    matches
        && (view.services().next().is_some() || query.requester.may_use_profile(view))
        // A profile without PLMNs is of the NRF's own networks, which this SCP does not know.
        && (query.target_plmns.is_empty() || !view.plmn_list.is_empty())
}

fn services_of<'a>(
    query: &'a Query,
    producer: &'a std::sync::Arc<Producer>,
    view: &'a NfProfile,
) -> impl Iterator<Item = ServiceRef> + 'a {
    let all = (0..producer.services.len()).filter_map(|at| ServiceRef::new(producer.clone(), at));
    all.filter(move |one| {
        let Some(service) = service_of(view, one.service()) else {
            return false;
        };
        let of_type = query.requester.nf_type.as_ref();
        let operations = of_type.and_then(|own| service.allowed_operations_per_nf_type.get(own.as_str()));
        let serves_slices = query.slices.is_empty()
            || service.snssais.is_empty()
            || service
                .snssais
                .iter()
                .any(|own| query.slices.iter().any(|slice| own.contains(slice)));
        matches!(
            service.nf_service_status,
            NfServiceStatus::Registered | NfServiceStatus::Suspended
        ) && query
            .service
            .admits(&view.nf_instance_id, service, &query.services)
            && query.requester.may_use_service(view, service)
            && operations.is_none_or(|operations| !operations.is_empty())
            && serves_slices
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn profile(number: u8, nf_type: &str, more: &Value) -> Arc<Producer> {
        let mut profile = json!({
            "nfInstanceId": format!("4947a69a-f61b-4bc1-b9da-0000000000{number:02}"), "nfType": nf_type,
            "nfStatus": "REGISTERED", "ipv4Addresses": ["127.0.0.1"], "locality": format!("site{number}"),
            "nfServices": [{"serviceInstanceId": "1", "serviceName": "svc", "scheme": "http",
                "versions": [{"apiVersionInUri": "v1", "apiFullVersion": "1.0.0"}],
                "nfServiceStatus": "REGISTERED", "ipEndPoints": [{"port": number}]}]
        });
        let members = profile.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        let producer = Producer::from_value(&profile).unwrap();
        assert!(producer.view.is_some(), "{profile}");
        Arc::new(producer)
    }

    /// Who is found, by number; `None` when an NRF is to be asked.
    fn found(network: &Network, parameters: &[(&str, &str)]) -> Option<Vec<u8>> {
        let usual = [
            ("target-nf-type", "UDM"),
            ("requester-nf-type", "AMF"),
            ("service-names", "svc"),
        ];
        let usual = usual
            .iter()
            .filter(|(name, _)| !parameters.iter().any(|(known, _)| known == name));
        let query = DiscoveryQuery::new(usual.chain(parameters).map(|(name, value)| (*name, *value)));
        let found = judge(&query, network)?;
        let number = |one: &ServiceRef| one.producer.id[34..].parse().unwrap();
        Some(found.iter().map(number).collect())
    }

    #[test]
    fn parameters_are_judged_as_an_nrf_does() {
        let network = Network::new([
            profile(
                1,
                "UDM",
                &json!({"udmInfo": {"supiRanges": [{"start": "001010000000000",
                "end": "001010000000999"}], "gpsiRanges": [{"pattern": "^msisdn-491.*$"}],
                "routingIndicators": ["12"]}}),
            ),
            profile(
                2,
                "UDM",
                &json!({"udmInfo": {"groupId": "g2", "supiRanges": [{"start": "001010000001000",
                "end": "001010000001999"}]}, "sNssais": [{"sst": 1, "sd": "0000ab"}],
                "plmnList": [{"mcc": "001", "mnc": "01"}]}),
            ),
            profile(3, "UDM", &json!({"allowedPlmns": [{"mcc": "262", "mnc": "01"}]})),
            profile(
                4,
                "SMF",
                &json!({"smfInfo": {"sNssaiSmfInfoList": [{"sNssai": {"sst": 1},
                "dnnSmfInfoList": [{"dnn": "internet"}]}], "taiList": [{"plmnId": {"mcc": "001", "mnc": "01"},
                "tac": "0001"}]}}),
            ),
            profile(
                5,
                "SMF",
                &json!({"smfInfo": {"sNssaiSmfInfoList": [{"sNssai": {"sst": 2},
                "dnnSmfInfoList": [{"dnn": "ims"}]}]}}),
            ),
            profile(
                6,
                "AMF",
                &json!({"amfInfo": {"amfRegionId": "01", "amfSetId": "001", "guamiList":
                [{"plmnId": {"mcc": "001", "mnc": "01"}, "amfId": "010041"}]}}),
            ),
        ]);
        let udm = |parameters: &[(&str, &str)]| found(&network, parameters);
        assert_eq!(udm(&[]), Some(vec![1, 2, 3]));
        assert_eq!(udm(&[("supi", "imsi-001010000000500")]), Some(vec![1, 3]));
        assert_eq!(udm(&[("supi", "imsi-001010000001500")]), Some(vec![2, 3]));
        assert_eq!(udm(&[("gpsi", "msisdn-4917")]), Some(vec![1, 2, 3]));
        assert_eq!(udm(&[("gpsi", "msisdn-4417")]), Some(vec![2, 3]));
        assert_eq!(udm(&[("routing-indicator", "13")]), Some(vec![2, 3]));
        assert_eq!(udm(&[("group-id-list", "g2")]), Some(vec![2]));
        assert_eq!(udm(&[("snssais", r#"[{"sst":2}]"#)]), Some(vec![1, 3]));
        let plmn = |mcc: &str| format!(r#"[{{"mcc":"{mcc}","mnc":"01"}}]"#);
        assert_eq!(udm(&[("requester-plmn-list", &plmn("999"))]), Some(vec![1, 2]));
        assert_eq!(udm(&[("requester-plmn-list", &plmn("262"))]), Some(vec![1, 2, 3]));
        assert_eq!(udm(&[("target-plmn-list", &plmn("001"))]), Some(vec![2]));
        assert_eq!(udm(&[("service-names", "other")]), Some(vec![]));
        let smf = |parameters: &[(&str, &str)]| {
            found(&network, &[&[("target-nf-type", "SMF")], parameters].concat())
        };
        assert_eq!(smf(&[("dnn", "internet")]), Some(vec![4]));
        assert_eq!(
            smf(&[("dnn", "ims"), ("snssais", r#"[{"sst":1}]"#)]),
            Some(vec![])
        );
        let tai = r#"{"plmnId":{"mcc":"001","mnc":"01"},"tac":"0002"}"#;
        assert_eq!(smf(&[("tai", tai)]), Some(vec![5]));
        let amf = |amf: &str| {
            let guami = format!(r#"{{"plmnId":{{"mcc":"001","mnc":"01"}},"amfId":"{amf}"}}"#);
            found(&network, &[("target-nf-type", "AMF"), ("guami", &guami)])
        };
        assert_eq!((amf("010041"), amf("010042")), (Some(vec![6]), Some(vec![])));
    }

    #[test]
    fn what_only_an_nrf_can_judge_is_asked_there() {
        let network = Network::new([
            profile(1, "UDM", &json!({"udmInfo": {"groupId": "g1"}})),
            profile(2, "UDM", &json!({})),
        ]);
        assert_eq!(found(&network, &[]), Some(vec![1, 2]));
        for asked in [
            ("supi", "imsi-001010000000500"),
            ("of-a-later-release", "x"),
            ("hnrf-uri", "http://nrf.example.org"),
            ("snssais", "garbage"),
        ] {
            assert_eq!(found(&network, &[asked]), None, "{asked:?}");
        }
        // The query names the group, so no location function is needed.
        let both = [("supi", "imsi-001010000000500"), ("group-id-list", "g1")];
        assert_eq!(found(&network, &both), Some(vec![1]));
    }

    #[test]
    fn preferences_rank_and_the_suspended_stand_in() {
        let suspended = json!({"nfStatus": "SUSPENDED"});
        let network = Network::new([
            profile(1, "UDM", &json!({})),
            profile(2, "UDM", &json!({})),
            profile(3, "UDM", &suspended),
            profile(4, "PCF", &suspended),
            profile(5, "PCF", &json!({"nfStatus": "UNDISCOVERABLE"})),
        ]);
        let wish = [
            ("target-nf-type", "UDM"),
            ("requester-nf-type", "AMF"),
            ("preferred-locality", "site2"),
        ];
        let ranked = local(&DiscoveryQuery::new(wish), &network);
        let ranks: Vec<u8> = ranked.iter().map(ServiceRef::preference).collect();
        assert_eq!(ranks, [1, 0]);
        assert_eq!(found(&network, &[("target-nf-type", "PCF")]), Some(vec![4]));
    }
}
