//! What a schema asks for, in words: for messages and for the reference page.

use serde_json::Value;

use super::{Schema, types};
use crate::formats;

/// More names than this are not listed in a message.
const LISTED: usize = 16;

/// What a value must be, as the object of "expected …".
pub(crate) fn phrase(context: Schema<'_>, schema: &Value) -> String {
    let schema = context.resolve(schema);
    let constants = constants(context, schema);
    if !constants.is_empty() {
        let names: Vec<String> = constants.iter().map(|one| plain(one)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        return one_of_names("one of", "", &names);
    }
    for word in ["oneOf", "anyOf"] {
        if let Some(alternatives) = schema.get(word).and_then(Value::as_array) {
            let mut phrases: Vec<String> = Vec::new();
            for alternative in alternatives {
                let said = phrase(context, alternative);
                if !phrases.contains(&said) {
                    phrases.push(said);
                }
            }
            return phrases.join(", or ");
        }
    }
    if let Some(said) = schema
        .get("format")
        .and_then(Value::as_str)
        .and_then(formats::phrase)
    {
        return said.to_owned();
    }
    let said: Vec<String> = types(schema)
        .into_iter()
        .filter(|name| *name != "null")
        .map(|name| match name {
            "string" => text(schema),
            "integer" => format!("a whole number{}", range(schema).words()),
            "number" => format!("a number{}", range(schema).words()),
            "boolean" => "true or false".to_owned(),
            "array" => schema.get("items").map_or_else(
                || "a list".to_owned(),
                |items| format!("a list, each entry {}", phrase(context, items)),
            ),
            _ => object(schema),
        })
        .collect();
    if said.is_empty() {
        "a value".to_owned()
    } else {
        said.join(", or ")
    }
}

fn object(schema: &Value) -> String {
    let keys: Vec<&str> = Schema::properties(schema)
        .into_iter()
        .flat_map(|properties| properties.keys().map(String::as_str))
        .collect();
    if keys.is_empty() || keys.len() > LISTED {
        "a mapping (key: value)".to_owned()
    } else {
        format!("a mapping with {}", quoted(&keys))
    }
}

fn text(schema: &Value) -> String {
    let bound = |word: &str| schema.get(word).and_then(Value::as_u64);
    let mut said = "a text".to_owned();
    match (bound("minLength"), bound("maxLength")) {
        (Some(1), None) => said = "a text that is not empty".to_owned(),
        (Some(least), None) => said.push_str(&format!(" of at least {least} characters")),
        (None, Some(most)) => said.push_str(&format!(" of at most {most} characters")),
        (Some(least), Some(most)) => said.push_str(&format!(" of {least} to {most} characters")),
        (None, None) => {}
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
        said.push_str(&format!(" that matches {pattern}"));
    }
    said
}

/// Every constant a schema allows, when constants are all it allows.
pub(crate) fn constants<'a>(context: Schema<'a>, schema: &'a Value) -> Vec<&'a Value> {
    if let Some(one) = schema.get("const") {
        return vec![one];
    }
    if let Some(several) = schema.get("enum").and_then(Value::as_array) {
        return several.iter().filter(|one| !one.is_null()).collect();
    }
    let Some(alternatives) = schema
        .get("oneOf")
        .or_else(|| schema.get("anyOf"))
        .and_then(Value::as_array)
    else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for alternative in alternatives {
        let alternative = context.resolve(alternative);
        if types(alternative) == ["null"] {
            continue;
        }
        // Nested enumerations are one level deep at most: a `oneOf` of names inside `anyOf` with null.
        let names = constants(context, alternative);
        if names.is_empty() {
            return Vec::new();
        }
        all.extend(names);
    }
    all
}

/// A constant as it is written in YAML.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// "lead: a, b, c; did you mean `b`?"
pub(crate) fn one_of_names(lead: &str, written: &str, names: &[&str]) -> String {
    let mut said = if names.is_empty() {
        format!("{lead} (there are none)")
    } else if names.len() <= LISTED {
        format!("{lead}: {}", quoted(names))
    } else {
        lead.to_owned()
    };
    if let Some(near) = nearest(written, names) {
        said.push_str(&format!("; did you mean `{near}`?"));
    }
    said
}

fn quoted(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

/// Which of these names was probably meant; `None` when none is close. Case and punctuation do not count.
#[must_use]
pub fn nearest<'a>(written: &str, names: &[&'a str]) -> Option<&'a str> {
    // Distance is quadratic in the length; a text of hundreds of characters is never a misspelt name.
    if written.is_empty() || written.len() > 64 {
        return None;
    }
    let bare = |name: &str| -> String {
        name.chars()
            .filter(char::is_ascii_alphanumeric)
            .map(|c| c.to_ascii_lowercase())
            .collect()
    };
    let meant = bare(written);
    names
        .iter()
        .map(|name| {
            let known = bare(name);
            // `maxBody` for `maxBodySize` is a near miss however long the rest.
            let begins =
                meant.len().min(known.len()) >= 4 && (known.starts_with(&meant) || meant.starts_with(&known));
            let distance = strsim::damerau_levenshtein(&meant, &known);
            (if begins { distance.min(2) } else { distance }, *name)
        })
        .filter(|(distance, name)| *distance <= name.len().max(meant.len()) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// "1 entry", "3 entries".
pub(crate) fn entries(count: u64) -> String {
    match count {
        1 => "1 entry".to_owned(),
        several => format!("{several} entries"),
    }
}

/// "1 key", "3 keys".
pub(crate) fn keys(count: usize) -> String {
    match count {
        1 => "1 key".to_owned(),
        several => format!("{several} keys"),
    }
}

/// The numbers a schema allows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Range {
    least: Option<f64>,
    most: Option<f64>,
    above: Option<f64>,
    below: Option<f64>,
}

