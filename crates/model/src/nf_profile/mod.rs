//! Typed views over an NF profile (TS 29.510 §6.1.6.2.2): the members that a registry, a subscription or a
//! proxy must understand, parsed once.
//!
//! A view is *not* the profile: unknown members, and members without an interpretation, are not here. A component
//! that stores or forwards profiles keeps the text.
//!
//! NF-specific information comes twice on the wire, as `xxxInfo` and as a map `xxxInfoList`; the accessors
//! (`udm_infos()` …) run over both.

mod access;
mod analytics;
mod core;
mod identity;
mod routing;
mod session;
pub mod shape;

use std::collections::BTreeMap;

use serde::Deserialize;

pub use self::core::{
    CollocatedNfInstance, DefaultNotificationSubscription, IpEndPoint, NfService, NfServiceVersion,
    VendorSpecificFeature, VendorSpecificFeatures,
};
pub use access::{AmfInfo, GmlcInfo, LmfInfo, PcscfInfo};
pub use analytics::{
    AfEventExposureData, DccfInfo, MfafInfo, MlAnalyticsInfo, NefInfo, NwdafCapability, NwdafInfo, PfdData,
    TrustAfInfo, UntrustedAfInfo,
};
pub use identity::{
    AanfInfo, AusfInfo, BsfInfo, ChfInfo, GroupIdRange, HssInfo, IwmscInfo, MnpfInfo, NssaafInfo,
    PatternRange, PcfInfo, ProSeCapability, SuciInfo, TsctsfInfo, UdmInfo, UdrInfo, UdsfInfo, V2xCapability,
};
pub use routing::{AddressDomain, ScpDomainInfo, ScpInfo, SeppInfo};
pub use session::{
    AtsssCapability, DnnItem, EasdfInfo, EndpointInfo, MbSmfInfo, MbUpfInfo, MbsSession, MbsSessionId,
    NsacfCapability, NsacfInfo, SliceDnnItem, SmfInfo, Ssm, Tmgi, TmgiRange, UpfInfo, dnn_matches,
};

use crate::identity::NfInstanceId;
use crate::names::{NfStatus, NfType, ServiceName};
use crate::pattern::{self, Pattern};
use crate::plmn::{PlmnId, PlmnIdNid};
use crate::slice::{ExtSnssai, PlmnSnssai};

/// A map whose keys only distinguish its entries.
pub type InfoList<T> = BTreeMap<String, T>;

/// Typed view of an NF profile.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", remote = "Self")]
#[allow(missing_docs)] // Member for member TS 29.510 table 6.1.6.2.2-1.
pub struct NfProfile {
    pub nf_instance_id: NfInstanceId,
    pub nf_type: NfType,
    pub nf_status: NfStatus,
    #[serde(default)]
    pub nf_instance_name: Option<String>,
    #[serde(default)]
    pub collocated_nf_instances: Vec<CollocatedNfInstance>,
    #[serde(default)]
    pub heart_beat_timer: Option<u32>,
    #[serde(default)]
    pub plmn_list: Vec<PlmnId>,
    #[serde(default)]
    pub snpn_list: Vec<PlmnIdNid>,
    #[serde(default, rename = "sNssais")]
    pub snssais: Vec<ExtSnssai>,
    #[serde(default)]
    pub per_plmn_snssai_list: Vec<PlmnSnssai>,
    #[serde(default)]
    pub nsi_list: Vec<String>,
    #[serde(default)]
    pub fqdn: Option<String>,
    #[serde(default)]
    pub inter_plmn_fqdn: Option<String>,
    #[serde(default)]
    pub ipv4_addresses: Vec<String>,
    #[serde(default)]
    pub ipv6_addresses: Vec<String>,
    #[serde(flatten)]
    pub allowed: Allowed,
    #[serde(default)]
    pub priority: Option<u16>,
    #[serde(default)]
    pub capacity: Option<u16>,
    #[serde(default)]
    pub load: Option<u8>,
    #[serde(default)]
    pub load_time_stamp: Option<String>,
    #[serde(default)]
    pub locality: Option<String>,
    #[serde(default)]
    pub ext_locality: BTreeMap<crate::names::LocalityType, String>,
    #[serde(default)]
    pub serving_scope: Vec<String>,
    #[serde(default)]
    pub nf_set_id_list: Vec<String>,
    #[serde(default)]
    pub scp_domains: Vec<String>,
    #[serde(default)]
    pub hni_list: Vec<String>,
    #[serde(default)]
    pub recovery_time: Option<String>,
    #[serde(default)]
    pub supported_vendor_specific_features: VendorSpecificFeatures,
    #[serde(default)]
    pub default_notification_subscriptions: Vec<DefaultNotificationSubscription>,
    #[serde(default)]
    pub nf_services: Vec<NfService>,
    #[serde(default)]
    pub nf_service_list: BTreeMap<String, NfService>,

