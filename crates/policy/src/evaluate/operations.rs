//! Operations. An absent or unfit argument gives null, in a comparison false.

use std::cmp::Ordering;

use bumpalo::collections::Vec as ArenaVec;
use smallvec::SmallVec;
use time::Duration;
use time::format_description::well_known::Rfc3339;

use crate::expression::Expr;
use crate::operation::Operation;
use crate::shape;
use crate::value::{Items, Value};

use super::{Outcome, Run};

/// Memory that the room for texts keeps.
const KEPT: usize = 4096;

impl<'a> Run<'a, '_> {
    pub(super) fn apply(&mut self, operation: Operation, arguments: &'a [Expr]) -> Outcome<Value<'a>> {
        match (operation, arguments) {
            (Operation::All, _) => self.until(arguments, false),
            (Operation::Any, _) => self.until(arguments, true),
            (Operation::If, [condition, then, otherwise]) => {
                let holds = self.value(condition)?.is_true();
                self.value(if holds { then } else { otherwise })
            }
            (Operation::Concat, [_, _, ..]) => {
                let mut text = self.begin_text();
                for argument in arguments {
                    let part = self.value(argument)?;
                    self.add_text(&mut text, part, "")?;
                }
                self.end_text(text)
            }
            (Operation::First, _) => {
                for argument in arguments {
                    let value = self.value(argument)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Ok(Value::Null)
            }
            (_, [one]) => {
                let value = self.value(one)?;
                self.unary(operation, value)
            }
            (_, [a, b]) if !operation.is_variadic() => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                self.binary(operation, a, b)
            }
            _ => {
                let mut values: SmallVec<[Value<'a>; 8]> = SmallVec::new();
                for argument in arguments {
                    values.push(self.value(argument)?);
                }
                self.variadic(operation, &values)
            }
        }
    }

    /// Whether any condition is (or with `false`, not all are) as wanted; the others are not evaluated.
    fn until(&mut self, conditions: &'a [Expr], wanted: bool) -> Outcome<Value<'a>> {
        for condition in conditions {
            if self.value(condition)?.is_true() == wanted {
                return Ok(Value::bool(wanted));
            }
        }
        Ok(Value::bool(!wanted))
    }

    /// Takes the steps for an operation that may look at each byte of a text, or each item of a list, once.
    fn look_through(&mut self, value: &Value<'a>) -> Outcome<()> {
        self.spend(value.len().unwrap_or(0) as u64 / 64)
    }

    fn unary(&mut self, operation: Operation, value: Value<'a>) -> Outcome<Value<'a>> {
        self.look_through(&value)?;
        Ok(match operation {
            Operation::Not => Value::bool(!value.is_true()),
            Operation::Exists => Value::bool(!value.is_null()),
            Operation::Round => value
                .as_f64()
                .map_or(Value::Null, |number| number_of(number.round())),
            Operation::Number => match value.as_str() {
                Some(text) => text.trim().parse::<f64>().map_or(Value::Null, number_of),
                None if value.as_f64().is_some() => value,
                None => Value::Null,
            },
            Operation::Text => Value::text(self.text_of(value)?, self.arena),
            Operation::Lower | Operation::Upper => {
                let Some(text) = value.as_str() else {
                    return Ok(Value::Null);
                };
                self.charge(2 * text.len() + 16)?;
                self.text(&match operation {
                    Operation::Lower => text.to_lowercase(),
                    _ => text.to_uppercase(),
                })
            }
            Operation::Length => {
                let length = value
                    .as_str()
                    .map(|text| text.chars().count())
                    .or_else(|| value.len());
                length
                    .and_then(|length| i64::try_from(length).ok())
                    .map_or(Value::Null, Value::Int)
            }
            Operation::Bps => value
                .as_str()
                .and_then(shape::bit_rate)
                .map_or(Value::Null, number_of),
            Operation::BitRate => {
                let text = value.as_f64().and_then(shape::to_bit_rate);
                self.charge(32)?;
                text.map_or(Value::Null, |text| self.text(&text))
            }
            Operation::TimeAfter => {
                let seconds = value.as_f64().filter(|seconds| seconds.abs() < 1e10);
                let then =
                    seconds.and_then(|seconds| self.now.checked_add(Duration::seconds(seconds as i64)));
                let then = then.map(|then| then.to_offset(time::UtcOffset::UTC));
                self.charge(48)?;
                then.and_then(|then| then.format(&Rfc3339).ok())
                    .map_or(Value::Null, |text| self.text(&text))
            }
            Operation::Keys | Operation::Values => {
                let Some(members) = value.members() else {
                    return Ok(Value::Null);
                };
                let made = self.arena.alloc_slice_fill_copy(members.len(), Value::Null);
                for (place, (key, value)) in made.iter_mut().zip(members) {
                    *place = match operation {
                        Operation::Keys => Value::text(key, self.arena),
                        _ => value,
                    };
                }
                self.made(Value::list(made, self.arena))?
            }
            Operation::Parse => self.parse(value)?,
            Operation::Stringify => {
                self.charge(value.weight(self.memory).saturating_mul(2))?;
                self.text(&serde_json::to_string(&value).unwrap_or_default())
            }
            // One argument of an operation on several: a list of them, or one.
            _ => match value.items() {
                Some(items) => {
                    self.charge(items.len() * 32)?;
                    let items: SmallVec<[Value<'a>; 8]> = items.collect();
                    self.variadic(operation, &items)?
                }
                None => self.variadic(operation, &[value])?,
            },
        })
    }

    fn binary(&mut self, operation: Operation, a: Value<'a>, b: Value<'a>) -> Outcome<Value<'a>> {
        self.look_through(&a)?;
        self.look_through(&b)?;
        let order = |wanted: fn(Ordering) -> bool| Value::bool(a.order(&b).is_some_and(wanted));
        Ok(match operation {
            Operation::Eq | Operation::Ne => {
                let equal = self.equal(a, b)?;
                Value::bool(equal == (operation == Operation::Eq))
            }
            Operation::Lt => order(Ordering::is_lt),
            Operation::Le => order(Ordering::is_le),
            Operation::Gt => order(Ordering::is_gt),
            Operation::Ge => order(Ordering::is_ge),
            Operation::In => Value::bool(self.has_item(b, a)?),
            Operation::Contains => match (a.as_str(), b.as_str()) {
                (Some(text), Some(part)) => {
                    let found = text.contains(part);
                    self.spend(a.len().unwrap_or(0) as u64 / 16)?;
                    Value::bool(found)
                }
                _ => Value::bool(self.has_item(a, b)?),
            },
            Operation::StartsWith | Operation::EndsWith => {
                let (Some(text), Some(part)) = (a.as_str(), b.as_str()) else {
                    return Ok(Value::bool(false));
                };
                Value::bool(match operation {
                    Operation::StartsWith => text.starts_with(part),
                    _ => text.ends_with(part),
                })
            }
            Operation::Sub => self.numbers(&a, &b, i64::checked_sub, |a, b| a - b),
            Operation::Mod => self.numbers(&a, &b, i64::checked_rem, |a, b| a % b),
            Operation::Div => match (a.as_f64(), b.as_f64()) {
                (Some(a), Some(b)) => number_of(a / b),
                _ => Value::Null,
            },
            Operation::Split => {
                let (Some(text), Some(separator)) = (a.as_str(), b.as_str().filter(|text| !text.is_empty()))
                else {
                    return Ok(Value::Null);
                };
                self.charge(text.len() * 2)?;
                let mut parts = ArenaVec::new_in(self.arena);
                for part in text.split(separator) {
                    self.charge(48)?;
                    parts.push(Value::text(part, self.arena));
                }
                self.made(Value::list(parts.into_bump_slice(), self.arena))?
            }
            Operation::Join => {
                let (Some(items), Some(separator)) = (a.items(), b.as_str()) else {
                    return Ok(Value::Null);
                };
                self.concat(items, separator)?
            }
            Operation::Pick | Operation::Omit => self.select(a, b, operation == Operation::Pick)?,
            Operation::Pointer => self.pointer(a, b)?,
            Operation::Slice => self.slice(a, b, None)?,
            _ => self.variadic(operation, &[a, b])?,
        })
    }

    fn variadic(&mut self, operation: Operation, values: &[Value<'a>]) -> Outcome<Value<'a>> {
        Ok(match operation {
            Operation::Add => self.fold(values, i64::checked_add, |a, b| a + b),
            Operation::Mul => self.fold(values, i64::checked_mul, |a, b| a * b),
            Operation::Min | Operation::Max => {
                let wanted = if operation == Operation::Min {
                    Ordering::Less
                } else {
                    Ordering::Greater
                };
                let mut best = Value::Null;
                for value in values {
                    if value.as_f64().is_some() && (best.is_null() || value.order(&best) == Some(wanted)) {
                        best = *value;
                    }
                }
                best
            }
            Operation::Concat => self.concat(values.iter().copied(), "")?,
            Operation::Merge => {
                let (first, patches) = values.split_first().unwrap_or((&Value::Null, &[]));
                let mut merged = *first;
                for patch in patches {
                    merged = self.merge(merged, *patch, 0)?;
                }
                merged
            }
            Operation::Append => self.append(values)?,
            Operation::Slice => match values {
                [value, from, to] => self.slice(*value, *from, Some(*to))?,
                _ => Value::Null,
            },
            Operation::Put => match values {
                [value, pointer, new] => self.put_at(*value, *pointer, *new)?,
                _ => Value::Null,
            },
            _ => Value::Null,
        })
    }

    /// A list with more items; null stands for one without any.
    fn append(&mut self, values: &[Value<'a>]) -> Outcome<Value<'a>> {
        let (first, more) = values.split_first().unwrap_or((&Value::Null, &[]));
        let items = match first {
            Value::Null => Items::none(),
            first => match first.items() {
                Some(items) => items,
                None => return Ok(Value::Null),
            },
        };
        let mut list = ArenaVec::with_capacity_in(items.len() + more.len(), self.arena);
        list.extend(items);
        list.extend_from_slice(more);
        self.made(Value::list(list.into_bump_slice(), self.arena))
    }

    fn numbers(
        &self,
        a: &Value<'a>,
        b: &Value<'a>,
        exact: fn(i64, i64) -> Option<i64>,
        float: fn(f64, f64) -> f64,
    ) -> Value<'a> {
        match (a, b) {
            (Value::Int(a), Value::Int(b)) if exact(*a, *b).is_some() => {
                exact(*a, *b).map_or(Value::Null, Value::Int)
            }
            _ => match (a.as_f64(), b.as_f64()) {
                (Some(a), Some(b)) => number_of(float(a, b)),
                _ => Value::Null,
            },
        }
    }

    fn fold(
        &self,
        values: &[Value<'a>],
        exact: fn(i64, i64) -> Option<i64>,
        float: fn(f64, f64) -> f64,
    ) -> Value<'a> {
        let Some((first, rest)) = values.split_first() else {
            return Value::Null;
        };
        let first = first.as_f64().map_or(Value::Null, |_| *first);
        rest.iter()
            .fold(first, |sum, value| self.numbers(&sum, value, exact, float))
    }

    fn concat(&mut self, values: impl Iterator<Item = Value<'a>>, separator: &str) -> Outcome<Value<'a>> {
        let mut text = self.begin_text();
        for (position, value) in values.enumerate() {
            if position > 0 {
                text.push_str(separator);
            }
            self.add_text(&mut text, value, separator)?;
        }
        self.end_text(text)
    }

    /// The worker's room for a text that is put together, which keeps its memory.
    fn begin_text(&mut self) -> String {
        let mut text = std::mem::take(self.text);
        text.clear();
        text
    }

    /// Adds a part, and takes memory for it and its separator.
    fn add_text(&mut self, text: &mut String, part: Value<'a>, separator: &str) -> Outcome<()> {
        if part.is_null() {
            return Ok(());
        }
        if let Some(part) = part.as_str() {
            self.charge(part.len() + separator.len())?;
            text.push_str(part);
            return Ok(());
        }
        let part = self.text_of(part)?;
        self.charge(part.len() + separator.len())?;
        text.push_str(part);
        Ok(())
    }

    fn end_text(&mut self, mut text: String) -> Outcome<Value<'a>> {
        self.charge(16)?;
        let made = self.text(&text);
        text.shrink_to(KEPT);
        *self.text = text;
        Ok(made)
    }

    /// A text of the evaluation, which has been charged.
    fn text(&self, text: &str) -> Value<'a> {
        Value::text(self.arena.alloc_str(text), self.arena)
    }

    /// Whether two values are equal. The comparison of lists or objects takes memory as large as they are.
    pub(super) fn equal(&mut self, a: Value<'a>, b: Value<'a>) -> Outcome<bool> {
        if a.as_str().is_none() && a.len().is_some() && b.len().is_some() {
            self.charge(a.weight(self.memory).min(b.weight(self.memory)))?;
        }
        Ok(a == b)
    }

    /// Whether a list has an item, or an object a member of that name.
    fn has_item(&mut self, list: Value<'a>, item: Value<'a>) -> Outcome<bool> {
        let Some(items) = list.items() else {
            return Ok(item.as_str().is_some_and(|key| !list.member(key).is_null()));
        };
        for candidate in items {
            self.spend(1)?;
            if self.equal(candidate, item)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Characters of a text or items of a list, from and to as in JavaScript: negative ones count from the end.
    fn slice(&mut self, value: Value<'a>, from: Value<'a>, to: Option<Value<'a>>) -> Outcome<Value<'a>> {
        let characters = value.as_str().map(|text| text.chars().count());
        let Some(length) = characters.or_else(|| value.len()) else {
            return Ok(Value::Null);
        };
        self.charge(length)?;
        let bound = |bound: f64| {
            let bound = if bound < 0.0 { bound + length as f64 } else { bound };
            bound.clamp(0.0, length as f64) as usize
        };
        let from = bound(from.as_f64().unwrap_or(0.0));
        let to = bound(to.and_then(|to| to.as_f64()).unwrap_or(length as f64)).max(from);
        match (value.as_str(), value.items()) {
            (Some(text), _) => {
                let part = part_of(text, from, to);
                self.charge(part.len() + 16)?;
                Ok(Value::text(part, self.arena))
            }
            (None, Some(items)) => {
                let made = self.arena.alloc_slice_fill_copy(to - from, Value::Null);
                for (place, item) in made.iter_mut().zip(items.skip(from)) {
                    *place = item;
                }
                self.made(Value::list(made, self.arena))
            }
            _ => Ok(Value::Null),
        }
    }
}

/// The characters from one position to another.
fn part_of(text: &str, from: usize, to: usize) -> &str {
    let mut ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    let begin = ends.nth(from).unwrap_or(text.len());
    let end = match to.checked_sub(from + 1) {
        Some(more) => ends.nth(more).unwrap_or(text.len()),
        None => begin,
    };
    text.get(begin..end).unwrap_or_default()
}

impl Operation {
    /// Whether it takes any number of arguments, or three.
    fn is_variadic(self) -> bool {
        matches!(
            self,
            Self::Add
                | Self::Mul
                | Self::Min
                | Self::Max
                | Self::Concat
                | Self::Merge
                | Self::Append
                | Self::Put
        )
    }
}

/// A number as an integer where it is one; null where it is none.
fn number_of<'a>(number: f64) -> Value<'a> {
    /// Up to this, every integer is a number of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if !number.is_finite() {
        Value::Null
    } else if number.fract() == 0.0 && number.abs() <= EXACT {
        Value::Int(number as i64)
    } else {
        Value::float(number)
    }
}
