//! Values of a script: those of the evaluation, numbers as JavaScript has them, `undefined`.

use bumpalo::Bump;
use serde_json::Value as Json;

use super::super::convert::{Room, number as number_of};
use super::number;
use crate::value::{Member, Value, find};

/// A value of JavaScript. It is copied and never dropped: what a call makes is in an arena, which ends with the call.
#[derive(Clone, Copy, Debug)]
pub(in crate::script) enum Js<'r, 'a> {
    Undefined,
    Null,
    Bool(bool),
    Number(f64),
    /// A text of the input, the project or the evaluation.
    Text(&'a str),
    /// A text that the script made.
    Own(&'r str),
    /// A list or object of the input or the project.
    Json(&'a Json),
    /// A list that the evaluation made.
    MadeList(&'a [Value<'a>]),
    /// An object that the evaluation made.
    MadeObject(&'a [Member<'a>]),
    /// A list that the script made.
    List(&'r [Js<'r, 'a>]),
    /// An object that the script made.
    Object(&'r [(&'a str, Js<'r, 'a>)]),
}

/// Members that an object has from its prototype (`prelude.js` leaves these), or that would be its prototype.
pub(super) const INHERITED: &[&str] = &["hasOwnProperty", "toString", "valueOf", "__proto__"];

impl<'r, 'a: 'r> Js<'r, 'a> {
    pub(super) fn of(value: Value<'a>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::False => Self::Bool(false),
            Value::True => Self::Bool(true),
            Value::Int(int) => Self::Number(int as f64),
            Value::Float(float) => Self::Number(float.get()),
            Value::Text(text) => Self::Text(text),
            Value::Made(text) => Self::Text(text),
            Value::Json(json) => Self::Json(json),
            Value::List(list) => Self::MadeList(list.items),
            Value::Object(object) => Self::MadeObject(object.items),
        }
    }

    pub(super) fn of_json(json: &'a Json) -> Self {
        Self::of(Value::of(json))
    }

    pub(super) fn as_str(self) -> Option<&'r str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Own(text) => Some(text),
            _ => None,
        }
    }

    /// A part of a text, which is where the text is.
    pub(super) fn part(self, from: usize, to: usize) -> Option<Self> {
        match self {
            Self::Text(text) => text.get(from..to).map(Self::Text),
            Self::Own(text) => text.get(from..to).map(Self::Own),
            _ => None,
        }
    }

    /// Whether it is a list or an object, which is equal to itself only.
    pub(super) fn is_object(self) -> bool {
        matches!(
            self,
            Self::Json(_) | Self::MadeList(_) | Self::MadeObject(_) | Self::List(_) | Self::Object(_)
        )
    }

    pub(super) fn is_nullish(self) -> bool {
        matches!(self, Self::Undefined | Self::Null)
    }

    pub(super) fn is_truthy(self) -> bool {
        match self {
            Self::Undefined | Self::Null => false,
            Self::Bool(yes) => yes,
            Self::Number(number) => number != 0.0 && !number.is_nan(),
            Self::Text(text) => !text.is_empty(),
            Self::Own(text) => !text.is_empty(),
            _ => true,
        }
    }

    pub(super) fn type_of(self) -> &'static str {
        match self {
            Self::Undefined => "undefined",
            Self::Bool(_) => "boolean",
            Self::Number(_) => "number",
            Self::Text(_) | Self::Own(_) => "string",
            _ => "object",
        }
    }

    pub(super) fn to_number(self) -> Option<f64> {
        match self {
            Self::Undefined => Some(f64::NAN),
            Self::Null => Some(0.0),
            Self::Bool(yes) => Some(f64::from(u8::from(yes))),
            Self::Number(number) => Some(number),
            Self::Text(text) => number::of_text(text),
            Self::Own(text) => number::of_text(text),
            _ => None,
        }
    }

    /// The text of a value that has one.
    pub(super) fn to_text(self, arena: &'r Bump) -> Option<Self> {
        Some(match self {
            Self::Undefined => Self::Text("undefined"),
            Self::Null => Self::Text("null"),
            Self::Bool(true) => Self::Text("true"),
            Self::Bool(false) => Self::Text("false"),
            Self::Number(number) => Self::Own(arena.alloc_str(&number::to_text(number))),
            Self::Text(_) | Self::Own(_) => self,
            _ => return None,
        })
    }

    /// The number of items of a list.
    pub(super) fn length(self) -> Option<usize> {
        match self {
            Self::Json(Json::Array(items)) => Some(items.len()),
            Self::MadeList(items) => Some(items.len()),
            Self::List(items) => Some(items.len()),
            _ => None,
        }
    }

    /// The item of a list; undefined where there is none.
    pub(super) fn item(self, index: usize) -> Self {
        let found = match self {
            Self::Json(Json::Array(items)) => items.get(index).map(Self::of_json),
            Self::MadeList(items) => items.get(index).copied().map(Self::of),
            Self::List(items) => items.get(index).copied(),
            _ => None,
        };
        found.unwrap_or(Self::Undefined)
    }

    /// The member of an object; undefined where there is none. Nothing for what is not an object, or inherited.
    pub(super) fn member(self, key: &str) -> Option<Self> {
        let found = match self {
            Self::Json(Json::Object(map)) => find(map, key).map(Self::of_json),
            Self::MadeObject(members) => {
                let found = members.iter().find(|(name, _)| *name == key);
                found.map(|(_, value)| Self::of(*value))
            }
            Self::Object(members) => {
                let found = members.iter().find(|(name, _)| *name == key);
                found.map(|(_, value)| *value)
            }
            _ => return None,
        };
        match found {
            None if INHERITED.contains(&key) => None,
            found => Some(found.unwrap_or(Self::Undefined)),
        }
    }

    /// The result of a script in an arena, within the same bounds as one of QuickJS.
    pub(in crate::script) fn result(self, room: &mut Room, arena: &'a Bump) -> Option<Value<'a>> {
        Some(match self {
            Self::Undefined | Self::Null => Value::Null,
            Self::Bool(yes) => Value::bool(yes),
            Self::Number(number) => number_of(number),
            Self::Text(text) => {
                room.take(text.len()).ok()?;
                Value::text(text, arena)
            }
            Self::Own(text) => {
                room.take(text.len()).ok()?;
                Value::text(arena.alloc_str(text), arena)
            }
            Self::Json(json) => {
                copied(json, room)?;
                Value::Json(json)
            }
            // Its numbers would have to be read again.
            Self::MadeList(_) | Self::MadeObject(_) => return None,
            Self::List(items) => {
                room.depth = room.depth.checked_sub(1)?;
                room.take(items.len().saturating_mul(32)).ok()?;
                let made = arena.alloc_slice_fill_copy(items.len(), Value::Null);
                for (place, item) in made.iter_mut().zip(items) {
                    *place = item.result(room, arena)?;
                }
                room.depth += 1;
                Value::list(made, arena)
            }
            Self::Object(members) => {
                room.depth = room.depth.checked_sub(1)?;
                let made = arena.alloc_slice_fill_copy(members.len(), ("", Value::Null));
                for (place, (key, member)) in made.iter_mut().zip(members) {
                    room.take(key.len() + 64).ok()?;
                    *place = (key, member.result(room, arena)?);
                }
                room.depth += 1;
                Value::object(made, arena)
            }
        })
    }
}

