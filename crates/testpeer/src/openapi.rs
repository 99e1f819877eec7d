//! Validation of JSON by 3GPP's OpenAPI files.
//!
//! The files are not part of the project: [`OpenApi::find`] looks for them, and tests skip where they are missing. A
//! data type becomes one JSON Schema (OpenAPI 3.0 is close to its draft 4) that holds every data type it reaches, in
//! whatever file. [`Judge`] is what a suite needs: data types by name, each compiled once.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use saphyr::{LoadableYamlNode, Scalar, Yaml};
use serde_json::{Map, Value, json};

/// The folder of OpenAPI files, and the files read so far.
pub struct OpenApi {
    folder: PathBuf,
    files: RefCell<BTreeMap<String, Rc<Value>>>,
}

/// A value that has one member of a wrong JSON type.
#[derive(Clone, Debug)]
pub struct Mistyped {
    /// An object with this member alone, in the objects, lists and maps around it.
    pub value: Value,
    /// Where the member is (RFC 6901).
    pub pointer: String,
}

/// A compiled data type.
pub struct DataType {
    name: String,
    validator: jsonschema::Validator,
}

impl OpenApi {
    /// The folder that `SIGNALBOX_SPECS` names, or `shared/specs/openapi` beside or above `manifest`, which is
    /// the caller's `CARGO_MANIFEST_DIR`. `None`, with a message, where there is no such folder.
    #[must_use]
    pub fn find(manifest: &str) -> Option<Self> {
        let named = std::env::var_os("SIGNALBOX_SPECS").map(PathBuf::from);
        let beside = || {
            let mut folders = Path::new(manifest).ancestors();
            folders
                .find_map(|above| Some(above.join("shared/specs/openapi")).filter(|folder| folder.is_dir()))
        };
        let Some(folder) = named.or_else(beside) else {
            crate::skip::unavailable("no OpenAPI files of 3GPP (SIGNALBOX_SPECS names their folder)");
            return None;
        };
        Some(Self {
            folder,
            files: RefCell::default(),
        })
    }

    /// Where the files are.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A data type by file and name: `("TS29510_Nnrf_NFDiscovery.yaml", "SearchResult")`.
    ///
    /// # Panics
    /// When a file or a data type is missing, or is not a valid schema.
    #[must_use]
    pub fn data_type(&self, file: &str, name: &str) -> DataType {
        let mut definitions = Map::new();
        let mut wanted = vec![(file.to_owned(), format!("/components/schemas/{name}"))];
        let mut seen = BTreeSet::new();
        while let Some(next) = wanted.pop() {
            if !seen.insert(next.clone()) {
                continue;
            }
            let (file, pointer) = next;
            let document = self.file(&file);
            let schema = document
                .pointer(&pointer)
                .unwrap_or_else(|| panic!("{file} has no {pointer}"));
            let schema = translated(schema, &file, &mut wanted);
            definitions.insert(key(&file, &pointer), schema);
        }
        let root = key(file, &format!("/components/schemas/{name}"));
        let schema = json!({"$ref": format!("#/definitions/{root}"), "definitions": definitions});
        let validator = jsonschema::options()
            .with_draft(jsonschema::Draft::Draft4)
            .should_validate_formats(true)
            .build(&schema)
            .unwrap_or_else(|error| panic!("{name} of {file} is not a valid schema: {error}"));
        DataType {
            name: name.to_owned(),
            validator,
        }
    }

    /// For each member that a data type declares, itself or in the data types of its members, a value in which that member has
    /// a JSON type that its schema does not allow.
    ///
    /// # Panics
    /// When a file or a data type is missing.
    #[must_use]
    pub fn mistyped(&self, file: &str, name: &str) -> Vec<Mistyped> {
        let schema = json!({"$ref": format!("{file}#/components/schemas/{name}")});
        let mut found = Vec::new();
        self.mistype(&self.resolved(&schema, file), &mut Vec::new(), &mut found);
        found
    }

    fn mistype(&self, at: &Resolved, path: &mut Vec<String>, found: &mut Vec<Mistyped>) {
        if !path.is_empty() && !at.types.is_empty() {
            let wrong = match at.types.contains("string") {
                true => json!(7),
                false => json!("wrong"),
            };
            let value = path.iter().rev().fold(wrong, |value, step| match step.as_str() {
                "0" => json!([value]),
                step => json!({step: value}),
            });
            found.push(Mistyped {
                value,
                pointer: path.iter().map(|step| format!("/{step}")).collect(),
            });
        }
        for (step, (schema, file)) in &at.below {
            path.push(step.clone());
            self.mistype(&self.resolved(schema, file), path, found);
            path.pop();
        }
    }

    /// What a schema allows, wherever it says so.
    fn resolved(&self, schema: &Value, file: &str) -> Resolved {
        let mut all = Resolved::default();
        let mut next = vec![(schema.clone(), file.to_owned())];
        while let Some((schema, file)) = next.pop() {
            if let Some(reference) = schema["$ref"].as_str() {
                let (other, pointer) = reference.split_once('#').unwrap_or((reference, ""));
                let other = if other.is_empty() { file } else { other.to_owned() };
                let target = self.file(&other).pointer(pointer).cloned();
                next.push((target.unwrap_or_else(|| panic!("no {reference}")), other));
                continue;
            }
            for part in ["allOf", "anyOf", "oneOf"] {
                let parts = schema[part].as_array().into_iter().flatten();
                next.extend(parts.map(|part| (part.clone(), file.clone())));
            }
            all.types.extend(schema["type"].as_str().map(str::to_owned));
            let members = schema["properties"].as_object().into_iter().flatten();
            let members = members.map(|(name, schema)| (name.clone(), schema));
            // A list has an item, a map a member.
            let items = schema.get("items").map(|items| ("0".to_owned(), items));
            let values = schema
                .get("additionalProperties")
                .filter(|values| values.is_object());
            let values = values.map(|values| ("1".to_owned(), values));
            for (step, schema) in members.chain(items).chain(values) {
                all.below.insert(step, (schema.clone(), file.clone()));
            }
        }
        all
    }

