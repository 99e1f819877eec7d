//! Services and what else every profile has (TS 29.510 §6.1.6.2.3 …).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Allowed;
use crate::features::SupportedFeatures;
use crate::identity::NfInstanceId;
use crate::names::{CollocatedNfType, NfServiceStatus, ServiceName, UriScheme};
use crate::plmn::PlmnId;
use crate::slice::{ExtSnssai, PlmnSnssai};

/// Vendor-specific features by private enterprise number.
pub type VendorSpecificFeatures = BTreeMap<String, Vec<VendorSpecificFeature>>;

/// What is understood of a service instance (TS 29.510 §6.1.6.2.3).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)] // Member for member TS 29.510 table 6.1.6.2.3-1.
pub struct NfService {
    pub service_instance_id: String,
    pub service_name: ServiceName,
    pub versions: Vec<NfServiceVersion>,
    pub scheme: UriScheme,
    pub nf_service_status: NfServiceStatus,
    #[serde(default)]
    pub fqdn: Option<String>,
    #[serde(default)]
    pub inter_plmn_fqdn: Option<String>,
    #[serde(default)]
    pub ip_end_points: Vec<IpEndPoint>,
    #[serde(default)]
    pub api_prefix: Option<String>,
    #[serde(flatten)]
    pub allowed: Allowed,
    #[serde(default)]
    pub allowed_operations_per_nf_type: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    pub allowed_operations_per_nf_instance: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    pub default_notification_subscriptions: Vec<DefaultNotificationSubscription>,
    #[serde(default)]
    pub priority: Option<u16>,
    #[serde(default)]
    pub capacity: Option<u16>,
    #[serde(default)]
    pub load: Option<u8>,
    #[serde(default)]
    pub supported_features: Option<SupportedFeatures>,
    #[serde(default)]
    pub nf_service_set_id_list: Vec<String>,
    #[serde(default, rename = "sNssais")]
    pub snssais: Vec<ExtSnssai>,
    #[serde(default)]
    pub per_plmn_snssai_list: Vec<PlmnSnssai>,
    #[serde(default)]
    pub supported_vendor_specific_features: VendorSpecificFeatures,
    #[serde(default)]
    pub oauth2_required: Option<bool>,
    #[serde(default)]
    pub per_plmn_oauth2_req_list: PlmnOauth2,
}

/// For which PLMNs tokens are required (TS 29.510 §6.1.6.2.107).
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlmnOauth2 {
    /// Required for these.
    pub oauth2_required_plmn_id_list: Vec<PlmnId>,
    /// Not required for these.
    pub oauth2_not_required_plmn_id_list: Vec<PlmnId>,
}

/// A version of an API (TS 29.510 §6.1.6.2.5).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NfServiceVersion {
    /// As in the URI: `v1`.
    pub api_version_in_uri: String,
    /// Complete: `1.2.6`.
    pub api_full_version: String,
}

/// Where a service listens (TS 29.510 §6.1.6.2.4).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IpEndPoint {
    /// IPv4 address.
    pub ipv4_address: Option<String>,
    /// IPv6 address.
    pub ipv6_address: Option<String>,
    /// Port; absent: the scheme's.
    pub port: Option<u16>,
}

/// Where an NF wants notifications it never asked for explicitly (TS 29.510 §6.1.6.2.11).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DefaultNotificationSubscription {
    /// What about.
    pub notification_type: String,
    /// Where to.
    pub callback_uri: String,
    /// N1 message class, for `N1_MESSAGES`.
    #[serde(default)]
    pub n1_message_class: Option<String>,
    /// N2 information class, for `N2_INFORMATION`.
    #[serde(default)]
    pub n2_information_class: Option<String>,
}

/// A feature a vendor names (TS 29.510 §6.1.6.2.62).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VendorSpecificFeature {
    /// Its name.
    pub feature_name: String,
    /// Its version.
    pub feature_version: String,
}

/// Another NF instance in the same place (TS 29.510 §6.1.6.2.99).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CollocatedNfInstance {
    /// Its identity.
    pub nf_instance_id: NfInstanceId,
    /// Its type.
    pub nf_type: CollocatedNfType,
}
