//! JSON Pointers (RFC 6901), parsed once when rules are compiled.

use serde_json::{Map, Value};

/// A parsed pointer: unescaped reference tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pointer(Vec<String>);

impl Pointer {
    /// Parses `/a/b~1c`; the empty text is the whole document.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self(Vec::new()));
        }
        let Some(rest) = text.strip_prefix('/') else {
            return Err(format!(
                "`{text}` is not a JSON Pointer: expected it to begin with `/`"
            ));
        };
        rest.split('/')
            .map(|token| {
                let mut plain = String::with_capacity(token.len());
                let mut chars = token.chars();
                while let Some(c) = chars.next() {
                    match c {
                        '~' => match chars.next() {
                            Some('0') => plain.push('~'),
                            Some('1') => plain.push('/'),
                            _ => return Err(format!("`{text}`: `~` must be followed by `0` or `1`")),
                        },
                        c => plain.push(c),
                    }
                }
                Ok(plain)
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    pub(super) fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `other` points strictly below this pointer.
    pub(super) fn is_above(&self, other: &Self) -> bool {
        other.0.len() > self.0.len() && other.0.starts_with(&self.0)
    }

    pub(super) fn get<'a>(&self, document: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(document, |at, token| step(at, token))
    }

    /// Sets `value` and creates missing parent objects. An array index must exist or be `-` (append). Returns whether it
    /// succeeded.
    pub(super) fn set(&self, document: &mut Value, value: Value) -> bool {
        let mut at = document;
        for token in &self.0 {
            if at.is_null() {
                *at = Value::Object(Map::new());
            }
            at = match at {
                Value::Object(members) => members.entry(token.as_str()).or_insert(Value::Null),
                Value::Array(items) => {
                    let position = if token == "-" {
                        items.push(Value::Null);
                        Some(items.len() - 1)
                    } else {
                        index(token)
                    };
                    match position.and_then(|i| items.get_mut(i)) {
                        Some(item) => item,
                        None => return false,
                    }
                }
                _ => return false,
            };
        }
        *at = value;
        true
    }

    /// Removes the value from the document; the other members keep their order.
    pub(super) fn take(&self, document: &mut Value) -> Option<Value> {
        let (last, parents) = self.0.split_last()?;
        let parent = parents.iter().try_fold(document, |at, token| match at {
            Value::Object(members) => members.get_mut(token),
            Value::Array(items) => items.get_mut(index(token)?),
            _ => None,
        })?;
        match parent {
            Value::Object(members) => members.shift_remove(last),
            Value::Array(items) => {
                let at = index(last)?;
                (at < items.len()).then(|| items.remove(at))
            }
            _ => None,
        }
    }
}

fn step<'a>(at: &'a Value, token: &str) -> Option<&'a Value> {
    match at {
        Value::Object(members) => members.get(token),
        Value::Array(items) => items.get(index(token)?),
        _ => None,
    }
}

/// RFC 6901 §4: digits without a leading zero.
fn index(token: &str) -> Option<usize> {
    let canonical = token == "0" || (!token.starts_with('0') && token.bytes().all(|b| b.is_ascii_digit()));
    canonical.then(|| token.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn reads_sets_and_takes() {
        let mut document = json!({"a": [1, {"b/c": "x", "m~n": 2}], "z": null});
        let place = |text| Pointer::parse(text).unwrap();
        assert_eq!(place("/a/1/b~1c").get(&document), Some(&json!("x")));
        assert_eq!(place("/a/01").get(&document), None);
        assert!(place("/new/deep/er").set(&mut document, json!(7)));
        assert_eq!(document["new"]["deep"]["er"], 7);
        assert!(place("/a/-").set(&mut document, json!(3)));
        assert!(!place("/a/9").set(&mut document, json!(3)));
        assert!(
            !place("/a/0/x").set(&mut document, json!(3)),
            "a number has no members"
        );
        assert_eq!(place("/a/1/m~0n").take(&mut document), Some(json!(2)));
        assert_eq!(place("/a/5").take(&mut document), None);
        assert_eq!(place("").take(&mut document), None);
    }

    #[test]
    fn refuses_what_is_no_pointer() {
        assert!(Pointer::parse("a/b").unwrap_err().contains("begin with `/`"));
        assert!(Pointer::parse("/a~2").unwrap_err().contains('~'));
    }

    proptest! {
        #[test]
        fn what_is_set_is_there_and_what_is_taken_is_gone(tokens in proptest::collection::vec("[a-z~/]{1,4}", 1..5)) {
            let text: String =
                tokens.iter().map(|t| format!("/{}", t.replace('~', "~0").replace('/', "~1"))).collect();
            let place = Pointer::parse(&text).unwrap();
            let mut document = Value::Null;
            prop_assert!(place.set(&mut document, json!(1)));
            prop_assert_eq!(place.get(&document), Some(&json!(1)));
            prop_assert_eq!(place.take(&mut document), Some(json!(1)));
            prop_assert_eq!(place.get(&document), None);
        }

        #[test]
        fn any_text_is_parsed_or_refused(text in ".{0,40}") {
            let _ = Pointer::parse(&text);
        }
    }
}
