//! The requester of a discovery, and the profiles that it may find (TS 29.510 §5.3.2.2.2, `allowed…` of profile and service).

use model::nf_profile::Allowed;
use model::{ExtSnssai, NfInstanceId, NfProfile, NfService, NfType, PlmnId, PlmnIdNid, PlmnSnssai};

/// Attributes of the requester in a query.
#[derive(Clone, Debug, Default)]
pub struct Requester {
    /// `requester-nf-type`.
    pub nf_type: Option<NfType>,
    /// `requester-nf-instance-id`.
    pub instance: Option<NfInstanceId>,
    /// `requester-nf-instance-fqdn`.
    pub fqdn: Option<String>,
    /// `requester-plmn-list`.
    pub plmns: Vec<PlmnId>,
    /// `requester-snpn-list`.
    pub snpns: Vec<PlmnIdNid>,
    /// `requester-snssais`.
    pub slices: Vec<ExtSnssai>,
    /// `requester-plmn-specific-snssai-list`.
    pub plmn_slices: Vec<PlmnSnssai>,
}

impl Requester {
    /// Whether these lists admit the requester. An attribute that the query does not name cannot exclude it, except the
    /// type, which is mandatory.
    #[must_use]
    pub fn may_use(&self, allowed: &Allowed) -> bool {
        if allowed.is_open() {
            return true;
        }
        let type_fits = allowed.nf_types.is_empty()
            || self
                .nf_type
                .as_ref()
                .is_some_and(|own| allowed.nf_types.contains(own));
        let domain_fits = allowed.nf_domains.is_empty()
            || self
                .fqdn
                .as_ref()
                .is_none_or(|own| allowed.nf_domains.iter().any(|domain| domain.matches(own)));
        type_fits && self.plmn_may_use(allowed) && domain_fits && self.slice_fits(&allowed.nssais)
    }

    /// Whether the lists of a profile let the requester in. A network of the profile's own is always among those allowed
    /// (TS 29.510 §6.1.6.2.2, `allowedPlmns`).
    #[must_use]
    pub fn may_use_profile(&self, profile: &NfProfile) -> bool {
        self.may_use_in(&profile.allowed, profile)
    }

    /// Whether a service may be used: by its own lists, and by those of its profile where it has none.
    #[must_use]
    pub fn may_use_service(&self, profile: &NfProfile, service: &NfService) -> bool {
        let (of_profile, own) = (&profile.allowed, &service.allowed);
        match (of_profile.is_open(), own.is_open()) {
            (_, true) => self.may_use_in(of_profile, profile),
            (true, false) => self.may_use_in(own, profile),
            (false, false) => self.may_use_in(&own.prevailing(of_profile), profile),
        }
    }

    /// Whether the requester is of another network than an NF of these; one that names no network is at home.
    #[must_use]
    pub fn is_abroad(&self, home: &[PlmnId]) -> bool {
        !self.plmns.is_empty() && !self.plmns.iter().any(|plmn| home.contains(plmn))
    }

    /// As [`Requester::may_use`] where the profile's own networks are allowed in any case. An NF of SNPNs that names no
    /// others lets no others in (TS 29.510 §6.1.6.2.2, `allowedPlmns` and `allowedSnpns`).
    fn may_use_in(&self, allowed: &Allowed, profile: &NfProfile) -> bool {
        let (plmns, snpns) = (&profile.plmn_list, &profile.snpn_list);
        let of_snpn = self.snpns.iter().any(|own| snpns.contains(own));
        if !self.snpns.is_empty() && !of_snpn && !snpns.is_empty() && allowed.snpns.is_empty() {
            return false;
        }
        let of_plmn = self.plmns.iter().any(|own| plmns.contains(own));
        if (allowed.plmns.is_empty() || !of_plmn) && (allowed.snpns.is_empty() || !of_snpn) {
            return self.may_use(allowed);
        }
        let mut allowed = allowed.clone();
        if of_plmn {
            allowed.plmns.clear();
        }
        if of_snpn {
            allowed.snpns.clear();
        }
        self.may_use(&allowed)
    }

    /// Whether an attribute that the requester names excludes it. Absent attributes, the type included, do not: an SCP
    /// uses this for requests that need not carry them. The networks of the producer itself (`own`) are always allowed
    /// (TS 29.510 §6.1.6.2.2, `allowedPlmns`).
    #[must_use]
    pub fn is_kept_out(&self, allowed: &Allowed, own: &[PlmnId]) -> bool {
        if allowed.is_open() {
            return false;
        }
        let is_own = self.plmns.iter().any(|plmn| own.contains(plmn));
        let mut allowed = std::borrow::Cow::Borrowed(allowed);
        if self.nf_type.is_none() && !allowed.nf_types.is_empty() {
            allowed.to_mut().nf_types.clear();
        }
        if is_own && !allowed.plmns.is_empty() {
            allowed.to_mut().plmns.clear();
        }
        !self.may_use(&allowed)
    }

