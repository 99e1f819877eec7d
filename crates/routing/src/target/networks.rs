//! Producers of other networks, which are reached through a SEPP (TS 29.500 §6.1.4.3).

use crate::network::ServiceRef;

/// The networks of this SCP, as MCC and MNC of three digits.
#[derive(Clone, Debug, Default)]
pub struct OwnNetworks(Vec<(String, String)>);

impl OwnNetworks {
    /// Reads networks of the form `001-01`; others are left out.
    #[must_use]
    pub fn new(plmns: &[String]) -> Self {
        let split = |plmn: &String| {
            let (mcc, mnc) = plmn.split_once('-')?;
            Some((mcc.to_owned(), padded(mnc)))
        };
        Self(plmns.iter().filter_map(split).collect())
    }

    /// Whether a producer is of another network: by the name in its API root, else by its profile.
    #[must_use]
    pub fn are_others(&self, host: &str, service: Option<&ServiceRef>) -> bool {
        if let Some((mcc, mnc)) = network_of(host) {
            return !self.has(mcc, mnc);
        }
        let view = service.and_then(|service| service.producer.view.as_ref());
        view.is_some_and(|view| {
            let own = |plmn: &model::PlmnId| {
                let text = plmn.to_string();
                let digits: String = text.chars().filter(char::is_ascii_digit).collect();
                digits
                    .split_at_checked(3)
                    .is_some_and(|(mcc, mnc)| self.has(mcc, mnc))
            };
            !view.plmn_list.is_empty() && !view.plmn_list.iter().any(own)
        })
    }

    fn has(&self, mcc: &str, mnc: &str) -> bool {
        let mnc = padded(mnc);
        self.0.iter().any(|own| own.0 == mcc && own.1 == mnc)
    }
}

/// The MNC with three digits, as names have it (TS 23.003 §28.2).
fn padded(mnc: &str) -> String {
    format!("{mnc:0>3}")
}

/// MCC and MNC in a name of the 5G core (`….5gc.mnc070.mcc999.3gppnetwork.org`, TS 23.003 §28.2; the domain of IPX
/// networks likewise).
fn network_of(host: &str) -> Option<(&str, &str)> {
    let name = host.strip_suffix(".3gppnetwork.org")?;
    let name = name.strip_suffix(".ipxuni").unwrap_or(name);
    let (name, mcc) = name.rsplit_once(".mcc")?;
    let mnc = name
        .rsplit_once(".mnc")
        .map_or_else(|| name.strip_prefix("mnc"), |(_, mnc)| Some(mnc))?;
    let digits = |text: &str, lengths: &[usize]| {
        lengths.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
    };
    (digits(mcc, &[3]) && digits(mnc, &[2, 3])).then_some((mcc, mnc))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Producer;
    use std::sync::Arc;

    #[test]
    fn names_and_profiles_say_whose_network_it_is() {
        let own = OwnNetworks::new(&["001-01".into(), "310-410".into()]);
        for (host, other) in [
            ("ausf.5gc.mnc070.mcc999.3gppnetwork.org", true),
            ("ausf.5gc.mnc001.mcc001.3gppnetwork.org", false),
            ("nrf.5gc.mnc410.mcc310.ipxuni.3gppnetwork.org", false),
            ("nrf.5gc.mnc411.mcc310.ipxuni.3gppnetwork.org", true),
            ("mnc070.mcc999.3gppnetwork.org", true),
            ("ausf.example.org", false),
            ("10.0.0.1", false),
        ] {
            assert_eq!(own.are_others(host, None), other, "{host}");
        }
        let of = |mnc: &str| {
            let profile = serde_json::json!({
                "nfInstanceId": "4947a69a-f61b-4bc1-b9da-47c9c5d14b64", "nfType": "UDM", "nfStatus": "REGISTERED",
                "ipv4Addresses": ["10.0.0.1"], "plmnList": [{"mcc": "310", "mnc": mnc}],
                "nfServices": [{"serviceInstanceId": "1", "serviceName": "nudm-sdm", "scheme": "http",
                    "versions": [], "nfServiceStatus": "REGISTERED"}]
            });
            ServiceRef::new(Arc::new(Producer::from_value(&profile).unwrap()), 0)
        };
        assert!(!own.are_others("10.0.0.1", of("410").as_ref()));
        assert!(own.are_others("10.0.0.1", of("41").as_ref()));
    }
}
