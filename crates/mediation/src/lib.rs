//! Mediation: an operator's rules that look at a message on its way and change it, refuse it or steer it.
//!
//! Rules are data ([`RuleSet`]); [`Engine::compile`] checks them all at once and turns them into a form that
//! costs little where they do not apply: groups are filed by trigger point and by the service they are for,
//! so a message meets only the groups written for its service, and the JSON body is parsed only when a
//! condition or action that is reached needs it. A compiled engine is immutable; a reload swaps the whole
//! engine while messages that began with the old one finish with it.
//!
//! What it does not do: look into multipart bodies, or loop. The cost of a message is bounded by the number
//! of rules.

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
    /// Per trigger point: which groups a message of a service meets, in order.
    tables: [Table; TRIGGER_POINTS],
}

/// The groups of one trigger point, as positions in [`Engine::groups`].
#[derive(Debug, Default)]
struct Table {
    /// For services that some group names: those groups and the ones for all services, in order.
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
    /// How often this rule has applied. Only rules that apply write it, and those are few.
    applied: AtomicU64,
}

/// What mediation decided, beside the changes it made to the message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// How many rules applied.
    pub applied: usize,
    /// Whether the body was changed and has to be serialised again.
    pub body_changed: bool,
    /// What routing takes over.
    pub steering: Steering,
    /// Answer with this instead of going on.
    pub reject: Option<Rejection>,
}

impl Engine {
    /// Checks and compiles `rules`.
    ///
    /// # Errors
    /// Every mistake of the rule set, each with the place where it is.
    pub fn compile(rules: &RuleSet) -> Result<Self, Vec<RuleFault>> {
        compile::compile(rules)
    }

    /// Whether any group waits at this point; where not, nothing need be prepared for [`Engine::run`].
    #[must_use]
    pub fn watches(&self, point: TriggerPoint, service: &str) -> bool {
        !self.tables[point.index()].of(service).is_empty()
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

    /// How often each rule has applied since it was compiled: group, rule, count.
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
    fn of(&self, service: &str) -> &[usize] {
        self.by_service.get(service).unwrap_or(&self.others)
    }
}

#[cfg(test)]
mod tests;