    fn file(&self, name: &str) -> Rc<Value> {
        let mut files = self.files.borrow_mut();
        let file = files.entry(name.to_owned()).or_insert_with(|| {
            let path = self.folder.join(name);
            let text =
                std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let documents = Yaml::load_from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            Rc::new(documents.first().map_or(Value::Null, to_json))
        });
        file.clone()
    }
}

/// What a schema allows.
#[derive(Default)]
struct Resolved {
    types: BTreeSet<String>,
    /// The schemas of members and items, each with its file.
    below: BTreeMap<String, (Value, String)>,
}

impl DataType {
    /// The faults of a value, each with its place; empty if the value is of this type.
    #[must_use]
    pub fn faults(&self, value: &Value) -> Vec<String> {
        let shown = |error: jsonschema::ValidationError<'_>| format!("{}: {error}", error.instance_path);
        self.validator.iter_errors(value).map(shown).collect()
    }

    /// Passes if the value is of this type.
    ///
    /// # Panics
    /// With every fault if it is not.
    pub fn assert(&self, value: &Value) {
        let faults = self.faults(value);
        assert!(faults.is_empty(), "not a {}: {faults:#?}\n{value:#}", self.name);
    }
}

/// Data types by file and name, each compiled at its first use. It passes everything where the files are missing.
pub struct Judge {
    manifest: &'static str,
    types: Mutex<BTreeMap<Name, Option<Arc<DataType>>>>,
}

/// File and name of a data type.
type Name = (&'static str, &'static str);

impl Judge {
    /// A judge for a suite; `manifest` is the caller's `CARGO_MANIFEST_DIR`.
    #[must_use]
    pub const fn new(manifest: &'static str) -> Self {
        Self {
            manifest,
            types: Mutex::new(BTreeMap::new()),
        }
    }

    /// Passes if the value is of this data type, or where the files are missing.
    ///
    /// # Panics
    /// With every fault if the value is not.
    pub fn assert(&self, file: &'static str, name: &'static str, value: &Value) {
        let data_type = {
            let mut types = self.types.lock().unwrap_or_else(PoisonError::into_inner);
            let made = types.entry((file, name)).or_insert_with(|| {
                OpenApi::find(self.manifest).map(|files| Arc::new(files.data_type(file, name)))
            });
            made.clone()
        };
        if let Some(data_type) = data_type {
            data_type.assert(value);
        }
    }
}

/// A name for a schema that needs no escaping in a JSON pointer.
fn key(file: &str, pointer: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("{file}{pointer}").chars().map(plain).collect()
}

/// A schema of OpenAPI 3.0 as one of JSON Schema; what it refers to is added to `wanted`.
fn translated(schema: &Value, file: &str, wanted: &mut Vec<(String, String)>) -> Value {
    match schema {
        Value::Array(items) => items.iter().map(|item| translated(item, file, wanted)).collect(),
        Value::Object(members) => {
            if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
                let (other, pointer) = reference.split_once('#').unwrap_or((reference, ""));
                let other = if other.is_empty() { file } else { other };
                wanted.push((other.to_owned(), pointer.to_owned()));
                return json!({"$ref": format!("#/definitions/{}", key(other, pointer))});
            }
            let kept = members
                .iter()
                // Keywords of documentation, which do not constrain a value; `example` may hold anything.
                .filter(|(name, _)| {
                    !matches!(
                        name.as_str(),
                        "nullable" | "example" | "discriminator" | "deprecated"
                    )
                })
                .map(|(name, value)| (name.clone(), translated(value, file, wanted)));
            let schema: Map<String, Value> = kept.collect();
            match members.get("nullable") {
                Some(Value::Bool(true)) => json!({"anyOf": [schema, {"type": "null"}]}),
                _ => Value::Object(schema),
            }
        }
        other => other.clone(),
    }
}

fn to_json(yaml: &Yaml<'_>) -> Value {
    match yaml {
        Yaml::Value(Scalar::Boolean(value)) => (*value).into(),
        Yaml::Value(Scalar::Integer(value)) => (*value).into(),
        Yaml::Value(Scalar::FloatingPoint(value)) => value.into_inner().into(),
        Yaml::Value(Scalar::String(value)) => value.as_ref().into(),
        Yaml::Sequence(items) => items.iter().map(to_json).collect(),
        Yaml::Mapping(members) => {
            let text = |key: &Yaml<'_>| match to_json(key) {
                Value::String(text) => text,
                other => other.to_string(),
            };
            members
                .iter()
                .map(|(key, value)| (text(key), to_json(value)))
                .collect()
        }
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn judges_by_the_files() {
        let Some(api) = OpenApi::find(env!("CARGO_MANIFEST_DIR")) else {
            return;
        };
        let snssai = api.data_type("TS29571_CommonData.yaml", "Snssai");
        snssai.assert(&json!({"sst": 1, "sd": "0000aa"}));
        assert_eq!(snssai.faults(&json!({"sst": 256, "sd": "x"})).len(), 2);
        let result = api.data_type("TS29510_Nnrf_NFDiscovery.yaml", "SearchResult");
        result.assert(&json!({"nfInstances": []}));
        assert!(
            !result
                .faults(&json!({"nfInstances": [{"nfType": "UDM"}]}))
                .is_empty()
        );
    }
}