    /// Whether the lists of networks alone let the requester use a service, or a profile without services.
    #[must_use]
    pub fn network_may_use(&self, profile: &NfProfile, service: Option<&NfService>) -> bool {
        let mut allowed = match service {
            Some(service) => service.allowed.prevailing(&profile.allowed),
            None => profile.allowed.clone(),
        };
        if self.plmns.iter().any(|own| profile.plmn_list.contains(own)) {
            allowed.plmns.clear();
        }
        self.plmn_may_use(&allowed)
    }

    /// Whether the lists of networks alone let the requester in.
    fn plmn_may_use(&self, allowed: &Allowed) -> bool {
        let plmn_fits = allowed.plmns.is_empty()
            || self.plmns.is_empty()
            || self.plmns.iter().any(|own| allowed.plmns.contains(own));
        let snpn_fits = allowed.snpns.is_empty()
            || self.snpns.is_empty()
            || self.snpns.iter().any(|own| allowed.snpns.contains(own));
        plmn_fits && snpn_fits
    }

    fn slice_fits(&self, allowed: &[ExtSnssai]) -> bool {
        if allowed.is_empty() {
            return true;
        }
        let mut own = self
            .slices
            .iter()
            .chain(self.plmn_slices.iter().flat_map(|one| &one.snssais))
            .peekable();
        own.peek().is_none() || own.any(|slice| allowed.iter().any(|known| known.overlaps(slice)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(json: &str) -> NfProfile {
        serde_json::from_str(json).unwrap()
    }

    fn requester(nf_type: &str, plmn: &str) -> Requester {
        Requester {
            nf_type: Some(NfType::from(nf_type)),
            plmns: vec![serde_json::from_str(plmn).unwrap()],
            ..Requester::default()
        }
    }

    const HOME: &str = r#"{"mcc":"001","mnc":"01"}"#;
    const OTHER: &str = r#"{"mcc":"001","mnc":"02"}"#;

    #[test]
    fn lists_of_a_service_prevail_over_those_of_its_profile() {
        let profile = profile(
            r#"{"nfInstanceId":"4947a69a-f61b-4bc1-b9da-47c9c5d14b64","nfType":"UDM","nfStatus":"REGISTERED",
                "allowedNfTypes":["SMF"],
                "nfServices":[
                    {"serviceInstanceId":"a","serviceName":"nudm-sdm","scheme":"http","nfServiceStatus":"REGISTERED",
                     "versions":[{"apiVersionInUri":"v2","apiFullVersion":"2.0.0"}],"allowedNfTypes":["AMF"]},
                    {"serviceInstanceId":"b","serviceName":"nudm-uecm","scheme":"http","nfServiceStatus":"REGISTERED",
                     "versions":[{"apiVersionInUri":"v1","apiFullVersion":"1.0.0"}]}]}"#,
        );
        let lets_in = |nf_type: &str| -> Vec<bool> {
            let requester = requester(nf_type, HOME);
            let services = profile.services();
            services
                .map(|one| requester.may_use_service(&profile, one))
                .collect()
        };
        assert_eq!(lets_in("AMF"), [true, false]);
        assert_eq!(lets_in("SMF"), [false, true]);
        assert_eq!(lets_in("AUSF"), [false, false]);
    }

    #[test]
    fn a_network_of_the_profile_itself_is_allowed() {
        let profile = profile(&format!(
            r#"{{"nfInstanceId":"4947a69a-f61b-4bc1-b9da-47c9c5d14b64","nfType":"UDM","nfStatus":"REGISTERED",
                "plmnList":[{HOME}],"allowedPlmns":[{OTHER}]}}"#
        ));
        for (plmn, allowed) in [
            (HOME, true),
            (OTHER, true),
            (r#"{"mcc":"001","mnc":"03"}"#, false),
        ] {
            assert_eq!(
                requester("AMF", plmn).may_use_profile(&profile),
                allowed,
                "{plmn}"
            );
        }
    }

    #[test]
    fn an_nf_of_snpns_lets_in_those_it_names_and_its_own() {
        let snpn = |nid: &str| format!(r#"{{"mcc":"001","mnc":"01","nid":"{nid}"}}"#);
        let of = |nid: &str| Requester {
            nf_type: Some(model::NfType::Smf),
            snpns: vec![serde_json::from_str(&snpn(nid)).unwrap()],
            ..Requester::default()
        };
        let amf = |more: &str| {
            profile(&format!(
                r#"{{"nfInstanceId":"4947a69a-f61b-4bc1-b9da-47c9c5d14b64","nfType":"AMF","nfStatus":"REGISTERED",
                "snpnList":[{}]{more}}}"#,
                snpn("0000000000a")
            ))
        };
        let closed = amf("");
        assert!(of("0000000000a").may_use_profile(&closed));
        assert!(!of("0000000000b").may_use_profile(&closed));
        assert!(
            Requester {
                nf_type: Some(model::NfType::Smf),
                ..Requester::default()
            }
            .may_use_profile(&closed)
        );
        let opened = amf(&format!(r#","allowedSnpns":[{}]"#, snpn("0000000000b")));
        for (nid, expected) in [
            ("0000000000a", true),
            ("0000000000b", true),
            ("0000000000c", false),
        ] {
            assert_eq!(of(nid).may_use_profile(&opened), expected, "{nid}");
        }
    }
}
