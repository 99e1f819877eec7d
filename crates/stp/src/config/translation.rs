//! Global title translation.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Translations of global titles in messages to the point codes of this STP.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Translation {
    /// Nodes that translations lead to.
    pub groups: Vec<Group>,
    /// Sets of translations; of those whose selectors fit a title, the one that names most counts.
    pub sets: Vec<TranslationSet>,
}

/// Nodes that share what is translated to them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Group {
    /// Name, by which translations refer to it.
    pub name: String,
    /// How they share.
    pub mode: GroupMode,
    /// The nodes, preferred ones first.
    pub members: Vec<GroupMember>,
}

/// How a group shares its traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GroupMode {
    /// The first node alone.
    Solitary,
    /// The first that is available.
    #[default]
    Dominant,
    /// A share for each by its weight; messages of one origin and link selection have one node.
    Loadshare,
    /// A share for each by its weight; messages of one transaction of TCAP have one node.
    Transaction,
}

/// A node of a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct GroupMember {
    /// Its point code.
    pub point_code: String,
    /// The subsystem whose state counts (SSP, SSA); absent: only whether the point code can be reached counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subsystem: Option<u8>,
    /// Its share in a load-shared group; 0: only when the others are unavailable.
    pub weight: u16,
}

impl Default for GroupMember {
    fn default() -> Self {
        Self {
            point_code: String::new(),
            subsystem: None,
            weight: 1,
        }
    }
}

/// Translations for titles of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct TranslationSet {
    /// Name in metrics and explanations.
    pub name: String,
    /// Global title indicator; absent: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub indicator: Option<u8>,
    /// Translation type; absent: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub translation_type: Option<u8>,
    /// Numbering plan: 1 = E.164, 6 = E.212, 7 = E.214; absent: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numbering_plan: Option<u8>,
    /// Nature of address: 3 = national, 4 = international; absent: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nature: Option<u8>,
    /// Subsystem number of the address: 6 = HLR; absent: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subsystem: Option<u8>,
    /// The node that a message comes from (OPC); absent: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opc: Option<String>,
    /// What the title of the calling party begins with, one of up to 32 prefixes; of several sets that name as much the longest
    /// prefix counts. Empty: any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calling: Vec<String>,
    /// The operation that a message of TCAP invokes first, by its code as in `screening`: 2 = updateLocation; absent: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<i32>,
    /// What the application context of a message of TCAP begins with, as an object identifier: `0.4.0.0.1.0.1` = networkLocUp in each
    /// version; absent: any. The first message of a dialogue in either direction has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application_context: Option<String>,
    /// The number that `digits` of the translations are about. A set with another one than `called` comes before those without and
    /// fits messages for whose number it has a translation.
    pub number: TranslatedNumber,
    /// Translations.
    pub entries: Vec<Entry>,
    /// A file with further ones: CSV, whose first line names columns as the keys of `entries`. A reload reads it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
}

/// The number that translations of a set are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TranslatedNumber {
    /// That of the called title.
    #[default]
    Called,
    /// That of the title of the calling party.
    Calling,
    /// The IMSI of a MAP operation.
    Imsi,
    /// The MSISDN of a MAP operation.
    Msisdn,
    /// Where a short message goes to (SM-RP-DA): an IMSI, or the number of a service centre.
    SmRpDa,
    /// Where a short message comes from (SM-RP-OA): an MSISDN, or the number of a service centre.
    SmRpOa,
    /// The destination within a short message on its way to a service centre (TP-DA).
    TpDa,
}

/// How the next node routes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NextRouting {
    /// By global title: it translates again.
    #[default]
    Title,
    /// By subsystem number.
    Subsystem,
}

/// A translation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Entry {
    /// What the digits begin with (`43660`), a range (`43660-43669`), or nothing for all others.
    pub digits: String,
    /// The group that it leads to.
    pub group: String,
    /// How the next node routes.
    pub routing: NextRouting,
    /// Subsystem number of the address; absent: stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subsystem: Option<u8>,
    /// Translation type; absent: stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub translation_type: Option<u8>,
    /// Numbering plan; absent: stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numbering_plan: Option<u8>,
    /// Nature of address; absent: stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nature: Option<u8>,
    /// Global title indicator; absent: stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub indicator: Option<u8>,
    /// Digits that are removed at the beginning.
    pub remove: u8,
    /// Digits that come in their place.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// Digits that are removed at the end.
    pub remove_last: u8,
    /// Digits that come in their place.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub suffix: String,
}
