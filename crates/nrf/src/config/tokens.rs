//! How access tokens are signed and for whom.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How access tokens are signed and for whom.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Tokens {}
