//! Members of documents, and RFC 7396.

use serde_json::{Map, Value};

pub(crate) type Object = Map<String, Value>;

pub(crate) fn text<'a>(value: &'a Value, member: &str) -> Option<&'a str> {
    value.get(member)?.as_str()
}

pub(crate) fn uint(value: &Value, member: &str) -> Option<u64> {
    value.get(member)?.as_u64()
}

pub(crate) fn flag(value: &Value, member: &str) -> Option<bool> {
    value.get(member)?.as_bool()
}

/// The items of an array; of anything else none.
pub(crate) fn items<'a>(value: &'a Value, member: &str) -> &'a [Value] {
    value
        .get(member)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The texts of an array of texts.
pub(crate) fn texts<'a>(value: &'a Value, member: &str) -> impl Iterator<Item = &'a str> {
    items(value, member).iter().filter_map(Value::as_str)
}

/// The entries of an object; of anything else none.
pub(crate) fn entries<'a>(value: &'a Value, member: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let object = value.get(member).and_then(Value::as_object);
    object
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.as_str(), value))
}

/// Sets a member when there is a value for it; null is none.
pub(crate) fn put(object: &mut Object, member: &str, value: Option<impl Into<Value>>) {
    match value.map(Into::into) {
        None | Some(Value::Null) => {}
        Some(value) => drop(object.insert(member.to_owned(), value)),
    }
}

/// An array of texts.
pub(crate) fn list<T: Into<Value>>(texts: impl IntoIterator<Item = T>) -> Value {
    Value::Array(texts.into_iter().map(Into::into).collect())
}

/// The object of a value that is made one where it is none.
pub(crate) fn object(value: &mut Value) -> &mut Object {
    if !value.is_object() {
        *value = Value::Object(Object::new());
    }
    match value {
        Value::Object(object) => object,
        // Just made one.
        _ => unreachable!("the value is an object"),
    }
}

/// Applies a JSON merge patch (RFC 7396): null removes a member, objects are merged, all else replaces.
pub(crate) fn merge_patch(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    let target = object(target);
    for (name, value) in patch {
        if value.is_null() {
            target.remove(name);
        } else {
            merge_patch(target.entry(name).or_insert(Value::Null), value);
        }
    }
}
