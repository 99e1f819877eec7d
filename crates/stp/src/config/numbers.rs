//! Number services: portability, and the HLR of a number.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CallServices, NextRouting};

/// Services by whole numbers, before global title translation: mobile number portability (TS 23.066), and the HLR of a
/// number, IMSI or mobile global title.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct NumberServices {
    /// A file of numbers (`signalbox numbers import`): `hlr=GROUP` names the group of `translation` that serves a number,
    /// `rn=ROUTING-NUMBER` the network that it was ported to, with `network=MCCMNC`, `scp=GROUP` the service control point of a
    /// prepaid subscriber. Absent: no services. A reload reads it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Subsystems of called parties whose numbers are looked up: 6 = HLR.
    pub subsystems: Vec<u8>,
    /// Country code, which national numbers get before they are looked up. Empty: they are not looked up.
    pub country_code: String,
    /// Area or network code, which subscriber numbers get behind `countryCode`. Empty: they are not looked up.
    pub area_code: String,
    /// What numbers of this network's own ranges begin with: a ported number of them is *ported out*.
    pub own: Vec<String>,
    /// Routing numbers of this network, which are removed from numbers before they are looked up.
    pub own_routing_numbers: Vec<String>,
    /// What becomes of a request for the route of a call (sendRoutingInfo) to a number that was ported to another network.
    pub call_related: CallRelated,
    /// How the HLRs of `hlr` route, and the service control points of `scp`.
    pub routing: NextRouting,
    /// Mobile global titles (E.214), whose beginnings stand for those of IMSIs.
    pub mobile_titles: Vec<MobileTitle>,
    /// Queries of INAP and CAP, and calls of ISUP.
    pub calls: CallServices,
}

impl Default for NumberServices {
    fn default() -> Self {
        Self {
            file: None,
            subsystems: vec![6],
            country_code: String::new(),
            area_code: String::new(),
            own: Vec::new(),
            own_routing_numbers: Vec::new(),
            call_related: CallRelated::default(),
            routing: NextRouting::default(),
            mobile_titles: Vec::new(),
            calls: CallServices::default(),
        }
    }
}

/// What becomes of sendRoutingInfo for a ported number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CallRelated {
    /// This STP answers with the routing number as roaming number.
    #[default]
    Answer,
    /// It is relayed to the other network, as all other messages.
    Relay,
}

/// The beginning of a mobile global title and that of the IMSIs for which it stands (E.214).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct MobileTitle {
    /// Country and network code (`43660`).
    pub title: String,
    /// MCC and MNC (`23210`).
    pub imsi: String,
}
