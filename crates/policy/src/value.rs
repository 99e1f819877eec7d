//! Values of an evaluation. They borrow from the project and the input where they can; what the evaluation makes is in its
//! arena. A value is copied and never dropped.

use std::cmp::Ordering;
use std::fmt;
use std::slice;

use bumpalo::Bump;
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::Value as Json;

/// A value: JSON that shares its parts.
///
/// Each variant has nothing, or one integer or reference, so a function returns a value in two registers. With a `bool`, an
/// `f64` or the two words of a `&str` in one of them it would be returned in memory, which takes longer than most operations.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// Null, or an absent member.
    Null,
    /// A boolean.
    False,
    /// A boolean.
    True,
    /// An integer.
    Int(i64),
    /// A number with a fraction, or beyond the range of `i64`.
    Float(Float),
    /// A text of the project or the input.
    Text(&'a String),
    /// A text that the evaluation made, or a part of another.
    Made(&'a &'a str),
    /// An array or object of the project or the input.
    Json(&'a Json),
    /// An array that the evaluation made.
    List(&'a Parts<'a, Value<'a>>),
    /// An object that the evaluation made. The names of its members are distinct.
    Object(&'a Parts<'a, Member<'a>>),
}

const _: () = assert!(size_of::<Result<Value<'_>, ()>>() == 16);

/// A number with a fraction, as its bits.
#[derive(Clone, Copy)]
pub struct Float(u64);

impl Float {
    pub(crate) fn new(number: f64) -> Self {
        Self(number.to_bits())
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> f64 {
        f64::from_bits(self.0)
    }
}

impl fmt::Debug for Float {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// Parts of a value that the evaluation made.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a, T> {
    /// The parts in order.
    pub items: &'a [T],
    /// Levels of made values below and including this one.
    height: u32,
}

/// A member of an object that the evaluation made.
pub type Member<'a> = (&'a str, Value<'a>);

/// Objects of up to this many members are searched in order: that costs less than the hash of the key, which has to
/// withstand chosen keys.
const FEW: usize = 12;

/// The member of a JSON object.
pub(crate) fn find<'a>(map: &'a serde_json::Map<String, Json>, key: &str) -> Option<&'a Json> {
    match map.len() <= FEW {
        true => map.iter().find(|(name, _)| *name == key).map(|(_, value)| value),
        false => map.get(key),
    }
}

impl<'a> Value<'a> {
    /// The value of a JSON value.
    #[must_use]
    #[inline]
    pub fn of(json: &'a Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(yes) => Self::bool(*yes),
            Json::Number(number) => match number.as_i64() {
                Some(int) => Self::Int(int),
                None => Self::float(number.as_f64().unwrap_or(f64::MAX)),
            },
            Json::String(text) => Self::Text(text),
            Json::Array(_) | Json::Object(_) => Self::Json(json),
        }
    }

    /// A boolean.
    #[must_use]
    pub fn bool(yes: bool) -> Self {
        if yes { Self::True } else { Self::False }
    }

    /// A number with a fraction, or beyond the range of `i64`.
    #[must_use]
    pub fn float(number: f64) -> Self {
        Self::Float(Float::new(number))
    }

    /// A text that the evaluation made, or a part of another.
    #[must_use]
    pub(crate) fn text(text: &'a str, arena: &'a Bump) -> Self {
        Self::Made(arena.alloc(text))
    }

    /// A list that the evaluation made.
    #[must_use]
    pub(crate) fn list(items: &'a [Value<'a>], arena: &'a Bump) -> Self {
        let height = 1 + items.iter().map(Value::height).max().unwrap_or(0);
        Self::List(arena.alloc(Parts { items, height }))
    }

    /// An object that the evaluation made. The names must be distinct.
    #[must_use]
    pub(crate) fn object(items: &'a [Member<'a>], arena: &'a Bump) -> Self {
        let height = 1 + items.iter().map(|(_, value)| value.height()).max().unwrap_or(0);
        Self::Object(arena.alloc(Parts { items, height }))
    }

    /// Levels of made values. Values of input and project count as none: their depth is bounded where they are parsed.
    #[must_use]
    pub fn height(&self) -> u32 {
        match self {
            Self::List(list) => list.height,
            Self::Object(object) => object.height,
            _ => 0,
        }
    }

    /// The text, if this is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Made(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if this is one.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Int(int) => Some(*int as f64),
            Self::Float(float) => Some(float.get()),
            _ => None,
        }
    }

    /// The boolean, if this is one.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::False => Some(false),
            Self::True => Some(true),
            _ => None,
        }
    }

    /// Whether a condition with this value holds: the boolean `true` alone.
    #[must_use]
    pub fn is_true(&self) -> bool {
        matches!(self, Self::True)
    }

    /// Whether this is null, or absent.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The member of an object; null where there is none.
    #[must_use]
    pub fn member(&self, key: &str) -> Value<'a> {
        match self {
            Self::Json(Json::Object(map)) => find(map, key).map_or(Self::Null, Value::of),
            Self::Object(object) => {
                let found = object.items.iter().find(|(name, _)| *name == key);
                found.map_or(Self::Null, |(_, value)| *value)
            }
            _ => Self::Null,
        }
    }

    /// Whether this is a list.
    #[must_use]
    pub fn is_list(&self) -> bool {
        matches!(self, Self::List(_) | Self::Json(Json::Array(_)))
    }

    /// The item of a list; null where there is none.
    #[must_use]
    pub fn item(&self, index: usize) -> Value<'a> {
        match self {
            Self::Json(Json::Array(items)) => items.get(index).map_or(Self::Null, Value::of),
            Self::List(list) => list.items.get(index).copied().unwrap_or(Self::Null),
            _ => Self::Null,
        }
    }

    /// How many items, members or bytes a list, object or text has.
    #[must_use]
    pub(crate) fn len(&self) -> Option<usize> {
        match self {
            Self::Text(text) => Some(text.len()),
            Self::Made(text) => Some(text.len()),
            Self::Json(Json::Array(items)) => Some(items.len()),
            Self::Json(Json::Object(map)) => Some(map.len()),
            Self::List(list) => Some(list.items.len()),
            Self::Object(object) => Some(object.items.len()),
            _ => None,
        }
    }

    /// The items of a list.
    #[must_use]
    pub fn items(&self) -> Option<Items<'a>> {
        match self {
            Self::Json(Json::Array(items)) => Some(Items::Json(items.iter())),
            Self::List(list) => Some(Items::Made(list.items.iter())),
            _ => None,
        }
    }

    /// The members of an object.
    #[must_use]
    pub fn members(&self) -> Option<Members<'a>> {
        match self {
            Self::Json(Json::Object(map)) => Some(Members::Json(map.iter())),
            Self::Object(object) => Some(Members::Made(object.items.iter())),
            _ => None,
        }
    }

    /// What the value is, for messages.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::False | Self::True => "a boolean",
            Self::Int(_) | Self::Float(_) => "a number",
            Self::Text(_) | Self::Made(_) => "a text",
            Self::Json(Json::Array(_)) | Self::List(_) => "a list",
            Self::Json(_) | Self::Object(_) => "an object",
        }
    }

    /// The order of two numbers or two texts.
    #[must_use]
    pub fn order(&self, other: &Value<'_>) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(a), Value::Int(b)) => Some(a.cmp(b)),
            (Self::Text(_) | Self::Made(_), _) => Some(self.as_str()?.cmp(other.as_str()?)),
            _ => self.as_f64()?.partial_cmp(&other.as_f64()?),
        }
    }

    /// The value as JSON.
    #[must_use]
    pub fn to_json(&self) -> Json {
        match self {
            Self::Json(json) => (*json).clone(),
            _ => serde_json::to_value(self).unwrap_or(Json::Null),
        }
    }

    /// Approximate size in bytes as JSON. A size above `most` is not counted to its end: a value that holds one part
    /// many times may be far larger as JSON than in memory.
    #[must_use]
    pub fn weight(&self, most: usize) -> usize {
        match self {
            Self::Null | Self::False | Self::True => 5,
            Self::Int(_) | Self::Float(_) => 8,
            Self::Text(text) => text.len() + 2,
            Self::Made(text) => text.len() + 2,
            Self::Json(json) => weight(json, most),
            Self::List(list) => total(most, list.items, |item, left| item.weight(left) + 1),
            Self::Object(object) => total(most, object.items, |(key, value), left| {
                key.len() + 4 + value.weight(left)
            }),
        }
    }
}

