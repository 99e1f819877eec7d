//! The AF's influence on traffic routing (TS 29.514 §4.2.2.8): `AfRoutingRequirement` to rule and traffic control.

use super::Rule;
use crate::json::{self, Object};

/// Members of `AfRoutingRequirement` that `TrafficControlData` has too.
const TRAFFIC: [&str; 5] = [
    "routeToLocs",
    "simConnInd",
    "simConnTerm",
    "easIpReplaceInfos",
    "maxAllowedUpLat",
];
/// Members that `PccRule` has too.
const RULE: [&str; 3] = ["appReloc", "addrPreserInd", "easRedisInd"];

pub(super) fn apply(rule: &Rule<'_>, traffic: &mut Object, pcc: &mut Object) {
    let component = rule.component.value.get("afRoutReq");
    let Some(routing) = component.or_else(|| rule.request.get("afRoutReq")) else {
        return;
    };
    for member in TRAFFIC {
        json::put(traffic, member, routing.get(member).cloned());
    }
    json::put(traffic, "upPathChgEvent", routing.get("upPathChgSub").cloned());
    for member in RULE {
        json::put(pcc, member, routing.get(member).cloned());
    }
}
