//! The reference page of a configuration, from the types that read it.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::node::join_key;
use crate::reload;
use crate::schema::{Schema, aliases, describe, types};

/// Renders the Markdown reference of a configuration: a section for each group of keys; key, type, default,
/// range and meaning of each key, and whether a reload changes it. Meanings are the doc comments where the keys are defined.
#[must_use]
pub fn reference<T: JsonSchema + Default + Serialize>(title: &str) -> String {
    let root = crate::schema_of::<T>();
    let defaults = serde_json::to_value(T::default()).unwrap_or(Value::Null);
    let mut page = Page {
        schema: Schema::new(&root),
        text: format!("# {title}\n\n"),
        later: Vec::new(),
        reloaded: Vec::new(),
    };
    if let Some(said) = description(&root) {
        let _ = writeln!(page.text, "{said}\n");
    }
    page.section("", &root, Some(&defaults), 1);
    page.text
}

struct Page<'s> {
    schema: Schema<'s>,
    text: String,
    /// Groups of keys that get a section of their own after the table they occur in.
    later: Vec<Section<'s>>,
    /// Keys that may change while running, with all below them.
    reloaded: Vec<String>,
}

struct Section<'s> {
    path: String,
    meaning: Option<String>,
    schema: &'s Value,
    default: Option<Value>,
}

/// Sections within sections end here; deeper groups would be recursive types.
const DEPTH: usize = 8;

impl<'s> Page<'s> {
    fn section(&mut self, path: &str, schema: &'s Value, default: Option<&Value>, depth: usize) {
        let schema = self.schema.resolve(schema);
        let Some(properties) = Schema::properties(schema).filter(|properties| !properties.is_empty()) else {
            return;
        };
        self.text
            .push_str("| key | type | default | range | reload | meaning |\n|---|---|---|---|---|---|\n");
        let outer = std::mem::take(&mut self.later);
        for (key, property) in properties {
            let inner = join_key(path, key);
            let value = default
                .and_then(|default| default.get(key))
                .or_else(|| property.get("default"));
            self.row(&inner, property, value, required(schema, key));
        }
        self.text.push('\n');
        let groups = std::mem::replace(&mut self.later, outer);
        if depth >= DEPTH {
            return;
        }
        for group in groups {
            let _ = writeln!(self.text, "{} `{}`\n", "#".repeat((depth + 1).min(6)), group.path);
            if let Some(meaning) = &group.meaning {
                let _ = writeln!(self.text, "{meaning}\n");
            }
            self.section(&group.path, group.schema, group.default.as_ref(), depth + 1);
        }
    }

    fn row(&mut self, path: &str, property: &'s Value, default_value: Option<&Value>, required: bool) {
        let schema = self.schema.resolve_group(property);
        let meaning = description(property)
            .or_else(|| description(schema))
            .unwrap_or_default();
        let kind = self.kind(schema);
        let range = describe::range(schema).short();
        let default = match default_value {
            _ if required => "(required)".to_owned(),
            None | Some(Value::Null) => "—".to_owned(),
            Some(Value::Object(members)) if members.is_empty() => "`{}`".to_owned(),
            Some(Value::Object(_)) => "see below".to_owned(),
            Some(Value::Array(items)) if items.iter().any(Value::is_object) => "see below".to_owned(),
            Some(value @ Value::Array(_)) => format!("`{value}`").replace('"', ""),
            Some(Value::String(text)) if text.is_empty() => "`\"\"`".to_owned(),
            Some(value) => format!("`{}`", describe::plain(value)),
        };
        if reload::is_marked(property) {
            self.reloaded.push(path.to_owned());
        }
        let reload = match self.reloaded.iter().any(|key| reload::is_within(path, key)) {
            true => "yes",
            false => "",
        };
        self.groups(path, schema, default_value, &meaning);
        let mut meaning = cell(&meaning);
        for (name, said) in self.names(schema) {
            if !said.is_empty() {
                let _ = write!(meaning, "<br>`{name}`: {}", cell(&said));
            }
        }
        for old in aliases(property) {
            let _ = write!(meaning, "<br>Old name, still read: `{old}`.");
        }
        let _ = writeln!(
            self.text,
            "| `{path}` | {} | {} | {} | {reload} | {meaning} |",
            cell(&kind),
            cell(&default),
            cell(&range)
        );
    }

