//! Limits and timing of subscriptions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits and timing of subscriptions.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Subscriptions {}
