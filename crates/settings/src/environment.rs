//! Texts from the environment: `${NAME}` within any value, `${NAME:-text}` with a default, `$${` for a plain `${`. Replicas of
//! one deployment share a file this way, and differ in addresses and identities.

use crate::node::{Kind, Node, join_key};
use crate::report::Finding;

/// Replaces the variables in all values of a tree; keys stay. One that is not set is a finding.
pub(crate) fn expand(
    node: &mut Node,
    path: &str,
    variable: &impl Fn(&str) -> Option<String>,
    findings: &mut Vec<Finding>,
) {
    match &mut node.kind {
        Kind::Plain(text) | Kind::Quoted(text) => {
            if !text.contains("${") {
                return;
            }
            match expanded(text, variable) {
                Ok(new) => *text = new,
                Err(what) => findings.push(Finding {
                    place: node.place,
                    path: path.to_owned(),
                    what,
                    expected: "a variable that is set, `${NAME:-text}` with a default, or `$${` for the characters `${`"
                        .to_owned(),
                }),
            }
        }
        Kind::List(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                expand(item, &format!("{path}[{index}]"), variable, findings);
            }
        }
        Kind::Map(entries) => {
            for entry in entries {
                let inner = join_key(path, &entry.key);
                expand(&mut entry.value, &inner, variable, findings);
            }
        }
    }
}

fn expanded(text: &str, variable: &impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let (mut new, mut rest) = (String::new(), text);
    while let Some(at) = rest.find("${") {
        let (before, after) = (&rest[..at], &rest[at + 2..]);
        if let Some(before) = before.strip_suffix('$') {
            new.push_str(before);
            new.push_str("${");
            rest = after;
            continue;
        }
        new.push_str(before);
        let Some((inner, further)) = after.split_once('}') else {
            return Err("`${` has no `}`".to_owned());
        };
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        let is_name = !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name {
            return Err(format!("`{name}` is not the name of a variable"));
        }
        let value = variable(name).filter(|value| default.is_none() || !value.is_empty());
        match value.as_deref().or(default) {
            Some(value) => new.push_str(value),
            None => {
                return Err(format!(
                    "the environment variable {name} is not set, or is not text"
                ));
            }
        }
        rest = further;
    }
    new.push_str(rest);
    Ok(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_where_they_are_set() {
        let variable = |name: &str| match name {
            "POD_IP" => Some("10.0.0.7".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let all = |text: &str| expanded(text, &variable);
        for (text, expected) in [
            ("${POD_IP}:8010", "10.0.0.7:8010"),
            ("a${EMPTY}b", "ab"),
            ("${EMPTY:-x}${NONE:-y}${POD_IP:-z}", "xy10.0.0.7"),
            ("$${POD_IP} $ {", "${POD_IP} $ {"),
        ] {
            assert_eq!(all(text).unwrap(), expected);
        }
        for (text, part) in [
            ("${NONE}", "NONE is not set"),
            ("${POD", "no `}`"),
            ("${a-b}", "`a-b`"),
            ("${}", "``"),
        ] {
            assert!(all(text).unwrap_err().contains(part), "{text}");
        }
    }
}
