//! Writing YAML that reads back equal.

use std::fmt::Write;

use serde::Serialize;
use serde_json::Value;

use crate::node;

/// Writes a configuration as YAML; [`crate::from_str`] reads it back equal. Secrets do not occur in it, they
/// are referred to ([`crate::Secret`]).
#[must_use]
pub fn to_yaml<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(value) => {
            let mut text = String::new();
            match &value {
                Value::Object(members) if !members.is_empty() => block(&mut text, &value, 0),
                other => {
                    text.push_str(&scalar(other));
                    text.push('\n');
                }
            }
            text
        }
        // Only maps with keys other than texts fail, which no configuration has.
        Err(error) => format!("# cannot be written: {error}\n"),
    }
}

/// The same value for showing it: passwords in addresses (`scheme://user:password@host`) are blotted out, and so are the
/// values of headers that a function sends to servers (`servers.….headers`), which is where keys of APIs stand.
#[must_use]
pub fn redacted(value: Value) -> Value {
    within(value, false)
}

/// `is_server`: whether a mapping of servers stands around the value.
fn within(value: Value, is_server: bool) -> Value {
    match value {
        Value::String(text) => Value::String(redacted_text(text)),
        Value::Array(items) => Value::Array(items.into_iter().map(|item| within(item, is_server)).collect()),
        Value::Object(members) => {
            let members = members.into_iter().map(|(key, value)| {
                let value = match is_server && key.eq_ignore_ascii_case("headers") {
                    true => blotted(value),
                    false => within(value, is_server || key.eq_ignore_ascii_case("servers")),
                };
                (key, value)
            });
            Value::Object(members.collect())
        }
        other => other,
    }
}

/// The names of headers without their values.
fn blotted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter();
            Value::Object(members.map(|(key, value)| (key, blotted(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(blotted).collect()),
        Value::Null => Value::Null,
        _ => Value::String("***".to_owned()),
    }
}

fn redacted_text(text: String) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let Some((user, _)) = authority.rsplit_once('@') else {
        return text;
    };
    let Some((name, _)) = user.split_once(':') else {
        return text;
    };
    let after = rest.get(user.len()..).unwrap_or_default();
    format!("{scheme}://{name}:***{after}")
}

fn block(text: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                text.push_str(&indent);
                text.push_str(&word(key));
                text.push(':');
                member(text, value, depth);
            }
        }
        Value::Array(items) => {
            for item in items {
                text.push_str(&indent);
                text.push('-');
                if let Value::Object(members) = item
                    && !members.is_empty()
                {
                    // `- key: value`, the following keys aligned with the first.
                    let mut inner = String::new();
                    block(&mut inner, item, depth + 1);
                    text.push(' ');
                    text.push_str(inner.trim_start());
                } else {
                    member(text, item, depth);
                }
            }
        }
        other => {
            text.push_str(&indent);
            text.push_str(&scalar(other));
            text.push('\n');
        }
    }
}

/// What follows a key's colon or a list's dash.
fn member(text: &mut String, value: &Value, depth: usize) {
    let empty = match value {
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => true,
    };
    if empty {
        text.push(' ');
        text.push_str(&scalar(value));
        text.push('\n');
    } else {
        text.push('\n');
        block(text, value, depth + 1);
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        // `${NAME}` in a value is escaped, so that reading the page back expands nothing.
        Value::String(text) => word(&text.replace("${", "$${")),
        Value::Array(_) => "[]".to_owned(),
        Value::Object(_) => "{}".to_owned(),
        other => other.to_string(),
    }
}

/// A text as it stands where YAML cannot misread it, in double quotes otherwise.
fn word(text: &str) -> String {
    let plain = text
        .chars()
        .next()
        .is_some_and(|c| c.is_ascii_alphanumeric() || c == '/')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | ':' | '%' | '+'))
        // `a:` at the end would be a key.
        && !text.ends_with(':')
        && !node::is_null(text)
        && node::as_bool(text).is_none()
        && node::as_number(text).is_none()
        // What YAML 1.1 reads as booleans, for other readers of the file.
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "y" | "n" | "yes" | "no" | "on" | "off"
        );
    if plain {
        return text.to_owned();
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if c.is_ascii_graphic() || c == ' ' => quoted.push(c),
            c if c.is_alphanumeric() => quoted.push(c),
            // Everything that might be a line break or invisible to some reader.
            c => {
                let _ = write!(quoted, "\\U{:08X}", u32::from(c));
            }
        }
    }
    quoted.push('"');
    quoted
}
