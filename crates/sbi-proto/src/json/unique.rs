//! JSON in which each object has each member once, at every depth.
//!
//! RFC 8259 §4 leaves open what a name that comes twice means: one parser takes the first value, another the last.
//! What is passed on as text would then mean one thing here and another at its reader, so it is refused
//! (RFC 7493 §2.3). Names count as a parser sees them: `"nfType"` and `"nf\u0054ype"` are one.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Why bytes are not JSON with unique member names.
#[derive(Debug)]
pub enum Fault {
    /// The bytes are not valid JSON.
    Syntax(serde_json::Error),
    /// The JSON pointer of a member that comes twice.
    Twice(String),
}

/// Reads a value.
///
/// # Errors
/// When the bytes are not JSON, deeper than 127 levels, or have a member twice.
pub fn parse(bytes: &[u8]) -> Result<Value, Fault> {
    let twice = RefCell::new(None);
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    Unique { twice: &twice }
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| match twice.take() {
            Some(place) => Fault::Twice(place),
            None => Fault::Syntax(error),
        })
}

/// Reads a value; leaves in `twice` where a member comes again.
#[derive(Clone, Copy)]
struct Unique<'c> {
    twice: &'c RefCell<Option<String>>,
}

impl Unique<'_> {
    /// On the way out of a value with a fault: one step of its pointer.
    fn step(&self, step: impl fmt::Display) {
        if let Some(place) = self.twice.borrow_mut().as_mut() {
            *place = format!("/{step}{place}");
        }
    }
}

/// A name as a step of a pointer; long ones are cut, as pointers go into answers.
fn step_of(name: &str) -> String {
    let cut: String = name.chars().take(64).collect();
    super::escape(&cut)
}

impl<'de> DeserializeSeed<'de> for Unique<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unique<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list
            .next_element_seed(self)
            .inspect_err(|_| self.step(items.len()))?
        {
            items.push(item);
        }
        Ok(items.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            if members.contains_key(&name) {
                *self.twice.borrow_mut() = Some(format!("/{}", step_of(&name)));
                return Err(A::Error::custom("a member comes twice"));
            }
            let value = map
                .next_value_seed(self)
                .inspect_err(|_| self.step(step_of(&name)))?;
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn twice(text: &str) -> String {
        match parse(text.as_bytes()) {
            Err(Fault::Twice(place)) => place,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn what_has_each_member_once_is_read_as_by_serde() {
        let text = r#"{"a":[1,-2,1.5e3,null,true,"xé",{}],"b":{"a":18446744073709551615}}"#;
        assert_eq!(
            parse(text.as_bytes()).unwrap(),
            serde_json::from_str::<Value>(text).unwrap()
        );
    }

    #[test]
    fn a_member_that_comes_twice_is_found_at_every_depth() {
        assert_eq!(twice(r#"{"a":1,"a":1}"#), "/a");
        assert_eq!(twice(r#"{"nfType":1,"nf\u0054ype":2}"#), "/nfType");
        assert_eq!(twice(r#"{"x":[0,{"y~":{"a/b":1,"a\/b":2}}]}"#), "/x/1/y~0/a~1b");
    }

    #[test]
    fn the_rest_is_a_fault_of_syntax() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for bad in ["", "{", "[1,]", "{} x", "\"\u{1}\"", &deep] {
            assert!(matches!(parse(bad.as_bytes()), Err(Fault::Syntax(_))), "{bad}");
        }
    }
}
