//! Access tokens of the PCF towards other functions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When the PCF sends an access token of the NRF with its requests to UDRs, CHFs, BSFs and AMFs (TS 33.501 §13.4.1.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PeerTokens {
    /// It sends none.
    Never,
    /// From the first 401 of a producer of the service.
    #[default]
    WhenAsked,
    /// With each request.
    Always,
}
