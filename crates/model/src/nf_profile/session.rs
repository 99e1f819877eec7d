//! Blocks of NFs that are chosen by session and slice: SMF, UPF, EASDF, NSACF, MB-SMF, MB-UPF.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::InfoList;
use super::identity::block;
use crate::address::IpAddrChoice;
use crate::area::{Tai, TaiRange};
use crate::plmn::{Nid, PlmnId};
use crate::slice::{ExtSnssai, Snssai};

/// What an NF offers in a slice: one shape serves SMF, UPF, EASDF, MB-SMF, TSCTSF and AF, which differ only
/// in the name of the list (TS 29.510 §6.1.6.2.36, §6.1.6.2.15, …).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SliceDnnItem {
    /// The slice, or a family of slices.
    #[serde(rename = "sNssai")]
    pub snssai: ExtSnssai,
    /// The data networks in it.
    #[serde(
        alias = "dnnSmfInfoList",
        alias = "dnnUpfInfoList",
        alias = "dnnEasdfInfoList",
        alias = "dnnInfoList",
        default
    )]
    pub dnns: Vec<DnnItem>,
    /// UPF only.
    #[serde(default)]
    pub redundant_transport: bool,
}

/// What an NF offers in a data network (TS 29.510 §6.1.6.2.37, §6.1.6.2.16).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)] // Member for member the tables named above.
pub struct DnnItem {
    pub dnn: String,
    #[serde(default)]
    pub dnai_list: Vec<String>,
    #[serde(default)]
    pub pdu_session_types: Vec<String>,
    #[serde(default)]
    pub ipv4_index_list: Vec<serde_json::Value>,
    #[serde(default)]
    pub ipv6_index_list: Vec<serde_json::Value>,
}

impl SliceDnnItem {
    /// Whether the slice is the item's.
    #[must_use]
    pub fn serves_slice(&self, slice: &Snssai) -> bool {
        self.snssai.contains(slice)
    }

    /// The entries for a data network: its own, and the wildcard's.
    pub fn dnn(&self, dnn: &str) -> impl Iterator<Item = &DnnItem> {
        self.dnns
            .iter()
            .filter(move |item| item.dnn == "*" || dnn_matches(&item.dnn, dnn))
    }
}

/// Whether two DNNs name the same data network: DNNs are compared without case, and a bare network
/// identifier stands for the network under every operator identifier (TS 23.003 §9.1, TS 29.510 §6.2.3.2.3.1).
#[must_use]
pub fn dnn_matches(registered: &str, asked: &str) -> bool {
    fn network(dnn: &str) -> (&str, bool) {
        let bytes = dnn.as_bytes();
        // An operator identifier is ".mncNNN.mccNNN.gprs".
        let tail = bytes.len().wrapping_sub(".mnc000.mcc000.gprs".len());
        match dnn.get(tail..) {
            Some(oi)
                if oi.get(..4).is_some_and(|t| t.eq_ignore_ascii_case(".mnc"))
                    && oi.get(7..11).is_some_and(|t| t.eq_ignore_ascii_case(".mcc"))
                    && oi.get(14..).is_some_and(|t| t.eq_ignore_ascii_case(".gprs")) =>
            {
                (&dnn[..tail], true)
            }
            _ => (dnn, false),
        }
    }
    if registered.eq_ignore_ascii_case(asked) {
        return true;
    }
    let ((a, a_full), (b, b_full)) = (network(registered), network(asked));
    a_full != b_full && a.eq_ignore_ascii_case(b)
}

block! {
    /// TS 29.510 §6.1.6.2.12.
    SmfInfo {
        #[serde(rename = "sNssaiSmfInfoList")]
        snssais: Vec<SliceDnnItem>,
        tai_list: Vec<Tai>,
        tai_range_list: Vec<TaiRange>,
        pgw_fqdn: Option<String>,
        pgw_fqdn_list: Vec<String>,
        pgw_ip_addr_list: Vec<IpAddrChoice>,
        access_type: Vec<String>,
        priority: Option<u16>,
        vsmf_support_ind: Option<bool>,
        ismf_support_ind: Option<bool>,
        smf_onboarding_capability: bool,
        #[serde(rename = "smfUPRPCapability")]
        smf_uprp_capability: bool,
    }
}

