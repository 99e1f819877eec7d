//! What of an AF's rules a consumer can read: the features that it has negotiated (TS 29.512 §5.8, TS 29.500 §6.6.2).

use serde_json::Value;

use crate::json::Object;

/// `TSC`: traffic steering control.
const STEERING: usize = 1;
/// `SponsoredConnectivity`.
const SPONSORED: usize = 12;
/// `AF_Charging_Identifier`.
const CHARGING_ID: usize = 18;

/// A feature, the section of the decision, the members of its entries that belong to the feature.
const MEMBERS: &[(usize, &str, &[&str])] = &[
    (
        STEERING,
        "traffContDecs",
        &[
            "routeToLocs",
            "traffSteerPolIdDl",
            "traffSteerPolIdUl",
            "upPathChgEvent",
            "simConnInd",
            "simConnTerm",
            "easIpReplaceInfos",
            "maxAllowedUpLat",
        ],
    ),
    (
        STEERING,
        "pccRules",
        &["appReloc", "addrPreserInd", "easRedisInd"],
    ),
    (
        SPONSORED,
        "chgDecs",
        &["sponsorId", "appSvcProvId", "reportingLevel"],
    ),
    (CHARGING_ID, "chgDecs", &["afChargId"]),
];

/// Removes from the rules of an AF session what belongs to features that the SMF has not.
pub fn fit(part: &mut Value, has: impl Fn(usize) -> bool) {
    for (feature, section, members) in MEMBERS.iter().filter(|(feature, ..)| !has(*feature)) {
        let Some(Value::Object(entries)) = part.get_mut(section) else {
            continue;
        };
        for entry in entries.values_mut().filter_map(Value::as_object_mut) {
            // A level of reports that an operator's class asks for belongs to no sponsor.
            let is_sponsored = *feature != SPONSORED || entry.contains_key("sponsorId");
            if is_sponsored {
                entry.retain(|name, _| !members.contains(&name.as_str()));
            }
        }
    }
    drop_empty(part);
}

/// Removes charging data that say nothing any more, with the references to them.
fn drop_empty(part: &mut Value) {
    let is_empty = |entry: &Value| {
        entry
            .as_object()
            .is_none_or(|entry| entry.keys().all(|name| name == "chgId"))
    };
    let Some(Value::Object(all)) = part.get_mut("chgDecs") else {
        return;
    };
    let empty: Vec<String> = all
        .iter()
        .filter(|(_, entry)| is_empty(entry))
        .map(|(id, _)| id.clone())
        .collect();
    all.retain(|id, _| !empty.contains(id));
    let none_left = all.is_empty();
    if let Some(Value::Object(rules)) = part.get_mut("pccRules") {
        for rule in rules.values_mut().filter_map(Value::as_object_mut) {
            drop_references(rule, &empty);
        }
    }
    if let Value::Object(part) = part
        && none_left
    {
        part.remove("chgDecs");
    }
}

fn drop_references(rule: &mut Object, ids: &[String]) {
    if let Some(Value::Array(references)) = rule.get_mut("refChgData") {
        references.retain(|id| id.as_str().is_none_or(|id| !ids.iter().any(|one| one == id)));
        if references.is_empty() {
            rule.remove("refChgData");
        }
    }
}
