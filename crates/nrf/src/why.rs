//! Explains a discovery: runs the selection with notes on the present registry.

use std::collections::BTreeMap;
use std::sync::Arc;

use registry::{Entry, Snapshot, TypeTable};
use sbi::Fields;
use serde_json::{Value, json};

use crate::api::discovery::{cut_subscriber, question};
use crate::config::Config;
use crate::discovery::{About, Extent, Notes, Plan, Policy, select_noting};
use crate::forwarding::Routes;

/// Profiles that are named at most; the rest is counted.
const NAMED: usize = 100;
/// The group of the subscriber as the location function would answer it: a parameter of the page, not of discovery.
const GROUP: &str = "slf-group=";

/// What was dropped.
#[derive(Default)]
struct Dropped {
    counts: BTreeMap<String, usize>,
    named: Vec<Value>,
}

impl Notes for Dropped {
    const WANTED: bool = true;

    fn dropped(&mut self, entry: &Arc<Entry>, by: &str, why: &'static str) {
        *self.counts.entry(by.to_owned()).or_default() += 1;
        if self.named.len() < NAMED {
            self.named.push(json!({
                "nfInstanceId": entry.id.to_string(),
                "nfInstanceName": entry.profile.nf_instance_name,
                "nfStatus": entry.status.as_str(),
                "by": by,
                "why": why,
            }));
        }
    }
}

/// Explains what a discovery with these parameters finds. Without `slf-group` no group is known, as if the NF type
/// needed none: this page asks no location function.
///
/// # Errors
/// When the query is invalid: why.
pub(crate) fn explain(config: &Config, snapshot: &Snapshot, raw: &str) -> Result<Value, String> {
    let (groups, rest): (Vec<&str>, Vec<&str>) =
        raw.split('&').partition(|parameter| parameter.starts_with(GROUP));
    let group = groups.first().and_then(|parameter| parameter.strip_prefix(GROUP));
    let rest = rest.join("&");
    let (text, supi, gpsi) = cut_subscriber(&rest).map_err(|fault| fault.to_string())?;
    let plan = Plan::parse(&text).map_err(|fault| fault.to_string())?;
    let table = snapshot.of_type(&plan.target).map(|table| &**table);
    let about = About {
        supi: supi.as_deref(),
        gpsi: gpsi.as_deref(),
        group: group.map(|group| Some(group).filter(|group| !group.is_empty())),
        validity: None,
    };
    let policy = Policy::new(&config.discovery, config.forwarding.plmns());
    let mut dropped = Dropped::default();
    let page = Extent::Page(None);
    let entries = table.into_iter().flat_map(TypeTable::iter);
    let answer = select_noting(&plan.query, about, entries, &policy, &page, &mut dropped);
    let answer: Value = serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
    let located = config
        .slf
        .target_types
        .iter()
        .any(|nf_type| nf_type == plan.target.as_str());
    let needs_group = located && about.group.is_none() && (supi.is_some() || gpsi.is_some());
    let mut explained = json!({
        "targetNfType": plan.target.as_str(),
        "registered": table.map_or(0, TypeTable::len),
        "answered": answered(&answer),
        "droppedBy": dropped.counts,
        "dropped": dropped.named,
        "ignoredParameters": plan.query.unknown,
    });
    for name in [
        "validityPeriod",
        "noProfileMatchInfo",
        "preferredSearch",
        "alteredPriorityInd",
    ] {
        if let Some(value) = answer.get(name) {
            explained[name] = value.clone();
        }
    }
    if let Some(destination) = destination(config, &plan) {
        explained["forwarded"] = destination;
    }
    if needs_group && !plan.query.names_groups {
        explained["group"] = "a location function would be queried for the group of the subscriber; \
            slf-group=GROUP in this query stands for its answer"
            .into();
    }
    Ok(explained)
}

/// The profiles of an answer, in order.
fn answered(answer: &Value) -> Value {
    let found = answer.get("nfInstances").and_then(Value::as_array);
    let each = found.into_iter().flatten().map(|one| {
        let member = |name: &str| one.get(name).cloned().unwrap_or_default();
        let listed = member("nfServices");
        let mapped = member("nfServiceList");
        let names: Vec<&Value> = listed
            .as_array()
            .into_iter()
            .flatten()
            .chain(mapped.as_object().into_iter().flat_map(|map| map.values()))
            .filter_map(|service| service.get("serviceName"))
            .collect();
        json!({
            "nfInstanceId": member("nfInstanceId"),
            "priority": member("priority"),
            "capacity": member("capacity"),
            "load": member("load"),
            "locality": member("locality"),
            "services": names,
        })
    });
    each.collect()
}

/// Where a rule or the home network takes the query.
fn destination(config: &Config, plan: &Plan) -> Option<Value> {
    let routes = Routes::new(&config.forwarding, &config.nf_instance_id);
    let destination = routes.destination(&question(plan), &Fields::default())?;
    let targets: Vec<String> = destination.targets.iter().map(ToString::to_string).collect();
    Some(json!({
        "to": targets,
        "through": destination.through.map(|sepp| sepp.to_string()),
        "onlyWhenEmpty": destination.only_when_empty,
        "homeNetwork": destination.is_home,
    }))
}
