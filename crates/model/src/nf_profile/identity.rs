//! Blocks of NFs that are chosen by who the subscriber is: UDM, UDR, AUSF, PCF, CHF, BSF, HSS …

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde::Deserialize;

use super::InfoList;
use super::session::SliceDnnItem;
use crate::address::{Ipv4Range, Ipv6Prefix, Ipv6PrefixRange};
use crate::area::TaiRange;
use crate::identity::{IdentityRange, NfInstanceId};
use crate::names::DataSetId;
use crate::pattern::Pattern;
use crate::plmn::{PlmnId, PlmnRange};

macro_rules! block {
    ($(#[$meta:meta])* $name:ident { $($(#[$fmeta:meta])* $field:ident: $type:ty),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        #[allow(missing_docs)] // Member for member the table named above.
        pub struct $name { $($(#[$fmeta])* pub $field: $type,)* }
    };
}
pub(super) use block;

block! {
    /// TS 29.510 §6.1.6.2.6.
    UdrInfo {
        group_id: Option<String>,
        supi_ranges: Vec<IdentityRange>,
        gpsi_ranges: Vec<IdentityRange>,
        external_group_identifiers_ranges: Vec<IdentityRange>,
        supported_data_sets: Vec<DataSetId>,
        shared_data_id_ranges: Vec<PatternRange>,
    }
}

/// A range that only a pattern describes (TS 29.510 §6.1.6.2.93).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PatternRange {
    /// The expression.
    pub pattern: Option<Pattern>,
}

/// Internal group identities, by start and end or by pattern (TS 29.510 §6.1.6.2.57).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GroupIdRange {
    /// First identity.
    pub start: Option<String>,
    /// Last identity.
    pub end: Option<String>,
    /// Or an expression.
    pub pattern: Option<Pattern>,
}

impl GroupIdRange {
    /// Whether the group lies in the range; start and end compare as text, as they have one form.
    #[must_use]
    pub fn contains(&self, group: &str) -> bool {
        match (&self.start, &self.end, &self.pattern) {
            (Some(start), Some(end), _) => start.as_str() <= group && group <= end.as_str(),
            (_, _, Some(pattern)) => pattern.matches(group),
            _ => false,
        }
    }
}

block! {
    /// TS 29.510 §6.1.6.2.7.
    UdmInfo {
        group_id: Option<String>,
        supi_ranges: Vec<IdentityRange>,
        gpsi_ranges: Vec<IdentityRange>,
        external_group_identifiers_ranges: Vec<IdentityRange>,
        routing_indicators: Vec<String>,
        internal_group_identifiers_ranges: Vec<GroupIdRange>,
        suci_infos: Vec<SuciInfo>,
    }
}

block! {
    /// TS 29.510 §6.1.6.2.71.
    SuciInfo {
        routing_inds: Vec<String>,
        #[serde(rename = "hNwPubKeyIds")]
        home_network_public_key_ids: Vec<i64>,
    }
}

block! {
    /// TS 29.510 §6.1.6.2.8.
    AusfInfo {
        group_id: Option<String>,
        supi_ranges: Vec<IdentityRange>,
        routing_indicators: Vec<String>,
        suci_infos: Vec<SuciInfo>,
    }
}

block! {
    /// TS 29.510 §6.1.6.2.20.
    PcfInfo {
        group_id: Option<String>,
        dnn_list: Vec<String>,
        supi_ranges: Vec<IdentityRange>,
        gpsi_ranges: Vec<IdentityRange>,
        rx_diam_host: Option<String>,
        rx_diam_realm: Option<String>,
        v2x_support_ind: bool,
        prose_support_ind: bool,
        prose_capability: Option<ProSeCapability>,
        v2x_capability: Option<V2xCapability>,
    }
}

block! {
    /// TS 29.510 §6.1.6.2.111.
    #[derive(Copy, Eq)]
    ProSeCapability {
        // The standard's own spelling.
        #[serde(rename = "proseDirectDiscovey")]
        prose_direct_discovery: bool,
        prose_direct_communication: bool,
        #[serde(rename = "proseL2UetoNetworkRelay")]
        prose_l2_ue_to_network_relay: bool,
        #[serde(rename = "proseL3UetoNetworkRelay")]
        prose_l3_ue_to_network_relay: bool,
        prose_l2_remote_ue: bool,
        prose_l3_remote_ue: bool,
    }
}

impl ProSeCapability {
    /// Whether every capability asked for is there.
    #[must_use]
    pub fn covers(&self, asked: &Self) -> bool {
        (self.prose_direct_discovery || !asked.prose_direct_discovery)
            && (self.prose_direct_communication || !asked.prose_direct_communication)
            && (self.prose_l2_ue_to_network_relay || !asked.prose_l2_ue_to_network_relay)
            && (self.prose_l3_ue_to_network_relay || !asked.prose_l3_ue_to_network_relay)
            && (self.prose_l2_remote_ue || !asked.prose_l2_remote_ue)
            && (self.prose_l3_remote_ue || !asked.prose_l3_remote_ue)
    }
}

block! {
    /// TS 29.510 §6.1.6.2.108.
    #[derive(Copy, Eq)]
    V2xCapability {
        lte_v2x: bool,
        nr_v2x: bool,
    }
}

impl V2xCapability {
    /// Whether every capability asked for is there.
    #[must_use]
    pub fn covers(&self, asked: &Self) -> bool {
        (self.lte_v2x || !asked.lte_v2x) && (self.nr_v2x || !asked.nr_v2x)
    }
}

block! {
    /// TS 29.510 §6.1.6.2.21.
    BsfInfo {
        dnn_list: Vec<String>,
        ip_domain_list: Vec<String>,
        ipv4_address_ranges: Vec<Ipv4Range>,
        ipv6_prefix_ranges: Vec<Ipv6PrefixRange>,
        rx_diam_host: Option<String>,
        rx_diam_realm: Option<String>,
        group_id: Option<String>,
        supi_ranges: Vec<IdentityRange>,
        gpsi_ranges: Vec<IdentityRange>,
    }
}

impl BsfInfo {
    /// Whether the address is served; no ranges serve every address.
    #[must_use]
    pub fn serves_ipv4(&self, address: Ipv4Addr) -> bool {
        self.ipv4_address_ranges.is_empty() || self.ipv4_address_ranges.iter().any(|r| r.contains(address))
    }

    /// Whether the prefix is served; no ranges serve every prefix.
    #[must_use]
    pub fn serves_ipv6(&self, prefix: &Ipv6Prefix) -> bool {
        self.ipv6_prefix_ranges.is_empty() || self.ipv6_prefix_ranges.iter().any(|r| r.contains(prefix))
    }
}

block! {
    /// TS 29.510 §6.1.6.2.32.
    ChfInfo {
        supi_range_list: Vec<IdentityRange>,
        gpsi_range_list: Vec<IdentityRange>,
        plmn_range_list: Vec<PlmnRange>,
        group_id: Option<String>,
        primary_chf_instance: Option<NfInstanceId>,
        secondary_chf_instance: Option<NfInstanceId>,
    }
}

impl ChfInfo {
    /// Whether the PLMN is served; no ranges serve every PLMN.
    #[must_use]
    pub fn serves_plmn(&self, plmn: &PlmnId) -> bool {
        self.plmn_range_list.is_empty() || self.plmn_range_list.iter().any(|range| range.contains(plmn))
    }
}

block! {
    /// TS 29.510 §6.1.6.2.63.
    UdsfInfo {
        group_id: Option<String>,
        supi_ranges: Vec<IdentityRange>,
        storage_id_ranges: BTreeMap<String, Vec<IdentityRange>>,
    }
}

block! {
    /// TS 29.510 §6.1.6.2.58.
    HssInfo {
        group_id: Option<String>,
        imsi_ranges: Vec<IdentityRange>,
        ims_private_identity_ranges: Vec<IdentityRange>,
        ims_public_identity_ranges: Vec<IdentityRange>,
        msisdn_ranges: Vec<IdentityRange>,
        external_group_identifiers_ranges: Vec<IdentityRange>,
    }
}

block! {
    /// TS 29.510 §6.1.6.2.77.
    AanfInfo {
        routing_indicators: Vec<String>,
    }
}

block! {
    /// TS 29.510 §6.1.6.2.91.
    TsctsfInfo {
        #[serde(rename = "sNssaiInfoList")]
        snssai_info_list: InfoList<SliceDnnItem>,
        external_group_identifiers_ranges: Vec<IdentityRange>,
        supi_ranges: Vec<IdentityRange>,
        gpsi_ranges: Vec<IdentityRange>,
        internal_group_identifiers_ranges: Vec<GroupIdRange>,
    }
}

block! {
    /// TS 29.510 §6.1.6.2.109.
    NssaafInfo {
        supi_ranges: Vec<IdentityRange>,
        internal_group_identifiers_ranges: Vec<GroupIdRange>,
    }
}

block! {
    /// TS 29.510 §6.1.6.2.116.
    IwmscInfo {
        msisdn_ranges: Vec<IdentityRange>,
        supi_ranges: Vec<IdentityRange>,
        tai_range_list: Vec<TaiRange>,
        sc_number: Option<String>,
    }
}

block! {
    /// TS 29.510 §6.1.6.2.117.
    MnpfInfo {
        msisdn_ranges: Vec<IdentityRange>,
    }
}
