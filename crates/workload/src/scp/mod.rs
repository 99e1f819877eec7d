//! Requests of consumers through an SCP, by API root (Model C) or by discovery parameters (Model D).

mod discovery;
mod operations;
mod population;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use rand::Rng;
use rand::rngs::SmallRng;

use callmodel::scp::{Method, ScpModel};
use loadgen::Weights;
use loadgen::{Answer, Draft, Fault, Interest, Ticket, Workload};

pub use operations::{Operation, Operations};
pub use population::{Addresses, Member, Population, Whom, locality_of, registered_as};
pub use simulators::network::{address_of, instance_of};

/// Requests that a run sends to producers, counted for its checks.
#[derive(Debug, Default)]
pub struct Expected {
    /// Requests that producers must have answered well.
    pub answered: AtomicU64,
}

/// One generator thread's share of the traffic.
#[derive(Debug)]
pub struct ScpWorkload {
    model: Arc<ScpModel>,
    population: Arc<Population>,
    operations: Operations,
    interfaces: Weights,
    priorities: Weights,
    methods: Vec<Method>,
    method_weights: Weights,
    /// Mediation rules that can apply to the requests of each interface.
    rules: Vec<Vec<u32>>,
    /// Share of the requests for a service with rules that one applies to.
    mediated: f64,
    body: Bytes,
    expected: Arc<Expected>,
    turn: usize,
}

/// Header that mediation rules match; its value names the rule.
pub const MEDIATED: &str = "x-lab-mediate";

impl ScpWorkload {
    /// The traffic of a model towards a population.
    #[must_use]
    pub fn new(model: &Arc<ScpModel>, population: &Arc<Population>, expected: &Arc<Expected>) -> Self {
        Self {
            interfaces: Weights::new(model.interfaces.iter().map(|one| one.weight)),
            priorities: Weights::new(model.priorities.iter().map(|one| one.weight)),
            methods: model.methods().iter().map(|(method, _)| *method).collect(),
            method_weights: Weights::new(model.methods().iter().map(|(_, weight)| *weight)),
            operations: Operations::new(model),
            mediated: model.applied_of_ruled(),
            rules: model
                .interfaces
                .iter()
                .map(|one| model.rules_of(&one.service))
                .collect(),
            body: body(model.request_bytes as usize).into(),
            model: model.clone(),
            population: population.clone(),
            expected: expected.clone(),
            turn: 0,
        }
    }
}

impl ScpWorkload {
    /// The mediation rule for a request of an interface, if one is to apply: one of headers where there is no body.
    fn rule(&self, interface: usize, has_body: bool, random: &mut SmallRng) -> Option<u32> {
        let rules = self.rules.get(interface).filter(|rules| !rules.is_empty())?;
        if !random.random_bool(self.mediated) {
            return None;
        }
        let first = random.random_range(0..rules.len());
        let mut turn = rules.iter().cycle().skip(first).take(rules.len());
        turn.find(|rule| has_body || !self.model.is_json_rule(**rule))
            .copied()
    }

    /// The producer in a request that names its producer.
    fn whom(&self, random: &mut SmallRng, nf_type: &str) -> Whom {
        // The share applies to all requests, though only those that name their producer can name one that fails.
        let direct = (1.0 - self.model.delegated.fraction()).max(1e-3);
        let failing = (self.model.alternate_routed.fraction() / direct).min(1.0);
        if random.random_bool(failing) {
            return Whom::Failing;
        }
        // Producers that fail are in the own region: an SCP selects the alternate within its region.
        let inter = self
            .model
            .inter_scp
            .as_ref()
            .filter(|inter| inter.concerns(nf_type));
        let far = inter.map(|inter| inter.share.fraction() / (1.0 - failing).max(1e-3));
        match far.is_some_and(|far| random.random_bool(far.min(1.0))) {
            true => Whom::Far,
            false => Whom::Near,
        }
    }
}

/// The `User-Agent` of a consumer.
#[must_use]
pub fn consumer_name(nf_type: &str, number: u32) -> String {
    format!("{nf_type}-{number:05}")
}

