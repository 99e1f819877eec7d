//! Requests of consumers through an SCP, by API root (Model C) or by discovery parameters (Model D).

mod population;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use rand::Rng;
use rand::rngs::SmallRng;

use crate::callmodel::scp::ScpModel;
use crate::load::{Answer, Draft, Fault, Interest, Ticket, Workload};
use crate::weights::Weights;

pub use population::{Member, Population, registered_as};

/// What a run sends to producers, counted for its checks.
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
    interfaces: Weights,
    body: Bytes,
    expected: Arc<Expected>,
    turn: usize,
}

/// Header that mediation rules look for; its value names the rule.
pub const MEDIATED: &str = "x-lab-mediate";

impl ScpWorkload {
    /// The traffic of a model towards a population.
    #[must_use]
    pub fn new(model: &Arc<ScpModel>, population: &Arc<Population>, expected: &Arc<Expected>) -> Self {
        let padding = "x".repeat((model.request_bytes as usize).saturating_sub(11));
        Self {
            interfaces: Weights::new(model.interfaces.iter().map(|one| one.weight)),
            body: format!(r#"{{"data":"{padding}"}}"#).into(),
            model: model.clone(),
            population: population.clone(),
            expected: expected.clone(),
            turn: 0,
        }
    }
}

impl Workload for ScpWorkload {
    /// Each interface by API root, then each by discovery.
    fn operations(&self) -> Vec<String> {
        let names = self.model.interfaces.iter().map(|one| one.name.as_str());
        let direct = names.clone().map(|name| format!("{name} (C)"));
        direct.chain(names.map(|name| format!("{name} (D)"))).collect()
    }

    fn headers(&self) -> Vec<(&'static str, String)> {
        vec![("accept", "application/json".to_owned())]
    }

    fn next(&mut self, random: &mut SmallRng, draft: &mut Draft) -> Ticket {
        let at = self.interfaces.draw(random);
        let interface = &self.model.interfaces[at];
        let delegated = random.random_bool(self.model.delegated.fraction());
        self.turn = self.turn.wrapping_add(1);
        draft.method = "POST";
        draft.path.extend_from_slice(b"/");
        draft.path.extend_from_slice(interface.service.as_bytes());
        draft.path.extend_from_slice(b"/v1/contexts");
        draft.content_type = Some("application/json");
        draft.body = self.body.clone();
        draft
            .headers
            .push(("user-agent", format!("{}-lab", interface.consumer)));
        if delegated {
            for (name, value) in [
                (
                    "3gpp-sbi-discovery-target-nf-type",
                    population::registered_as(&interface.producer),
                ),
                (
                    "3gpp-sbi-discovery-requester-nf-type",
                    interface.consumer.as_str(),
                ),
                ("3gpp-sbi-discovery-service-names", interface.service.as_str()),
            ] {
                draft.headers.push((name, value.to_owned()));
            }
        } else {
            let fails = random.random_bool(self.model.alternate_routed.fraction());
            let target = self.population.target(&interface.producer, self.turn, fails);
            draft.headers.push(("3gpp-sbi-target-apiroot", target.to_owned()));
        }
        if self.model.mediation_rules > 0 && random.random_bool(self.model.mediated.fraction()) {
            let rule = random.random_range(0..self.model.mediation_rules);
            draft.headers.push((MEDIATED, rule.to_string()));
        }
        let operation = match delegated {
            false => at,
            true => at + self.model.interfaces.len(),
        };
        Ticket {
            operation: u16::try_from(operation).unwrap_or(u16::MAX),
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
