//! JSON as text: finding members without building a tree.
//!
//! Everything here works on text that a parser has accepted before; on other text it finds nothing or nonsense,
//! but never panics.

use std::borrow::Cow;
use std::ops::Range;

/// A member of an object, or an item of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The key's text between its quotes, still escaped; empty for array items.
    pub key: Range<usize>,
    /// From the key's quote (or the value's start, in an array) to the value's end.
    pub whole: Range<usize>,
    /// The value.
    pub value: Range<usize>,
}

pub(super) fn skip_space(text: &[u8], mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
}

/// The end of the string whose opening quote is at `at`.
pub(super) fn skip_string(text: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// The end of the value that starts at `at`.
fn skip_value(text: &[u8], at: usize) -> usize {
    match text.get(at) {
        Some(b'"') => skip_string(text, at),
        Some(b'{' | b'[') => {
            let mut depth = 0usize;
            let mut at = at;
            while let Some(byte) = text.get(at) {
                match byte {
                    b'"' => {
                        at = skip_string(text, at);
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => {
                        depth -= 1;
                        if depth == 0 {
                            return at + 1;
                        }
                    }
                    _ => {}
                }
                at += 1;
            }
            text.len()
        }
        _ => {
            let mut at = at;
            while !matches!(
                text.get(at),
                None | Some(b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t')
            ) {
                at += 1;
            }
            at
        }
    }
}

/// The members or items of the container in `span`, in order; nothing if it is neither object nor array.
pub fn items(text: &str, span: Range<usize>) -> impl Iterator<Item = Item> {
    let bytes = text.as_bytes();
    let start = skip_space(bytes, span.start);
    let object = bytes.get(start) == Some(&b'{');
    let container = object || bytes.get(start) == Some(&b'[');
    let mut at = if container { start + 1 } else { span.end };
    std::iter::from_fn(move || {
        at = skip_space(bytes, at);
        if bytes.get(at) == Some(&b',') {
            at = skip_space(bytes, at + 1);
        }
        if at >= span.end || matches!(bytes.get(at), None | Some(b'}' | b']')) {
            return None;
        }
        let whole = at;
        let mut key = at..at;
        if object {
            let end = skip_string(bytes, at);
            key = at + 1..end.saturating_sub(1).max(at + 1);
            at = skip_space(bytes, end);
            at = skip_space(bytes, at + 1);
        }
        let value = at..skip_value(bytes, at);
        // An empty scalar is not JSON; the walk stops.
        if value.is_empty() {
            return None;
        }
        at = value.end;
        Some(Item {
            key,
            whole: whole..value.end,
            value,
        })
    })
}

/// The name that an escaped key stands for: `nf\u0054ype` is `nfType`. Names are compared after this, never as
/// they are written, because every parser unescapes them (RFC 8259 §8.3).
#[must_use]
pub fn unescaped(raw: &str) -> Cow<'_, str> {
    if !raw.contains('\\') {
        return Cow::Borrowed(raw);
    }
    serde_json::from_str::<String>(&format!("\"{raw}\"")).map_or(Cow::Borrowed(raw), Cow::Owned)
}

/// The whole text as a value's span.
#[must_use]
pub fn root(text: &str) -> Range<usize> {
    let start = skip_space(text.as_bytes(), 0);
    start..skip_value(text.as_bytes(), start)
}

/// The value of a member of an object.
#[must_use]
pub fn member(text: &str, object: Range<usize>, name: &str) -> Option<Item> {
    items(text, object).find(|item| unescaped(&text[item.key.clone()]) == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_objects_and_arrays() {
        let text = r#" { "a" : 1.50 , "b\"c":[1, {"x":"}"} ,"s"],"n":null } "#;
        let found: Vec<(&str, &str)> = items(text, root(text))
            .map(|item| (&text[item.key], &text[item.value]))
            .collect();
        assert_eq!(
            found,
            [
                ("a", "1.50"),
                (r#"b\"c"#, r#"[1, {"x":"}"} ,"s"]"#),
                ("n", "null")
            ]
        );
        assert!(member(text, root(text), "b\"c").is_some());
        assert_eq!(items("7", 0..1).count(), 0);
        assert_eq!(items("[]", 0..2).count() + items("{ }", 0..3).count(), 0);
    }

    #[test]
    fn names_are_compared_unescaped() {
        let text = r#"{"nf\u0054ype":1,"\ud800":2}"#;
        assert_eq!(&text[member(text, root(text), "nfType").unwrap().value], "1");
        assert_eq!(
            unescaped(r"\ud800"),
            r"\ud800",
            "what no parser reads stays as it is"
        );
    }
}
