//! Compiles rules; reports every mistake with its path.

use std::collections::HashSet;
use std::sync::atomic::AtomicU64;

use http::{HeaderName, HeaderValue, Method};
use regex::RegexBuilder;
use serde_json::Value;

use super::action::{HeaderSource, JsonSource, Step};
use super::condition::{Operator, Subject, Test};
use super::pointer::Pointer;
use super::rules::{Action, Condition, Group, Property, Rule, RuleSet, Steering, TriggerPoint};
use super::{CompiledGroup, CompiledRule, Engine};

/// Largest compiled size of a regular expression, in bytes; a larger one is refused.
const PATTERN_BYTES_MAX: usize = 256 * 1024;
/// Deepest nesting of conditions.
const DEPTH_MAX: usize = 16;

/// A mistake in a rule set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFault {
    /// Where, as a path into the rule set: `groups[3].rules[0].when[1].matches`.
    pub path: String,
    /// What is wrong and what would be right.
    pub message: String,
}

#[derive(Default)]
struct Faults(Vec<RuleFault>);

impl Faults {
    fn say(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.0.push(RuleFault {
            path: path.into(),
            message: message.into(),
        });
    }

    /// Returns the value of `result`, or reports its fault.
    fn take<T>(&mut self, path: &str, result: Result<T, String>) -> Option<T> {
        result.map_err(|message| self.say(path, message)).ok()
    }
}

pub(super) fn compile(rules: &RuleSet) -> Result<Engine, Vec<RuleFault>> {
    let mut faults = Faults::default();
    let mut engine = Engine::default();
    let mut names = HashSet::new();
    for (i, group) in rules.groups.iter().enumerate() {
        let path = format!("groups[{i}]");
        if group.name.is_empty() {
            faults.say(
                format!("{path}.name"),
                "a group needs a name, which metrics and logs show",
            );
        } else if !names.insert(group.name.as_str()) {
            faults.say(
                format!("{path}.name"),
                format!("another group is named `{}` already", group.name),
            );
        }
        if group.trigger_points.is_empty() {
            faults.say(
                format!("{path}.triggerPoints"),
                "expected at least one of requestIngress, requestEgress, responseIngress, responseEgress",
            );
        }
        let compiled = compile_group(group, &path, &mut faults);
        engine.groups.push(compiled);
    }
    if !faults.0.is_empty() {
        return Err(faults.0);
    }
    file(&mut engine, rules);
    Ok(engine)
}

/// Fills the tables: the groups that apply per trigger point and service, in the order of the rule set.
fn file(engine: &mut Engine, rules: &RuleSet) {
    for (index, table) in engine.tables.iter_mut().enumerate() {
        let here: Vec<(usize, &Group)> = rules
            .groups
            .iter()
            .enumerate()
            .filter(|(_, group)| group.trigger_points.iter().any(|point| point.index() == index))
            .collect();
        table.others = here
            .iter()
            .filter(|(_, group)| group.services.is_empty())
            .map(|(i, _)| *i)
            .collect();
        for service in here.iter().flat_map(|(_, group)| &group.services) {
            let met = here
                .iter()
                .filter(|(_, group)| group.services.is_empty() || group.services.contains(service))
                .map(|(i, _)| *i)
                .collect();
            table.by_service.insert(service.clone(), met);
        }
    }
}

fn compile_group(group: &Group, path: &str, faults: &mut Faults) -> CompiledGroup {
    let mut methods = Vec::new();
    for (i, method) in group.methods.iter().enumerate() {
        let method = method
            .parse::<Method>()
            .map_err(|_| format!("`{method}` is not an HTTP method"));
        methods.extend(faults.take(&format!("{path}.methods[{i}]"), method));
    }
    let mut names = HashSet::new();
    let mut rules = Vec::new();
    for (i, rule) in group.rules.iter().enumerate() {
        let path = format!("{path}.rules[{i}]");
        if rule.name.is_empty() {
            faults.say(
                format!("{path}.name"),
                "a rule needs a name, which metrics and logs show",
            );
        } else if !names.insert(rule.name.as_str()) {
            faults.say(
                format!("{path}.name"),
                format!("another rule of this group is named `{}`", rule.name),
            );
        }
        rules.push(compile_rule(group, rule, &path, faults));
    }
    CompiledGroup {
        name: group.name.clone(),
        methods,
        rules,
    }
}

fn compile_rule(group: &Group, rule: &Rule, path: &str, faults: &mut Faults) -> CompiledRule {
    let when = tests(&rule.when, &format!("{path}.when"), 0, faults);
    if rule.then.is_empty() {
        faults.say(format!("{path}.then"), "expected at least one action");
    }
    let mut then = Vec::new();
    for (i, action) in rule.then.iter().enumerate() {
        let path = format!("{path}.then[{i}]");
        then.extend(compile_action(group, action, &path, faults));
    }
    CompiledRule {
        name: rule.name.clone(),
        when,
        then,
        stop: rule.stop,
        applied: AtomicU64::new(0),
    }
}

