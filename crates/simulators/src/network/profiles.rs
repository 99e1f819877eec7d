//! Profiles (TS 29.510 §6.1.6.2.2) of an exact size.
//!
//! What a profile of its type would really hold comes first; tracking areas and entries of `customInfo` fill
//! it up to the bytes the model says.

use std::net::SocketAddr;

use sbi_proto::json::length;
use serde_json::{Value, json};

use super::population::{Function, services};

/// The lab's network.
const PLMN: (&str, &str) = ("001", "01");

/// The profile of a function, as compact JSON of `function.bytes` bytes (or a little more, where the
/// least that the type needs is more). An SLF offers its service at `slf`.
#[must_use]
pub fn profile(function: &Function, heartbeat_s: u64, slf: Option<SocketAddr>) -> String {
    filled(base(function, heartbeat_s, slf), function).to_string()
}

/// The profile of a function that listens at an address: nothing in it names another place.
#[must_use]
pub fn profile_at(function: &Function, heartbeat_s: u64, at: SocketAddr, scheme: &str) -> String {
    let mut profile = base(function, heartbeat_s, None);
    if let Some(members) = profile.as_object_mut() {
        members.remove("fqdn");
        members.remove("ipv4Addresses");
    }
    let (addresses, address) = match at {
        SocketAddr::V4(_) => ("ipv4Addresses", "ipv4Address"),
        SocketAddr::V6(_) => ("ipv6Addresses", "ipv6Address"),
    };
    profile[addresses] = json!([at.ip()]);
    let services = profile.get_mut("nfServices").and_then(Value::as_array_mut);
    for service in services.into_iter().flatten() {
        service["scheme"] = json!(scheme);
        service["ipEndPoints"] = json!([{ address: at.ip(), "port": at.port() }]);
    }
    filled(profile, function).to_string()
}

/// A profile with as many tracking areas and entries of `customInfo` as its size leaves room for.
fn filled(mut profile: Value, function: &Function) -> Value {
    let aim = function.bytes as usize;
    if let Some(areas) = areas_of(&mut profile) {
        let room = aim.saturating_sub(length(areas) + 1200) / 60;
        let list: Vec<Value> = (0..room.max(1)).map(|n| tai(function.cell, n as u32)).collect();
        *areas = Value::Array(list);
        // Entries differ a little in length: take away what is too much.
        while length(&profile) + 40 > aim {
            match areas_of(&mut profile).and_then(Value::as_array_mut) {
                Some(list) if list.len() > 1 => list.truncate(list.len() - 1),
                _ => break,
            }
        }
    }
    pad(&mut profile, aim);
    profile
}

/// An answer to a discovery (TS 29.510 §6.2.6.2.2) as another NRF would give it.
#[must_use]
pub fn remote_answer(target: &str, profiles: u32, bytes: u32) -> String {
    let instances: Vec<Value> = (0..profiles)
        .map(|number| {
            let function = Function {
                kind: target.to_owned(),
                id: super::population::instance_id(0xff, number),
                number,
                cell: 0xff,
                bytes,
            };
            // Proof: it was written by serde_json a moment ago.
            serde_json::from_str(&profile(&function, 30, None)).unwrap_or_default()
        })
        .collect();
    json!({ "validityPeriod": 60, "nfInstances": instances }).to_string()
}

fn base(function: &Function, heartbeat_s: u64, slf: Option<SocketAddr>) -> Value {
    let (mcc, mnc) = PLMN;
    let Function {
        kind,
        id,
        number,
        cell,
        ..
    } = function;
    let name = kind.to_ascii_lowercase();
    let address = format!("10.{}.{}.{}", cell % 250 + 1, number / 250, number % 250 + 1);
    let mut profile = json!({
        "nfInstanceId": id,
        "nfType": function.nf_type(),
        "nfStatus": "REGISTERED",
        "heartBeatTimer": heartbeat_s,
        "plmnList": [{ "mcc": mcc, "mnc": mnc }],
        "fqdn": format!("{name}{number}.{name}.5gc.mnc001.mcc001.3gppnetwork.org"),
        "ipv4Addresses": [address],
        "priority": 10 + number % 80,
        "capacity": 100,
        "load": 20,
        "locality": format!("site-{}", cell % 8 + 1),
    });
    let small = function.bytes < 1000;
    let offered: Vec<Value> = services(kind)
        .iter()
        .map(|service| {
            let end_point = match slf {
                Some(slf) if kind == "SLF" => json!({ "ipv4Address": slf.ip(), "port": slf.port() }),
                _ => json!({ "ipv4Address": address, "port": 8080 }),
            };
            let mut offered = json!({
                "serviceInstanceId": format!("{service}-1"),
                "serviceName": service,
                "versions": [{ "apiVersionInUri": "v1", "apiFullVersion": "1.0.0" }],
                "scheme": "http",
                "nfServiceStatus": "REGISTERED",
                "ipEndPoints": [end_point],
            });
            if !small {
                offered["priority"] = json!(1);
                offered["capacity"] = json!(100);
            }
            offered
        })
        .collect();
    profile["nfServices"] = json!(offered);
    if small {
        return profile;
    }
    if let Some(set) = function.set() {
        profile["nfSetIdList"] = json!([set]);
    }
    profile["sNssais"] = json!([slice(*cell)]);
    describe(function, &mut profile);
    profile
}

