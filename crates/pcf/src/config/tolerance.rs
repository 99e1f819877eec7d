//! What the PCF takes although it is not as the standard has it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tolerance of bodies that real SMFs, AMFs and AFs send. What counts as absent is not kept, counted in
/// `signalbox_pcf_dropped_members_total` by member and sender, and logged once for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Tolerance {
    /// Refuse optional members that are `null`, empty (`gpsi`, `pei` …) or -1 as `ageOfLocationInformation`, and an ARP
    /// with an empty `preemptCap` or `preemptVuln`, instead of reading them as absent.
    pub strict: bool,
}