    #[serde(default)]
    pub udr_info: Option<UdrInfo>,
    #[serde(default)]
    pub udr_info_list: InfoList<UdrInfo>,
    #[serde(default)]
    pub udm_info: Option<UdmInfo>,
    #[serde(default)]
    pub udm_info_list: InfoList<UdmInfo>,
    #[serde(default)]
    pub ausf_info: Option<AusfInfo>,
    #[serde(default)]
    pub ausf_info_list: InfoList<AusfInfo>,
    #[serde(default)]
    pub amf_info: Option<AmfInfo>,
    #[serde(default)]
    pub amf_info_list: InfoList<AmfInfo>,
    #[serde(default)]
    pub smf_info: Option<SmfInfo>,
    #[serde(default)]
    pub smf_info_list: InfoList<SmfInfo>,
    #[serde(default)]
    pub upf_info: Option<UpfInfo>,
    #[serde(default)]
    pub upf_info_list: InfoList<UpfInfo>,
    #[serde(default)]
    pub pcf_info: Option<PcfInfo>,
    #[serde(default)]
    pub pcf_info_list: InfoList<PcfInfo>,
    #[serde(default)]
    pub bsf_info: Option<BsfInfo>,
    #[serde(default)]
    pub bsf_info_list: InfoList<BsfInfo>,
    #[serde(default)]
    pub chf_info: Option<ChfInfo>,
    #[serde(default)]
    pub chf_info_list: InfoList<ChfInfo>,
    #[serde(default)]
    pub udsf_info: Option<UdsfInfo>,
    #[serde(default)]
    pub udsf_info_list: InfoList<UdsfInfo>,
    #[serde(default)]
    pub nwdaf_info: Option<NwdafInfo>,
    #[serde(default)]
    pub nwdaf_info_list: InfoList<NwdafInfo>,
    #[serde(default)]
    pub nef_info: Option<NefInfo>,
    #[serde(default)]
    pub pcscf_info_list: InfoList<PcscfInfo>,
    #[serde(default)]
    pub hss_info_list: InfoList<HssInfo>,
    #[serde(default)]
    pub lmf_info: Option<LmfInfo>,
    #[serde(default)]
    pub gmlc_info: Option<GmlcInfo>,
    #[serde(default)]
    pub scp_info: Option<ScpInfo>,
    #[serde(default)]
    pub sepp_info: Option<SeppInfo>,
    #[serde(default)]
    pub aanf_info_list: InfoList<AanfInfo>,
    #[serde(default)]
    pub mfaf_info: Option<MfafInfo>,
    #[serde(default)]
    pub easdf_info_list: InfoList<EasdfInfo>,
    #[serde(default)]
    pub dccf_info: Option<DccfInfo>,
    #[serde(default)]
    pub nsacf_info_list: InfoList<NsacfInfo>,
    #[serde(default)]
    pub mb_smf_info_list: InfoList<MbSmfInfo>,
    #[serde(default)]
    pub tsctsf_info_list: InfoList<TsctsfInfo>,
    #[serde(default)]
    pub mb_upf_info_list: InfoList<MbUpfInfo>,
    #[serde(default)]
    pub trust_af_info: Option<TrustAfInfo>,
    #[serde(default)]
    pub nssaaf_info: Option<NssaafInfo>,
    #[serde(default)]
    pub iwmsc_info: Option<IwmscInfo>,
    #[serde(default)]
    pub mnpf_info: Option<MnpfInfo>,
}