fn tests(conditions: &[Condition], path: &str, depth: usize, faults: &mut Faults) -> Vec<Test> {
    let each = conditions.iter().enumerate();
    each.filter_map(|(i, condition)| test(condition, &format!("{path}[{i}]"), depth + 1, faults))
        .collect()
}

fn test(condition: &Condition, path: &str, depth: usize, faults: &mut Faults) -> Option<Test> {
    if depth > DEPTH_MAX {
        faults.say(path, format!("conditions nest deeper than {DEPTH_MAX}"));
        return None;
    }
    let mut forms = Vec::new();
    if !condition.all.is_empty() {
        forms.push(Some(Test::All(tests(
            &condition.all,
            &format!("{path}.all"),
            depth,
            faults,
        ))));
    }
    if !condition.any.is_empty() {
        forms.push(Some(Test::Any(tests(
            &condition.any,
            &format!("{path}.any"),
            depth,
            faults,
        ))));
    }
    if let Some(not) = &condition.not {
        let inner = test(not, &format!("{path}.not"), depth + 1, faults);
        forms.push(inner.map(|inner| Test::Not(Box::new(inner))));
    }
    let subjects = subjects(condition, path, faults);
    let operators = operators(condition, path, faults);
    let has_test = !(subjects.is_empty() && operators.is_empty());
    if has_test {
        match (subjects.len(), operators.len()) {
            (1, 1) => {}
            (0, _) => faults.say(path, "a test needs a subject: expected `header`, `json` or `on`"),
            (1, 0) => faults.say(
                path,
                "a subject needs a test: expected one of `exists`, `equals`, `in`, `startsWith`, `endsWith`, \
                 `contains`, `matches`, `above`, `below`",
            ),
            (1, _) => faults.say(path, "expected one test; use `all` to combine several"),
            _ => faults.say(path, "expected one subject; use `all` to combine several"),
        }
        let one = subjects
            .into_iter()
            .next()
            .flatten()
            .zip(operators.into_iter().next().flatten());
        forms.push(one.map(|(subject, operator)| Test::One(subject, operator)));
    }
    match forms.len() {
        1 => forms.pop().flatten(),
        0 => {
            faults.say(
                path,
                "an empty condition: expected a subject with a test, or `all`, `any`, `not`",
            );
            None
        }
        _ => {
            faults.say(
                path,
                "expected either a subject with a test, or one of `all`, `any`, `not`",
            );
            None
        }
    }
}

fn subjects(condition: &Condition, path: &str, faults: &mut Faults) -> Vec<Option<Subject>> {
    let mut found = Vec::new();
    if let Some(name) = &condition.header {
        found.push(
            faults
                .take(&format!("{path}.header"), header_name(name))
                .map(Subject::Header),
        );
    }
    if let Some(pointer) = &condition.json {
        found.push(
            faults
                .take(&format!("{path}.json"), Pointer::parse(pointer))
                .map(Subject::Json),
        );
    }
    if let Some(property) = condition.on {
        found.push(Some(Subject::Property(property)));
    }
    found
}

fn operators(condition: &Condition, path: &str, faults: &mut Faults) -> Vec<Option<Operator>> {
    let mut found = Vec::new();
    found.extend(condition.exists.map(|wanted| Some(Operator::Exists(wanted))));
    found.extend(
        condition
            .equals
            .clone()
            .map(|value| Some(Operator::OneOf(vec![value]))),
    );
    if !condition.one_of.is_empty() {
        found.push(Some(Operator::OneOf(condition.one_of.clone())));
    }
    found.extend(
        condition
            .starts_with
            .clone()
            .map(|text| Some(Operator::StartsWith(text))),
    );
    found.extend(
        condition
            .ends_with
            .clone()
            .map(|text| Some(Operator::EndsWith(text))),
    );
    found.extend(
        condition
            .contains
            .clone()
            .map(|text| Some(Operator::Contains(text))),
    );
    if let Some(pattern) = &condition.matches {
        let compiled = RegexBuilder::new(pattern)
            .size_limit(PATTERN_BYTES_MAX)
            .build()
            .map_err(|error| format!("`{pattern}` is not a usable regular expression: {error}"));
        found.push(
            faults
                .take(&format!("{path}.matches"), compiled)
                .map(Operator::Matches),
        );
    }
    found.extend(condition.above.map(|bound| Some(Operator::Above(bound))));
    found.extend(condition.below.map(|bound| Some(Operator::Below(bound))));
    found
}

