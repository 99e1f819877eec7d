use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// `AccessTokenClaims` (TS 29.510 §6.3.5.2.4).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccessTokenClaims {
    /// NF instance id of the NRF that issued the token.
    pub iss: String,
    /// NF instance id of the consumer.
    pub sub: String,
    /// Whom the token is for.
    pub aud: Audience,
    /// Service names, and more specific scopes, separated by spaces.
    pub scope: String,
    /// When it expires, in seconds since 1970.
    pub exp: u64,
    /// Before when it is not to be accepted, in seconds since 1970 (RFC 7519 §4.1.5).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nbf: Option<u64>,
    /// PLMN of the consumer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumer_plmn_id: Option<PlmnClaim>,
    /// PLMN of the producer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub producer_plmn_id: Option<PlmnClaim>,
    /// Slices of the producer that the token is limited to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub producer_snssai_list: Vec<SnssaiClaim>,
    /// Network slice instances that the token is limited to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub producer_nsi_list: Vec<String>,
    /// NF set that the token is limited to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub producer_nf_set_id: Option<String>,
    /// NF service set that the token is limited to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub producer_nf_service_set_id: Option<String>,
    /// The NF for which the consumer asks, as a DCCF does (TS 29.510 §6.3.5.2.4).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_nf_instance_id: Option<String>,
    /// Every other claim, kept.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// `aud`: an NF type, or NF instance ids.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Audience {
    /// Every producer of this type.
    NfType(String),
    /// These instances.
    Instances(Vec<String>),
}

/// `PlmnId`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlmnClaim {
    /// Mobile country code.
    pub mcc: String,
    /// Mobile network code.
    pub mnc: String,
}

/// `Snssai`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnssaiClaim {
    /// Slice/service type.
    pub sst: u8,
    /// Slice differentiator, six hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sd: Option<String>,
}

impl Default for Audience {
    fn default() -> Self {
        Self::Instances(Vec::new())
    }
}

impl AccessTokenClaims {
    /// Whether the scope has this token.
    #[must_use]
    pub fn has_scope(&self, scope: &str) -> bool {
        self.scope.split(' ').any(|held| held == scope)
    }
}

impl SnssaiClaim {
    /// Whether both name the same slice; differentiators compare without case.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        let same_sd = match (&self.sd, &other.sd) {
            (Some(mine), Some(theirs)) => mine.eq_ignore_ascii_case(theirs),
            (None, None) => true,
            _ => false,
        };
        self.sst == other.sst && same_sd
    }
}
