//! The tree against the schema of the type it is meant for: every fault with its place, and the value that
//! is handed to serde.
//!
//! A JSON Schema validator would judge the same, but says "not valid under any of the given schemas"; people
//! need "unknown key `lsiten`, did you mean `listen`". What is known of the schema (which alternatives are
//! an enumeration, which key distinguishes variants) is used to say that.
//!
//! A key that was renamed keeps its old names: `#[schemars(extend("x-aliases" = ["oldName"]))]` beside
//! `#[serde(alias = "oldName")]`. Serde gets the value under the present name.

mod choose;
pub(crate) mod describe;
mod scalar;

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::node::{self, Entry, Kind, Node, Place};
use crate::report::Finding;

/// References may be chained; a chain longer than this is a circle.
const CHAIN: usize = 16;

/// A schema with the definitions that its references name.
#[derive(Clone, Copy)]
pub(crate) struct Schema<'s> {
    definitions: Option<&'s Map<String, Value>>,
    pub(crate) root: &'s Value,
}

impl<'s> Schema<'s> {
    pub(crate) fn new(root: &'s Value) -> Self {
        Self {
            definitions: root.get("$defs").and_then(Value::as_object),
            root,
        }
    }

    /// What a chain of references ends at.
    pub(crate) fn resolve(&self, schema: &'s Value) -> &'s Value {
        let mut schema = schema;
        for _ in 0..CHAIN {
            let Some(reference) = schema.get("$ref").and_then(Value::as_str) else {
                return match single(schema) {
                    Some(only) => self.resolve_once(only),
                    None => schema,
                };
            };
            schema = self.definition(reference);
        }
        &Value::Bool(true)
    }

    fn resolve_once(&self, schema: &'s Value) -> &'s Value {
        match schema.get("$ref").and_then(Value::as_str) {
            Some(reference) => self.definition(reference),
            None => schema,
        }
    }

    fn definition(&self, reference: &str) -> &'s Value {
        if reference == "#" {
            return self.root;
        }
        reference
            .strip_prefix("#/$defs/")
            .and_then(|name| self.definitions?.get(name))
            // A reference to nowhere forbids nothing; serde judges.
            .unwrap_or(&Value::Bool(true))
    }

    /// What a property resolves to, without the alternative "null".
    pub(crate) fn resolve_group(&self, property: &'s Value) -> &'s Value {
        let schema = self.resolve(property);
        let Some(alternatives) = schema.get("anyOf").and_then(Value::as_array) else {
            return schema;
        };
        let mut real = alternatives
            .iter()
            .map(|one| self.resolve(one))
            .filter(|one| types(one) != ["null"]);
        match (real.next(), real.next()) {
            (Some(only), None) => only,
            _ => schema,
        }
    }

    pub(crate) fn properties(schema: &'s Value) -> Option<&'s Map<String, Value>> {
        schema.get("properties").and_then(Value::as_object)
    }
}

/// `allOf` with one member is how a described reference was written in older drafts.
fn single(schema: &Value) -> Option<&Value> {
    match schema.get("allOf")?.as_array()?.as_slice() {
        [only] if schema.get("properties").is_none() => Some(only),
        _ => None,
    }
}

/// One walk over a tree.
pub(crate) struct Check<'s> {
    pub(crate) schema: Schema<'s>,
    pub(crate) findings: Vec<Finding>,
    /// Paths by present names whose last key stands in the text by an old name, and the paths as written; outer ones
    /// first.
    renamed: Vec<(String, String)>,
    /// Paths of what the value is given without, because of its faults.
    pub(crate) left_out: Vec<String>,
    /// Whether names stand for addresses to listen at.
    pub(crate) resolves_names: bool,
    /// Mappings with keys that the schema does not know.
    with_unknown: Vec<String>,
}

impl<'s> Check<'s> {
    pub(crate) fn new(schema: Schema<'s>) -> Self {
        Self {
            schema,
            findings: Vec::new(),
            renamed: Vec::new(),
            left_out: Vec::new(),
            resolves_names: false,
            with_unknown: Vec::new(),
        }
    }

    /// Whether a mapping around a setting has an unknown key, which may be this setting misspelt.
    pub(crate) fn has_unknown_key(&self, path: &str) -> bool {
        self.with_unknown.iter().any(|around| {
            let rest = if around.is_empty() {
                Some(path)
            } else {
                path.strip_prefix(around.as_str())
            };
            rest.is_some_and(|rest| around.is_empty() || rest.starts_with('.'))
        })
    }

    /// A path by present names, as the text has it.
    pub(crate) fn as_written(&self, path: String) -> String {
        self.renamed.iter().fold(path, |path, (present, written)| {
            match path.strip_prefix(present.as_str()) {
                Some(rest) if rest.is_empty() || rest.starts_with(['.', '[']) => format!("{written}{rest}"),
                _ => path,
            }
        })
    }

    pub(crate) fn fault(
        &mut self,
        place: Place,
        path: &str,
        what: impl Into<String>,
        expected: impl Into<String>,
    ) {
        self.findings.push(Finding {
            place,
            path: path.to_owned(),
            what: what.into(),
            expected: expected.into(),
        });
    }

    /// Judges `node` by `schema`; the value for serde, or `None` when a fault was reported for the node as a
    /// whole. A mapping with faulty members is given without them, so that the rest can still be judged.
    pub(crate) fn value(&mut self, node: &Node, schema: &Value, path: &str) -> Option<Value> {
        let resolver = self.schema;
        let schema = resolver.resolve(schema);
        match schema {
            Value::Bool(false) => {
                self.fault(
                    node.place,
                    path,
                    "nothing may stand here",
                    "the key to be removed",
                );
                return None;
            }
            Value::Object(_) => {}
            _ => return Some(node.to_json()),
        }
        if let Some(name) = variable(node)
            && self.takes_scalar(schema)
            && !self.takes_mapping(schema)
        {
            return self.read_environment(node, name, schema, path);
        }
        for word in ["oneOf", "anyOf"] {
            if let Some(alternatives) = schema.get(word).and_then(Value::as_array) {
                return self.choose(node, schema, alternatives, path);
            }
        }
        if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
            let merged = parts.iter().fold(without(schema, "allOf"), |merged, part| {
                merge(&merged, resolver.resolve(part))
            });
            return self.value(node, &merged, path);
        }
        if schema.get("enum").is_some() || schema.get("const").is_some() {
            return self.enumeration(node, schema, path);
        }
        let types = types(schema);
        match &node.kind {
            _ if types.is_empty() && Schema::properties(schema).is_none() => Some(node.to_json()),
            Kind::Map(entries) if types.is_empty() || types.contains(&"object") => {
                Some(self.object(node, entries, schema, path))
            }
            Kind::List(items) if types.contains(&"array") => self.array(node, items, schema, path),
            Kind::Plain(text) if node::is_null(text) && types.contains(&"null") => Some(Value::Null),
            // `nrf:` with every key below it commented out means "all defaults".
            Kind::Plain(text) if node::is_null(text) && types.contains(&"object") => {
                Some(self.object(node, &[], schema, path))
            }
            Kind::Plain(_) | Kind::Quoted(_) => self.scalar(node, schema, &types, path),
            Kind::Map(_) | Kind::List(_) => {
                self.wrong_type(node, schema, path);
                None
            }
        }
    }

    /// `{env: NAME}` where a text, a number or a boolean belongs.
    fn read_environment(&mut self, node: &Node, name: &str, schema: &Value, path: &str) -> Option<Value> {
        let Ok(text) = std::env::var(name) else {
            let what = format!(
                "the environment variable {} is not set, or is not text",
                node::shorten(name)
            );
            self.fault(node.place, path, what, "a variable that is set");
            return None;
        };
        let node = Node {
            place: node.place,
            kind: Kind::Plain(text),
        };
        self.value(&node, schema, path)
    }

    /// Whether one of the forms of a value is a text, a number or a boolean.
    fn takes_scalar(&self, schema: &Value) -> bool {
        let is_scalar = |schema: &Value| {
            let scalar = ["string", "number", "integer", "boolean"];
            types(schema).iter().any(|one| scalar.contains(one))
                || schema.get("enum").is_some()
                || schema.get("const").is_some()
        };
        self.takes(schema, &is_scalar)
    }

    /// Whether one of the forms of a value is a mapping, or may be.
    fn takes_mapping(&self, schema: &Value) -> bool {
        let is_mapping = |schema: &Value| {
            let is_open = types(schema).is_empty()
                && ["enum", "const", "anyOf", "oneOf", "allOf"]
                    .iter()
                    .all(|word| schema.get(*word).is_none());
            types(schema).contains(&"object") || is_open
        };
        self.takes(schema, &is_mapping)
    }

    fn takes(&self, schema: &Value, judge: &dyn Fn(&Value) -> bool) -> bool {
        let schema = self.schema.resolve(schema);
        judge(schema)
            || ["oneOf", "anyOf", "allOf"].iter().any(|word| {
                let alternatives = schema.get(*word).and_then(Value::as_array);
                alternatives.is_some_and(|all| all.iter().any(|one| self.takes(one, judge)))
            })
    }

    pub(crate) fn wrong_type(&mut self, node: &Node, schema: &Value, path: &str) {
        let expected = describe::phrase(self.schema, schema);
        self.fault(node.place, path, format!("this is {}", node.describe()), expected);
    }

    fn object(&mut self, node: &Node, entries: &[Entry], schema: &Value, path: &str) -> Value {
        let none = Map::new();
        let properties = schema
            .get("properties")
            .and_then(Value::as_object)
            .unwrap_or(&none);
        let rest = schema
            .get("additionalProperties")
            .or_else(|| schema.get("unevaluatedProperties"));
        let mut result = Map::new();
        let mut present = HashSet::new();
        for entry in entries {
            let inner = node::join_key(path, &entry.key);
            if let Some((key, property)) = property_of(properties, &entry.key) {
                if key != entry.key {
                    self.renamed.push((node::join_key(path, key), inner.clone()));
                }
                if !present.insert(key) {
                    self.given_twice(entry, key, path);
                } else if let Some(value) = self.value(&entry.value, property, &inner) {
                    result.insert(key.to_owned(), value);
                } else {
                    self.left_out.push(inner);
                }
            } else {
                match rest {
                    Some(Value::Bool(false)) => self.unknown_key(entry, properties, path),
                    Some(further) => {
                        self.key(entry, schema, &inner);
                        match self.value(&entry.value, further, &inner) {
                            Some(value) => drop(result.insert(entry.key.clone(), value)),
                            None => self.left_out.push(inner),
                        }
                    }
                    None => {
                        result.insert(entry.key.clone(), entry.value.to_json());
                    }
                }
            }
        }
        for key in schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .filter(|key| !present.contains(key))
        {
            let expected = properties.get(key).map_or_else(
                || format!("`{key}: …`"),
                |property| {
                    format!(
                        "`{key}:` with {}",
                        describe::phrase(self.schema, self.schema.resolve(property))
                    )
                },
            );
            self.left_out.push(path.to_owned());
            self.fault(
                node.place,
                path,
                format!("the key `{key}` is missing here"),
                expected,
            );
        }
        Value::Object(result)
    }

    fn given_twice(&mut self, entry: &Entry, key: &str, path: &str) {
        let what = format!("`{}` and `{key}` are names of one key", entry.key);
        let what = match entry.key == key {
            true => format!("`{key}` stands here by an old name too"),
            false => what,
        };
        self.fault(entry.key_place, path, what, format!("`{key}` only"));
    }

    /// Judges a free key of a map by `propertyNames`, where the schema has it.
    fn key(&mut self, entry: &Entry, schema: &Value, path: &str) {
        if let Some(names) = schema.get("propertyNames") {
            let key = Node {
                place: entry.key_place,
                kind: Kind::Quoted(entry.key.clone()),
            };
            let _ = self.value(&key, names, path);
        }
    }

    fn unknown_key(&mut self, entry: &Entry, properties: &Map<String, Value>, path: &str) {
        self.with_unknown.push(path.to_owned());
        let names: Vec<&str> = properties.keys().map(String::as_str).collect();
        let of = if path.is_empty() {
            "of this file".to_owned()
        } else {
            format!("of `{path}`")
        };
        let expected = describe::one_of_names(&format!("one of the keys {of}"), &entry.key, &names);
        self.fault(
            entry.key_place,
            path,
            format!("unknown key `{}`", node::shorten(&entry.key)),
            expected,
        );
    }

    fn array(&mut self, node: &Node, items: &[Node], schema: &Value, path: &str) -> Option<Value> {
        let before = self.findings.len();
        let bound = |word: &str| schema.get(word).and_then(Value::as_u64);
        if let Some(least) = bound("minItems").filter(|least| (items.len() as u64) < *least) {
            self.fault(
                node.place,
                path,
                format!("the list has {}", describe::entries(items.len() as u64)),
                format!("at least {}", describe::entries(least)),
            );
        }
        if let Some(most) = bound("maxItems").filter(|most| (items.len() as u64) > *most) {
            self.fault(
                node.place,
                path,
                format!("the list has {}", describe::entries(items.len() as u64)),
                format!("at most {}", describe::entries(most)),
            );
        }
        let tuple = schema.get("prefixItems").and_then(Value::as_array);
        let mut values = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let inner = format!("{path}[{index}]");
            let judged = match tuple.and_then(|tuple| tuple.get(index)).or(schema.get("items")) {
                Some(schema) => self.value(item, schema, &inner),
                None => Some(item.to_json()),
            };
            if let Some(value) = judged {
                if schema.get("uniqueItems") == Some(&Value::Bool(true)) && values.contains(&value) {
                    self.fault(
                        item.place,
                        &inner,
                        "this entry is in the list already",
                        "each entry once",
                    );
                }
                values.push(value);
            }
        }
        // Without an entry the indexes of later ones would not be those of the text.
        (self.findings.len() == before).then_some(Value::Array(values))
    }
}

