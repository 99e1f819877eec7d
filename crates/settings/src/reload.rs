//! Which settings may change while a function runs.
//!
//! A field that may has the mark where it is declared: `#[schemars(extend("x-reload" = true))]`; it is then about
//! everything below it as well. Without a mark a setting takes effect at the next start. The mark is part of the schema,
//! so the list of keys, what a reload takes from another configuration, and the reference are made of the same place.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::node::{self, Kind, Node, join_key};
use crate::parse::{self, Limits};
use crate::report::{Finding, Report};
use crate::schema::Schema;

/// The name of the mark.
const MARK: &str = "x-reload";

/// The keys that may change while running, each with all below it.
#[must_use]
pub fn keys<C: JsonSchema>() -> Vec<String> {
    let root = crate::schema_of::<C>();
    let mut found = Vec::new();
    collect(Schema::new(&root), &root, "", &mut found);
    found
}

fn collect(schema: Schema<'_>, group: &Value, path: &str, found: &mut Vec<String>) {
    // Groups within groups end here; deeper ones would be recursive types.
    const DEPTH: usize = 8;
    let group = schema.resolve_group(group);
    for (key, property) in Schema::properties(group).into_iter().flatten() {
        let inner = join_key(path, key);
        if is_marked(property) {
            found.push(inner);
        } else if inner.split('.').count() < DEPTH {
            collect(schema, property, &inner, found);
        }
    }
}

pub(crate) fn is_marked(property: &Value) -> bool {
    property.get(MARK) == Some(&Value::Bool(true))
}

/// Whether `path` is `key` or below it.
#[must_use]
pub fn is_within(path: &str, key: &str) -> bool {
    path.strip_prefix(key)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Mappings that had settings when `taken` was read and have nothing in `text`, not even `{}`: what a tool leaves that broke
/// off. The mappings of `sections`, which are those of what runs, must be there as well: a file without them was cut off, or is
/// that of another process. At a start both mean the defaults; while a function runs they would take away what it runs with.
#[must_use]
pub fn emptied<'n>(
    taken: &str,
    text: &str,
    name: &str,
    sections: impl Iterator<Item = &'n str>,
) -> Option<Report> {
    let read = |text: &str| {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        parse::parse(text, Limits::default()).ok()
    };
    let ((before, _), (after, _)) = (read(taken)?, read(text)?);
    let mut findings = Vec::new();
    lost(&before, &after, "", &mut findings);
    let has_settings = |section: &&str| match before.get(section).map(|value| &value.kind) {
        Some(Kind::Map(settings)) => !settings.is_empty(),
        _ => false,
    };
    let absent = sections
        .filter(has_settings)
        .filter(|section| after.get(section).is_none());
    findings.extend(absent.map(|section| Finding {
        place: after.place,
        path: section.to_owned(),
        what: "is absent, and what runs has settings there".to_owned(),
        expected: format!("its settings; `{section}: {{}}` for the defaults"),
    }));
    (!findings.is_empty()).then(|| Report::new(name, text, findings))
}

fn lost(before: &Node, after: &Node, path: &str, findings: &mut Vec<Finding>) {
    let (Kind::Map(old), Kind::Map(new)) = (&before.kind, &after.kind) else {
        return;
    };
    for entry in new {
        let Some(known) = old.iter().find(|known| known.key == entry.key) else {
            continue;
        };
        let path = join_key(path, &entry.key);
        let is_null = matches!(&entry.value.kind, Kind::Plain(text) if node::is_null(text));
        match &known.value.kind {
            Kind::Map(settings) if is_null && !settings.is_empty() => findings.push(Finding {
                place: entry.key_place,
                path,
                what: "has nothing, and what runs has settings there".to_owned(),
                expected: "its settings; `{}` for the defaults".to_owned(),
            }),
            _ => lost(&known.value, &entry.value, &path, findings),
        }
    }
}

/// `current` with those settings of `wanted` that may change while running.
///
/// # Errors
/// When a configuration does not read back, which is a mistake in its type.
pub fn merge<C: Serialize + DeserializeOwned + JsonSchema>(current: &C, wanted: &C) -> Result<C, String> {
    let to_value = |config: &C| serde_json::to_value(config).map_err(|error| error.to_string());
    let (mut merged, wanted) = (to_value(current)?, to_value(wanted)?);
    for key in keys::<C>() {
        take(&mut merged, &wanted, &key);
    }
    serde_path_to_error::deserialize(merged).map_err(|error| error.to_string())
}

