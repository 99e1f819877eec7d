//! A YAML document as a tree that knows where each part stands.

/// A place in the text: line and column count from 1, in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// How many characters the excerpt underlines (at least 1, never past the line's end).
    pub width: usize,
}

/// One value with its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) kind: Kind,
}

/// What a value is. Plain scalars keep their text: what it means is decided by what is expected there
/// (`mnc: 001` is the string "001" where a string belongs).
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Plain(String),
    Quoted(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// One `key: value` of a mapping.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_place: Place,
    pub(crate) value: Node,
}

impl Node {
    /// What a person would call this value.
    pub(crate) fn describe(&self) -> String {
        match &self.kind {
            Kind::Plain(text) if is_null(text) => "nothing (null)".to_owned(),
            Kind::Plain(text) if as_bool(text).is_some() => format!("the boolean {text}"),
            Kind::Plain(text) if as_number(text).is_some() => format!("the number {text}"),
            Kind::Plain(text) | Kind::Quoted(text) => format!("the text \"{}\"", shorten(text)),
            Kind::List(_) => "a list".to_owned(),
            Kind::Map(_) => "a mapping (key: value)".to_owned(),
        }
    }

    /// The value of `key`, if this is a mapping that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        match &self.kind {
            Kind::Map(entries) => entries
                .iter()
                .find(|entry| entry.key == key)
                .map(|entry| &entry.value),
            _ => None,
        }
    }

    /// The keys of a mapping; of anything else none.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        let entries = match &self.kind {
            Kind::Map(entries) => entries.as_slice(),
            _ => &[],
        };
        entries.iter().map(|entry| entry.key.as_str())
    }

    /// The place of what `path` names; when it is not in the text, of the nearest part around it that is.
    /// The flag says whether the whole path was found.
    pub(crate) fn locate(&self, path: &str) -> (Place, bool) {
        let mut node = self;
        let mut place = self.place;
        for segment in segments(path) {
            let next = match (&node.kind, segment) {
                (Kind::List(items), Segment::Index(index)) => items.get(index).map(|item| (item, item.place)),
                (Kind::Map(entries), Segment::Key(key)) => entries
                    .iter()
                    .find(|entry| entry.key == key)
                    .map(|entry| (&entry.value, entry_place(entry))),
                _ => None,
            };
            match next {
                Some((child, at)) => {
                    node = child;
                    place = at;
                }
                None => return (place, false),
            }
        }
        (place, true)
    }

    /// The plain meaning of this value by the YAML 1.2 core schema, where no schema says better.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        use serde_json::Value;
        match &self.kind {
            Kind::Quoted(text) => Value::String(text.clone()),
            Kind::Plain(text) if is_null(text) => Value::Null,
            Kind::Plain(text) => match (as_bool(text), as_number(text)) {
                (Some(yes), _) => Value::Bool(yes),
                (_, Some(number)) => Value::Number(number),
                _ => Value::String(text.clone()),
            },
            Kind::List(items) => Value::Array(items.iter().map(Node::to_json).collect()),
            Kind::Map(entries) => Value::Object(
                entries
                    .iter()
                    .map(|entry| (entry.key.clone(), entry.value.to_json()))
                    .collect(),
            ),
        }
    }

    /// The value with each scalar as its text, so that `mnc: 01` keeps its zero; nothing is an empty text.
    pub(crate) fn to_texts(&self) -> serde_json::Value {
        use serde_json::Value;
        match &self.kind {
            Kind::Plain(text) if is_null(text) => Value::String(String::new()),
            Kind::Plain(text) | Kind::Quoted(text) => Value::String(text.clone()),
            Kind::List(items) => Value::Array(items.iter().map(Node::to_texts).collect()),
            Kind::Map(entries) => {
                let members = entries
                    .iter()
                    .map(|entry| (entry.key.clone(), entry.value.to_texts()));
                Value::Object(members.collect())
            }
        }
    }
}

/// Removes the innermost key of a mapping that `path` leads to or through; returns its path. `None` where there is none.
pub(crate) fn prune(value: &mut serde_json::Value, path: &str) -> Option<String> {
    let mut all = segments(path);
    loop {
        while matches!(all.last(), Some(Segment::Index(_))) {
            all.pop();
        }
        let Some(Segment::Key(key)) = all.pop() else {
            return None;
        };
        let mut around = Some(&mut *value);
        let mut name = String::new();
        for segment in &all {
            around = match segment {
                Segment::Key(key) => {
                    name = join_key(&name, key);
                    around.and_then(|value| value.get_mut(*key))
                }
                Segment::Index(index) => {
                    name = format!("{name}[{index}]");
                    around.and_then(|value| value.get_mut(*index))
                }
            };
        }
        let members = around.and_then(serde_json::Value::as_object_mut);
        if members.is_some_and(|members| members.remove(key).is_some()) {
            return Some(join_key(&name, key));
        }
    }
}

