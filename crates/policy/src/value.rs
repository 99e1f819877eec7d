//! Values of an evaluation. They borrow from the project and the input where they can.

use std::cmp::Ordering;
use std::rc::Rc;

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::Value as Json;

/// A text, borrowed or made by the evaluation.
#[derive(Clone, Debug)]
pub enum Text<'a> {
    /// A text of the project or the input.
    Ref(&'a str),
    /// A text that the evaluation made.
    Own(Rc<str>),
}

/// A value: JSON that shares its parts.
#[derive(Clone, Debug)]
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
    Text(Text<'a>),
    /// An array or object of the project or the input.
    Json(&'a Json),
    /// An array that the evaluation made.
    List(Rc<Made<Value<'a>>>),
    /// An object that the evaluation made. Its keys are distinct.
    Object(Rc<Made<(Text<'a>, Value<'a>)>>),
}

/// Parts of a value that the evaluation made.
#[derive(Clone, Debug)]
pub struct Made<T> {
    /// The parts in order.
    pub items: Vec<T>,
    /// Levels of made values below and including this one.
    height: usize,
}

impl<'a> Text<'a> {
    /// The characters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Ref(text) => text,
            Self::Own(text) => text,
        }
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self::Own(text.into())
    }
}

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
    pub fn of(json: &'a Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(yes) => Self::Bool(*yes),
            Json::Number(number) => match number.as_i64() {
                Some(int) => Self::Int(int),
                None => Self::Float(number.as_f64().unwrap_or(f64::MAX)),
            },
            Json::String(text) => Self::Text(Text::Ref(text)),
            Json::Array(_) | Json::Object(_) => Self::Json(json),
        }
    }

    /// A text that the evaluation made.
    #[must_use]
    pub fn text(text: String) -> Self {
        Self::Text(text.into())
    }

    /// A list that the evaluation made.
    #[must_use]
    pub fn list(items: Vec<Value<'a>>) -> Self {
        let height = 1 + items.iter().map(Value::height).max().unwrap_or(0);
        Self::List(Rc::new(Made { items, height }))
    }

    /// An object that the evaluation made. The keys must be distinct.
    #[must_use]
    pub fn object(items: Vec<(Text<'a>, Value<'a>)>) -> Self {
        let height = 1 + items.iter().map(|(_, value)| value.height()).max().unwrap_or(0);
        Self::Object(Rc::new(Made { items, height }))
    }

    /// Levels of made values. Values of input and project count as none: their depth is bounded where they are parsed.
    #[must_use]
    pub fn height(&self) -> usize {
        match self {
            Self::List(made) => made.height,
            Self::Object(made) => made.height,
            _ => 0,
        }
    }

    /// The text, if this is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text.as_str()),
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
            Self::Object(made) => {
                let found = made.items.iter().find(|(name, _)| name.as_str() == key);
                found.map_or(Self::Null, |(_, value)| value.clone())
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
            Self::List(made) => made.items.get(index).cloned().unwrap_or(Self::Null),
            _ => Self::Null,
        }
    }

    /// How many items, members or bytes a list, object or text has.
    #[must_use]
    pub(crate) fn len(&self) -> Option<usize> {
        match self {
            Self::Text(text) => Some(text.as_str().len()),
            Self::Json(Json::Array(items)) => Some(items.len()),
            Self::Json(Json::Object(map)) => Some(map.len()),
            Self::List(made) => Some(made.items.len()),
            Self::Object(made) => Some(made.items.len()),
            _ => None,
        }
    }

    /// The items of a list.
    #[must_use]
    pub fn items(&self) -> Option<Vec<Value<'a>>> {
        match self {
            Self::Json(Json::Array(items)) => Some(items.iter().map(Value::of).collect()),
            Self::List(made) => Some(made.items.clone()),
            _ => None,
        }
    }

    /// The members of an object.
    #[must_use]
    pub fn members(&self) -> Option<Vec<(Text<'a>, Value<'a>)>> {
        match self {
            Self::Json(Json::Object(map)) => {
                let member = |(key, value): (&'a String, &'a Json)| (Text::Ref(key), Value::of(value));
                Some(map.iter().map(member).collect())
            }
            Self::Object(made) => Some(made.items.clone()),
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
            Self::Json(Json::Array(_)) | Self::List(_) => "a list",
            Self::Json(_) | Self::Object(_) => "an object",
        }
    }

    /// The order of two numbers or two texts.
    #[must_use]
    pub fn order(&self, other: &Value<'_>) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(a), Value::Int(b)) => Some(a.cmp(b)),
            (Self::Text(a), Value::Text(b)) => Some(a.as_str().cmp(b.as_str())),
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
            Self::Text(text) => text.as_str().len() + 2,
            Self::Json(json) => weight(json, most),
            Self::List(made) => total(most, &made.items, |item, left| item.weight(left) + 1),
            Self::Object(made) => total(most, &made.items, |(key, value), left| {
                key.as_str().len() + 4 + value.weight(left)
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

impl PartialEq<Value<'_>> for Value<'_> {
    /// Equality as of JSON: `1` and `1.0` are equal, the order of members does not count.
    fn eq(&self, other: &Value<'_>) -> bool {
        match (self, other) {
            (Self::Null, Value::Null) => true,
            (Self::Bool(a), Value::Bool(b)) => a == b,
            (Self::Text(a), Value::Text(b)) => a.as_str() == b.as_str(),
            (Self::Int(a), Value::Int(b)) => a == b,
            (Self::Int(_) | Self::Float(_), Value::Int(_) | Value::Float(_)) => {
                self.as_f64() == other.as_f64()
            }
            _ if self.len() != other.len() || self.len().is_none() || self.kind() != other.kind() => false,
            _ => match (self.items(), other.items()) {
                (Some(ours), Some(theirs)) => ours == theirs,
                _ => self.members().is_some_and(|members| {
                    members
                        .iter()
                        .all(|(key, value)| *value == other.member(key.as_str()))
                }),
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
            Self::Text(text) => serializer.serialize_str(text.as_str()),
            Self::Json(json) => json.serialize(serializer),
            Self::List(made) => {
                let mut list = serializer.serialize_seq(Some(made.items.len()))?;
                for item in &made.items {
                    list.serialize_element(item)?;
                }
                list.end()
            }
            Self::Object(made) => {
                let mut map = serializer.serialize_map(Some(made.items.len()))?;
                for (key, value) in &made.items {
                    map.serialize_entry(key.as_str(), value)?;
                }
                map.end()
            }
        }
    }
}
