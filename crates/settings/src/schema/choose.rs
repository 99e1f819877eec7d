//! Alternatives (`oneOf`, `anyOf`): which one was meant, so that the fault named is the one to mend.

use serde_json::Value;

use super::{Check, Schema, describe, merge, types, without};
use crate::node::{self, Kind, Node};

impl Check<'_> {
    pub(super) fn choose(
        &mut self,
        node: &Node,
        schema: &Value,
        alternatives: &[Value],
        path: &str,
    ) -> Option<Value> {
        let base = without(&without(schema, "oneOf"), "anyOf");
        let resolved: Vec<&Value> = alternatives
            .iter()
            .map(|alternative| self.schema.resolve(alternative))
            .collect();
        if matches!(&node.kind, Kind::Plain(text) if node::is_null(text))
            && resolved
                .iter()
                .any(|alternative| types(alternative).contains(&"null"))
        {
            return Some(Value::Null);
        }
        let real: Vec<&Value> = resolved
            .into_iter()
            .filter(|alternative| types(alternative) != ["null"])
            .collect();
        let mut fitting: Vec<&Value> = real
            .iter()
            .copied()
            .filter(|alternative| fits(node, alternative))
            .collect();
        if let Kind::Map(_) = node.kind
            && fitting.len() > 1
        {
            match self.by_key(node, &fitting, path) {
                ByKey::This(alternative) => fitting = vec![alternative],
                ByKey::Fault => return None,
                ByKey::Unclear => {}
            }
        }
        match fitting.as_slice() {
            [] => {
                self.wrong_type(node, schema, path);
                None
            }
            [only] => {
                let merged = merge(&base, only);
                self.value(node, &merged, path)
            }
            several if several.iter().all(|one| is_names(one)) => {
                // Alternatives other than names may stand beside them: a name is judged by the names alone.
                let names = serde_json::json!({ "oneOf": several });
                self.enumeration(node, &names, path)
            }
            several => {
                let mut best: Option<Check<'_>> = None;
                for alternative in several {
                    let mut attempt = Check::new(self.schema);
                    attempt.resolves_names = self.resolves_names;
                    let value = attempt.value(node, &merge(&base, alternative), path);
                    if attempt.findings.is_empty() {
                        return value;
                    }
                    if best
                        .as_ref()
                        .is_none_or(|best| attempt.findings.len() < best.findings.len())
                    {
                        best = Some(attempt);
                    }
                }
                match (&node.kind, best) {
                    // What is wrong inside a block is said best by the alternative it comes closest to.
                    (Kind::Map(_) | Kind::List(_), Some(best)) => self.findings.extend(best.findings),
                    _ => self.wrong_type(node, schema, path),
                }
                None
            }
        }
    }

    /// Finds the variant that a mapping means by the key that distinguishes variants.
    fn by_key<'a>(&mut self, node: &Node, variants: &[&'a Value], path: &str) -> ByKey<'a> {
        if let Some(tag) = tag(variants) {
            return self.by_tag(node, tag, variants, path);
        }
        // `{file: …}` or `{env: …}`: each variant has one required key of its own.
        let keys: Option<Vec<&str>> = variants.iter().map(|variant| only_key(variant)).collect();
        let (Some(keys), Kind::Map(entries)) = (keys, &node.kind) else {
            return ByKey::Unclear;
        };
        if let [entry] = entries.as_slice() {
            if let Some(position) = keys.iter().position(|key| *key == entry.key) {
                return match variants.get(position) {
                    Some(variant) => ByKey::This(variant),
                    None => ByKey::Unclear,
                };
            }
            let expected = describe::one_of_names("one of", &entry.key, &keys);
            self.fault(
                entry.key_place,
                path,
                format!("unknown key `{}`", node::shorten(&entry.key)),
                expected,
            );
        } else {
            self.fault(
                node.place,
                path,
                format!("this has {}", describe::keys(entries.len())),
                describe::one_of_names("exactly one of", "", &keys),
            );
        }
        ByKey::Fault
    }

    fn by_tag<'a>(&mut self, node: &Node, tag: &str, variants: &[&'a Value], path: &str) -> ByKey<'a> {
        let names: Vec<&str> = variants
            .iter()
            .filter_map(|variant| constant(variant, tag))
            .collect();
        let Some(value) = node.get(tag) else {
            self.fault(
                node.place,
                path,
                format!("the key `{tag}` is missing here"),
                describe::one_of_names(&format!("`{tag}:` with one of"), "", &names),
            );
            return ByKey::Fault;
        };
        let (Kind::Plain(text) | Kind::Quoted(text)) = &value.kind else {
            self.fault(
                value.place,
                &node::join_key(path, tag),
                format!("this is {}", value.describe()),
                describe::one_of_names("one of", "", &names),
            );
            return ByKey::Fault;
        };
        match variants
            .iter()
            .find(|variant| constant(variant, tag) == Some(text.as_str()))
        {
            Some(variant) => ByKey::This(variant),
            None => {
                self.fault(
                    value.place,
                    &node::join_key(path, tag),
                    format!("`{}` is unknown", node::shorten(text)),
                    describe::one_of_names("one of", text, &names),
                );
                ByKey::Fault
            }
        }
    }
}

enum ByKey<'a> {
    This(&'a Value),
    Fault,
    Unclear,
}

/// Whether a value of this shape could be meant for this alternative at all.
fn fits(node: &Node, alternative: &Value) -> bool {
    let types = types(alternative);
    let names = is_names(alternative);
    match &node.kind {
        Kind::Map(_) => !names && (types.is_empty() || types.contains(&"object")),
        Kind::List(_) => !names && (types.is_empty() || types.contains(&"array")),
        Kind::Plain(_) | Kind::Quoted(_) => {
            names
                || types.is_empty()
                || types
                    .iter()
                    .any(|name| matches!(*name, "string" | "number" | "integer" | "boolean"))
        }
    }
}

/// Whether the alternative is one or several names.
fn is_names(alternative: &Value) -> bool {
    alternative.get("const").is_some() || alternative.get("enum").is_some()
}

/// The constant that `key` must have in this variant.
fn constant<'a>(variant: &'a Value, key: &str) -> Option<&'a str> {
    let property = Schema::properties(variant)?.get(key)?;
    property
        .get("const")
        .or_else(|| match property.get("enum")?.as_array()?.as_slice() {
            [only] => Some(only),
            _ => None,
        })
        .and_then(Value::as_str)
}

/// The key that has a constant of its own in each variant.
fn tag<'a>(variants: &[&'a Value]) -> Option<&'a str> {
    let first = Schema::properties(variants.first()?)?;
    first
        .keys()
        .map(String::as_str)
        .find(|key| variants.iter().all(|variant| constant(variant, key).is_some()))
}

/// The key of a variant that has no other.
fn only_key(variant: &Value) -> Option<&str> {
    let mut keys = Schema::properties(variant)?.keys();
    match (keys.next(), keys.next()) {
        (Some(key), None) => Some(key),
        _ => None,
    }
}
