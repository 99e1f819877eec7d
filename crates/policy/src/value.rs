//! Values of an evaluation. They borrow from the project and the input where they can; what the evaluation makes is in its
//! arena. A value is copied and never dropped.

use std::cmp::Ordering;
use std::slice;

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::Value as Json;

/// A value: JSON that shares its parts.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// Null, or an absent member.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A number with a fraction, or beyond the range of `i64`.
    Float(f64),
    /// A text.
    Text(&'a str),
    /// An array or object of the project or the input.
    Json(&'a Json),
    /// An array that the evaluation made.
    List {
        /// Levels of made values below and including this one.
        height: u32,
        /// The items in order.
        items: &'a [Value<'a>],
    },
    /// An object that the evaluation made.
    Object {
        /// Levels of made values below and including this one.
        height: u32,
        /// The members in order; their names are distinct.
        members: &'a [Member<'a>],
    },
}

/// Evaluations are charged by the size of values.
const _: () = assert!(size_of::<Value<'_>>() == 24);

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
            Json::Bool(yes) => Self::Bool(*yes),
            Json::Number(number) => match number.as_i64() {
                Some(int) => Self::Int(int),
                None => Self::Float(number.as_f64().unwrap_or(f64::MAX)),
            },
            Json::String(text) => Self::Text(text),
            Json::Array(_) | Json::Object(_) => Self::Json(json),
        }
    }

    /// A list that the evaluation made.
    #[must_use]
    pub fn list(items: &'a [Value<'a>]) -> Self {
        let height = 1 + items.iter().map(Value::height).max().unwrap_or(0);
        Self::List { height, items }
    }

    /// An object that the evaluation made. The names must be distinct.
    #[must_use]
    pub fn object(members: &'a [Member<'a>]) -> Self {
        let height = 1 + members.iter().map(|(_, value)| value.height()).max().unwrap_or(0);
        Self::Object { height, members }
    }

    /// Levels of made values. Values of input and project count as none: their depth is bounded where they are parsed.
    #[must_use]
    pub fn height(&self) -> u32 {
        match self {
            Self::List { height, .. } | Self::Object { height, .. } => *height,
            _ => 0,
        }
    }

    /// The text, if this is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if this is one.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Int(int) => Some(*int as f64),
            Self::Float(float) => Some(*float),
            _ => None,
        }
    }

    /// Whether a condition with this value holds: the boolean `true` alone.
    #[must_use]
    pub fn is_true(&self) -> bool {
        matches!(self, Self::Bool(true))
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
            Self::Object { members, .. } => {
                let found = members.iter().find(|(name, _)| *name == key);
                found.map_or(Self::Null, |(_, value)| *value)
            }
            _ => Self::Null,
        }
    }

    /// Whether this is a list.
    #[must_use]
    pub fn is_list(&self) -> bool {
        matches!(self, Self::List { .. } | Self::Json(Json::Array(_)))
    }

    /// The item of a list; null where there is none.
    #[must_use]
    pub fn item(&self, index: usize) -> Value<'a> {
        match self {
            Self::Json(Json::Array(items)) => items.get(index).map_or(Self::Null, Value::of),
            Self::List { items, .. } => items.get(index).copied().unwrap_or(Self::Null),
            _ => Self::Null,
        }
    }

    /// How many items, members or bytes a list, object or text has.
    #[must_use]
    pub(crate) fn len(&self) -> Option<usize> {
        match self {
            Self::Text(text) => Some(text.len()),
            Self::Json(Json::Array(items)) => Some(items.len()),
            Self::Json(Json::Object(map)) => Some(map.len()),
            Self::List { items, .. } => Some(items.len()),
            Self::Object { members, .. } => Some(members.len()),
            _ => None,
        }
    }

    /// The items of a list.
    #[must_use]
    pub fn items(&self) -> Option<Items<'a>> {
        match self {
            Self::Json(Json::Array(items)) => Some(Items::Json(items.iter())),
            Self::List { items, .. } => Some(Items::Made(items.iter())),
            _ => None,
        }
    }

    /// The members of an object.
    #[must_use]
    pub fn members(&self) -> Option<Members<'a>> {
        match self {
            Self::Json(Json::Object(map)) => Some(Members::Json(map.iter())),
            Self::Object { members, .. } => Some(Members::Made(members.iter())),
            _ => None,
        }
    }

    /// What the value is, for messages.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Int(_) | Self::Float(_) => "a number",
            Self::Text(_) => "a text",
            Self::Json(Json::Array(_)) | Self::List { .. } => "a list",
            Self::Json(_) | Self::Object { .. } => "an object",
        }
    }

    /// The order of two numbers or two texts.
    #[must_use]
    pub fn order(&self, other: &Value<'_>) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(a), Value::Int(b)) => Some(a.cmp(b)),
            (Self::Text(a), Value::Text(b)) => Some((*a).cmp(*b)),
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
            Self::Null | Self::Bool(_) => 5,
            Self::Int(_) | Self::Float(_) => 8,
            Self::Text(text) => text.len() + 2,
            Self::Json(json) => weight(json, most),
            Self::List { items, .. } => total(most, *items, |item, left| item.weight(left) + 1),
            Self::Object { members, .. } => total(most, *members, |(key, value), left| {
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
            (Self::Null, Value::Null) => true,
            (Self::Bool(a), Value::Bool(b)) => a == b,
            (Self::Text(a), Value::Text(b)) => a == b,
            (Self::Int(a), Value::Int(b)) => a == b,
            (Self::Int(_) | Self::Float(_), Value::Int(_) | Value::Float(_)) => {
                self.as_f64() == other.as_f64()
            }
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
            Self::Bool(yes) => serializer.serialize_bool(*yes),
            Self::Int(int) => serializer.serialize_i64(*int),
            Self::Float(float) => serializer.serialize_f64(*float),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Json(json) => json.serialize(serializer),
            Self::List { items, .. } => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in *items {
                    list.serialize_element(item)?;
                }
                list.end()
            }
            Self::Object { members, .. } => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (key, value) in *members {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}