/// Expressions above the budget of a profile ([`pattern::Limits`]) match nothing.
impl<'de> Deserialize<'de> for NfProfile {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The inherent function, which serde derives for `remote`.
        pattern::within(pattern::Limits::default(), || Self::deserialize(deserializer)).0
    }
}

/// Who may discover an NF or a service; empty lists allow everybody (TS 29.510 §6.1.6.2.2, §6.1.6.2.3).
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Allowed {
    /// PLMNs of the requester; empty: the PLMNs of the NRF.
    #[serde(rename = "allowedPlmns")]
    pub plmns: Vec<PlmnId>,
    /// SNPNs of the requester.
    #[serde(rename = "allowedSnpns")]
    pub snpns: Vec<PlmnIdNid>,
    /// Types of the requester.
    #[serde(rename = "allowedNfTypes")]
    pub nf_types: Vec<NfType>,
    /// Domains of the requester's FQDN, as regular expressions.
    #[serde(rename = "allowedNfDomains")]
    pub nf_domains: Vec<Pattern>,
    /// Slices of the requester.
    #[serde(rename = "allowedNssais")]
    pub nssais: Vec<ExtSnssai>,
}

impl Allowed {
    /// Whether every requester is allowed.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.plmns.is_empty()
            && self.snpns.is_empty()
            && self.nf_types.is_empty()
            && self.nf_domains.is_empty()
            && self.nssais.is_empty()
    }

    /// These lists, those of `profile` where one is absent: what a service says prevails over its profile
    /// (TS 29.510 §6.1.6.2.3, note 5).
    #[must_use]
    pub fn prevailing(&self, profile: &Self) -> Self {
        fn first<T: Clone>(own: &[T], other: &[T]) -> Vec<T> {
            if own.is_empty() { other } else { own }.to_vec()
        }
        Self {
            plmns: first(&self.plmns, &profile.plmns),
            snpns: first(&self.snpns, &profile.snpns),
            nf_types: first(&self.nf_types, &profile.nf_types),
            nf_domains: first(&self.nf_domains, &profile.nf_domains),
            nssais: first(&self.nssais, &profile.nssais),
        }
    }
}