impl SmfInfo {
    /// Whether the SMF is combined with a PGW-C.
    #[must_use]
    pub fn is_pgw(&self) -> bool {
        self.pgw_fqdn.is_some() || !self.pgw_fqdn_list.is_empty() || !self.pgw_ip_addr_list.is_empty()
    }
}

block! {
    /// TS 29.510 §6.1.6.2.13.
    UpfInfo {
        #[serde(rename = "sNssaiUpfInfoList")]
        snssais: Vec<SliceDnnItem>,
        smf_serving_area: Vec<String>,
        iwk_eps_ind: bool,
        pdu_session_types: Vec<String>,
        atsss_capability: Option<AtsssCapability>,
        ue_ip_addr_ind: bool,
        tai_list: Vec<Tai>,
        tai_range_list: Vec<TaiRange>,
        w_agf_info: Option<EndpointInfo>,
        tngf_info: Option<EndpointInfo>,
        twif_info: Option<EndpointInfo>,
        priority: Option<u16>,
        redundant_gtpu: bool,
        ipups: bool,
        data_forwarding: bool,
        supported_pfcp_features: Option<String>,
    }
}

block! {
    /// TS 29.571 §5.4.4.59.
    #[derive(Copy, Eq)]
    AtsssCapability {
        #[serde(rename = "atsssLL")]
        atsss_ll: bool,
        mptcp: bool,
        rtt_without_pmf: bool,
    }
}

impl AtsssCapability {
    /// Whether every capability asked for is there.
    #[must_use]
    pub fn covers(&self, asked: &Self) -> bool {
        (self.atsss_ll || !asked.atsss_ll)
            && (self.mptcp || !asked.mptcp)
            && (self.rtt_without_pmf || !asked.rtt_without_pmf)
    }
}

block! {
    /// End points of a W-AGF, TNGF or TWIF (TS 29.510 §6.1.6.2.49 …).
    #[derive(Eq)]
    EndpointInfo {
        ipv4_endpoint_addresses: Vec<std::net::Ipv4Addr>,
        ipv6_endpoint_addresses: Vec<std::net::Ipv6Addr>,
        endpoint_fqdn: Option<String>,
    }
}

impl EndpointInfo {
    /// Whether one of the end points asked for is here.
    #[must_use]
    pub fn shares(&self, asked: &Self) -> bool {
        asked
            .ipv4_endpoint_addresses
            .iter()
            .any(|a| self.ipv4_endpoint_addresses.contains(a))
            || asked
                .ipv6_endpoint_addresses
                .iter()
                .any(|a| self.ipv6_endpoint_addresses.contains(a))
            || match (&self.endpoint_fqdn, &asked.endpoint_fqdn) {
                (Some(here), Some(asked)) => here.eq_ignore_ascii_case(asked),
                _ => false,
            }
    }
}

block! {
    /// TS 29.510 §6.1.6.2.80.
    EasdfInfo {
        #[serde(rename = "sNssaiEasdfInfoList")]
        snssais: Vec<SliceDnnItem>,
        #[serde(rename = "easdfN6IpAddressList")]
        easdf_n6_ip_address_list: Vec<IpAddrChoice>,
        #[serde(rename = "upfN6IpAddressList")]
        upf_n6_ip_address_list: Vec<IpAddrChoice>,
    }
}

block! {
    /// TS 29.510 §6.1.6.2.84.
    NsacfInfo {
        nsacf_capability: NsacfCapability,
        tai_list: Vec<Tai>,
        tai_range_list: Vec<TaiRange>,
        nsac_sai_list: Vec<String>,
    }
}