/// The name in `{env: NAME}`.
fn variable(node: &Node) -> Option<&str> {
    let Kind::Map(entries) = &node.kind else {
        return None;
    };
    match entries.as_slice() {
        [entry] if entry.key == "env" => match &entry.value.kind {
            Kind::Plain(name) | Kind::Quoted(name) => Some(name),
            Kind::List(_) | Kind::Map(_) => None,
        },
        _ => None,
    }
}

/// The old names of a key.
pub(crate) fn aliases(property: &Value) -> impl Iterator<Item = &str> {
    let names = property.get("x-aliases").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}

/// The property that a key names, by its present name or an old one.
fn property_of<'p>(properties: &'p Map<String, Value>, key: &str) -> Option<(&'p str, &'p Value)> {
    let found = properties.get_key_value(key).or_else(|| {
        let mut all = properties.iter();
        all.find(|(_, property)| aliases(property).any(|alias| alias == key))
    });
    found.map(|(key, property)| (key.as_str(), property))
}

/// The JSON types a schema allows; empty when it does not say.
pub(crate) fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one.as_str()],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ if schema.get("properties").is_some() => vec!["object"],
        _ => Vec::new(),
    }
}

/// `schema` without one keyword.
fn without(schema: &Value, word: &str) -> Value {
    let mut copy = schema.clone();
    if let Value::Object(members) = &mut copy {
        members.remove(word);
    }
    copy
}

/// Both schemas as one: members of `more` join or replace those of `base`.
fn merge(base: &Value, more: &Value) -> Value {
    let (Value::Object(base), Value::Object(more)) = (base, more) else {
        return more.clone();
    };
    let mut merged = base.clone();
    for (word, value) in more {
        match (merged.get_mut(word), value) {
            (Some(Value::Object(known)), Value::Object(further)) if word == "properties" => {
                known.extend(further.clone());
            }
            (Some(Value::Array(known)), Value::Array(further)) if word == "required" => {
                known.extend(further.iter().cloned());
            }
            _ => {
                merged.insert(word.clone(), value.clone());
            }
        }
    }
    Value::Object(merged)
}