/// A JSON object of this many bytes: members of some 100 bytes, as the data of policies and subscriptions have.
fn body(bytes: usize) -> String {
    const EACH: usize = 100;
    let mut text = String::with_capacity(bytes);
    text.push('{');
    // The last member takes the remaining bytes: `"rest":"…"}`.
    for number in 0.. {
        let member = format!("\"member{number:04}\":");
        if text.len() + EACH + 10 > bytes {
            break;
        }
        text.push_str(&member);
        text.push('"');
        text.extend(std::iter::repeat_n('x', EACH - member.len() - 3));
        text.push_str("\",");
    }
    let left = bytes.saturating_sub(text.len() + 10);
    text.push_str("\"rest\":\"");
    text.extend(std::iter::repeat_n('x', left));
    text.push_str("\"}");
    text
}

impl Workload for ScpWorkload {
    fn operations(&self) -> Vec<String> {
        self.operations.names()
    }

    fn headers(&self) -> Vec<(&'static str, String)> {
        vec![("accept", "application/json".to_owned())]
    }

    fn next(&mut self, random: &mut SmallRng, draft: &mut Draft) -> Ticket {
        let at = self.interfaces.draw(random);
        let operation = Operation {
            interface: at,
            delegated: random.random_bool(self.model.delegated.fraction()),
            method: self.method_weights.draw(random),
            priority: self.priorities.draw(random),
        };
        let interface = &self.model.interfaces[at];
        self.turn = self.turn.wrapping_add(1);
        let method = self
            .methods
            .get(operation.method)
            .copied()
            .unwrap_or(Method::Post);
        draft.method = method.name();
        draft.path.extend_from_slice(b"/");
        draft.path.extend_from_slice(interface.service.as_bytes());
        draft.path.extend_from_slice(b"/v1/contexts");
        if method != Method::Post {
            draft.path.extend_from_slice(b"/1");
        }
        draft.content_type = match method {
            Method::Post | Method::Put => Some("application/json"),
            Method::Patch => Some("application/merge-patch+json"),
            Method::Get | Method::Delete => None,
        };
        if draft.content_type.is_some() {
            draft.body = self.body.clone();
        }
        let consumer = random.random_range(0..self.model.consumers.max(1));
        draft
            .headers
            .push(("user-agent", consumer_name(&interface.consumer, consumer)));
        if let Some(one) = self.model.priorities.get(operation.priority) {
            draft
                .headers
                .push(("3gpp-sbi-message-priority", one.priority.to_string()));
        }
        if operation.delegated {
            for (name, value) in [
                (
                    "3gpp-sbi-discovery-target-nf-type",
                    population::registered_as(&interface.producer),
                ),
                (
                    "3gpp-sbi-discovery-requester-nf-type",
                    interface.consumer.as_str(),
                ),
            ] {
                draft.headers.push((name, value.to_owned()));
            }
            let subscriber = random.random_range(0..self.model.subscribers.max(1));
            for parameter in &interface.discovery {
                let asked = discovery::Asked {
                    service: &interface.service,
                    consumer,
                    subscriber,
                };
                draft.headers.extend(asked.parameter(*parameter, random));
            }
            if self.model.tokens {
                let id = format!("00000000-0000-4000-9000-{consumer:012x}");
                draft
                    .headers
                    .push(("3gpp-sbi-discovery-requester-nf-instance-id", id));
                if let Some(oauth) = self.model.oauth {
                    draft.headers.extend(discovery::of_requester(oauth, random));
                }
            }
        } else {
            let whom = self.whom(random, &interface.producer);
            let target = self.population.target(&interface.producer, self.turn, whom);
            draft.headers.push(("3gpp-sbi-target-apiroot", target.to_owned()));
        }
        if let Some(rule) = self.rule(at, draft.content_type.is_some(), random) {
            draft.headers.push((MEDIATED, rule.to_string()));
        }
        Ticket {
            operation: self.operations.number(&operation),
            ..Ticket::default()
        }
    }

    fn interest(&mut self, _: &Ticket, _: u16, _: Option<u64>) -> Interest {
        Interest::Skip
    }

    fn judge(&mut self, _: &Ticket, answer: &Answer<'_>) -> Result<(), Fault> {
        if answer.status != 201 {
            return Err(Fault::Status);
        }
        if answer.length != u64::from(self.model.response_bytes) {
            return Err(Fault::Body(format!(
                "{} bytes instead of {}",
                answer.length, self.model.response_bytes
            )));
        }
        self.expected.answered.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn bodies_are_json_of_the_length_asked_for() {
        for bytes in [20, 99, 150, 1000, 4000, 4500] {
            let text = super::body(bytes);
            assert_eq!(text.len(), bytes);
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(
                value.as_object().unwrap().len(),
                1 + (bytes - 11) / 100,
                "{bytes}"
            );
        }
    }
}
