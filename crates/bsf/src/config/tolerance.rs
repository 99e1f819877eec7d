//! What the BSF takes although it is not as the standard has it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tolerance of bindings and subscriptions that real PCFs and consumers send. What counts as absent is not kept, counted in
/// `signalbox_bsf_dropped_members_total` by member and sender, and logged once for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Tolerance {
    /// Refuse optional members that are `null` or empty (lists, `gpsi`, `ipDomain`), and a `recoveryTime` that cannot be read,
    /// instead of reading them as absent.
    pub strict: bool,
    /// Take names of hosts that are not fully qualified (`pcf`, `pcf.core1`) in `pcfFqdn`, `pcfSmFqdn` and `pcfForUeFqdn`.
    pub host_names: bool,
}
