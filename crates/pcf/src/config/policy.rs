//! Policy projects.

use std::path::PathBuf;

use policy::Limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Validate};

/// The policy projects that decide (docs/policy.md); relative paths begin at the folder of the configuration's file. A reload
/// reads their files again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Policies {
    /// Folder of the project for PDU sessions (`service: sm`); absent: the built-in project, which grants the subscribed
    /// session AMBR and default QoS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sm: Option<PathBuf>,
    /// Folder of the project for access and mobility (`service: am`); absent: the built-in project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub am: Option<PathBuf>,
    /// Folder of the project for UE policies (`service: ue`); absent: the built-in project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ue: Option<PathBuf>,
    /// What happens to a request whose evaluation fails.
    pub fallback: Fallback,
    /// Bounds of projects and evaluations.
    pub limits: Limits,
}

/// What happens to a request when the evaluation of a policy project fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Fallback {
    /// The built-in project decides.
    #[default]
    BuiltIn,
    /// The PCF refuses the request (500).
    Refuse,
}

impl Validate for Policies {
    fn validate(&self, faults: &mut Faults) {
        if self.limits.depth < 4 || self.limits.depth > 64 {
            faults.at("limits.depth").say("is out of bounds", "4 to 64");
        }
    }
}