block! {
    /// TS 29.510 §6.1.6.2.85.
    #[derive(Copy, Eq)]
    NsacfCapability {
        #[serde(rename = "supportUeSAC")]
        support_ue_sac: bool,
        #[serde(rename = "supportPduSAC")]
        support_pdu_sac: bool,
    }
}

impl NsacfCapability {
    /// Whether every capability asked for is there.
    #[must_use]
    pub fn covers(&self, asked: &Self) -> bool {
        (self.support_ue_sac || !asked.support_ue_sac) && (self.support_pdu_sac || !asked.support_pdu_sac)
    }
}

block! {
    /// TS 29.510 §6.1.6.2.87.
    MbSmfInfo {
        #[serde(rename = "sNssaiInfoList")]
        snssais: InfoList<SliceDnnItem>,
        tmgi_range_list: InfoList<TmgiRange>,
        tai_list: Vec<Tai>,
        tai_range_list: Vec<TaiRange>,
        mbs_session_list: InfoList<MbsSession>,
    }
}

/// TS 29.510 §6.1.6.2.88.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TmgiRange {
    /// First service id, six hexadecimal digits.
    pub mbs_service_id_start: String,
    /// Last service id.
    pub mbs_service_id_end: String,
    /// Their PLMN.
    pub plmn_id: PlmnId,
    /// With it, the SNPN.
    #[serde(default)]
    pub nid: Option<Nid>,
}

impl TmgiRange {
    /// Whether the group lies in the range.
    #[must_use]
    pub fn contains(&self, tmgi: &Tmgi, nid: Option<Nid>) -> bool {
        let number = |text: &str| u32::from_str_radix(text, 16).ok();
        self.plmn_id == tmgi.plmn_id
            && self.nid == nid
            && match (
                number(&self.mbs_service_id_start),
                number(&tmgi.mbs_service_id),
                number(&self.mbs_service_id_end),
            ) {
                (Some(start), Some(id), Some(end)) => (start..=end).contains(&id),
                _ => false,
            }
    }
}

/// TS 29.510 §6.1.6.2.89.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MbsSession {
    /// Its identity.
    pub mbs_session_id: MbsSessionId,
    /// Area sessions by their id.
    #[serde(default)]
    pub mbs_area_sessions: BTreeMap<String, serde_json::Value>,
}

/// TS 29.571 §5.9.4.1.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MbsSessionId {
    /// A multicast group.
    #[serde(default)]
    pub tmgi: Option<Tmgi>,
    /// Or a source-specific multicast address.
    #[serde(default)]
    pub ssm: Option<Ssm>,
    /// With it, the SNPN.
    #[serde(default)]
    pub nid: Option<Nid>,
}

/// TS 29.571 §5.9.4.2.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tmgi {
    /// Six hexadecimal digits.
    pub mbs_service_id: String,
    /// The PLMN.
    pub plmn_id: PlmnId,
}

/// TS 29.571 §5.9.4.3.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ssm {
    /// Source.
    pub source_ip_addr: IpAddrChoice,
    /// Destination.
    pub dest_ip_addr: IpAddrChoice,
}

block! {
    /// TS 29.510 §6.1.6.2.94.
    MbUpfInfo {
        #[serde(rename = "sNssaiMbUpfInfoList")]
        snssais: Vec<SliceDnnItem>,
        mb_smf_serving_area: Vec<String>,
        tai_list: Vec<Tai>,
        tai_range_list: Vec<TaiRange>,
        priority: Option<u16>,
        supported_pfcp_features: Option<String>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dnns_with_and_without_operator_identifier() {
        assert!(dnn_matches("internet", "Internet"));
        assert!(dnn_matches("internet", "internet.mnc001.mcc240.gprs"));
        assert!(dnn_matches("internet.mnc001.mcc240.gprs", "internet"));
        assert!(!dnn_matches(
            "internet.mnc001.mcc240.gprs",
            "internet.mnc002.mcc240.gprs"
        ));
        assert!(!dnn_matches("ims", "internet"));
        assert!(!dnn_matches("é", ""));
    }
}
