//! Values of a script: those of the evaluation, numbers as JavaScript has them, `undefined`.

use bumpalo::Bump;
use serde_json::Value as Json;

use super::super::convert::{Room, number as number_of};
use super::number;
use crate::value::{Float, Member, Parts, Value, find};

/// A value of JavaScript. It is copied and never dropped: what a call makes is in an arena, which ends with the call. Each
/// variant has one word at most, as those of [`Value`].
#[derive(Clone, Copy, Debug)]
pub(in crate::script) enum Js<'r, 'a> {
    Undefined,
    Null,
    False,
    True,
    Number(Float),
    /// A text of the input or the project.
    Text(&'a String),
    /// A text that the evaluation made.
    Made(&'a &'a str),
    /// A text that the script made, or a part of another.
    Own(&'r &'r str),
    /// A list or object of the input or the project.
    Json(&'a Json),
    /// A list that the evaluation made.
    MadeList(&'a Parts<'a, Value<'a>>),
    /// An object that the evaluation made.
    MadeObject(&'a Parts<'a, Member<'a>>),
    /// A list that the script made.
    List(&'r &'r [Js<'r, 'a>]),
    /// An object that the script made.
    Object(&'r &'r [(&'a str, Js<'r, 'a>)]),
}

const _: () = assert!(size_of::<Result<Js<'_, '_>, ()>>() == 16);

/// Members that an object has from its prototype (`prelude.js` leaves these), or that would be its prototype.
pub(super) const INHERITED: &[&str] = &["hasOwnProperty", "toString", "valueOf", "__proto__"];

impl<'r, 'a: 'r> Js<'r, 'a> {
    pub(super) fn of(value: Value<'a>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::False => Self::False,
            Value::True => Self::True,
            Value::Int(int) => Self::number(int as f64),
            Value::Float(float) => Self::Number(float),
            Value::Text(text) => Self::Text(text),
            Value::Made(text) => Self::Made(text),
            Value::Json(json) => Self::Json(json),
            Value::List(list) => Self::MadeList(list),
            Value::Object(object) => Self::MadeObject(object),
        }
    }

    pub(super) fn of_json(json: &'a Json) -> Self {
        Self::of(Value::of(json))
    }

    pub(super) fn number(number: f64) -> Self {
        Self::Number(Float::new(number))
    }

    pub(super) fn bool(yes: bool) -> Self {
        if yes { Self::True } else { Self::False }
    }

    /// A text in the arena, or a part of another.
    pub(super) fn text(text: &'r str, arena: &'r Bump) -> Self {
        Self::Own(arena.alloc(text))
    }

    /// The number, if this is one.
    pub(super) fn as_number(self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(number.get()),
            _ => None,
        }
    }

    pub(super) fn as_str(self) -> Option<&'r str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Made(text) => Some(text),
            Self::Own(text) => Some(text),
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
            Self::Undefined | Self::Null | Self::False => false,
            Self::Number(number) => number.get() != 0.0 && !number.get().is_nan(),
            _ => self.as_str() != Some(""),
        }
    }

    pub(super) fn type_of(self) -> Self {
        Self::Made(match self {
            Self::Undefined => &"undefined",
            Self::False | Self::True => &"boolean",
            Self::Number(_) => &"number",
            Self::Text(_) | Self::Made(_) | Self::Own(_) => &"string",
            _ => &"object",
        })
    }

    pub(super) fn to_number(self) -> Option<f64> {
        match self {
            Self::Undefined => Some(f64::NAN),
            Self::Null | Self::False => Some(0.0),
            Self::True => Some(1.0),
            Self::Number(number) => Some(number.get()),
            _ => number::of_text(self.as_str()?),
        }
    }

    /// The text of a value that has one.
    pub(super) fn to_text(self, arena: &'r Bump) -> Option<&'r str> {
        Some(match self {
            Self::Undefined => "undefined",
            Self::Null => "null",
            Self::True => "true",
            Self::False => "false",
            Self::Number(number) => arena.alloc_str(&number::to_text(number.get())),
            _ => self.as_str()?,
        })
    }

    /// The number of items of a list.
    pub(super) fn length(self) -> Option<usize> {
        match self {
            Self::Json(Json::Array(items)) => Some(items.len()),
            Self::MadeList(list) => Some(list.items.len()),
            Self::List(items) => Some(items.len()),
            _ => None,
        }
    }

    /// The item of a list; undefined where there is none.
    pub(super) fn item(self, index: usize) -> Self {
        let found = match self {
            Self::Json(Json::Array(items)) => items.get(index).map(Self::of_json),
            Self::MadeList(list) => list.items.get(index).copied().map(Self::of),
            Self::List(items) => items.get(index).copied(),
            _ => None,
        };
        found.unwrap_or(Self::Undefined)
    }

    /// The member of an object; undefined where there is none. Nothing for what is not an object, or inherited.
    pub(super) fn member(self, key: &str) -> Option<Self> {
        let found = match self {
            Self::Json(Json::Object(map)) => find(map, key).map(Self::of_json),
            Self::MadeObject(object) => {
                let found = object.items.iter().find(|(name, _)| *name == key);
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
            Self::False => Value::False,
            Self::True => Value::True,
            Self::Number(number) => number_of(number.get()),
            Self::Text(text) => {
                room.take(text.len()).ok()?;
                Value::Text(text)
            }
            Self::Made(text) => {
                room.take(text.len()).ok()?;
                Value::Made(text)
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
                for (place, item) in made.iter_mut().zip(*items) {
                    *place = item.result(room, arena)?;
                }
                room.depth += 1;
                Value::list(made, arena)
            }
            Self::Object(members) => {
                room.depth = room.depth.checked_sub(1)?;
                let made = arena.alloc_slice_fill_copy(members.len(), ("", Value::Null));
                for (place, (key, member)) in made.iter_mut().zip(*members) {
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
