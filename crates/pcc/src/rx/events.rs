//! Specific-Action (TS 29.214 §5.3.13) and `AfEvent` (TS 29.514 §5.6.3.7).

use crate::avp::{self, Names};
use crate::event::{LOSS, RECOVERY, RELEASE};

const ACTIONS: Names = &[
    (1, "CHARGING_CORRELATION"),
    (2, LOSS),
    (3, RECOVERY),
    (4, RELEASE),
    (6, "ACCESS_TYPE_CHANGE"),
    (7, "OUT_OF_CREDIT"),
    (8, "SUCCESSFUL_RESOURCES_ALLOCATION"),
    (9, "FAILED_RESOURCES_ALLOCATION"),
    (11, "USAGE_REPORT"),
    (12, "ANI_REPORT"),
    (16, "PLMN_CHG"),
    (17, "EPS_FALLBACK"),
    (18, "REALLOCATION_OF_CREDIT"),
];

/// The event of an action.
pub(super) fn event(action: i32) -> Option<&'static str> {
    avp::name(ACTIONS, action)
}

/// The action of an event.
pub(super) fn action(event: &str) -> Option<i32> {
    avp::value(ACTIONS, event)
}
