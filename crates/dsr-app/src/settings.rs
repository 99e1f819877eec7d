//! Settings that applications have in common with one another and with the router.

use diameter_proto::{Fault, ResultCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An answer the router gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Answer {
    /// Result-Code; with `vendorId`: Experimental-Result-Code.
    pub result_code: u32,
    /// Vendor-Id of the result (RFC 6733 §7.6), such as 10415 for a code of 3GPP; 0: a Result-Code.
    pub vendor_id: u32,
    /// Error-Message.
    pub message: String,
}

impl Default for Answer {
    fn default() -> Self {
        Self {
            result_code: 3002,
            vendor_id: 0,
            message: String::new(),
        }
    }
}

impl Answer {
    /// What the answer is made of.
    #[must_use]
    pub fn fault(&self) -> Fault {
        Fault::new(ResultCode(self.result_code), self.message.clone()).of_vendor(self.vendor_id)
    }
}