fn compile_action(group: &Group, action: &Action, path: &str, faults: &mut Faults) -> Option<Step> {
    match action {
        Action::AddHeader(a) => {
            let (name, source) = header_and_source(&a.name, a.value.as_ref(), a.from.as_ref(), path, faults)?;
            Some(Step::AddHeader(name, source))
        }
        Action::SetHeader(a) => {
            let (name, source) = header_and_source(&a.name, a.value.as_ref(), a.from.as_ref(), path, faults)?;
            Some(Step::SetHeader(name, source))
        }
        Action::ReplaceHeader(a) => {
            let (name, source) = header_and_source(&a.name, a.value.as_ref(), a.from.as_ref(), path, faults)?;
            Some(Step::ReplaceHeader(name, source))
        }
        Action::RemoveHeader(a) => Some(Step::RemoveHeader(changeable(&a.name, path, faults)?)),
        Action::RenameHeader(a) => {
            let from = changeable(&a.name, path, faults);
            let to = changeable(&a.to, path, faults);
            Some(Step::RenameHeader(from?, to?))
        }
        Action::SetJson(a) => {
            let pointer = faults.take(&format!("{path}.setJson.pointer"), Pointer::parse(&a.pointer))?;
            let source = match (&a.value, &a.from) {
                (Some(value), None) => JsonSource::Literal(value.clone()),
                (None, Some(from)) => JsonSource::Copy(faults.take(path, source(from))?),
                _ => {
                    faults.say(path, "expected either `value` or `from`");
                    return None;
                }
            };
            Some(Step::SetJson(pointer, source))
        }
        Action::RemoveJson(a) => {
            let pointer = faults.take(&format!("{path}.removeJson.pointer"), Pointer::parse(&a.pointer))?;
            if pointer.is_root() {
                faults.say(path, "the whole body cannot be removed: name a member");
                return None;
            }
            Some(Step::RemoveJson(pointer))
        }
        Action::MoveJson(a) => {
            let from = faults.take(&format!("{path}.moveJson.from"), Pointer::parse(&a.from))?;
            let to = faults.take(&format!("{path}.moveJson.to"), Pointer::parse(&a.to))?;
            if from.is_root() || from.is_above(&to) {
                faults.say(path, "a member cannot be moved into itself");
                return None;
            }
            Some(Step::MoveJson(from, to))
        }
        Action::Reject(rejection) => {
            if !(400..=599).contains(&rejection.status) {
                let message = format!("expected a status from 400 to 599, not {}", rejection.status);
                faults.say(format!("{path}.reject.status"), message);
            }
            if group.trigger_points.iter().any(|point| point.is_response()) {
                faults.say(
                    path,
                    "a response cannot be rejected: the producer has processed the request already",
                );
            }
            Some(Step::Reject(rejection.clone()))
        }
        Action::Route(steering) => {
            if group
                .trigger_points
                .iter()
                .any(|point| *point != TriggerPoint::RequestIngress)
            {
                faults.say(
                    path,
                    "`route` works only at requestIngress: later the producer is already selected",
                );
            }
            check_steering(steering, path, faults);
            Some(Step::Route(steering.clone()))
        }
    }
}

fn check_steering(steering: &Steering, path: &str, faults: &mut Faults) {
    if *steering == Steering::default() {
        faults.say(path, "`route` sets nothing: expected at least one attribute");
    }
    if steering.priority.is_some_and(|priority| priority > 31) {
        faults.say(
            format!("{path}.route.priority"),
            "expected 0 (highest) to 31 (TS 29.500 §6.8)",
        );
    }
}

fn header_and_source(
    name: &str,
    value: Option<&String>,
    from: Option<&String>,
    path: &str,
    faults: &mut Faults,
) -> Option<(HeaderName, HeaderSource)> {
    let name = changeable(name, path, faults);
    let source = match (value, from) {
        (Some(value), None) => {
            let value = HeaderValue::from_str(value)
                .map_err(|_| "a header value is visible ASCII, spaces and tabs only".to_owned());
            faults.take(path, value).map(HeaderSource::Literal)
        }
        (None, Some(from)) => faults.take(path, source(from)).map(HeaderSource::Copy),
        _ => {
            faults.say(path, "expected either `value` or `from`");
            None
        }
    };
    name.zip(source)
}

/// Parses the name of a header that rules may change; headers that frame the message are refused.
fn changeable(name: &str, path: &str, faults: &mut Faults) -> Option<HeaderName> {
    let name = faults.take(path, header_name(name))?;
    if name == http::header::CONTENT_LENGTH || name == http::header::TRANSFER_ENCODING {
        faults.say(
            path,
            format!("`{name}` follows from the body and cannot be changed by a rule"),
        );
        return None;
    }
    Some(name)
}

fn header_name(name: &str) -> Result<HeaderName, String> {
    let valid = name.parse::<HeaderName>();
    valid.map_err(|_| format!("`{name}` is not a header name: expected letters, digits and `-`"))
}

/// `header:NAME`, `json:/POINTER`, `method`, `path`, `query`, `status`.
fn source(text: &str) -> Result<Subject, String> {
    match text.split_once(':') {
        Some(("header", name)) => header_name(name).map(Subject::Header),
        Some(("json", pointer)) => Pointer::parse(pointer).map(Subject::Json),
        _ => match serde_json::from_value::<Property>(Value::String(text.to_owned())) {
            Ok(property) => Ok(Subject::Property(property)),
            Err(_) => Err(format!(
                "`{text}` is not a source: expected `header:NAME`, `json:/POINTER`, `method`, `path`, `query` or `status`"
            )),
        },
    }
}
