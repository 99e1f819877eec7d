//! The operations of a JSON Patch, read within a bound.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::problem::{Cause, Problem};

/// One operation of a JSON Patch; values stay text.
#[derive(Debug, Deserialize)]
pub struct Operation<'a> {
    /// `op`.
    #[serde(borrow)]
    pub op: Cow<'a, str>,
    /// `path`.
    #[serde(borrow)]
    pub path: Cow<'a, str>,
    #[serde(default, borrow)]
    pub(super) from: Option<Cow<'a, str>>,
    #[serde(default, borrow, deserialize_with = "present")]
    value: Option<&'a RawValue>,
}

/// `null` is a value like any other.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl<'a> Operation<'a> {
    /// The value it brings, as text.
    #[must_use]
    pub fn value(&self) -> Option<&'a str> {
        self.value.map(RawValue::get)
    }
}

/// Reads a patch of at most `most` operations; a longer one is not read to its end.
///
/// # Errors
/// `INVALID_MSG_FORMAT` when the body is not a JSON Patch or is empty, 413 when it has more operations.
pub fn operations(body: &[u8], most: usize) -> Result<Vec<Operation<'_>>, Problem> {
    let excess = Cell::new(false);
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let read = Few {
        most,
        excess: &excess,
    }
    .deserialize(&mut deserializer)
    .and_then(|operations| deserializer.end().map(|()| operations));
    match read {
        Ok(operations) if operations.is_empty() => {
            Err(Problem::new(Cause::InvalidMsgFormat).detail("expected at least one operation"))
        }
        Ok(operations) => Ok(operations),
        Err(_) if excess.get() => Err(Problem::new(Cause::PayloadTooLarge)
            .detail(format!("a JSON Patch of more than {most} operations"))
            .invalid_param(format!("/{most}"), format!("expected at most {most} operations"))),
        Err(error) => Err(Problem::new(Cause::InvalidMsgFormat)
            .detail(format!("expected a JSON Patch: {error}"))
            .invalid_param("", error.to_string())),
    }
}

/// Reads a list of operations up to a bound.
struct Few<'c> {
    most: usize,
    excess: &'c Cell<bool>,
}

impl<'de> DeserializeSeed<'de> for Few<'_> {
    type Value = Vec<Operation<'de>>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Few<'_> {
    type Value = Vec<Operation<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of operations")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut operations = Vec::new();
        while operations.len() < self.most {
            match list.next_element()? {
                Some(operation) => operations.push(operation),
                None => return Ok(operations),
            }
        }
        if list.next_element::<serde::de::IgnoredAny>()?.is_some() {
            self.excess.set(true);
            return Err(serde::de::Error::custom("too many operations"));
        }
        Ok(operations)
    }
}
