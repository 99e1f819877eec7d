//! What the NRF takes although it is not as the standard has it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tolerance of profiles and subscriptions that real NFs send. What counts as absent is not kept, counted in
/// `signalbox_nrf_dropped_members_total` by member and sender, and logged once for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Tolerance {
    /// Refuse members that are `null`, empty lists and maps, and members that cannot be read although nothing depends on
    /// them (recovery times, `nfInstanceName`, `vendorId`, `customInfo`, `validityTime` …), instead of reading them as
    /// absent.
    pub strict: bool,
    /// Take names of hosts that are not fully qualified (`amf`, `pcf.core1`) as `fqdn`, and names in
    /// `ipv4Addresses` and in `ipv4Address` of `ipEndPoints` as the `fqdn` of the profile or service.
    pub host_names: bool,
    /// Take a JSON Patch whose `Content-Type` is `application/json`.
    pub patch_as_json: bool,
}
