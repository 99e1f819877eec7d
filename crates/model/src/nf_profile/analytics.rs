//! Blocks of NFs for analytics, exposure and data collection: NWDAF, NEF, DCCF, MFAF, AF.

use serde::Deserialize;

use super::identity::block;
use super::session::SliceDnnItem;
use crate::area::{Tai, TaiRange};
use crate::identity::IdentityRange;
use crate::names::NfType;
use crate::slice::Snssai;

block! {
    /// TS 29.510 §6.1.6.2.43.
    NwdafInfo {
        event_ids: Vec<String>,
        nwdaf_events: Vec<String>,
        tai_list: Vec<Tai>,
        tai_range_list: Vec<TaiRange>,
        nwdaf_capability: NwdafCapability,
        analytics_delay: Option<u32>,
        serving_nf_set_id_list: Vec<String>,
        serving_nf_type_list: Vec<NfType>,
        ml_analytics_list: Vec<MlAnalyticsInfo>,
    }
}

block! {
    /// TS 29.510 §6.1.6.2.79.
    #[derive(Copy, Eq)]
    NwdafCapability {
        analytics_aggregation: bool,
        analytics_metadata_provisioning: bool,
    }
}

block! {
    /// TS 29.510 §6.1.6.2.86.
    MlAnalyticsInfo {
        ml_analytics_ids: Vec<String>,
        snssai_list: Vec<Snssai>,
        tracking_area_list: Vec<Tai>,
    }
}

impl MlAnalyticsInfo {
    /// Whether this offer covers what is asked: every named id, slice and area; what the offer leaves
    /// out it does not restrict.
    #[must_use]
    pub fn covers(&self, asked: &Self) -> bool {
        fn within<T: PartialEq>(offer: &[T], asked: &[T]) -> bool {
            offer.is_empty() || asked.iter().all(|item| offer.contains(item))
        }
        within(&self.ml_analytics_ids, &asked.ml_analytics_ids)
            && within(&self.snssai_list, &asked.snssai_list)
            && within(&self.tracking_area_list, &asked.tracking_area_list)
    }
}

block! {
    /// TS 29.510 §6.1.6.2.48.
    NefInfo {
        nef_id: Option<String>,
        pfd_data: Option<PfdData>,
        af_ee_data: Option<AfEventExposureData>,
        gpsi_ranges: Vec<IdentityRange>,
        external_group_identifiers_ranges: Vec<IdentityRange>,
        served_fqdn_list: Vec<String>,
        tai_list: Vec<Tai>,
        tai_range_list: Vec<TaiRange>,
        dnai_list: Vec<String>,
        un_trust_af_info_list: Vec<UntrustedAfInfo>,
        uas_nf_functionality_ind: bool,
    }
}

block! {
    /// TS 29.510 §6.1.6.2.49.
    PfdData {
        app_ids: Vec<String>,
        af_ids: Vec<String>,
    }
}

block! {
    /// TS 29.510 §6.1.6.2.51.
    AfEventExposureData {
        af_events: Vec<String>,
        af_ids: Vec<String>,
        app_ids: Vec<String>,
    }
}

block! {
    /// TS 29.510 §6.1.6.2.95.
    UntrustedAfInfo {
        af_id: Option<String>,
        #[serde(rename = "sNssaiInfoList")]
        snssais: Vec<SliceDnnItem>,
        mapping_ind: bool,
    }
}

block! {
    /// TS 29.510 §6.1.6.2.96.
    TrustAfInfo {
        #[serde(rename = "sNssaiInfoList")]
        snssais: Vec<SliceDnnItem>,
        af_events: Vec<String>,
        app_ids: Vec<String>,
        internal_group_id: Vec<String>,
        mapping_ind: bool,
    }
}

block! {
    /// TS 29.510 §6.1.6.2.78.
    MfafInfo {
        serving_nf_type_list: Vec<NfType>,
        serving_nf_set_id_list: Vec<String>,
        tai_list: Vec<Tai>,
        tai_range_list: Vec<TaiRange>,
    }
}

block! {
    /// TS 29.510 §6.1.6.2.83.
    DccfInfo {
        serving_nf_type_list: Vec<NfType>,
        serving_nf_set_id_list: Vec<String>,
        tai_list: Vec<Tai>,
        tai_range_list: Vec<TaiRange>,
    }
}
