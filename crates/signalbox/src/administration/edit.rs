//! One setting in the text of a configuration file: comments and all other lines stay as they are. What comes out is compared
//! with what is wanted, so that a text which cannot be edited so is refused and not damaged.

use serde_json::{Map, Value};
use settings::{Document, Fault, Limits};

/// The text with the value (YAML) at this path (`dsr.limits.pendingBytes`, `dsr.peers[2].host`).
///
/// # Errors
/// Why the setting cannot be set in this text.
pub(super) fn set(text: &str, path: &str, value: &str) -> Result<String, String> {
    let value = value.trim();
    if value.is_empty() || value.contains(['\n', '\r']) {
        return Err("expected a value of one line, lists and groups as [a, b] and {key: value}".to_owned());
    }
    let steps = steps(path).ok_or_else(|| format!("`{path}` is not the path of a setting"))?;
    let before = Document::parse(text, "the file", Limits::default()).map_err(|report| report.to_string())?;
    let parsed =
        Document::parse(value, "the value", Limits::default()).map_err(|report| report.to_string())?;
    let mut wanted = match before.to_json() {
        Value::Null => Value::Object(Map::new()),
        old => old,
    };
    let found = depth_found(&wanted, &steps);
    put(&mut wanted, &steps, parsed.to_json())
        .ok_or_else(|| format!("`{path}` is within something that is neither a group nor has that entry"))?;
    let edited = match found == steps.len() {
        true => replaced(text, &before, path, value),
        false => inserted(text, &before, &steps, found, value),
    };
    let is_right = |edited: &String| {
        Document::parse(edited, "the file", Limits::default()).is_ok_and(|after| after.to_json() == wanted)
    };
    edited
        .filter(is_right)
        .ok_or_else(|| format!("`{path}` does not stand alone on its line: change it in the file"))
}

/// A step of a path.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

/// Keys are letters, digits, `-` and `_`: others are changed in the file.
fn steps(path: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    for part in path.split('.') {
        let (key, mut rest) = part.split_at(part.find('[').unwrap_or(part.len()));
        let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if key.is_empty() || !key.chars().all(is_key) {
            return None;
        }
        steps.push(Step::Key(key.to_owned()));
        while !rest.is_empty() {
            let (index, after) = rest.strip_prefix('[')?.split_once(']')?;
            steps.push(Step::Index(index.parse().ok()?));
            rest = after;
        }
    }
    Some(steps)
}

fn below<'v>(value: &'v Value, step: &Step) -> Option<&'v Value> {
    match step {
        Step::Key(key) => value.get(key),
        Step::Index(index) => value.get(index),
    }
}

/// How many steps lead to something that is there.
fn depth_found(value: &Value, steps: &[Step]) -> usize {
    let mut at = value;
    for (depth, step) in steps.iter().enumerate() {
        match below(at, step) {
            Some(next) => at = next,
            None => return depth,
        }
    }
    steps.len()
}

fn put(value: &mut Value, steps: &[Step], new: Value) -> Option<()> {
    let Some((step, rest)) = steps.split_first() else {
        *value = new;
        return Some(());
    };
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    match step {
        Step::Key(key) => put(
            value.as_object_mut()?.entry(key.as_str()).or_insert(Value::Null),
            rest,
            new,
        ),
        Step::Index(index) => put(value.get_mut(index)?, rest, new),
    }
}

/// The octet at which what has this path begins: a scalar or an entry of a list itself, a group or a list at its key.
fn offset(text: &str, document: &Document, path: &str) -> Option<usize> {
    let fault = Fault {
        path: path.to_owned(),
        what: String::new(),
        expected: String::new(),
    };
    let report = document.report(vec![fault]);
    let place = report.findings().first()?.place;
    let lines = text.split_inclusive('\n').take(place.line.checked_sub(1)?);
    let begin: usize = lines.map(str::len).sum();
    let rest = text.get(begin..)?;
    let column = rest.char_indices().nth(place.column.checked_sub(1)?);
    Some(begin + column.map_or(rest.len(), |(at, _)| at))
}

/// Where on the line of its key a group or a list begins that is written in brackets.
fn bracket(text: &str, begin: usize) -> Option<usize> {
    let line = text.get(begin..)?.split('\n').next()?;
    if line.starts_with(['{', '[']) {
        return Some(begin);
    }
    let after = line.find(':')? + 1;
    let blanks = line[after..].len() - line[after..].trim_start().len();
    line[after + blanks..]
        .starts_with(['{', '['])
        .then_some(begin + after + blanks)
}

/// The text with a value in the place of one of one line.
fn replaced(text: &str, document: &Document, path: &str, value: &str) -> Option<String> {
    let mut begin = offset(text, document, path)?;
    let mut wanted = document.to_json();
    let steps = steps(path)?;
    let old = steps.iter().try_fold(&wanted, below)?;
    if old.is_object() || old.is_array() {
        begin = bracket(text, begin)?;
    }
    let rest = text.get(begin..)?;
    let line = rest.split('\n').next().unwrap_or_default();
    // A plain text ends at a comment or the end of the line; within [ ] and { } also at these and at commas.
    let ends = [quoted_end(line), Some(block_end(line)), flow_end(line)];
    let mut edited = ends.into_iter().flatten().map(|end| {
        let (head, tail) = (&text[..begin], &text[begin + end..]);
        format!("{head}{value}{tail}")
    });
    let parsed = Document::parse(value, "", Limits::default()).ok()?.to_json();
    put(&mut wanted, &steps, parsed)?;
    edited.find(|edited| {
        Document::parse(edited, "", Limits::default()).is_ok_and(|after| after.to_json() == wanted)
    })
}