/// The part of a profile that only its type has.
fn describe(function: &Function, profile: &mut Value) {
    let (mcc, mnc) = PLMN;
    let cell = function.cell;
    match function.kind.as_str() {
        "AMF" => {
            profile["amfInfo"] = json!({
                "amfSetId": format!("{:03x}", cell + 1),
                "amfRegionId": "01",
                "guamiList": [{ "plmnId": { "mcc": mcc, "mnc": mnc }, "amfId": amf_id(cell) }],
                "taiList": [],
            });
        }
        "SMF" => {
            profile["smfInfo"] = json!({
                "sNssaiSmfInfoList": [{
                    "sNssai": slice(cell),
                    "dnnSmfInfoList": [{ "dnn": dnn(cell) }, { "dnn": "ims" }],
                }],
                "pgwFqdn": pgw(cell),
                "taiList": [],
            });
        }
        "UDM" => {
            profile["udmInfo"] =
                json!({ "groupId": function.group(), "routingIndicators": [routing_indicator(cell)] });
        }
        "AUSF" => {
            profile["ausfInfo"] =
                json!({ "groupId": function.group(), "routingIndicators": [routing_indicator(cell)] });
        }
        "UDR" => {
            profile["udrInfo"] = json!({ "groupId": function.group(), "supportedDataSets": ["SUBSCRIPTION", "POLICY", "A_PFD"] });
        }
        "PCF" => profile["pcfInfo"] = json!({ "groupId": function.group(), "dnnList": [dnn(cell)] }),
        "CHF" => profile["chfInfo"] = json!({ "groupId": function.group() }),
        "LMF" => profile["lmfInfo"] = json!({ "lmfId": format!("lmf-{}", function.number) }),
        "BSF" => profile["bsfInfo"] = json!({ "dnnList": ["internet", "ims"] }),
        _ => {}
    }
}

/// The data network of a cell.
#[must_use]
pub fn dnn(cell: u32) -> String {
    format!("internet{cell}")
}

/// The combined SMF and PGW name of a cell.
#[must_use]
pub fn pgw(cell: u32) -> String {
    format!("pgw{cell}.node.epc.mnc001.mcc001.3gppnetwork.org")
}

/// The AMF identity of a cell: region 1, set by the cell, pointer 1 (TS 23.003 §2.10.1).
#[must_use]
pub fn amf_id(cell: u32) -> String {
    format!("{:06x}", 0x01_0000 | ((cell + 1) & 0x3ff) << 6 | 1)
}

/// The routing indicator of a cell.
#[must_use]
pub fn routing_indicator(cell: u32) -> String {
    format!("{:04}", cell % 10_000)
}

/// The slice of a cell.
#[must_use]
pub fn slice(cell: u32) -> Value {
    json!({ "sst": 1, "sd": format!("{:06x}", cell + 1) })
}

/// The `n`th tracking area of a cell.
#[must_use]
pub fn tai(cell: u32, n: u32) -> Value {
    let (mcc, mnc) = PLMN;
    json!({ "plmnId": { "mcc": mcc, "mnc": mnc }, "tac": format!("{:06x}", (cell + 1) << 12 | n & 0xfff) })
}

fn areas_of(profile: &mut Value) -> Option<&mut Value> {
    let info = if profile.get("amfInfo").is_some() {
        "amfInfo"
    } else {
        "smfInfo"
    };
    profile.get_mut(info)?.get_mut("taiList")
}

/// Fills `customInfo` until the profile has `aim` bytes.
fn pad(profile: &mut Value, aim: usize) {
    const FRAME: usize = r#","customInfo":{"lab":[]}"#.len();
    let missing = aim.saturating_sub(length(profile) + FRAME);
    if missing < 4 {
        return;
    }
    // Strings of up to 100 bytes; the last takes what is left, quotes and comma included.
    let mut left = missing + 1;
    let mut entries = Vec::new();
    while left > 110 {
        entries.push("x".repeat(97));
        left -= 100;
    }
    entries.push("x".repeat(left - 3));
    profile["customInfo"] = json!({ "lab": entries });
}
