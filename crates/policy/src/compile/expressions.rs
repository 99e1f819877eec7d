//! Expressions: constants, references, operations.

use serde_json::{Map, Value as Json};
use settings::path_key;

use crate::expression::Expr;
use crate::glob::Glob;
use crate::operation::{FORMS, Named, OPERATIONS, Operation};

use super::{Compiler, suggest};

/// Whether a value of a project is computed: a reference or an operation.
pub(super) fn is_computed(json: &Json) -> bool {
    match json {
        Json::String(text) => text.starts_with('$') && !text.starts_with("$$"),
        Json::Object(map) => map.keys().any(|key| key.starts_with('$')),
        _ => false,
    }
}

impl Compiler<'_> {
    pub(super) fn expression(&mut self, json: &Json, path: &str, depth: usize) -> Expr {
        if depth > self.limits.depth {
            let expected = format!(
                "at most {} levels (`depth`); a variable for a part of it",
                self.limits.depth
            );
            self.fault(path, "the expression nests too deeply", expected);
            return Expr::Constant(Json::Null);
        }
        match json {
            Json::String(text) => match text.strip_prefix('$') {
                Some(rest) if rest.starts_with('$') => Expr::Constant(Json::String(rest.to_owned())),
                Some(_) => self.reference(text, path, depth),
                None => Expr::Constant(json.clone()),
            },
            Json::Array(items) => {
                let items = self.expressions(items, path, depth);
                let constants: Option<Vec<Json>> =
                    items.iter().map(|item| item.constant().cloned()).collect();
                constants.map_or(Expr::List(items), |items| Expr::Constant(Json::Array(items)))
            }
            Json::Object(map) if is_computed(json) => self.operation(map, path, depth),
            Json::Object(map) => {
                let members: Vec<(String, Expr)> = map
                    .iter()
                    .map(|(key, value)| {
                        (
                            key.clone(),
                            self.expression(value, &path_key(path, key), depth + 1),
                        )
                    })
                    .collect();
                let constants: Option<Map<String, Json>> = members
                    .iter()
                    .map(|(key, value)| Some((key.clone(), value.constant()?.clone())))
                    .collect();
                constants.map_or(Expr::Object(members), |map| Expr::Constant(Json::Object(map)))
            }
            scalar => Expr::Constant(scalar.clone()),
        }
    }

    fn expressions(&mut self, items: &[Json], path: &str, depth: usize) -> Vec<Expr> {
        let item =
            |(index, item): (usize, &Json)| self.expression(item, &format!("{path}[{index}]"), depth + 1);
        items.iter().enumerate().map(item).collect()
    }

    fn operation(&mut self, map: &Map<String, Json>, path: &str, depth: usize) -> Expr {
        let null = Expr::Constant(Json::Null);
        let Some((name, argument)) = map.iter().find(|(key, _)| key.starts_with('$')) else {
            return null;
        };
        let companions: &[&str] = if name == "$script" {
            &["$script", "with"]
        } else {
            &[name]
        };
        for key in map.keys().filter(|key| !companions.contains(&key.as_str())) {
            let expected = format!("`{name}` alone; objects and operations do not mix");
            self.fault(path_key(path, key), format!("`{key}` beside `{name}`"), expected);
        }
        let path = path_key(path, name);
        if let Some(named) = OPERATIONS.iter().find(|named| named.name == name) {
            return self.apply(named, argument, &path, depth);
        }
        let usage = FORMS
            .iter()
            .find(|(form, _)| form == name)
            .map(|(_, usage)| *usage);
        let Some(usage) = usage else {
            let known: Vec<&str> = OPERATIONS.iter().map(|named| named.name).collect();
            let known: Vec<&str> = known
                .into_iter()
                .chain(FORMS.iter().map(|(name, _)| *name))
                .collect();
            self.fault(
                &path,
                format!("unknown operation `{name}`"),
                suggest(name, &known),
            );
            return null;
        };
        let found = match name.as_str() {
            "$literal" => Some(Expr::Constant(argument.clone())),
            "$script" => self.script_call(argument, map.get("with"), &path, depth),
            "$time" => self.time(argument, &path),
            _ => self.text_form(name, argument, &path, depth),
        };
        found.unwrap_or_else(|| {
            self.fault(&path, "the arguments do not fit", usage);
            null
        })
    }

    fn apply(&mut self, named: &Named, argument: &Json, path: &str, depth: usize) -> Expr {
        let (fewest, most) = named.arguments;
        let arguments = match argument {
            Json::Array(items) if most > 1 => items.as_slice(),
            // One argument is written without a list; a list there is the argument.
            one if fewest == 1 => std::slice::from_ref(one),
            _ => &[],
        };
        if arguments.len() < fewest || arguments.len() > most {
            let what = format!("`{}` has {} arguments", named.name, arguments.len());
            self.fault(path, what, named.usage);
            return Expr::Constant(Json::Null);
        }
        if named.operation == Operation::In
            && let [value, Json::String(list)] = arguments
            && !list.starts_with('$')
        {
            let known: Vec<&str> = self.names.lists.keys().map(String::as_str).collect();
            let Some(position) = self.names.lists.get(list).copied() else {
                let expected = suggest(list, &known);
                self.fault(path, format!("no match list is called `{list}`"), expected);
                return Expr::Constant(Json::Null);
            };
            return Expr::InList(Box::new(self.expression(value, path, depth + 1)), position);
        }
        let arguments = match argument {
            Json::Array(_) if most > 1 => self.expressions(arguments, path, depth),
            one => vec![self.expression(one, path, depth + 1)],
        };
        Expr::Apply(named.operation, arguments)
    }

    /// `$matches`, `$capture`, `$wildcard`.
    fn text_form(&mut self, name: &str, argument: &Json, path: &str, depth: usize) -> Option<Expr> {
        let arguments = argument.as_array()?;
        let (value, pattern) = (arguments.first()?, arguments.get(1)?.as_str()?);
        let group = match (name, arguments.get(2)) {
            ("$capture", Some(group)) => usize::try_from(group.as_u64()?).ok()?,
            ("$capture", None) => return None,
            (_, Some(_)) => return None,
            _ => 0,
        };
        let value = Box::new(self.expression(value, path, depth + 1));
        if name == "$wildcard" {
            return Some(Expr::Wildcard(value, Glob::parse(pattern)));
        }
        let Some(position) = self.names.patterns.get(pattern).copied() else {
            let known: Vec<&str> = self.names.patterns.keys().map(String::as_str).collect();
            let expected = suggest(pattern, &known);
            self.fault(path, format!("no pattern is called `{pattern}`"), expected);
            return Some(Expr::Constant(Json::Null));
        };
        if name == "$matches" {
            return Some(Expr::Matches(value, position));
        }
        let groups = self.program.patterns[position]
            .regex
            .group_info()
            .group_len(regex_automata::PatternID::ZERO);
        if group >= groups {
            let what = format!("the pattern `{pattern}` has no group {group}");
            self.fault(
                path,
                what,
                format!("a group from 0 (the whole match) to {}", groups - 1),
            );
        }
        Some(Expr::Capture(value, position, group))
    }

    fn script_call(&mut self, name: &Json, with: Option<&Json>, path: &str, depth: usize) -> Option<Expr> {
        let name = name.as_str()?;
        let Some(position) = self.names.scripts.get(name).copied() else {
            let known: Vec<&str> = self.names.scripts.keys().map(String::as_str).collect();
            let expected = suggest(name, &known);
            self.fault(path, format!("no script is called `{name}`"), expected);
            return Some(Expr::Constant(Json::Null));
        };
        let none = Map::new();
        let with = match with {
            Some(Json::Object(with)) => with,
            None => &none,
            Some(_) => return None,
        };
        let parameters = self.program.scripts[position].parameters.clone();
        let known: Vec<&str> = parameters.iter().map(String::as_str).collect();
        self.known_keys(with, path, &known);
        let mut values = Vec::new();
        for parameter in &parameters {
            values.push(match with.get(parameter) {
                Some(value) => self.expression(value, path, depth + 1),
                None => {
                    let expected = format!("a value for each of {}", known.join(", "));
                    self.fault(
                        path,
                        format!("`with` lacks the parameter `{parameter}`"),
                        expected,
                    );
                    Expr::Constant(Json::Null)
                }
            });
        }
        Some(Expr::Script(position, values))
    }

    fn time(&mut self, argument: &Json, path: &str) -> Option<Expr> {
        const DAYS: &[&str] = &["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
        let map = argument.as_object()?;
        self.known_keys(map, path, &["from", "to", "days"]);
        let minutes = |key: &str, default: u16| match map.get(key) {
            Some(text) => {
                let (hour, minute) = text.as_str()?.split_once(':')?;
                let (hour, minute): (u16, u16) = (hour.parse().ok()?, minute.parse().ok()?);
                let minutes = hour.checked_mul(60)?.checked_add(minute)?;
                (minute < 60 && minutes <= 1440).then_some(minutes)
            }
            None => Some(default),
        };
        let (from, to) = (minutes("from", 0)?, minutes("to", 1440)?);
        let mut days = 0;
        match map.get("days") {
            None => days = 0x7f,
            Some(names) => {
                for name in names.as_array()? {
                    let day = DAYS.iter().position(|day| Some(*day) == name.as_str());
                    match day {
                        Some(day) => days |= 1 << day,
                        None => self.fault(
                            path_key(path, "days"),
                            format!("{name} is not a day"),
                            suggest("", DAYS),
                        ),
                    }
                }
            }
        }
        Some(Expr::TimeBetween(from, to, days))
    }
}
