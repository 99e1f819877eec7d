//! Settings and files of the STP, as its own reference page explains them.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::run::files;
use crate::run::rig::{Place, RigError};
use callmodel::stp::StpModel;
use ss7_proto::PointCode;
use workload::stp::{CAP, Network, OWN, OWN_GROUP, PREPAID_KEY, Party, Role, SCREENED_CALLING};

/// The screening list of the MSCs.
const LIST: &str = "mscs";

/// The file of translations.
pub(super) fn translations(place: &Place) -> PathBuf {
    place.folder.join("translations.csv")
}

fn numbers(place: &Place) -> PathBuf {
    place.folder.join("numbers.csv")
}

fn equipment(place: &Place) -> PathBuf {
    place.folder.join("equipment.csv")
}

/// Writes the files that the settings name.
pub(crate) fn write_files(model: &StpModel, network: &Network, place: &Place) -> Result<(), RigError> {
    if has_translations(model, network) {
        files::write(&translations(place), |out| network.write_translations(0, out))?;
    }
    if model.numbers > 0 {
        let text = numbers(place);
        files::write(&text, |out| network.write_numbers(out))?;
        files::import_numbers(&text, place)?;
    }
    if let Some(lists) = &model.equipment {
        files::write(&equipment(place), |out| lists.write(out))?;
    }
    Ok(())
}

fn has_translations(model: &StpModel, network: &Network) -> bool {
    model.translations > 0 || network.has_gateway() || network.has_control_point()
}

/// Makes the settings.
pub(crate) fn settings(
    model: &StpModel,
    network: &Network,
    place: &Place,
    (address, admin): (SocketAddr, SocketAddr),
) -> Value {
    let screening = (model.screening_rules > 0).then_some(LIST);
    let nodes: Vec<Party> = network.parties().collect();
    let mut made = json!({ "stp": around(OWN, &nodes, screening) });
    let stp = &mut made["stp"];
    stp["admin"] = json!(admin.to_string());
    stp["listen"] = json!(address.to_string());
    stp["workers"] = json!(place.function_cpus.len());
    if has_translations(model, network) || model.numbers > 0 {
        stp["translation"] = json!({ "groups": groups(network) });
    }
    if has_translations(model, network) {
        let set = json!({ "name": "e164", "numberingPlan": 1, "file": translations(place) });
        stp["translation"]["sets"] = json!([set]);
    }
    if model.screening_rules > 0 {
        stp["screening"] = json!([{ "name": LIST, "rules": rules(model.screening_rules) }]);
    }
    if model.numbers > 0 {
        stp["numberServices"] = json!({
            "file": numbers(place).with_extension("num"), "countryCode": "43", "own": ["43664", "43665", "43676"],
        });
        if network.has_calls() {
            stp["numberServices"]["calls"] = calls(network);
        }
    }
    if model.equipment.is_some() {
        stp["equipment"] = json!({ "file": equipment(place) });
    }
    made
}

/// Queries, calls of prepaid subscribers, and IAMs of MSCs.
fn calls(network: &Network) -> Value {
    let mscs: Vec<String> = network.mscs().map(Party::name).collect();
    let mut calls = json!({ "subsystems": [CAP], "intercept": mscs, "unallocated": "release" });
    if network.has_control_point() {
        calls["prepaid"] = json!([{ "serviceKeys": [PREPAID_KEY], "number": "calling" }]);
    }
    calls
}

/// Point code, links and application servers of an STP with these nodes; a screening list for what MSCs send.
pub(crate) fn around(own: PointCode, nodes: &[Party], screening: Option<&str>) -> Value {
    let link = |party: &Party| json!({ "name": party.name(), "transport": "tcp", "peer": [party.address()] });
    let server = |party: &Party| {
        let mut server = json!({
            "name": party.name(),
            "routingContext": party.routing_context(),
            "links": [party.name()],
            "pointCodes": [party.point_code().0.to_string()],
        });
        if let Some(list) = screening.filter(|_| party.role == Role::Msc) {
            server["screening"] = json!(list);
        }
        server
    };
    json!({
        "pointCodes": { "own": own.0.to_string() },
        "links": nodes.iter().map(link).collect::<Vec<Value>>(),
        "applicationServers": nodes.iter().map(server).collect::<Vec<Value>>(),
    })
}

/// Where translations lead to.
pub(crate) fn groups(network: &Network) -> Vec<Value> {
    let servers = network.parties().filter(|party| party.role != Role::Msc);
    let group = |party: Party| {
        json!({
            "name": party.name(),
            "members": [{ "pointCode": party.point_code().0.to_string() }],
        })
    };
    let own = json!({ "name": OWN_GROUP, "members": [{ "pointCode": OWN.0.to_string() }] });
    let own = network.has_control_point().then_some(own);
    servers.map(group).chain(own).collect()
}

/// Rules that fit no message of the load, but for the last: what it screens returns.
pub(crate) fn rules(count: u16) -> Vec<Value> {
    let others = (1..count).map(|number| {
        // No node has such a point code, and no title begins like that.
        let code = (0x2000 + u32::from(number)).to_string();
        match number % 4 {
            0 => json!({ "action": "block", "opc": [code] }),
            1 => json!({ "action": "block", "dpc": [code], "serviceIndicators": [3] }),
            2 => json!({ "action": "block", "called": { "digits": [format!("1{number:04}")], "subsystems": [6] } }),
            _ => json!({ "action": "block", "calling": { "digits": [format!("1{number:04}")] } }),
        }
    });
    let last = json!({ "action": "return", "calling": { "digits": [SCREENED_CALLING] } });
    others.chain([last]).collect()
}
