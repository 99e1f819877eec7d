//! State variables of subscribers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, Period, Validate};

/// State variables that all associations of a subscriber share (`rememberSubscriber` of policy projects, docs/policy.md). A
/// variable that exceeds a bound is refused and counted, and what it was before stays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct StateVariables {
    /// Variables of a subscriber.
    pub max_variables: usize,
    /// Size of the names and values (as JSON) of a subscriber's variables together; at most 64KiB.
    pub max_size: ByteSize,
    /// How long a subscriber's variables are kept after the last decision that set one.
    pub retention: Period,
}

/// Largest `maxSize`: a record is read and written as a whole.
const LARGEST: ByteSize = ByteSize::kib(64);

impl Default for StateVariables {
    fn default() -> Self {
        Self {
            max_variables: 64,
            max_size: ByteSize::kib(8),
            retention: Period::from_secs(400 * 86_400),
        }
    }
}

impl Validate for StateVariables {
    fn validate(&self, faults: &mut Faults) {
        if self.max_variables == 0 {
            faults.at("maxVariables").say("is 0", "at least 1");
        }
        if self.max_size.0 == 0 || self.max_size > LARGEST {
            faults
                .at("maxSize")
                .say("is out of bounds", "1 to 64KiB, such as 8KiB");
        }
        if self.retention.is_zero() {
            faults.at("retention").say("is 0", "some time, such as 400d");
        }
    }
}