/// Approximate size of a JSON value as text, in bytes; as [`Value::weight`].
pub(crate) fn weight(json: &Json, most: usize) -> usize {
    match json {
        Json::Null | Json::Bool(_) => 5,
        Json::Number(_) => 8,
        Json::String(text) => text.len() + 2,
        Json::Array(items) => total(most, items, |item, left| weight(item, left) + 1),
        Json::Object(map) => total(most, map, |(key, value), left| {
            key.len() + 4 + weight(value, left)
        }),
    }
}

/// The sum of weights until it exceeds `most`.
fn total<T>(most: usize, items: impl IntoIterator<Item = T>, one: impl Fn(T, usize) -> usize) -> usize {
    let mut sum = 2_usize;
    for item in items {
        match most.checked_sub(sum) {
            Some(left) => sum = sum.saturating_add(one(item, left)),
            None => break,
        }
    }
    sum
}

/// The items of a list, made or of JSON.
#[derive(Clone, Debug)]
pub enum Items<'a> {
    /// Of the project or the input.
    Json(slice::Iter<'a, Json>),
    /// Of a list that the evaluation made.
    Made(slice::Iter<'a, Value<'a>>),
}

impl Items<'_> {
    /// The items of what has none.
    pub(crate) fn none() -> Self {
        Self::Json([].iter())
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        match self {
            Self::Json(items) => items.next().map(Value::of),
            Self::Made(items) => items.next().copied(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Self::Json(items) => items.size_hint(),
            Self::Made(items) => items.size_hint(),
        }
    }
}