macro_rules! both {
    ($($(#[$meta:meta])* $name:ident: $one:ident, $many:ident -> $type:ty;)+) => {
        impl NfProfile {
            $($(#[$meta])*
            pub fn $name(&self) -> impl Iterator<Item = &$type> {
                self.$one.iter().chain(self.$many.values())
            })+
        }
    };
}

both! {
    /// `udrInfo` and `udrInfoList`.
    udr_infos: udr_info, udr_info_list -> UdrInfo;
    /// `udmInfo` and `udmInfoList`.
    udm_infos: udm_info, udm_info_list -> UdmInfo;
    /// `ausfInfo` and `ausfInfoList`.
    ausf_infos: ausf_info, ausf_info_list -> AusfInfo;
    /// `amfInfo` and `amfInfoList`.
    amf_infos: amf_info, amf_info_list -> AmfInfo;
    /// `smfInfo` and `smfInfoList`.
    smf_infos: smf_info, smf_info_list -> SmfInfo;
    /// `upfInfo` and `upfInfoList`.
    upf_infos: upf_info, upf_info_list -> UpfInfo;
    /// `pcfInfo` and `pcfInfoList`.
    pcf_infos: pcf_info, pcf_info_list -> PcfInfo;
    /// `bsfInfo` and `bsfInfoList`.
    bsf_infos: bsf_info, bsf_info_list -> BsfInfo;
    /// `chfInfo` and `chfInfoList`.
    chf_infos: chf_info, chf_info_list -> ChfInfo;
    /// `udsfInfo` and `udsfInfoList`.
    udsf_infos: udsf_info, udsf_info_list -> UdsfInfo;
    /// `nwdafInfo` and `nwdafInfoList`.
    nwdaf_infos: nwdaf_info, nwdaf_info_list -> NwdafInfo;
}

impl NfProfile {
    /// `nfServices`, then `nfServiceList`, each service once: a profile may carry both for older consumers,
    /// and then the map holds the array's instances again (TS 29.510 §6.1.6.2.2 note).
    pub fn services(&self) -> impl Iterator<Item = &NfService> {
        let listed = &self.nf_services;
        listed
            .iter()
            .chain(self.nf_service_list.values().filter(move |service| {
                !listed
                    .iter()
                    .any(|s| s.service_instance_id == service.service_instance_id)
            }))
    }

    /// Whether one of the services has this name.
    #[must_use]
    pub fn has_service(&self, name: &ServiceName) -> bool {
        self.services().any(|service| service.service_name == *name)
    }

    /// Group ids of every NF-specific block.
    pub fn group_ids(&self) -> impl Iterator<Item = &str> {
        self.udm_infos()
            .filter_map(|i| i.group_id.as_deref())
            .chain(self.udr_infos().filter_map(|i| i.group_id.as_deref()))
            .chain(self.ausf_infos().filter_map(|i| i.group_id.as_deref()))
            .chain(self.pcf_infos().filter_map(|i| i.group_id.as_deref()))
            .chain(self.chf_infos().filter_map(|i| i.group_id.as_deref()))
            .chain(self.bsf_infos().filter_map(|i| i.group_id.as_deref()))
            .chain(self.udsf_infos().filter_map(|i| i.group_id.as_deref()))
            .chain(self.hss_info_list.values().filter_map(|i| i.group_id.as_deref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_with_both_forms_of_services_and_infos() {
        let profile: NfProfile = serde_json::from_str(
            r#"{"nfInstanceId":"4947a69a-f61b-4bc1-b9da-47c9c5d14b64","nfType":"UDM","nfStatus":"REGISTERED",
                "allowedNfTypes":["AMF"],"vendorThing":{"a":1},
                "udmInfo":{"groupId":"g1"},"udmInfoList":{"x":{"groupId":"g2","supiRanges":[{"start":"1","end":"5"}]}},
                "nfServices":[{"serviceInstanceId":"a","serviceName":"nudm-sdm","versions":[{"apiVersionInUri":"v2","apiFullVersion":"2.0.0"}],"scheme":"http","nfServiceStatus":"REGISTERED"}],
                "nfServiceList":{"a":{"serviceInstanceId":"a","serviceName":"nudm-sdm","versions":[],"scheme":"http","nfServiceStatus":"REGISTERED"},
                                 "b":{"serviceInstanceId":"b","serviceName":"nudm-ueau","versions":[],"scheme":"http","nfServiceStatus":"REGISTERED","allowedNfTypes":["AUSF"]}}}"#,
        )
        .unwrap();
        assert_eq!(profile.group_ids().collect::<Vec<_>>(), ["g1", "g2"]);
        assert_eq!(
            profile
                .services()
                .map(|s| s.service_instance_id.as_str())
                .collect::<Vec<_>>(),
            ["a", "b"]
        );
        assert_eq!(profile.allowed.nf_types, [NfType::Amf]);
        assert!(profile.nf_service_list["a"].allowed.is_open());
        assert!(profile.has_service(&ServiceName::NudmUeau));
    }

    /// An SCP cannot refuse a profile; expressions above the budget of the profile match nothing.
    #[test]
    fn expressions_above_the_budget_match_nothing() {
        let ranges: Vec<String> = (0..300)
            .map(|n| format!(r#"{{"pattern":"^imsi-{n:03}[0-9]+$"}}"#))
            .collect();
        let text = format!(
            r#"{{"nfInstanceId":"4947a69a-f61b-4bc1-b9da-47c9c5d14b64","nfType":"UDM","nfStatus":"REGISTERED",
                "allowedNfDomains":["^a$"],"udmInfo":{{"supiRanges":[{}]}}}}"#,
            ranges.join(",")
        );
        let profile: NfProfile = serde_json::from_str(&text).unwrap();
        let ranges = &profile.udm_info.as_ref().unwrap().supi_ranges;
        let fits = |n: usize| {
            ranges
                .iter()
                .any(|range| range.contains(&format!("imsi-{n:03}1")))
        };
        assert!(fits(0) && fits(254) && !fits(256) && !fits(299));
        assert_eq!(ranges.len(), 300);
        let again: NfProfile = serde_json::from_str(&text).unwrap();
        assert!(
            again.udm_info.unwrap().supi_ranges[0].contains("imsi-0001"),
            "each profile has a budget"
        );
    }
}