    /// Notes the groups of keys that this value consists of, for sections of their own.
    fn groups(&mut self, path: &str, schema: &'s Value, default: Option<&Value>, meaning: &str) {
        let schema = self.schema.resolve_group(schema);
        if let Some(items) = schema.get("items") {
            return self.groups(&format!("{path}[]"), items, None, meaning);
        }
        for word in ["oneOf", "anyOf"] {
            for variant in schema.get(word).and_then(Value::as_array).into_iter().flatten() {
                let said = description(variant).unwrap_or_else(|| meaning.to_owned());
                self.groups(path, variant, None, &said);
            }
        }
        if let Some(rest) = schema.get("additionalProperties").filter(|rest| rest.is_object()) {
            self.groups(&join_key(path, "NAME"), rest, None, meaning);
        }
        let Some(properties) = Schema::properties(schema).filter(|properties| !properties.is_empty()) else {
            return;
        };
        if let (true, Some((key, only))) = (is_variant(schema) && default.is_none(), properties.iter().next())
            && description(only).is_none()
        {
            // `{file: …}`: a variant of one key; its content may be a group.
            return self.groups(&join_key(path, key), only, None, meaning);
        }
        self.later.push(Section {
            path: path.to_owned(),
            meaning: (!meaning.is_empty()).then(|| meaning.to_owned()),
            schema,
            default: default.cloned(),
        });
    }

    /// The type in the reader's words.
    fn kind(&self, schema: &'s Value) -> String {
        let schema = self.schema.resolve_group(schema);
        if let Some(short) = schema
            .get("format")
            .and_then(Value::as_str)
            .and_then(crate::formats::short)
        {
            return short.to_owned();
        }
        let constants = describe::constants(self.schema, schema);
        if !constants.is_empty() {
            let names: Vec<String> = constants
                .iter()
                .map(|one| format!("`{}`", describe::plain(one)))
                .collect();
            return names.join(", ");
        }
        for word in ["oneOf", "anyOf"] {
            if let Some(alternatives) = schema.get(word).and_then(Value::as_array) {
                let kinds: Vec<String> = alternatives.iter().map(|one| self.kind(one)).collect();
                return kinds.join(" or ");
            }
        }
        match types(schema).iter().find(|name| **name != "null") {
            Some(&"string") => "text".to_owned(),
            Some(&"integer") => "whole number".to_owned(),
            Some(&"number") => "number".to_owned(),
            Some(&"boolean") => "true or false".to_owned(),
            Some(&"array") => match schema.get("items") {
                Some(items) => format!("list of {}", self.kind(items)),
                None => "list".to_owned(),
            },
            Some(&"object") => match (
                Schema::properties(schema),
                schema.get("additionalProperties").filter(|rest| rest.is_object()),
            ) {
                (None, Some(rest)) => format!("mapping of names to {}", self.kind(rest)),
                (Some(properties), _) if is_variant(schema) => {
                    let keys: Vec<String> = properties.keys().map(|key| format!("`{{{key}: …}}`")).collect();
                    keys.join(" ")
                }
                _ => "group".to_owned(),
            },
            _ => "any".to_owned(),
        }
    }

    /// Names of an enumeration with their meanings.
    fn names(&self, schema: &'s Value) -> Vec<(String, String)> {
        let Some(alternatives) = schema.get("oneOf").and_then(Value::as_array) else {
            return Vec::new();
        };
        alternatives
            .iter()
            .filter_map(|one| {
                let name = match one.get("const") {
                    Some(name) => describe::plain(name),
                    None => Schema::properties(one)?.keys().next()?.clone(),
                };
                Some((name, description(one)?))
            })
            .collect()
    }
}

/// Whether an object is a variant of an enumeration, recognised by its only key: `{file: …}`.
fn is_variant(schema: &Value) -> bool {
    let mut keys = Schema::properties(schema).into_iter().flatten();
    matches!((keys.next(), keys.next()), (Some((key, _)), None) if required(schema, key))
}

fn required(schema: &Value, key: &str) -> bool {
    schema
        .get("required")
        .and_then(Value::as_array)
        .is_some_and(|keys| keys.iter().any(|one| one.as_str() == Some(key)))
}

fn description(schema: &Value) -> Option<String> {
    schema
        .get("description")
        .and_then(Value::as_str)
        .map(str::to_owned)
}

/// A text as the cell of a Markdown table.
fn cell(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('|', "\\|")
}