/// Reads the bounds of a schema, those of the integer formats included.
pub(crate) fn range(schema: &Value) -> Range {
    let bound = |word: &str| schema.get(word).and_then(Value::as_f64);
    let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
    let (low, high) = match format {
        "uint8" => (Some(0.0), Some(f64::from(u8::MAX))),
        "uint16" => (Some(0.0), Some(f64::from(u16::MAX))),
        "uint32" => (Some(0.0), Some(f64::from(u32::MAX))),
        "uint64" | "uint" => (Some(0.0), None),
        "int8" => (Some(f64::from(i8::MIN)), Some(f64::from(i8::MAX))),
        "int16" => (Some(f64::from(i16::MIN)), Some(f64::from(i16::MAX))),
        "int32" => (Some(f64::from(i32::MIN)), Some(f64::from(i32::MAX))),
        _ => (None, None),
    };
    Range {
        least: bound("minimum").or(low),
        most: bound("maximum").or(high),
        above: bound("exclusiveMinimum"),
        below: bound("exclusiveMaximum"),
    }
}

impl Range {
    pub(crate) fn holds(&self, value: f64) -> bool {
        value.is_finite()
            && self.least.is_none_or(|least| value >= least)
            && self.most.is_none_or(|most| value <= most)
            && self.above.is_none_or(|above| value > above)
            && self.below.is_none_or(|below| value < below)
    }

    /// " from 1 to 9", or nothing without a bound.
    pub(crate) fn words(&self) -> String {
        let mut said = match (self.least, self.most) {
            (Some(least), Some(most)) => format!(" from {least} to {most}"),
            (Some(least), None) => format!(" of at least {least}"),
            (None, Some(most)) => format!(" of at most {most}"),
            (None, None) => String::new(),
        };
        if let Some(above) = self.above {
            said.push_str(&format!(" above {above}"));
        }
        if let Some(below) = self.below {
            said.push_str(&format!(" below {below}"));
        }
        said
    }

    /// "1 … 9" for the reference page.
    pub(crate) fn short(&self) -> String {
        let low = match (self.least, self.above) {
            (Some(least), _) => format!("{least}"),
            (None, Some(above)) => format!("> {above}"),
            (None, None) => String::new(),
        };
        let high = match (self.most, self.below) {
            (Some(most), _) => format!("{most}"),
            (None, Some(below)) => format!("< {below}"),
            (None, None) => String::new(),
        };
        match (low.is_empty(), high.is_empty()) {
            (true, true) => String::new(),
            (false, true) => format!("≥ {low}").replace("≥ > ", "> "),
            (true, false) => format!("≤ {high}").replace("≤ < ", "< "),
            (false, false) => format!("{low} … {high}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_across_styles_of_writing() {
        let names = ["listen", "maxBodySize", "heartbeat"];
        assert_eq!(nearest("lsiten", &names), Some("listen"));
        assert_eq!(nearest("max_body_size", &names), Some("maxBodySize"));
        assert_eq!(nearest("MAX-BODY", &names), Some("maxBodySize"));
        assert_eq!(nearest("colour", &names), None);
        assert_eq!(nearest("", &names), None);
    }
}
