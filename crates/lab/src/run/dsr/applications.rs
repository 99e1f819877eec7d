//! The applications of a router: their settings and files.

use std::fmt::Write as _;
use std::path::Path;

use diameter_proto::known::application::{CREDIT_CONTROL, CX, GX, RX, S6A, S13};
use serde_json::{Value, json};

use super::{ocdra, pdra, security};
use crate::run::files;
use crate::run::rig::{Place, RigError};
use callmodel::dsr::{Drill, DsrModel};
use callmodel::equipment::EquipmentLists;
use callmodel::resolution::{Address, Resolution};
use callmodel::roaming::Roaming;
use callmodel::subscribers::SubscriberRanges;

/// The name of full address resolution in the router.
pub(super) const RESOLUTION: &str = "resolution";

/// Adds the applications of a model to the settings of a router; `hosts` are the names of the HSSs.
pub(super) fn add(
    router: &mut Value,
    model: &DsrModel,
    hosts: &[String],
    place: &Place,
) -> Result<(), RigError> {
    if let Some(resolution) = &model.fabr {
        one_by_one(router, resolution, hosts, place)?;
    } else if let Some(ranges) = model.subscribers() {
        by_ranges(router, &ranges, hosts, &place.folder)?;
    }
    if let Some(lists) = &model.equipment {
        register(router, lists, &place.folder)?;
    }
    if let Some(roaming) = &model.dsa {
        let learns = matches!(model.drill, Some(Drill::Learning(_)));
        guard(router, roaming, learns, &place.folder)?;
    }
    if model.pdra.is_some() {
        let policy = pdra::application(hosts, place)?;
        host(router, policy, json!({ "applications": [GX, RX] }));
    }
    if model.ocdra.is_some() {
        let charging = ocdra::application(hosts, place)?;
        host(router, charging, json!({ "applications": [CREDIT_CONTROL] }));
    }
    Ok(())
}

/// The name of an HSS as a destination.
pub(super) fn home(number: u64) -> String {
    format!("hss{number:03}")
}

/// Has the router run this application alone, for the requests that fit `when`.
fn host(router: &mut Value, application: Value, when: Value) {
    let name = application["name"].clone();
    router["applications"] = json!([application]);
    router["routing"]["applicationRouteTables"] = json!([{
        "name": "default",
        "rules": [{ "when": when, "action": { "application": name } }],
    }]);
}

fn destinations(hosts: &[String]) -> Vec<Value> {
    let named = hosts
        .iter()
        .zip(0..)
        .map(|(host, number)| json!({ "name": home(number), "host": host }));
    named.collect()
}

/// Makes the router the server of S13, with these lists in a file.
fn register(router: &mut Value, lists: &EquipmentLists, folder: &Path) -> Result<(), RigError> {
    let file = folder.join("equipment.csv");
    files::write(&file, |out| lists.write(out))?;
    let register = json!({ "name": "register", "eir": { "file": file } });
    host(router, register, json!({ "applications": [S13] }));
    Ok(())
}

/// Adds address resolution: which range of IMSIs leads to which HSS, in a file as the router reads it.
fn by_ranges(
    router: &mut Value,
    ranges: &SubscriberRanges,
    hosts: &[String],
    folder: &Path,
) -> Result<(), RigError> {
    let mut text = String::new();
    for number in 0..ranges.count {
        let first = ranges.first + number * ranges.size;
        let last = first + ranges.size - 1;
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "imsi,{first:015},{last:015},{}",
            home(number % ranges.nodes.max(1))
        );
    }
    let file = folder.join("ranges.csv");
    std::fs::write(&file, text).map_err(RigError::io(format!("writing {}", file.display())))?;
    let subscribers = json!({
        "name": "subscribers",
        "rbar": {
            "lookups": [{ "applications": [S6A], "identities": ["imsi"] }],
            "destinations": destinations(hosts),
            "file": file,
            "onInvalidIdentity": { "answer": { "resultCode": 5012, "message": "no IMSI" } },
            "onNoMatch": { "answer": { "resultCode": 3002, "message": "no range holds the IMSI" } },
        },
    });
    host(router, subscribers, json!({ "applications": [S6A] }));
    Ok(())
}

/// Adds full address resolution: IMSIs and MSISDNs in a file of numbers, public identities in a file beside it.
fn one_by_one(
    router: &mut Value,
    resolution: &Resolution,
    hosts: &[String],
    place: &Place,
) -> Result<(), RigError> {
    let count = hosts.len().max(1) as u64;
    let home_of = |subscriber: u64| home(subscriber % count);
    let has_identities = resolution.has_identities();
    let mut lookups = vec![json!({
        "applications": [S6A],
        "service": "lte-hss",
        "entities": [{ "entity": "imsi", "avps": ["userName"] }],
    })];
    let refused = |message: &str| json!({ "answer": { "resultCode": 3002, "message": message } });
    let mut fabr = json!({
        "destinations": destinations(hosts),
        "onNoValidAddress": refused("no valid address"),
        "onNoMatch": refused("the address is not known"),
    });
    if has_identities {
        let entity = |entity: &str| json!({ "entity": entity, "avps": ["publicIdentity"] });
        lookups.push(json!({
            "applications": [CX],
            "service": "ims-hss",
            "entities": [entity("msisdn"), entity("impu")],
        }));
    }
    if resolution.processors > 0 {
        fabr["onDatabaseError"] = refused("no database processor has the address");
    } else {
        files_of(resolution, &mut fabr, home_of, place)?;
    }
    fabr["lookups"] = json!(lookups);
    let when = json!({ "applications": [S6A, CX], "destinationHost": { "present": false } });
    host(router, json!({ "name": RESOLUTION, "fabr": fabr }), when);
    Ok(())
}

/// Has the router read the subscribers itself.
fn files_of(
    resolution: &Resolution,
    fabr: &mut Value,
    home_of: impl Fn(u64) -> String + Copy,
    place: &Place,
) -> Result<(), RigError> {
    // Public identities are in a file beside the numbers, which come first.
    let numbers = if resolution.has_identities() { 2 } else { 1 };
    let addresses = &Address::ALL[..numbers];
    let text = place.folder.join("numbers.csv");
    files::write(&text, |out| {
        resolution.write(addresses, Address::entity, home_of, out)
    })?;
    fabr["numbers"] = json!(files::import_numbers(&text, place)?);
    if resolution.has_identities() {
        let file = place.folder.join("identities.csv");
        files::write(&file, |out| {
            resolution.write(&[Address::Name], Address::entity, home_of, out)
        })?;
        fabr["file"] = json!(file);
    }
    if resolution.writes > 0 {
        fabr["changes"] = json!(place.folder.join("changes.csv"));
    }
    Ok(())
}

/// Has a security application screen everything, without a time to learn: it knows each roamer from its first message on.
fn guard(router: &mut Value, roaming: &Roaming, learns: bool, folder: &Path) -> Result<(), RigError> {
    // Longer than a run: a reload ends it.
    let learning = if learns { "24h" } else { "0s" };
    let tables = folder.join("dsa");
    security::write(roaming, &tables).map_err(RigError::io(format!("writing {}", tables.display())))?;
    let guard = json!({
        "name": "guard",
        "dsa": { "tables": tables, "findings": folder.join("findings.jsonl"), "learning": learning },
    });
    host(router, guard, json!({}));
    Ok(())
}