fn quoted_end(line: &str) -> Option<usize> {
    let mark = line.chars().next().filter(|mark| matches!(mark, '"' | '\''))?;
    Some(line[1..].find(mark)? + 2)
}

fn block_end(line: &str) -> usize {
    let end = line.find(" #").unwrap_or(line.len());
    line[..end].trim_end().len()
}

/// Where a value ends that stands within brackets: before a comma or a bracket that it has not opened itself.
fn flow_end(line: &str) -> Option<usize> {
    let mut open = 0_u32;
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (Some(mark), _) if c == mark => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => open += 1,
            (None, ',') if open == 0 => return Some(line[..at].trim_end().len()),
            (None, ']' | '}') => {
                if open == 0 {
                    return Some(line[..at].trim_end().len());
                }
                open -= 1;
            }
            (None, _) => {}
        }
    }
    None
}

/// The text with a setting in the group around it that is there.
fn inserted(text: &str, document: &Document, steps: &[Step], found: usize, value: &str) -> Option<String> {
    let mut missing = value.to_owned();
    for (depth, step) in steps[found..].iter().enumerate().rev() {
        let Step::Key(key) = step else { return None };
        missing = match depth {
            0 => format!("{key}: {missing}"),
            _ => format!("{{{key}: {missing}}}"),
        };
    }
    if found == 0 {
        let gap = if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        return Some(format!("{text}{gap}{missing}\n"));
    }
    let mut around = String::new();
    for step in &steps[..found] {
        match step {
            Step::Key(key) if around.is_empty() => around.push_str(key),
            Step::Key(key) => around.push_str(&format!(".{key}")),
            Step::Index(index) => around.push_str(&format!("[{index}]")),
        }
    }
    let begin = offset(text, document, &around)?;
    if let Some(at) = bracket(text, begin) {
        let (head, tail) = text.split_at(at);
        let rest = tail.strip_prefix('{')?;
        let comma = if rest.trim_start().starts_with('}') {
            ""
        } else {
            ", "
        };
        return Some(format!("{head}{{{missing}{comma}{rest}"));
    }
    // Before the first line of the group, with the same indentation.
    let mut at = begin + text[begin..].find('\n')? + 1;
    for line in text[at..].split_inclusive('\n') {
        let content = line.trim_start();
        if !content.is_empty() && !content.starts_with('#') {
            let indentation = &line[..line.len() - content.len()];
            return Some(format!("{}{indentation}{missing}\n{}", &text[..at], &text[at..]));
        }
        at += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# A router.\ndsr:\n  admin: 127.0.0.1:9050   # loopback\n  limits: {pending: 10, name: 'a, b'}\n  \
        peers:\n    - host: hss1.example\n      realm: example\n    - {host: hss2.example, realm: example}\n  name: \"x # y\" # kept\n";

    #[test]
    fn a_setting_changes_and_everything_else_stays() {
        for (path, value, old, new) in [
            (
                "dsr.admin",
                "127.0.0.1:9051",
                "127.0.0.1:9050   #",
                "127.0.0.1:9051   #",
            ),
            ("dsr.limits.pending", "20", "pending: 10,", "pending: 20,"),
            ("dsr.limits.name", "c", "name: 'a, b'}", "name: c}"),
            (
                "dsr.peers[0].host",
                "hss3.example",
                "- host: hss1.example",
                "- host: hss3.example",
            ),
            ("dsr.peers[1].realm", "other", "realm: example}", "realm: other}"),
            (
                "dsr.limits",
                "{pending: 1}",
                "{pending: 10, name: 'a, b'}",
                "{pending: 1}",
            ),
            ("dsr.name", "z", "\"x # y\" # kept", "z # kept"),
        ] {
            assert_eq!(
                set(TEXT, path, value).unwrap(),
                TEXT.replacen(old, new, 1),
                "{path}"
            );
        }
    }

    #[test]
    fn a_setting_that_is_not_there_is_added_to_its_group() {
        let added = set(TEXT, "dsr.overload.profile", "24K").unwrap();
        assert_eq!(
            added,
            TEXT.replacen("  admin:", "  overload: {profile: 24K}\n  admin:", 1)
        );
        let added = set(TEXT, "dsr.limits.bytes", "1MiB").unwrap();
        assert_eq!(added, TEXT.replacen("{pending", "{bytes: 1MiB, pending", 1));
        let added = set(TEXT, "dsr.peers[0].port", "1").unwrap();
        assert_eq!(
            added,
            TEXT.replacen("      realm", "      port: 1\n      realm", 1)
        );
        let added = set(TEXT, "log.filter", "debug").unwrap();
        assert_eq!(added, format!("{TEXT}log: {{filter: debug}}\n"));
        assert_eq!(set("", "log.filter", "debug").unwrap(), "log: {filter: debug}\n");
    }

    #[test]
    fn what_cannot_be_edited_is_refused() {
        for (path, value) in [
            ("dsr.peers", "[]"),
            ("dsr.peers[7].host", "x"),
            ("dsr.admin.port", "1"),
            ("dsr..admin", "1"),
            ("dsr.admin", "a\nb: c"),
            ("dsr.admin", ""),
            ("dsr.admin", "[a"),
            ("dsr.\"x.y\"", "1"),
        ] {
            assert!(set(TEXT, path, value).is_err(), "{path}: {value}");
        }
    }
}
