//! Mediation: an operator's rules that inspect a message and change it, reject it or steer its routing.
//!
//! Rules are data ([`RuleSet`]); [`Engine::compile`] checks them all and builds tables by trigger point and
//! service, so that a message only meets the groups of its service. The engine parses the JSON body only when a
//! condition or action needs it. A compiled engine is immutable; a reload swaps the whole engine, and messages that
//! began with the old one finish with it.
//!
//! The engine does not read multipart bodies and has no loops. The cost of a message is bounded by the number of
//! rules.

mod action;
mod compile;
mod condition;
mod message;
mod pointer;
mod rules;

use std::sync::atomic::{AtomicU64, Ordering};

use ahash::AHashMap;
use http::Method;

pub use compile::RuleFault;
pub use message::{Document, Mediated};
pub use rules::{
    Action, AtPointer, Condition, Group, HeaderValueAction, JsonValueAction, Moved, Named, Property,
    Rejection, Renamed, Rule, RuleSet, Steering, TriggerPoint,
};

use rules::TRIGGER_POINTS;

/// Compiled rules, ready to run on any worker.
#[derive(Debug, Default)]
pub struct Engine {
    groups: Vec<CompiledGroup>,
    /// Per trigger point, the groups that apply to a message of a service, in order.
    tables: [Table; TRIGGER_POINTS],
}

/// The groups of one trigger point, as positions in [`Engine::groups`].
#[derive(Debug, Default)]
struct Table {
    /// For each service that a group names: its groups and those for all services, in order.
    by_service: AHashMap<String, Vec<usize>>,
    /// For every other service.
    others: Vec<usize>,
}

#[derive(Debug)]
struct CompiledGroup {
    name: String,
    methods: Vec<Method>,
    rules: Vec<CompiledRule>,
}

#[derive(Debug)]
struct CompiledRule {
    name: String,
    when: Vec<condition::Test>,
    then: Vec<action::Step>,
    stop: bool,
    /// Number of messages to which this rule has applied. Only a rule that applies writes it.
    applied: AtomicU64,
}

/// Decisions of mediation, beside the changes to the message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Number of rules that applied.
    pub applied: usize,
    /// Whether the body was changed and has to be serialised again.
    pub body_changed: bool,
    /// Attributes for routing.
    pub steering: Steering,
    /// Answer for the consumer instead of forwarding the request.
    pub reject: Option<Rejection>,
}

impl Engine {
    /// Checks and compiles `rules`.
    ///
    /// # Errors
    /// Every mistake of the rule set with its path.
    pub fn compile(rules: &RuleSet) -> Result<Self, Vec<RuleFault>> {
        compile::compile(rules)
    }

    /// Whether any group applies at this point, to whichever service.
    #[must_use]
    pub fn watches_any(&self, point: TriggerPoint) -> bool {
        !self.tables[point.index()].is_empty()
    }

    /// Whether any group applies at this point; if not, [`Engine::run`] need not be called.
    #[must_use]
    pub fn watches(&self, point: TriggerPoint, service: &str) -> bool {
        // Most points have no rules at all.
        self.watches_any(point) && !self.tables[point.index()].of(service).is_empty()
    }

    /// Runs the rules of `point` for a message of `service` (first segment of its API path).
    pub fn run(&self, point: TriggerPoint, service: &str, message: &mut Mediated<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        for &position in self.tables[point.index()].of(service) {
            let group = &self.groups[position];
            if !group.methods.is_empty() && !group.methods.contains(message.method) {
                continue;
            }
            for rule in &group.rules {
                if !rule.when.iter().all(|test| test.holds(message)) {
                    continue;
                }
                rule.applied.fetch_add(1, Ordering::Relaxed);
                outcome.applied += 1;
                for step in &rule.then {
                    step.take(message, &mut outcome);
                }
                if outcome.reject.is_some() {
                    return outcome;
                }
                if rule.stop {
                    break;
                }
            }
        }
        outcome.body_changed = message.document.is_changed();
        outcome
    }

    /// Group, rule and the number of messages to which the rule has applied since it was compiled.
    pub fn applied(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        self.groups.iter().flat_map(|group| {
            group.rules.iter().map(|rule| {
                (
                    group.name.as_str(),
                    rule.name.as_str(),
                    rule.applied.load(Ordering::Relaxed),
                )
            })
        })
    }
}

impl Table {
    fn is_empty(&self) -> bool {
        self.by_service.is_empty() && self.others.is_empty()
    }

    fn of(&self, service: &str) -> &[usize] {
        self.by_service.get(service).unwrap_or(&self.others)
    }
}

#[cfg(test)]
mod tests;
