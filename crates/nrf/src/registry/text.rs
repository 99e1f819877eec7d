//! JSON as text: finding members without building a tree, and JSON Patch as splices (RFC 6902).
//!
//! A registered profile stays the text its owner sent: what nobody interprets must come back byte for byte,
//! numbers and all. So a patch cuts and pastes; only the values it brings are new. Everything here works on
//! text that a parser has accepted before; on other text it finds nothing or nonsense, but never panics.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

/// A member of an object, or an item of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// The key's text between its quotes, still escaped; empty for array items.
    pub(crate) key: Range<usize>,
    /// From the key's quote (or the value's start, in an array) to the value's end.
    pub(crate) whole: Range<usize>,
    /// The value.
    pub(crate) value: Range<usize>,
}

fn skip_space(text: &[u8], mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
}

/// The end of the string whose opening quote is at `at`.
fn skip_string(text: &[u8], at: usize) -> usize {
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
pub(crate) fn items(text: &str, span: Range<usize>) -> impl Iterator<Item = Item> {
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
        // A scalar of no length is no JSON; stop rather than stand still.
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

/// Whether an escaped key stands for this name.
fn key_is(raw: &str, name: &str) -> bool {
    if raw.contains('\\') {
        serde_json::from_str::<String>(&format!("\"{raw}\"")).is_ok_and(|key| key == name)
    } else {
        raw == name
    }
}

/// The whole text as a value's span.
pub(crate) fn root(text: &str) -> Range<usize> {
    let start = skip_space(text.as_bytes(), 0);
    start..skip_value(text.as_bytes(), start)
}

/// The value of a member of an object.
pub(crate) fn member(text: &str, object: Range<usize>, name: &str) -> Option<Item> {
    items(text, object).find(|item| key_is(&text[item.key.clone()], name))
}

/// One operation of a JSON Patch; values stay text.
#[derive(Debug, Deserialize)]
pub(crate) struct Operation<'a> {
    #[serde(borrow)]
    pub(crate) op: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) path: Cow<'a, str>,
    #[serde(default, borrow)]
    from: Option<Cow<'a, str>>,
    #[serde(default, borrow, deserialize_with = "present")]
    value: Option<&'a RawValue>,
}

/// `null` is a value like any other.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Operation<'_> {
    /// The value it brings, as text.
    pub(crate) fn value(&self) -> Option<&str> {
        self.value.map(RawValue::get)
    }
}

/// Why a patch does not apply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("operation {index}, {member}: {expected}")]
pub struct PatchFault {
    /// Which operation, from 0.
    pub index: usize,
    /// Which of its members is to blame.
    pub member: &'static str,
    /// What was expected.
    pub expected: String,
    /// Whether the operation is sound, and only does not fit the resource as it is.
    pub conflict: bool,
}

type Step<'a> = Cow<'a, str>;

/// The steps of a JSON pointer (RFC 6901).
fn steps(pointer: &str) -> Result<Vec<Step<'_>>, String> {
    if pointer.is_empty() {
        return Ok(Vec::new());
    }
    let Some(rest) = pointer.strip_prefix('/') else {
        return Err("expected a JSON pointer: empty, or starting with a slash".into());
    };
    Ok(rest
        .split('/')
        .map(|step| {
            if step.contains('~') {
                Cow::Owned(step.replace("~1", "/").replace("~0", "~"))
            } else {
                Cow::Borrowed(step)
            }
        })
        .collect())
}

fn is_array(text: &str, span: &Range<usize>) -> bool {
    text.as_bytes().get(span.start) == Some(&b'[')
}

fn child(text: &str, container: Range<usize>, step: &str) -> Option<Item> {
    if is_array(text, &container) {
        // "01" and "+1" are no indexes (RFC 6901 §4).
        if step.is_empty()
            || step.bytes().any(|b| !b.is_ascii_digit())
            || (step.len() > 1 && step.starts_with('0'))
        {
            return None;
        }
        items(text, container).nth(step.parse().ok()?)
    } else {
        member(text, container, step)
    }
}