impl ExactSizeIterator for Items<'_> {}

/// The members of an object, made or of JSON.
#[derive(Clone, Debug)]
pub enum Members<'a> {
    /// Of the project or the input.
    Json(serde_json::map::Iter<'a>),
    /// Of an object that the evaluation made.
    Made(slice::Iter<'a, Member<'a>>),
}

impl<'a> Iterator for Members<'a> {
    type Item = Member<'a>;

    fn next(&mut self) -> Option<Member<'a>> {
        match self {
            Self::Json(members) => {
                let (name, value) = members.next()?;
                Some((name, Value::of(value)))
            }
            Self::Made(members) => members.next().copied(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Self::Json(members) => members.size_hint(),
            Self::Made(members) => members.size_hint(),
        }
    }
}

impl ExactSizeIterator for Members<'_> {}

impl PartialEq<Value<'_>> for Value<'_> {
    /// Equality as of JSON: `1` and `1.0` are equal, the order of members does not count.
    fn eq(&self, other: &Value<'_>) -> bool {
        match (self, other) {
            (Self::Null, Value::Null) | (Self::False, Value::False) | (Self::True, Value::True) => true,
            (Self::Int(a), Value::Int(b)) => a == b,
            (Self::Int(_) | Self::Float(_), Value::Int(_) | Value::Float(_)) => {
                self.as_f64() == other.as_f64()
            }
            (Self::Text(_) | Self::Made(_), _) => self.as_str() == other.as_str(),
            _ if self.len() != other.len() || self.len().is_none() || self.kind() != other.kind() => false,
            _ => match (self.items(), other.items()) {
                (Some(mut ours), Some(theirs)) => {
                    theirs.into_iter().all(|theirs| ours.next() == Some(theirs))
                }
                _ => self
                    .members()
                    .is_some_and(|mut members| members.all(|(key, value)| value == other.member(key))),
            },
        }
    }
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::False => serializer.serialize_bool(false),
            Self::True => serializer.serialize_bool(true),
            Self::Int(int) => serializer.serialize_i64(*int),
            Self::Float(float) => serializer.serialize_f64(float.get()),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Made(text) => serializer.serialize_str(text),
            Self::Json(json) => json.serialize(serializer),
            Self::List(made) => {
                let mut list = serializer.serialize_seq(Some(made.items.len()))?;
                for item in made.items {
                    list.serialize_element(item)?;
                }
                list.end()
            }
            Self::Object(made) => {
                let mut map = serializer.serialize_map(Some(made.items.len()))?;
                for (key, value) in made.items {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}
