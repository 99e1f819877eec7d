//! How subscribers are located.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How subscribers are located.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Slf {}