/// Whether JSON is the same after QuickJS has copied it, within the bounds.
fn copied(json: &Json, room: &mut Room) -> Option<()> {
    match json {
        Json::Null | Json::Bool(_) => {}
        // Above the range of `i64` the text of the number would be another one.
        Json::Number(number) if number.is_u64() && !number.is_i64() => return None,
        Json::Number(_) => {
            let value = Value::of(json);
            let read = number_of(value.as_f64()?);
            let same = matches!((&value, &read), (Value::Int(a), Value::Int(b)) if a == b)
                || matches!((&value, &read), (Value::Float(a), Value::Float(b)) if a.get() == b.get());
            same.then_some(())?;
        }
        Json::String(text) => room.take(text.len()).ok()?,
        Json::Array(items) => {
            room.depth = room.depth.checked_sub(1)?;
            room.take(items.len().saturating_mul(32)).ok()?;
            for item in items {
                copied(item, room)?;
            }
            room.depth += 1;
        }
        Json::Object(map) => {
            room.depth = room.depth.checked_sub(1)?;
            for (key, member) in map {
                // JavaScript moves numbers to the front.
                if key.starts_with(|c: char| c.is_ascii_digit()) {
                    return None;
                }
                room.take(key.len() + 64).ok()?;
                copied(member, room)?;
            }
            room.depth += 1;
        }
    }
    Some(())
}
