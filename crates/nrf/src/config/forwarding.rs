//! Which questions go to which other NRF.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which questions go to which other NRF.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Forwarding {}
