//! Screening: what of the received messages is admitted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A screening list. Its rules are tried in order, the first that fits decides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct ScreeningList {
    /// Name, by which application servers and link sets refer to it.
    pub name: String,
    /// What happens when no rule fits.
    pub otherwise: Action,
    /// The rules.
    pub rules: Vec<Rule>,
}

/// What happens with a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// It is admitted.
    #[default]
    Allow,
    /// It is dropped and counted.
    Block,
    /// An SCCP message that asks for it returns to its sender (UDTS, XUDTS); other messages are dropped.
    Return,
}

/// A screening rule. It fits when each condition that it has fits; a condition fits when one of its values does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Rule {
    /// Name in metrics and explanations; absent: its position.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What happens when it fits.
    pub action: Action,
    /// The list whose rules decide further when it fits, in place of `action`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<String>,
    /// Originating point codes, as destinations of routes are written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub opc: Vec<String>,
    /// Destination point codes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dpc: Vec<String>,
    /// Service indicators: 3 = SCCP, 5 = ISUP.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub service_indicators: Vec<u8>,
    /// Network indicators: 0 = international, 2 = national.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub network_indicators: Vec<u8>,
    /// Messages of signalling network management (service indicator 0) by their heading codes H0 and H1, as the abbreviations of
    /// Q.704 §15 (`TFP`, `TFA`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub management: Vec<String>,
    /// The destinations that such messages concern (TFP, TFR, TFA, TFC, RST, RSR, UPU), written as `dpc`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub affected: Vec<String>,
    /// SCCP messages, by the abbreviations of Q.713 (`UDT`, `XUDT`, `CR`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub message_types: Vec<String>,
    /// Operations that a message of TCAP invokes, by their local codes: 2 = updateLocation, 71 = anyTimeInterrogation; of ANSI by
    /// private or national codes: 2317 = REGNOT of ANSI-41 (family 9, specifier 13). Segments, messages with more than 8 components, and
    /// operations in another form (a global code) cannot be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<i32>,
    /// Called party address (CdPA) of an SCCP message without connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub called: Option<Party>,
    /// Calling party address (CgPA).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calling: Option<Party>,
}

/// Conditions on an address of SCCP.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Party {
    /// What the digits of the global title begin with, or ranges of it (`436610-436649`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub digits: Vec<String>,
    /// Translation types.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub translation_types: Vec<u8>,
    /// Subsystems: 6 = HLR, 7 = VLR, 8 = MSC.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subsystems: Vec<u8>,
    /// Point codes in the address, written as `dpc`: the node that a message to this STP goes on to. An address without one does not fit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub point_codes: Vec<String>,
}
