//! Which NFs may register.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which NFs may register.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Screening {}
