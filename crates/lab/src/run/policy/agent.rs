//! A Policy DRA before the PCFs of all sites.

use std::net::SocketAddr;

use diameter_proto::known::application::{GX, RX};
use serde_json::{Value, json};

use super::Site;
use super::diameter::REALM;
use crate::run::children::Guarded;
use crate::run::dsr::{await_peers, start_router};
use crate::run::rig::{Place, RigError, free_address};

/// Its name, of which the PCFs have to know.
pub(super) fn host() -> String {
    format!("dsr.{REALM}")
}

/// Starts it, and waits until it is connected to the PCFs; its address.
pub(super) fn start(place: &Place, sites: &[Site]) -> Result<(Guarded, SocketAddr), RigError> {
    let (address, admin) = (free_address()?, free_address()?);
    let store = place.empty_folder("sbr")?;
    let beside = Place {
        function_cpus: place.lab_cpus.clone(),
        ..place.clone()
    };
    let of = |member: fn(&Site) -> Value| -> Vec<Value> { sites.iter().map(member).collect() };
    let made = json!({ "dsr": {
        "admin": admin.to_string(),
        "workers": 1,
        "localNodes": [{ "name": "dsr", "host": host(), "realm": REALM, "listen": [address.to_string()] }],
        "peers": of(|site| json!({
            "host": site.host, "addresses": [site.diameter], "timers": { "reconnectMin": "50ms", "reopen": "afterSilence" },
        })),
        "dynamicPeers": [{ "realms": [workload::pcrf::REALM], "networks": ["127.0.0.0/8"] }],
        "applications": [{
            "name": "policy",
            "pdra": {
                "repository": { "store": { "embedded": { "directory": store } } },
                "pools": [{ "name": "all", "pcrfs": of(|site| json!({ "host": site.host })) }],
                // As long as clients wait: how long a session takes to be on the disk is the machine's.
                "wait": "5s",
            },
        }],
        "routing": { "applicationRouteTables": [{
            "name": "default",
            "rules": [{ "when": { "applications": [GX, RX] }, "action": { "application": "policy" } }],
        }] },
    }});
    let router = start_router(&beside, made, None, address)?;
    await_peers(admin, |peers| peers + 0.5 > sites.len() as f64)?;
    Ok((router, address))
}
