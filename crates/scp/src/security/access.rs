//! Access rules.

use percent_encoding::percent_decode_str;
use routing::network::Producer;
use sbi::Fields;
use sbi::headers::names;
use serde::Deserialize;

use crate::config::{AccessRule, slice};

/// The rules, and which properties of requests they test.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    rules: Vec<AccessRule>,
    needs_plmns: bool,
    needs_slices: bool,
}

/// Properties of a request that rules test; nothing where no rule tests any: it moves with each request.
#[derive(Debug, Default)]
pub(crate) struct Asked(Option<Box<Properties>>);

#[derive(Debug, Default)]
struct Properties {
    plmns: Vec<String>,
    slices: Vec<(u8, Option<u32>)>,
}

impl Access {
    pub(crate) fn new(rules: &[AccessRule]) -> Self {
        Self {
            rules: rules.to_vec(),
            needs_plmns: rules.iter().any(|rule| !rule.consumer_plmns.is_empty()),
            needs_slices: rules.iter().any(|rule| !rule.slices.is_empty()),
        }
    }

    /// Whether there are no rules.
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Reads the properties of a received request that rules test.
    pub(crate) fn asked(&self, headers: &Fields) -> Asked {
        if !self.needs_plmns && !self.needs_slices {
            return Asked::default();
        }
        let mut properties = Box::<Properties>::default();
        if self.needs_plmns {
            properties.plmns = plmns(headers);
        }
        if self.needs_slices {
            properties.slices = slices(headers);
        }
        Asked(Some(properties))
    }

    /// Whether a consumer, by its NF type and its names, may use a producer.
    pub(crate) fn allows(
        &self,
        consumer_type: Option<&str>,
        consumer_names: &[&str],
        asked: &Asked,
        producer: Option<&Producer>,
        service: &str,
    ) -> bool {
        let (plmns, slices) = match &asked.0 {
            Some(asked) => (&*asked.plmns, &*asked.slices),
            None => (&[][..], &[][..]),
        };
        let fits = |rule: &&AccessRule| {
            let of = |list: &[String], one: &str| list.iter().any(|known| known.eq_ignore_ascii_case(one));
            let consumer = rule.consumers.is_empty()
                || consumer_type.is_some_and(|nf_type| of(&rule.consumers, nf_type))
                || consumer_names.iter().any(|name| of(&rule.consumers, name));
            let plmn =
                rule.consumer_plmns.is_empty() || plmns.iter().any(|plmn| rule.consumer_plmns.contains(plmn));
            let api = rule.services.is_empty() || of(&rule.services, service);
            let producer = rule.producers.is_empty()
                || producer.is_some_and(|one| {
                    of(&rule.producers, &one.nf_type)
                        || of(&rule.producers, &one.id)
                        || one.sets.iter().any(|set| of(&rule.producers, set))
                });
            let slice = rule.slices.is_empty()
                || rule
                    .slices
                    .iter()
                    .filter_map(|text| slice(text))
                    .any(|(sst, sd)| {
                        // A rule without a differentiator means all of the type.
                        slices
                            .iter()
                            .any(|one| one.0 == sst && (sd.is_none() || one.1 == sd))
                    });
            consumer && plmn && api && producer && slice
        };
        self.rules.iter().find(fits).is_none_or(|rule| !rule.deny)
    }
}

#[derive(Deserialize)]
struct Plmn {
    mcc: String,
    mnc: String,
}

#[derive(Deserialize)]
struct Snssai {
    sst: u8,
    sd: Option<String>,
}

/// The JSON in a discovery header, plain or percent-encoded; a list, or one.
pub(super) fn listed<T: for<'a> Deserialize<'a>>(headers: &Fields, name: &str) -> Vec<T> {
    let Some(value) = headers.get(name).and_then(|value| value.to_str().ok()) else {
        return Vec::new();
    };
    let text = percent_decode_str(value.trim()).decode_utf8_lossy();
    match text.starts_with('[') {
        true => serde_json::from_str(&text).unwrap_or_default(),
        false => serde_json::from_str(&format!("[{text}]")).unwrap_or_default(),
    }
}

