//! Blocks of NFs that are chosen by where the subscriber is: AMF, LMF, GMLC, P-CSCF.

use serde::Deserialize;

use super::identity::block;
use crate::address::{Ipv4Range, Ipv6PrefixRange};
use crate::area::{Guami, Tai, TaiRange};

/// TS 29.510 §6.1.6.2.9.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)] // Member for member the table named above.
pub struct AmfInfo {
    pub amf_set_id: String,
    pub amf_region_id: String,
    pub guami_list: Vec<Guami>,
    #[serde(default)]
    pub tai_list: Vec<Tai>,
    #[serde(default)]
    pub tai_range_list: Vec<TaiRange>,
    #[serde(default)]
    pub backup_info_amf_failure: Vec<Guami>,
    #[serde(default)]
    pub backup_info_amf_removal: Vec<Guami>,
    #[serde(default)]
    pub amf_onboarding_capability: bool,
    #[serde(default)]
    pub high_latency_com: bool,
}

block! {
    /// TS 29.510 §6.1.6.2.44.
    LmfInfo {
        serving_client_types: Vec<String>,
        lmf_id: Option<String>,
        serving_access_types: Vec<String>,
        serving_an_node_types: Vec<String>,
        serving_rat_types: Vec<String>,
        tai_list: Vec<Tai>,
        tai_range_list: Vec<TaiRange>,
    }
}

block! {
    /// TS 29.510 §6.1.6.2.45.
    GmlcInfo {
        serving_client_types: Vec<String>,
        gmlc_numbers: Vec<String>,
    }
}

block! {
    /// TS 29.510 §6.1.6.2.53.
    PcscfInfo {
        access_type: Vec<String>,
        dnn_list: Vec<String>,
        served_ipv4_address_ranges: Vec<Ipv4Range>,
        served_ipv6_prefix_ranges: Vec<Ipv6PrefixRange>,
    }
}
