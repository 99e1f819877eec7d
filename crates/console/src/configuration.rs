//! The configuration in effect in a function, as rows of keys, beside that of another function of its kind; and reloads.

use std::collections::BTreeMap;

use hyper::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::{Connection, Page};
use crate::following::Asked;
use crate::observation::cut;

/// Octets of a configuration.
const MOST_PAGE: usize = 4 << 20;
/// Rows that are shown.
const MOST_ROWS: usize = 5_000;
/// Characters of a value.
const MOST_VALUE: usize = 500;
/// Characters of a reason.
const WHY: usize = 2_000;

/// What was asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Form {
    /// The function, by its name on the page.
    pub(crate) function: String,
    /// Another one to compare it with.
    beside: String,
}

/// The rows of a function, and where they differ from those of the other.
pub(crate) async fn shown(form: &Form, functions: &[Asked]) -> Result<Value, String> {
    let own = read(&form.function, functions).await?;
    let status = page(&form.function, functions, Method::GET, "/status").await?;
    let status: Value = serde_json::from_slice(&status.body).unwrap_or_default();
    let other = match form.beside.is_empty() {
        true => None,
        false => Some(read(&form.beside, functions).await?),
    };
    let rows = rows(&own, other.as_ref());
    let more = rows.len().saturating_sub(MOST_ROWS);
    let rows: Vec<Value> = rows.into_iter().take(MOST_ROWS).collect();
    Ok(json!({
        "version": 1,
        "function": form.function,
        "beside": form.beside,
        // Whether the file on the disk is in effect.
        "file": status["configuration"],
        "rows": rows,
        "more": more,
    }))
}

/// Has a function read its file again; what it has changed, or why nothing has.
pub(crate) async fn reload(function: &str, functions: &[Asked]) -> Result<Value, String> {
    let page = page(function, functions, Method::POST, "/config/reload").await?;
    let words = String::from_utf8_lossy(&page.body).trim().to_owned();
    let changed = serde_json::from_str::<Value>(&words).ok();
    Ok(json!({
        "version": 1,
        "function": function,
        "done": page.status == 200,
        "changed": changed,
        "words": if changed.is_some() { String::new() } else { cut(&words, WHY) },
    }))
}

/// A page of the admin endpoint of a function.
pub(crate) async fn page(
    function: &str,
    functions: &[Asked],
    method: Method,
    path: &str,
) -> Result<Page, String> {
    let found = functions.iter().find(|(name, _)| name == function);
    let (_, admin) = found.ok_or_else(|| {
        format!(
            "`{}` is not a function that this console follows",
            cut(function, 80)
        )
    })?;
    let page = async {
        let mut connection = Connection::open(*admin).await?;
        connection.ask(method, path, MOST_PAGE).await
    };
    page.await.map_err(|failure| format!("{function}: {failure}"))
}

/// The settings of a function by their keys.
async fn read(function: &str, functions: &[Asked]) -> Result<BTreeMap<String, String>, String> {
    let page = page(function, functions, Method::GET, "/config").await?;
    if page.status != 200 {
        return Err(format!("{function} answered {}", page.status));
    }
    let value: Value = serde_json::from_slice(&page.body).map_err(|error| format!("{function}: {error}"))?;
    let mut flat = BTreeMap::new();
    flatten("", &value, &mut flat);
    Ok(flat)
}

/// The leaves of a document: `a.b[0].c` and their values.
fn flatten(key: &str, value: &Value, out: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                let below = if key.is_empty() {
                    name.clone()
                } else {
                    format!("{key}.{name}")
                };
                flatten(&below, value, out);
            }
        }
        Value::Array(all) if !all.is_empty() => {
            for (index, value) in all.iter().enumerate() {
                flatten(&format!("{key}[{index}]"), value, out);
            }
        }
        leaf => {
            let words = leaf.as_str().map_or_else(|| leaf.to_string(), str::to_owned);
            out.insert(key.to_owned(), cut(&words, MOST_VALUE));
        }
    }
}

fn rows(own: &BTreeMap<String, String>, other: Option<&BTreeMap<String, String>>) -> Vec<Value> {
    let Some(other) = other else {
        return own
            .iter()
            .map(|(key, value)| json!({ "key": key, "value": value }))
            .collect();
    };
    let keys: std::collections::BTreeSet<&String> = own.keys().chain(other.keys()).collect();
    let row = |key: &String| {
        let (value, beside) = (own.get(key), other.get(key));
        json!({ "key": key, "value": value, "beside": beside, "differs": value != beside })
    };
    keys.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_compared_by_key() {
        let flat = |value: Value| {
            let mut flat = BTreeMap::new();
            flatten("", &value, &mut flat);
            flat
        };
        let one = flat(json!({"a": {"b": [1, {"c": "x"}]}, "d": null, "e": {}, "f": []}));
        let keys: Vec<&str> = one.keys().map(String::as_str).collect();
        assert_eq!(keys, ["a.b[0]", "a.b[1].c", "d", "e", "f"]);
        let two = flat(json!({"a": {"b": [1, {"c": "y"}]}, "d": null, "f": [], "g": 1}));
        let differing: Vec<Value> = rows(&one, Some(&two))
            .into_iter()
            .filter(|row| row["differs"] == true)
            .collect();
        let expected = [
            json!({"key": "a.b[1].c", "value": "x", "beside": "y", "differs": true}),
            json!({"key": "e", "value": "{}", "beside": null, "differs": true}),
            json!({"key": "g", "value": null, "beside": "1", "differs": true}),
        ];
        assert_eq!(differing, expected);
        assert_eq!(rows(&one, None).len(), 5);
    }
}