/// A fault in a scalar is shown at the value, one in a whole block at its key: the block's first line says
/// little about what is wrong with the block.
fn entry_place(entry: &Entry) -> Place {
    match entry.value.kind {
        Kind::Plain(_) | Kind::Quoted(_) => entry.value.place,
        Kind::List(_) | Kind::Map(_) => entry.key_place,
    }
}

/// Whether a plain scalar means "nothing".
pub(crate) fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// The boolean a plain scalar means. The `yes`, `no`, `on`, `off` of YAML 1.1 are texts, as in YAML 1.2.
pub(crate) fn as_bool(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// The number a plain scalar means: decimal, `0x…`, `0o…`, or with a fraction or exponent. Infinities and
/// NaN are not numbers of any setting.
pub(crate) fn as_number(text: &str) -> Option<serde_json::Number> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok().map(Into::into);
    }
    if let Some(octal) = text.strip_prefix("0o") {
        return u64::from_str_radix(octal, 8).ok().map(Into::into);
    }
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    if let Ok(number) = unsigned.parse::<u64>() {
        return Some(number.into());
    }
    if let Ok(number) = unsigned.parse::<i64>() {
        return Some(number.into());
    }
    if !digits
        .chars()
        .all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '-' | '+'))
    {
        return None;
    }
    unsigned
        .parse::<f64>()
        .ok()
        .and_then(serde_json::Number::from_f64)
}

/// The first characters of a text, for messages.
pub(crate) fn shorten(text: &str) -> String {
    const MOST: usize = 40;
    let mut short: String = text
        .chars()
        .take(MOST)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().nth(MOST).is_some() {
        short.push('…');
    }
    short
}

/// One step of a path such as `listen[0].port`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Segment<'a> {
    Key(&'a str),
    Index(usize),
}

/// The steps of a path. Anything is accepted: an odd path locates less precisely, it never fails. A key that
/// itself holds dots or brackets is written in quotes: `services."nnrf-disc".limit`.
pub(crate) fn segments(path: &str) -> Vec<Segment<'_>> {
    let mut found = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        if let Some(quoted) = rest.strip_prefix('"')
            && let Some((key, after)) = quoted.split_once('"')
        {
            found.push(Segment::Key(key));
            rest = after;
            continue;
        }
        if let Some(bracket) = rest.strip_prefix('[')
            && let Some((index, after)) = bracket.split_once(']')
        {
            found.push(match index.parse() {
                Ok(index) => Segment::Index(index),
                Err(_) => Segment::Key(index),
            });
            rest = after;
            continue;
        }
        // A bracket that never closes is part of the key, so that each round consumes something.
        let end = rest
            .char_indices()
            .skip(1)
            .find(|(_, c)| matches!(c, '.' | '['))
            .map_or(rest.len(), |(at, _)| at);
        let (key, after) = rest.split_at(end);
        if !key.is_empty() {
            found.push(Segment::Key(key));
        }
        rest = after;
    }
    found
}

/// `path` and one more key.
pub(crate) fn join_key(path: &str, key: &str) -> String {
    let plain = !key.is_empty() && !key.contains(['.', '[', ']', '"']);
    match (path.is_empty(), plain) {
        (true, true) => key.to_owned(),
        (true, false) => format!("\"{key}\""),
        (false, true) => format!("{path}.{key}"),
        (false, false) => format!("{path}.\"{key}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_taken_apart() {
        assert_eq!(
            segments(r#"nrf.listen[12].port."a.b".c"#),
            vec![
                Segment::Key("nrf"),
                Segment::Key("listen"),
                Segment::Index(12),
                Segment::Key("port"),
                Segment::Key("a.b"),
                Segment::Key("c"),
            ]
        );
    }

    #[test]
    fn odd_paths_end() {
        for odd in [
            "", ".", "..", "[", "[]", "a[", "a]b", "\"", "a.\"b", "[x].[", "é.ü[1",
        ] {
            let _ = segments(odd);
        }
    }

    #[test]
    fn plain_scalars_mean_what_yaml_1_2_says() {
        assert_eq!(as_number("10").map(|n| n.to_string()).as_deref(), Some("10"));
        assert_eq!(as_number("0x10").map(|n| n.to_string()).as_deref(), Some("16"));
        assert_eq!(as_number("-2.5").map(|n| n.to_string()).as_deref(), Some("-2.5"));
        for text in ["1.2.3", "10s", "nan", ".inf", "-", "", "1e999", "1_000"] {
            assert_eq!(as_number(text), None, "{text}");
        }
        assert_eq!(as_bool("yes"), None);
    }
}
