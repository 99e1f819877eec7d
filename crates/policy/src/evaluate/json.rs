//! Operations on JSON: merge patches (RFC 7396), pointers (RFC 6901), selections of members.

use std::borrow::Cow;

use bumpalo::collections::Vec as ArenaVec;
use serde_json::Value as Json;
use smallvec::SmallVec;

use crate::fault::FaultKind;
use crate::value::{Items, Member, Value};

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
        let known = target.members().map_or(0, |members| members.len());
        self.charge(64 * (known + changes.len()))?;
        self.spend((known * changes.len()) as u64 / 16)?;
        let mut members = self.copy_of(target, changes.len());
        for (key, change) in changes {
            let position = members.iter().position(|(known, _)| *known == key);
            match (position, change) {
                (Some(position), Value::Null) => {
                    members.remove(position);
                }
                (None, Value::Null) => {}
                (Some(position), change) => {
                    members[position].1 = self.merge(members[position].1, change, level + 1)?;
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
        self.made(Value::object(members.into_bump_slice(), self.arena))
    }

    /// The members of an object, with room for some more; none of what is not an object.
    fn copy_of(&self, value: Value<'a>, more: usize) -> ArenaVec<'a, Member<'a>> {
        let members = value.members();
        let length = members.as_ref().map_or(0, ExactSizeIterator::len);
        let mut copy = ArenaVec::with_capacity_in(length + more, self.arena);
        copy.extend(members.into_iter().flatten());
        copy
    }

    /// The members that a list names, or the others.
    pub(super) fn select(&mut self, value: Value<'a>, names: Value<'a>, named: bool) -> Outcome<Value<'a>> {
        let (Some(members), Some(names)) = (value.members(), names.items()) else {
            return Ok(Value::Null);
        };
        self.spend((members.len() * names.len()) as u64 / 16)?;
        let wanted = |key: &str| names.clone().any(|name| name.as_str() == Some(key)) == named;
        let mut selected = ArenaVec::new_in(self.arena);
        selected.extend(members.filter(|(key, _)| wanted(key)));
        self.made(Value::object(selected.into_bump_slice(), self.arena))
    }

    /// The value at a pointer; null where there is none.
    pub(super) fn pointer(&mut self, value: Value<'a>, pointer: Value<'a>) -> Outcome<Value<'a>> {
        let Some(tokens) = pointer.as_str().and_then(tokens) else {
            return Ok(Value::Null);
        };
        self.charge(tokens.len() * 32)?;
        let mut found = value;
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
        pointer: Value<'a>,
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
        if let Some(items) = value.items() {
            return self.put_item(value, items, (&**token, rest), new, level);
        }
        let mut members = self.copy_of(value, 1);
        let position = members.iter().position(|(key, _)| key == token);
        let before = position.map_or(Value::Null, |position| members[position].1);
        let after = self.put_within(before, rest, new, level + 1)?;
        match (position, after) {
            (Some(position), Value::Null) => {
                members.remove(position);
            }
            (Some(position), after) => members[position].1 = after,
            (None, Value::Null) => {}
            (None, after) => members.push((self.arena.alloc_str(token), after)),
        }
        self.made(Value::object(members.into_bump_slice(), self.arena))
    }

    fn put_item(
        &mut self,
        list: Value<'a>,
        items: Items<'a>,
        (token, rest): (&str, &[Cow<'_, str>]),
        new: Value<'a>,
        level: usize,
    ) -> Outcome<Value<'a>> {
        let length = items.len();
        let position = if token == "-" { Some(length) } else { index(token) };
        let Some(position) = position.filter(|position| *position <= length) else {
            return Ok(list);
        };
        let after = self.put_within(list.item(position), rest, new, level + 1)?;
        let mut copy = ArenaVec::with_capacity_in(length + 1, self.arena);
        copy.extend(items);
        match (position < length, after) {
            (true, Value::Null) => {
                copy.remove(position);
            }
            (true, after) => copy[position] = after,
            (false, Value::Null) => {}
            (false, after) => copy.push(after),
        }
        self.made(Value::list(copy.into_bump_slice(), self.arena))
    }

    /// JSON in a text; null where it is not JSON.
    pub(super) fn parse(&mut self, value: Value<'a>) -> Outcome<Value<'a>> {
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
            Json::String(text) => Value::text(self.arena.alloc_str(&text), self.arena),
            Json::Array(items) => {
                let made = self.arena.alloc_slice_fill_copy(items.len(), Value::Null);
                for (place, item) in made.iter_mut().zip(items) {
                    *place = self.own(item, level + 1)?;
                }
                self.made(Value::list(made, self.arena))?
            }
            Json::Object(map) => {
                let made = self.arena.alloc_slice_fill_copy(map.len(), ("", Value::Null));
                for (place, (key, value)) in made.iter_mut().zip(map) {
                    *place = (self.arena.alloc_str(&key), self.own(value, level + 1)?);
                }
                self.made(Value::object(made, self.arena))?
            }
            Json::Bool(yes) => Value::bool(yes),
            Json::Number(number) => match number.as_i64() {
                Some(int) => Value::Int(int),
                None => number.as_f64().map_or(Value::Null, Value::float),
            },
            Json::Null => Value::Null,
        })
    }

    fn deeper(&mut self, level: usize) -> Outcome<()> {
        if level > DEEPEST {
            let what = format!("JSON nests deeper than {DEEPEST} levels");
            return Err(self.fault(FaultKind::Depth, what));
        }
        Ok(())
    }
}

type Tokens<'p> = SmallVec<[Cow<'p, str>; 4]>;

/// Tokens of a pointer; the empty one names the whole.
fn tokens(pointer: &str) -> Option<Tokens<'_>> {
    if pointer.is_empty() {
        return Some(Tokens::new());
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