/// Networks of the consumer, `MCC-MNC`.
fn plmns(headers: &Fields) -> Vec<String> {
    let named: Vec<Plmn> = listed(headers, "3gpp-sbi-discovery-requester-plmn-list");
    let mut found: Vec<String> = named
        .into_iter()
        .map(|plmn| format!("{}-{}", plmn.mcc, plmn.mnc))
        .collect();
    let origin = headers
        .get(names::ORIGINATING_NETWORK_ID)
        .and_then(|value| value.to_str().ok());
    if let Some(origin) = origin {
        let network = origin.split(';').next().unwrap_or_default().trim();
        // MCC-MNC, perhaps with a network identifier behind.
        found.push(network.splitn(3, '-').take(2).collect::<Vec<_>>().join("-"));
    }
    found
}

fn slices(headers: &Fields) -> Vec<(u8, Option<u32>)> {
    let named: Vec<Snssai> = listed(headers, "3gpp-sbi-discovery-snssais");
    let differentiator = |sd: &String| u32::from_str_radix(sd, 16).ok();
    named
        .iter()
        .map(|one| (one.sst, one.sd.as_ref().and_then(differentiator)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn headers(pairs: &[(&'static str, &'static str)]) -> Fields {
        let mut headers = Fields::new();
        for (name, value) in pairs {
            headers.append_printed(*name, value);
        }
        headers
    }

    fn strings(list: &[&str]) -> Vec<String> {
        list.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_first_rule_that_fits_counts() {
        let udm = Producer::from_value(&json!({
            "nfInstanceId": "A1", "nfType": "UDM", "nfStatus": "REGISTERED", "nfSetIdList": ["set1"]
        }))
        .unwrap();
        let access = Access::new(&[
            AccessRule {
                consumers: strings(&["AMF"]),
                producers: strings(&["UDM"]),
                services: strings(&["nudm-sdm"]),
                ..AccessRule::default()
            },
            AccessRule {
                consumers: strings(&["AMF", "NEF-1"]),
                producers: strings(&["set1"]),
                deny: true,
                ..AccessRule::default()
            },
        ]);
        let asked = access.asked(&Fields::new());
        let allows = |nf_type, names: &[&str], service| {
            access.allows(Some(nf_type), names, &asked, Some(&udm), service)
        };
        assert!(allows("AMF", &[], "nudm-sdm"));
        assert!(!allows("AMF", &[], "nudm-ee"));
        assert!(!allows("NEF", &["nef-1"], "nudm-sdm"));
        assert!(allows("NEF", &["NEF-2"], "nudm-sdm"));
        assert!(access.allows(Some("AMF"), &[], &asked, None, "nudm-ee"));
    }

    #[test]
    fn networks_and_slices() {
        let access = Access::new(&[
            AccessRule {
                consumer_plmns: strings(&["262-01"]),
                deny: true,
                ..AccessRule::default()
            },
            AccessRule {
                slices: strings(&["1-0000ab", "2"]),
                deny: true,
                ..AccessRule::default()
            },
        ]);
        let allows = |pairs: &[(&'static str, &'static str)]| {
            let asked = access.asked(&headers(pairs));
            access.allows(None, &[], &asked, None, "x")
        };
        assert!(allows(&[]));
        assert!(!allows(&[(
            "3gpp-sbi-originating-network-id",
            "262-01; src: SCP-a.b.c"
        )]));
        assert!(allows(&[("3gpp-sbi-originating-network-id", "262-02")]));
        let roamers = "[{\"mcc\":\"001\",\"mnc\":\"01\"},{\"mcc\":\"262\",\"mnc\":\"01\"}]";
        assert!(!allows(&[("3gpp-sbi-discovery-requester-plmn-list", roamers)]));
        let slice = "%5B%7B%22sst%22%3A1%2C%22sd%22%3A%220000AB%22%7D%5D";
        assert!(!allows(&[("3gpp-sbi-discovery-snssais", slice)]));
        assert!(allows(&[(
            "3gpp-sbi-discovery-snssais",
            "{\"sst\":1,\"sd\":\"0000ac\"}"
        )]));
        assert!(!allows(&[(
            "3gpp-sbi-discovery-snssais",
            "[{\"sst\":2,\"sd\":\"000001\"}]"
        )]));
        assert!(allows(&[("3gpp-sbi-discovery-snssais", "garbage")]));
    }
}
