//! Every query parameter of discovery: a value that fits a profile, one that does not, and one that is wrong.
//!
//! [`table`] has them all, [`answers`] what an answer has of the profiles that fit, [`preferences`] in which order.
//! Straight through the domain, without sockets; that no parameter of the standard is missing here is
//! checked against the OpenAPI file where it is present.

mod answers;
mod preferences;
mod table;

use std::borrow::Cow;
use std::sync::Arc;

use model::NfType;
use nrf::discovery::{About, Answer, Extent, Localities, Policy, Query, select};
use registry::{Entry, Snapshot};
use serde_json::Value;

fn policy() -> Policy {
    Policy {
        max_profiles: 12,
        max_complete_bytes: 1 << 20,
        validity: Default::default(),
        default_validity: 60,
        empty_validity: Default::default(),
        suspended_for: Vec::new(),
        localities: Localities::default(),
        own_plmns: Vec::new(),
    }
}

fn snapshot(profiles: &[Value]) -> Snapshot {
    profiles.iter().fold(Snapshot::default(), |snapshot, profile| {
        let entry = Entry::parse(profile.to_string().as_bytes(), |_| 30)
            .unwrap_or_else(|fault| panic!("{profile}: {fault:?}"));
        snapshot.with(Arc::new(entry))
    })
}

/// Asks for UDMs, as an AMF, with these parameters beside.
fn ask(profiles: &[Value], parameters: &[(&str, &str)]) -> Result<(Answer, Value), String> {
    ask_by(&policy(), profiles, parameters)
}

fn ask_by(
    policy: &Policy,
    profiles: &[Value],
    parameters: &[(&str, &str)],
) -> Result<(Answer, Value), String> {
    let mut pairs: Vec<(Cow<'_, str>, Cow<'_, str>)> = Vec::new();
    let (mut supi, mut gpsi) = (None, None);
    for (name, value) in parameters {
        match *name {
            "supi" => supi = Some(*value),
            "gpsi" => gpsi = Some(*value),
            name => pairs.push((name.into(), (*value).into())),
        }
    }
    for (name, value) in [("target-nf-type", "UDM"), ("requester-nf-type", "AMF")] {
        if !pairs.iter().any(|(known, _)| known == name) {
            pairs.push((name.into(), value.into()));
        }
    }
    let query = Query::parse(&pairs).map_err(|fault| fault.name().to_owned())?;
    let snapshot = snapshot(profiles);
    let about = About {
        supi,
        gpsi,
        group: None,
        ..About::default()
    };
    let table = snapshot.of_type(&NfType::Udm).map(|table| &**table);
    let answer = select(&query, about, table, policy, &Extent::Page(None));
    let json = serde_json::from_slice(&answer.body).unwrap();
    Ok((answer, json))
}

fn ids(answer: &Value) -> Vec<String> {
    let list = answer["nfInstances"].as_array().unwrap();
    list.iter()
        .map(|one| one["nfInstanceId"].as_str().unwrap().to_owned())
        .collect()
}

fn merge(into: &mut Value, more: Value) {
    if let (Some(into), Value::Object(more)) = (into.as_object_mut(), more) {
        into.extend(more);
    }
}
