//! Rules and data of decisions, against the types of the standard.

use serde_json::Value as Json;
use settings::{nearest, path_key};

use crate::expression::Expr;
use crate::program::{Entry, Member, Step};
use crate::shape::{Kind, Naming, Section, Shape};
use crate::value::{Value, weight};

use super::expressions::is_computed;
use super::{Compiler, suggest};

/// Members of rules that refer to other entries of the decision. `refUmData` may name the key of a quota instead, which
/// belongs to the subscriber's data or to settings, and makes its `umDecs` when the decision is made.
const REFERENCES: &[(&str, Section)] = &[
    ("refQosData", Section::QosDecs),
    ("refTcData", Section::TraffContDecs),
    ("refChgData", Section::ChgDecs),
    ("refChgN3gData", Section::ChgDecs),
    ("refCondData", Section::Conds),
];

impl Compiler<'_> {
    /// A block that makes an entry of a section, or sets other members of the decision.
    pub(super) fn entry(&mut self, block: &str, json: &Json, path: &str) -> Option<Step> {
        let Some(naming) = Section::all().iter().find(|naming| naming.block == block) else {
            let (_, shape) = self.service.members();
            return Some(Step::Members(self.members(json, shape, path)));
        };
        if is_computed(json) {
            self.names.computed.insert(naming.section);
            return Some(Step::Entry(Entry {
                section: naming.section,
                id: Expr::Constant(Json::Null),
                members: Vec::new(),
                whole: Some(self.expression(json, path, 0)),
                constant: None,
            }));
        }
        let members = self.members(json, naming.shape, path);
        let id = members.iter().position(|member| member.name == naming.id);
        let Some(id) = id else {
            self.fault(
                path,
                format!("`{}` is missing", naming.id),
                format!("the identifier of the {}", naming.shape.name),
            );
            return None;
        };
        self.note_identifier(naming, &members[id].value);
        self.note_references(json, path);
        // The identifier is computed twice where it is not constant: as the key and as a member.
        let id = self.expression(&json[naming.id], &path_key(path, naming.id), 0);
        let constants: Option<serde_json::Map<String, Json>> = members
            .iter()
            .map(|member| Some((member.name.clone(), member.value.constant()?.clone())))
            .collect();
        let constant = constants.map(|map| {
            let json = Json::Object(map);
            let size = weight(&json, usize::MAX);
            (json, size)
        });
        Some(Step::Entry(Entry {
            section: naming.section,
            id,
            members,
            whole: None,
            constant,
        }))
    }

    fn note_identifier(&mut self, naming: &Naming, id: &Expr) {
        match id.constant() {
            Some(Json::String(id)) => {
                self.names
                    .made
                    .entry(naming.section)
                    .or_default()
                    .insert(id.clone());
            }
            _ => {
                self.names.computed.insert(naming.section);
            }
        }
    }

    fn note_references(&mut self, json: &Json, path: &str) {
        for (member, section) in REFERENCES {
            let ids = match json.get(member) {
                Some(Json::Array(ids)) => ids.as_slice(),
                Some(id) => std::slice::from_ref(id),
                None => continue,
            };
            for id in ids.iter().filter(|id| !is_computed(id)).filter_map(Json::as_str) {
                let path = path_key(path, member);
                self.names
                    .references
                    .push((self.file, path, *section, id.to_owned()));
            }
        }
    }

    fn members(&mut self, json: &Json, shape: &'static Shape, path: &str) -> Vec<Member> {
        let Some(map) = json.as_object() else {
            self.fault(path, "it is not a mapping", format!("members of {}", shape.name));
            return Vec::new();
        };
        self.check_kind(json, Kind::Shape(shape), path);
        let mut members = Vec::new();
        for (name, value) in map {
            members.push(Member {
                name: name.clone(),
                value: self.expression(value, &path_key(path, name), 0),
                kind: shape.kind(name).unwrap_or(Kind::Any),
                required: shape.required.contains(&name.as_str()),
            });
        }
        members
    }

    /// Faults of a value as it is written; what is computed is checked when it is.
    pub(super) fn check_kind(&mut self, json: &Json, kind: Kind, path: &str) {
        if is_computed(json) {
            return;
        }
        if !kind.admits(&Value::of(json)) {
            return self.fault(path, format!("{} does not fit", shown(json)), kind.describe());
        }
        match (kind, json) {
            (Kind::Enum(names), Json::String(written)) => {
                // A value of a later release is right as well; one that is nearly a known one is a mistake.
                let similar = nearest(written, names);
                if !names.contains(&written.as_str()) && similar.is_some() {
                    self.fault(
                        path,
                        format!("unknown value `{written}`"),
                        suggest(written, names),
                    );
                }
            }
            (Kind::List(inner), Json::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    self.check_kind(item, *inner, &format!("{path}[{index}]"));
                }
            }
            (Kind::Shape(shape), Json::Object(map)) => {
                for (name, value) in map {
                    let path = path_key(path, name);
                    match shape.kind(name) {
                        Some(kind) => self.check_kind(value, kind, &path),
                        // TS 29.500 §6.6.3: vendor-specific extensions.
                        None if name.starts_with("vendorSpecific-") => {}
                        None => {
                            let known: Vec<&str> = shape.members.iter().map(|(name, _)| *name).collect();
                            let expected = suggest(name, &known);
                            self.fault(path, format!("{} has no member `{name}`", shape.name), expected);
                        }
                    }
                }
                for name in shape.required.iter().filter(|name| !map.contains_key(**name)) {
                    let expected = format!("{} with {}", shape.name, shape.required.join(", "));
                    self.fault(path, format!("`{name}` is missing"), expected);
                }
            }
            _ => {}
        }
    }
}

fn shown(json: &Json) -> String {
    json.to_string().chars().take(60).collect()
}
