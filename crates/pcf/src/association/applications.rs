//! Applications of a session that a PCEF, an SMF or a TDF has detected (TS 29.212 §4.5.22, §4b.5.7, TS 29.512 §4.2.4.6).

use serde_json::{Map, Value, json};

use super::Association;

/// The room of an association that has them.
const ROOM: &str = "applications";
/// Applications that an association knows at most, and instances of each.
const MOST: usize = 64;
const MOST_INSTANCES: usize = 16;
/// Bytes of the name of an application or an instance.
const LONGEST: usize = 255;

/// What policies read as `$session.applications`: by application `started`, and `instances` with the flows of each.
#[must_use]
pub fn of(association: &Association) -> Value {
    let room = association.rooms.get(ROOM);
    room.cloned().unwrap_or_else(|| Value::Object(Map::new()))
}

/// Notes what a report says of applications (`appDetectionInfos`). Where one message reports both a start and a stop, what is
/// known as started stops, and all else starts.
pub fn note(association: &mut Association, report: &Value) {
    let infos = report.get("appDetectionInfos").and_then(Value::as_array);
    let Some(infos) = infos.filter(|infos| !infos.is_empty()) else {
        return;
    };
    let triggers = report.get("repPolicyCtrlReqTriggers").and_then(Value::as_array);
    let has = |name: &str| triggers.is_some_and(|triggers| triggers.iter().any(|one| one == name));
    let (starts, stops) = (has("APP_STA"), has("APP_STO"));
    if !starts && !stops {
        return;
    }
    let mut room = match of(association) {
        Value::Object(room) => room,
        _ => Map::new(),
    };
    for info in infos {
        let id = info.get("appId").and_then(Value::as_str);
        let Some(id) = id.filter(|id| id.len() <= LONGEST) else {
            continue;
        };
        if !room.contains_key(id) && room.len() >= MOST {
            continue;
        }
        let entry = room
            .entry(id)
            .or_insert_with(|| json!({"started": false, "instances": {}}));
        detected(entry, info, (starts, stops));
    }
    association.rooms.insert(ROOM.to_owned(), Value::Object(room));
}

/// An instance, or an application without instances, has started or stopped.
fn detected(entry: &mut Value, info: &Value, (starts, stops): (bool, bool)) {
    let instance = info.get("instanceId").and_then(Value::as_str);
    let instance = instance.filter(|instance| instance.len() <= LONGEST);
    let Some(Value::Object(instances)) = entry.get_mut("instances") else {
        return;
    };
    let is_known = instance.is_some_and(|instance| instances.contains_key(instance));
    let begins = starts && !(stops && is_known);
    match (instance, begins) {
        (Some(instance), true) if is_known || instances.len() < MOST_INSTANCES => {
            let flows = info.get("sdfDescriptions").cloned().unwrap_or_else(|| json!([]));
            instances.insert(instance.to_owned(), flows);
        }
        (Some(instance), false) => drop(instances.remove(instance)),
        // Without an instance the application as a whole stops.
        (None, false) => instances.clear(),
        _ => {}
    }
    let goes_on = begins || !instances.is_empty();
    entry["started"] = goes_on.into();
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;

    fn report(triggers: &[&str], instance: Option<&str>) -> Value {
        let mut info = json!({"appId": "video"});
        if let Some(instance) = instance {
            info["instanceId"] = instance.into();
        }
        json!({"repPolicyCtrlReqTriggers": triggers, "appDetectionInfos": [info]})
    }

    #[test]
    fn an_application_has_started_until_its_last_instance_stops() {
        let mut one = Association::new(Kind::Gx, json!({}));
        let mut started = |report: Value| {
            note(&mut one, &report);
            of(&one)["video"]["started"].clone()
        };
        assert_eq!(started(report(&["RAT_TY_CH"], None)), Value::Null);
        assert_eq!(started(report(&["APP_STA"], Some("1"))), true);
        assert_eq!(started(report(&["APP_STA"], Some("2"))), true);
        assert_eq!(started(report(&["APP_STO"], Some("1"))), true);
        assert_eq!(started(report(&["APP_STA", "APP_STO"], Some("2"))), false);
        assert_eq!(started(report(&["APP_STA"], None)), true);
        assert_eq!(started(report(&["APP_STO"], None)), false);
    }

    #[test]
    fn applications_and_instances_are_bounded() {
        let mut one = Association::new(Kind::Gx, json!({}));
        for number in 0..200 {
            let info = json!({"appId": number.to_string()});
            let other = json!({"appId": "0", "instanceId": number.to_string()});
            note(
                &mut one,
                &json!({"repPolicyCtrlReqTriggers": ["APP_STA"], "appDetectionInfos": [info, other]}),
            );
        }
        let all = of(&one);
        assert_eq!(all.as_object().unwrap().len(), MOST);
        assert_eq!(all["0"]["instances"].as_object().unwrap().len(), MOST_INSTANCES);
    }
}