/// The container of the last step, if every step before it leads somewhere.
fn parent(text: &str, steps: &[Step<'_>]) -> Option<Range<usize>> {
    let mut at = root(text);
    for step in steps.split_last()?.1 {
        at = child(text, at, step)?.value;
    }
    matches!(text.as_bytes().get(at.start), Some(b'{' | b'[')).then_some(at)
}

/// The value a pointer leads to.
pub(crate) fn find(text: &str, pointer: &str) -> Option<Range<usize>> {
    let mut at = root(text);
    for step in steps(pointer).ok()? {
        at = child(text, at, &step)?.value;
    }
    Some(at)
}

fn splice(text: &str, cut: Range<usize>, paste: &[&str]) -> String {
    let added: usize = paste.iter().map(|piece| piece.len()).sum();
    let mut out = String::with_capacity(text.len() - cut.len() + added);
    out.push_str(&text[..cut.start]);
    paste.iter().for_each(|piece| out.push_str(piece));
    out.push_str(&text[cut.end..]);
    out
}

fn add(text: &str, steps: &[Step<'_>], value: &str) -> Result<String, String> {
    let Some(last) = steps.last() else {
        return Ok(value.to_owned());
    };
    let container = parent(text, steps).ok_or("expected a path whose parent exists")?;
    if is_array(text, &container) {
        let end = items(text, container.clone()).last().map(|item| item.whole.end);
        let count = items(text, container.clone()).count();
        if last != "-" && *last != count.to_string() {
            let item = child(text, container, last).ok_or_else(|| {
                format!("expected an index from 0 to {count}, or -, at the end of the path")
            })?;
            return Ok(splice(text, item.whole.start..item.whole.start, &[value, ","]));
        }
        return Ok(match end {
            Some(end) => splice(text, end..end, &[",", value]),
            None => splice(text, container.start + 1..container.start + 1, &[value]),
        });
    }
    if let Some(item) = member(text, container.clone(), last) {
        return Ok(splice(text, item.value, &[value]));
    }
    let key = serde_json::Value::from(last.as_ref()).to_string();
    Ok(match items(text, container.clone()).last() {
        Some(item) => splice(text, item.whole.end..item.whole.end, &[",", &key, ":", value]),
        None => splice(
            text,
            container.start + 1..container.start + 1,
            &[&key, ":", value],
        ),
    })
}

fn remove(text: &str, steps: &[Step<'_>]) -> Result<String, String> {
    const NOTHING: &str = "expected a path that exists";
    let last = steps.last().ok_or("expected a path below the whole resource")?;
    let container = parent(text, steps).ok_or(NOTHING)?;
    let gone = child(text, container.clone(), last).ok_or(NOTHING)?.whole;
    let all: Vec<Item> = items(text, container).collect();
    let place = all.iter().position(|item| item.whole == gone).ok_or(NOTHING)?;
    let cut = match (place.checked_sub(1).and_then(|i| all.get(i)), all.get(place + 1)) {
        (_, Some(next)) => gone.start..next.whole.start,
        (Some(previous), None) => previous.whole.end..gone.end,
        (None, None) => gone,
    };
    Ok(splice(text, cut, &[]))
}

/// The text after one operation.
fn apply_one(text: &str, index: usize, operation: &Operation<'_>) -> Result<String, PatchFault> {
    let fault = |member: &'static str, conflict: bool| {
        move |expected: String| PatchFault {
            index,
            member,
            expected,
            conflict,
        }
    };
    let path = steps(&operation.path).map_err(fault("path", false))?;
    let value = || {
        operation
            .value()
            .ok_or_else(|| fault("value", false)(format!("expected a value, which {} needs", operation.op)))
    };
    let from = || -> Result<(&str, Range<usize>), PatchFault> {
        let from = operation.from.as_deref().ok_or_else(|| {
            fault("from", false)(format!("expected a pointer, which {} needs", operation.op))
        })?;
        steps(from).map_err(fault("from", false))?;
        let span =
            find(text, from).ok_or_else(|| fault("from", true)("expected a path that exists".into()))?;
        Ok((from, span))
    };
    match operation.op.as_ref() {
        "add" => add(text, &path, value()?).map_err(fault("path", true)),
        "replace" => {
            let value = value()?;
            let span = find(text, &operation.path).ok_or_else(|| {
                fault("path", true)("expected a path that exists; use add for a new member".into())
            })?;
            Ok(splice(text, span, &[value]))
        }
        "remove" => remove(text, &path).map_err(fault("path", true)),
        "copy" => {
            let (_, span) = from()?;
            add(text, &path, &text[span]).map_err(fault("path", true))
        }
        "move" => {
            let (from, span) = from()?;
            if operation
                .path
                .strip_prefix(from)
                .is_some_and(|rest| rest.starts_with('/'))
            {
                return Err(fault("path", false)(
                    "expected a path outside of what is moved".into(),
                ));
            }
            if operation.path == from {
                return Ok(text.to_owned());
            }
            let moved = &text[span];
            let left =
                remove(text, &steps(from).map_err(fault("from", false))?).map_err(fault("from", true))?;
            add(&left, &path, moved).map_err(fault("path", true))
        }
        "test" => {
            let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
            let asked = parse(value()?);
            let found = find(text, &operation.path).and_then(|span| parse(&text[span]));
            if found.is_some() && found == asked {
                Ok(text.to_owned())
            } else {
                Err(fault("value", true)(
                    "expected the value that the resource has".into(),
                ))
            }
        }
        _ => Err(fault("op", false)(
            "expected add, remove, replace, move, copy or test".into(),
        )),
    }
}

/// The text after all operations, or the first fault.
pub(crate) fn apply(text: &str, operations: &[Operation<'_>]) -> Result<String, PatchFault> {
    let mut current = Cow::Borrowed(text);
    for (index, operation) in operations.iter().enumerate() {
        current = Cow::Owned(apply_one(&current, index, operation)?);
    }
    Ok(current.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(text: &str, patch: &str) -> Result<String, PatchFault> {
        let operations: Vec<Operation<'_>> = serde_json::from_str(patch).unwrap();
        apply(text, &operations)
    }

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
        assert_eq!(&text[find(text, "/b\"c/1/x").unwrap()], r#""}""#);
        assert_eq!(items("7", 0..1).count(), 0);
        assert_eq!(items("[]", 0..2).count() + items("{ }", 0..3).count(), 0);
    }

    #[test]
    fn what_a_patch_does_not_touch_stays_as_it_was() {
        let text = "{\"load\":  10 ,\n \"x\":1.0e2, \"l\":[ 1,2 ]}";
        assert_eq!(
            patched(text, r#"[{"op":"replace","path":"/load","value":55}]"#).unwrap(),
            "{\"load\":  55 ,\n \"x\":1.0e2, \"l\":[ 1,2 ]}"
        );
        assert_eq!(
            patched(
                text,
                r#"[{"op":"add","path":"/l/1","value":{"y":1.00}},{"op":"add","path":"/l/-","value":null}]"#
            )
            .unwrap(),
            "{\"load\":  10 ,\n \"x\":1.0e2, \"l\":[ 1,{\"y\":1.00},2,null ]}"
        );
    }

    /// Every operation, judged by an implementation that works on trees.
    #[test]
    fn agrees_with_a_patch_on_trees() {
        let text = r#"{"a":[1,2,3],"o":{"p":{"q":1},"r~/s":true},"e":[],"f":{}}"#;
        for patch in [
            r#"[{"op":"remove","path":"/a/0"}]"#,
            r#"[{"op":"remove","path":"/a/1"}]"#,
            r#"[{"op":"remove","path":"/a/2"}]"#,
            r#"[{"op":"remove","path":"/a"}]"#,
            r#"[{"op":"remove","path":"/f"}]"#,
            r#"[{"op":"remove","path":"/o/r~0~1s"}]"#,
            r#"[{"op":"add","path":"/e/-","value":[]},{"op":"add","path":"/e/0","value":7},{"op":"remove","path":"/e/0"},{"op":"remove","path":"/e/0"}]"#,
            r#"[{"op":"add","path":"/f/new","value":"v"},{"op":"add","path":"/f/new","value":"w"},{"op":"add","path":"/f/z\"","value":0}]"#,
            r#"[{"op":"copy","from":"/o","path":"/a/3"}]"#,
            r#"[{"op":"move","from":"/o/p","path":"/a/0"}]"#,
            r#"[{"op":"move","from":"/a/0","path":"/a/2"}]"#,
            r#"[{"op":"replace","path":"","value":{"x":[]}}]"#,
            r#"[{"op":"test","path":"/o/p","value":{"q":1}},{"op":"replace","path":"/o/p/q","value":[2]}]"#,
            r#"[{"op":"move","from":"/o/p","path":"/o/p"}]"#,
        ] {
            let ours: serde_json::Value = serde_json::from_str(&patched(text, patch).unwrap()).unwrap();
            let mut theirs: serde_json::Value = serde_json::from_str(text).unwrap();
            let patch: json_patch::Patch = serde_json::from_str(patch).unwrap();
            json_patch::patch(&mut theirs, &patch.0).unwrap();
            assert_eq!(ours, theirs, "{patch:?}");
        }
    }

    #[test]
    fn faults_name_operation_and_member() {
        let text = r#"{"a":[1],"o":{}}"#;
        for (patch, member, conflict) in [
            (r#"[{"op":"remove","path":"/x"}]"#, "path", true),
            (r#"[{"op":"remove","path":""}]"#, "path", true),
            (r#"[{"op":"replace","path":"/x","value":1}]"#, "path", true),
            (r#"[{"op":"add","path":"/a/2","value":1}]"#, "path", true),
            (r#"[{"op":"add","path":"/a/01","value":1}]"#, "path", true),
            (r#"[{"op":"add","path":"/a/b/c","value":1}]"#, "path", true),
            (r#"[{"op":"add","path":"a","value":1}]"#, "path", false),
            (r#"[{"op":"add","path":"/a"}]"#, "value", false),
            (r#"[{"op":"copy","path":"/a"}]"#, "from", false),
            (r#"[{"op":"copy","from":"/x","path":"/a"}]"#, "from", true),
            (r#"[{"op":"move","from":"/a","path":"/a/0"}]"#, "path", false),
            (r#"[{"op":"test","path":"/a","value":[2]}]"#, "value", true),
            (r#"[{"op":"test","path":"/zz","value":null}]"#, "value", true),
            (r#"[{"op":"explode","path":"/a"}]"#, "op", false),
        ] {
            let fault = patched(text, patch).unwrap_err();
            assert_eq!(
                (fault.index, fault.member, fault.conflict),
                (0, member, conflict),
                "{patch}"
            );
        }
    }
}
