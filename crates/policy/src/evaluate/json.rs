//! Operations on JSON: merge patches (RFC 7396), pointers (RFC 6901), selections of members.

use std::borrow::Cow;

use serde_json::Value as Json;

use crate::fault::FaultKind;
use crate::value::{Text, Value};

use super::{Outcome, Run};

/// Levels of JSON that a parser gives at most.
const DEEPEST: usize = 128;

impl<'a> Run<'a, '_> {
    /// Merges a patch into a value (RFC 7396).
    pub(super) fn merge(&mut self, target: Value<'a>, patch: Value<'a>, level: usize) -> Outcome<Value<'a>> {
        let Some(changes) = patch.members() else {
            return Ok(patch);
        };
        self.deeper(level)?;
        let mut members = target.members().unwrap_or_default();
        self.charge(64 * (members.len() + changes.len()))?;
        self.spend((members.len() * changes.len()) as u64 / 16)?;
        for (key, change) in changes {
            let position = members
                .iter()
                .position(|(known, _)| known.as_str() == key.as_str());
            match (position, change) {
                (Some(position), Value::Null) => drop(members.remove(position)),
                (None, Value::Null) => {}
                (Some(position), change) => {
                    let before = std::mem::replace(&mut members[position].1, Value::Null);
                    members[position].1 = self.merge(before, change, level + 1)?;
                }
                (None, change) => {
                    // A patch without a target: its nulls go as well.
                    let merged = match change.members() {
                        Some(_) => self.merge(Value::Null, change, level + 1)?,
                        None => change,
                    };
                    members.push((key, merged));
                }
            }
        }
        self.made(Value::object(members))
    }

    /// The members that a list names, or the others.
    pub(super) fn select(&mut self, value: &Value<'a>, names: &Value<'a>, named: bool) -> Outcome<Value<'a>> {
        let (Some(members), Some(names)) = (value.members(), names.items()) else {
            return Ok(Value::Null);
        };
        self.spend((members.len() * names.len()) as u64 / 16)?;
        let wanted = |key: &str| names.iter().any(|name| name.as_str() == Some(key)) == named;
        let members = members.into_iter().filter(|(key, _)| wanted(key.as_str()));
        self.made(Value::object(members.collect()))
    }

    /// The value at a pointer; null where there is none.
    pub(super) fn pointer(&mut self, value: &Value<'a>, pointer: &Value<'a>) -> Outcome<Value<'a>> {
        let Some(tokens) = pointer.as_str().and_then(tokens) else {
            return Ok(Value::Null);
        };
        self.charge(tokens.len() * 32)?;
        let mut found = value.clone();
        for token in tokens {
            found = match found.is_list() {
                true => index(&token).map_or(Value::Null, |index| found.item(index)),
                false => found.member(&token),
            };
        }
        Ok(found)
    }

    /// A copy with a new value at a pointer; null for the new value removes. Objects on the way are made.
    pub(super) fn put_at(
        &mut self,
        value: Value<'a>,
        pointer: &Value<'a>,
        new: Value<'a>,
    ) -> Outcome<Value<'a>> {
        match pointer.as_str().and_then(tokens) {
            Some(tokens) => self.put_within(value, &tokens, new, 0),
            None => Ok(Value::Null),
        }
    }

    fn put_within(
        &mut self,
        value: Value<'a>,
        tokens: &[Cow<'_, str>],
        new: Value<'a>,
        level: usize,
    ) -> Outcome<Value<'a>> {
        let Some((token, rest)) = tokens.split_first() else {
            return Ok(new);
        };
        self.deeper(level)?;
        if let Some(mut items) = value.items() {
            let position = if token == "-" {
                Some(items.len())
            } else {
                index(token)
            };
            let Some(position) = position.filter(|position| *position <= items.len()) else {
                return Ok(value);
            };
            let before = items.get(position).cloned().unwrap_or(Value::Null);
            let after = self.put_within(before, rest, new, level + 1)?;
            match (position < items.len(), after) {
                (true, Value::Null) => drop(items.remove(position)),
                (true, after) => items[position] = after,
                (false, Value::Null) => {}
                (false, after) => items.push(after),
            }
            return self.made(Value::list(items));
        }
        let mut members = value.members().unwrap_or_default();
        let position = members.iter().position(|(key, _)| key.as_str() == token);
        let before = position.map_or(Value::Null, |position| members[position].1.clone());
        let after = self.put_within(before, rest, new, level + 1)?;
        match (position, after) {
            (Some(position), Value::Null) => drop(members.remove(position)),
            (Some(position), after) => members[position].1 = after,
            (None, Value::Null) => {}
            (None, after) => members.push((Text::from(token.clone().into_owned()), after)),
        }
        self.made(Value::object(members))
    }

    /// JSON in a text; null where it is not JSON.
    pub(super) fn parse(&mut self, value: &Value<'a>) -> Outcome<Value<'a>> {
        let Some(text) = value.as_str() else {
            return Ok(Value::Null);
        };
        self.charge(8 * text.len())?;
        let Ok(json) = serde_json::from_str::<Json>(text) else {
            return Ok(Value::Null);
        };
        self.own(json, 0)
    }

    fn own(&mut self, json: Json, level: usize) -> Outcome<Value<'a>> {
        self.deeper(level)?;
        Ok(match json {
            Json::String(text) => Value::text(text),
            Json::Array(items) => {
                let mut list = Vec::with_capacity(items.len());
                for item in items {
                    list.push(self.own(item, level + 1)?);
                }
                self.made(Value::list(list))?
            }
            Json::Object(map) => {
                let mut members = Vec::with_capacity(map.len());
                for (key, value) in map {
                    members.push((Text::from(key), self.own(value, level + 1)?));
                }
                self.made(Value::object(members))?
            }
            Json::Bool(yes) => Value::Bool(yes),
            Json::Number(number) => match number.as_i64() {
                Some(int) => Value::Int(int),
                None => number.as_f64().map_or(Value::Null, Value::Float),
            },
            Json::Null => Value::Null,
        })
    }

    fn deeper(&self, level: usize) -> Outcome<()> {
        if level > DEEPEST {
            let what = format!("JSON nests deeper than {DEEPEST} levels");
            return Err(self.fault(FaultKind::Depth, what));
        }
        Ok(())
    }
}

/// Tokens of a pointer; the empty one names the whole.
fn tokens(pointer: &str) -> Option<Vec<Cow<'_, str>>> {
    if pointer.is_empty() {
        return Some(Vec::new());
    }
    let rest = pointer.strip_prefix('/')?;
    let token = |token| match str::contains(token, '~') {
        true => Cow::Owned(token.replace("~1", "/").replace("~0", "~")),
        false => Cow::Borrowed(token),
    };
    Some(rest.split('/').map(token).collect())
}

/// The index of an array (RFC 6901 §4: without leading zeros).
fn index(token: &str) -> Option<usize> {
    match token.strip_prefix('0') {
        Some("") => Some(0),
        Some(_) => None,
        None => token.parse().ok(),
    }
}
