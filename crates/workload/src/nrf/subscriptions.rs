//! Who subscribes to what (TS 29.510 §5.2.2.5), and how many notifications a change causes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use callmodel::nrf::NrfModel;
use simulators::network::population::{Function, Population};

/// What a subscription is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// All functions of a type.
    Type(String),
    /// One function.
    Instance(String),
    /// A set.
    Set(String),
    /// All functions that offer a service.
    Service(String),
}

impl Condition {
    /// As `subscrCond` says it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Self::Type(nf_type) => json!({ "nfType": nf_type }),
            Self::Instance(id) => json!({ "nfInstanceId": id }),
            Self::Set(set) => json!({ "nfSetId": set }),
            Self::Service(name) => json!({ "serviceName": name }),
        }
    }
}

/// The subscriptions that stand when the load begins.
#[derive(Clone, Debug)]
pub struct Plan {
    /// All of them.
    pub conditions: Vec<Condition>,
    count: BTreeMap<Condition, u32>,
    monitored: Vec<String>,
    events: Vec<String>,
    validity_s: u64,
}

impl Plan {
    /// The subscriptions of a model.
    #[must_use]
    pub fn new(model: &NrfModel, population: &Population) -> Self {
        let wanted = &model.subscriptions;
        let mut types: Vec<&str> = population.functions.iter().map(Function::nf_type).collect();
        types.dedup();
        types.sort_unstable();
        types.dedup();
        let mut sets: Vec<String> = population.functions.iter().filter_map(Function::set).collect();
        sets.sort();
        sets.dedup();
        let mut services: Vec<&str> = population
            .functions
            .iter()
            .flat_map(|f| f.services().iter().copied())
            .collect();
        services.sort_unstable();
        services.dedup();
        let ids = population
            .functions
            .iter()
            .map(|f| Condition::Instance(f.id.clone()));
        let mut conditions = Vec::new();
        take(
            &mut conditions,
            wanted.by_nf_type,
            types.iter().map(|t| Condition::Type((*t).to_owned())),
        );
        take(&mut conditions, wanted.by_nf_instance, ids);
        take(
            &mut conditions,
            wanted.by_nf_set,
            sets.iter().map(|s| Condition::Set(s.clone())),
        );
        take(
            &mut conditions,
            wanted.by_service,
            services.iter().map(|s| Condition::Service((*s).to_owned())),
        );
        let mut count = BTreeMap::new();
        for condition in &conditions {
            *count.entry(condition.clone()).or_insert(0) += 1;
        }
        Self {
            conditions,
            count,
            monitored: wanted.monitored_attributes.clone(),
            events: wanted.events.clone(),
            validity_s: wanted.validity.as_secs(),
        }
    }

    /// How many notifications a change of this function causes.
    #[must_use]
    pub fn matching(&self, function: &Function) -> u32 {
        let of = |condition: Condition| self.count.get(&condition).copied().unwrap_or(0);
        of(Condition::Type(function.nf_type().to_owned()))
            + of(Condition::Instance(function.id.clone()))
            + function.set().map_or(0, |set| of(Condition::Set(set)))
            + function
                .services()
                .iter()
                .map(|s| of(Condition::Service((*s).to_owned())))
                .sum::<u32>()
    }

    /// The body of the request for a subscription; notifications go to `sink`.
    #[must_use]
    pub fn body(&self, condition: &Condition, sink: &str) -> String {
        json!({
            "nfStatusNotificationUri": sink,
            "reqNfInstanceId": simulators::network::population::instance_id(0xee, 1),
            "reqNfType": "AMF",
            "subscrCond": condition.to_json(),
            "validityTime": validity_time(self.validity_s),
            "reqNotifEvents": self.events,
            "notifCondition": { "monitoredAttributes": self.monitored },
        })
        .to_string()
    }

    /// The body of the request that extends a subscription (JSON Patch).
    #[must_use]
    pub fn extension(&self) -> String {
        let patch =
            [json!({ "op": "replace", "path": "/validityTime", "value": validity_time(self.validity_s) })];
        json!(patch).to_string()
    }
}

fn take(into: &mut Vec<Condition>, count: u32, from: impl Iterator<Item = Condition> + Clone) {
    into.extend(from.cycle().take(count as usize));
}

/// This long from now, as TS 29.571 writes times.
fn validity_time(seconds: u64) -> String {
    let end = time::OffsetDateTime::now_utc() + std::time::Duration::from_secs(seconds);
    end.format(&time::format_description::well_known::Rfc3339)
        .unwrap_or_default()
}
