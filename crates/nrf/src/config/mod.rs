//! Every setting of an NRF; a file per topic.

mod forwarding;
mod screening;
mod slf;
mod subscriptions;
mod tokens;

pub use forwarding::Forwarding;
pub use screening::Screening;
pub use slf::Slf;
pub use subscriptions::Subscriptions;
pub use tokens::Tokens;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of an NRF. Defaults run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Config {
    /// Subscriptions and their notifications.
    pub subscriptions: Subscriptions,
    /// Access tokens.
    pub tokens: Tokens,
    /// Subscriber location.
    pub slf: Slf,
    /// Other NRFs.
    pub forwarding: Forwarding,
    /// Who may register.
    pub screening: Screening,
}