/// Copies what stands at a key; where nothing stands there, nothing stands there afterwards.
pub fn take(merged: &mut Value, wanted: &Value, key: &str) {
    let (groups, last) = match key.rsplit_once('.') {
        Some((groups, last)) => (Some(groups), last),
        None => (None, key),
    };
    let mut from = Some(wanted);
    let mut to = merged;
    for group in groups.into_iter().flat_map(|groups| groups.split('.')) {
        from = from.and_then(|value| value.get(group));
        let Value::Object(members) = to else { return };
        to = members.entry(group).or_insert_with(|| Value::Object(Map::new()));
    }
    let Value::Object(members) = to else { return };
    match from.and_then(|value| value.get(last)) {
        Some(value) => drop(members.insert(last.to_owned(), value.clone())),
        None => drop(members.shift_remove(last)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, rename_all = "camelCase")]
    struct Kettle {
        /// Stays.
        place: String,
        #[schemars(extend("x-reload" = true))]
        max_fill: u32,
        lid: Lid,
        #[schemars(extend("x-reload" = true))]
        #[serde(skip_serializing_if = "Option::is_none")]
        whistle: Option<Lid>,
    }

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, rename_all = "camelCase")]
    struct Lid {
        /// Stays where it is in `lid`.
        colour: String,
        #[schemars(extend("x-reload" = true))]
        angle: u32,
    }

    fn lid(colour: &str, angle: u32) -> Lid {
        Lid {
            colour: colour.to_owned(),
            angle,
        }
    }

    #[test]
    fn marks_make_the_list() {
        assert_eq!(keys::<Kettle>(), ["maxFill", "lid.angle", "whistle"]);
    }

    #[test]
    fn a_key_covers_what_is_below_it() {
        assert!(is_within("a.b.c", "a.b") && is_within("a.b", "a.b") && is_within("a.b[].c", "a.b"));
        assert!(!is_within("a.bc", "a.b"));
    }

    #[test]
    fn what_runs_keeps_its_section() {
        let taken = "a: {x: 1}\nb: {y: 2}\nc: {}\nlog: {filter: warn}\n";
        let refused = |text: &str| {
            let report = emptied(taken, text, "f.yaml", ["a", "c", "d"].into_iter());
            report.map(|report| {
                report
                    .findings()
                    .iter()
                    .map(|one| one.path.clone())
                    .collect::<Vec<_>>()
            })
        };
        assert_eq!(refused(taken), None);
        // Defaults in words, a section of what does not run here, one that had nothing.
        assert_eq!(refused("a: {}\n"), None);
        assert_eq!(refused("b: {y: 2}\n"), Some(vec!["a".to_owned()]));
        assert_eq!(refused("log: {}\n"), Some(vec!["a".to_owned()]));
        for nothing in ["", "# a\n", "---\n", "a:\n"] {
            assert_eq!(refused(nothing), Some(vec!["a".to_owned()]), "{nothing:?}");
        }
        let report = emptied(taken, "b: {}\n", "f.yaml", ["a"].into_iter()).unwrap();
        assert!(
            report.to_string().contains("`a: {}` for the defaults"),
            "{report}"
        );
    }

    #[test]
    fn what_is_marked_is_taken_and_the_rest_stays() {
        let current = Kettle {
            place: "hob".to_owned(),
            max_fill: 1,
            lid: lid("red", 0),
            whistle: None,
        };
        let wanted = Kettle {
            place: "shelf".to_owned(),
            max_fill: 2,
            lid: lid("blue", 90),
            whistle: Some(lid("green", 7)),
        };
        let merged = merge(&current, &wanted).unwrap();
        let expected = Kettle {
            place: "hob".to_owned(),
            max_fill: 2,
            lid: lid("red", 90),
            whistle: wanted.whistle,
        };
        assert_eq!(merged, expected);
        let back = merge(&merged, &current).unwrap();
        assert_eq!(back, current, "a group that is absent goes");
    }
}
