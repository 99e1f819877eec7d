//! Passwords that a configuration has where none belongs: a report of mistakes shows lines, and ends in journals.

use crate::node::{Kind, Node, join_key, shorten};
use crate::parse::{self, Limits};

/// Keys whose values are not shown, whatever is wrong with them, and keys that end with one of these.
const KEYS: [&str; 8] = [
    "password",
    "passphrase",
    "secret",
    "token",
    "authorization",
    "apikey",
    "credential",
    "credentials",
];
/// Headers that a function sends to servers (`servers.….headers`), which is where keys of APIs stand.
const HEADERS: &str = "headers";
/// Shorter texts are replaced in their line alone: elsewhere they may be anything.
const SHORT: usize = 4;

/// A text without its passwords, each of their characters an asterisk, so that columns stay.
#[derive(Debug)]
pub(crate) struct Hidden {
    pub(crate) text: String,
    found: Vec<String>,
    /// Paths of settings that are secrets, or should be references to some.
    paths: Vec<String>,
}

impl Hidden {
    /// A message about a setting without the passwords of the text.
    pub(crate) fn within(&self, path: &str, message: &str) -> String {
        let known = self.found.iter().filter(|secret| secret.len() >= SHORT);
        let message = known.fold(message.to_owned(), |message, secret| {
            // A message quotes the begin of a long text.
            let message = message.replace(secret.as_str(), "****");
            message.replace(&shorten(secret), "****")
        });
        let is_of = |secret: &String| {
            path.strip_prefix(secret.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let message = match self.paths.iter().any(is_of) {
            true => hide_quoted(&message),
            false => message,
        };
        // A message may quote a part of the text with other quotation marks or escapes.
        hide_urls(&message).0
    }
}

/// Hides what stands between `://` and `@`, and the values of keys that have passwords.
pub(crate) fn hide(text: &str) -> Hidden {
    let mut found = Vec::new();
    let mut hidden = String::with_capacity(text.len());
    let tree = parse::parse(text, Limits::default()).ok();
    let (mut marks, mut paths) = (Vec::new(), Vec::new());
    match &tree {
        Some((root, _)) => collect(root, "", Around::default(), &mut marks, &mut paths),
        None => marks = marks_of_lines(text),
    }
    let mut marks = marks.into_iter().peekable();
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let mut line = line.to_owned();
        while let Some(mark) = marks.next_if(|mark| mark.line <= index + 1) {
            if mark.line == index + 1 {
                let (masked, secret) = mask(&line, mark.from, mark.until);
                line = masked;
                found.extend([secret, mark.value].into_iter().filter(|one| !one.is_empty()));
            }
        }
        let (line, of_urls) = hide_urls(&line);
        let (line, of_keys) = hide_values(&line);
        hidden.push_str(&line);
        found.extend(of_urls.into_iter().chain(of_keys));
    }
    // The longest first, so that a part of one does not hide the rest of it.
    found.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    found.dedup();
    Hidden {
        text: hidden,
        found,
        paths,
    }
}

/// A secret in the text: characters of a line, and its value where the tree has it.
#[derive(Debug)]
struct Mark {
    line: usize,
    from: usize,
    until: usize,
    value: String,
}

/// What stands around a value.
#[derive(Clone, Copy, Default)]
struct Around {
    /// Whether a mapping of servers does.
    servers: bool,
    /// Whether a key of a secret does, or headers.
    secret: bool,
}

fn collect(node: &Node, path: &str, around: Around, marks: &mut Vec<Mark>, paths: &mut Vec<String>) {
    match &node.kind {
        Kind::Map(entries) => {
            for entry in entries {
                let (key, inner) = (entry.key.as_str(), join_key(path, &entry.key));
                // `{file: …}` and `{env: …}` are places of secrets and none.
                let is_place = matches!(key, "file" | "env") && entries.len() == 1;
                let is_scalar = matches!(entry.value.kind, Kind::Plain(_) | Kind::Quoted(_));
                let is_headers = around.servers && strsim::damerau_levenshtein(&bare(key), HEADERS) <= 2;
                let is_secret = !is_place
                    && (around.secret || is_headers || names_secret(key) || (is_scalar && resembles(key)));
                if is_secret && !around.secret {
                    paths.push(inner.clone());
                }
                let around = Around {
                    servers: around.servers || key.eq_ignore_ascii_case("servers"),
                    secret: is_secret,
                };
                collect(&entry.value, &inner, around, marks, paths);
            }
        }
        Kind::List(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, &format!("{path}[{index}]"), around, marks, paths);
            }
        }
        Kind::Plain(text) | Kind::Quoted(text) => {
            if around.secret && !text.starts_with("${") && !text.is_empty() {
                let from = node.place.column - 1;
                let until = match text.contains('\n') {
                    true => usize::MAX,
                    false => from + node.place.width,
                };
                marks.push(Mark {
                    line: node.place.line,
                    from,
                    until,
                    value: text.clone(),
                });
            }
        }
    }
}

/// The values below `headers:` in a text that cannot be parsed, by indentation and braces.
fn marks_of_lines(text: &str) -> Vec<Mark> {
    let mut marks = Vec::new();
    let mut inside: Option<usize> = None;
    for (index, line) in text.lines().enumerate() {
        let indent = line.chars().take_while(|c| *c == ' ').count();
        let mut mark = |from: usize| {
            marks.push(Mark {
                line: index + 1,
                from,
                until: usize::MAX,
                value: String::new(),
            });
        };
        let key = line.find("headers").map(|at| (at, &line[at + HEADERS.len()..]));
        let value = key.and_then(|(at, rest)| {
            let rest = rest.trim_start_matches(['"', '\'']).trim_start();
            rest.strip_prefix(':').map(|value| (at, value))
        });
        if let Some((at, value)) = value {
            match value.trim().is_empty() {
                true => inside = Some(indent),
                false => mark(line[..at].chars().count() + HEADERS.len()),
            }
        } else if inside.is_some_and(|outer| indent > outer || line.trim().is_empty()) {
            let colon = line.find(':').map_or(0, |at| at + 1);
            mark(line[..colon].chars().count());
        } else {
            inside = None;
        }
    }
    marks
}

/// Replaces characters of a line by asterisks; returns what was there.
fn mask(line: &str, from: usize, until: usize) -> (String, String) {
    let mut secret = String::new();
    let masked = line.chars().enumerate().map(|(at, c)| {
        let is_secret = at >= from && at < until && !matches!(c, '"' | '\'' | '\n' | '\r' | ' ');
        if is_secret {
            secret.push(c);
        }
        if is_secret { '*' } else { c }
    });
    let masked = masked.collect();
    (masked, secret)
}

fn names_secret(key: &str) -> bool {
    let bare = bare(key);
    KEYS.iter().any(|name| bare.ends_with(name))
}

/// Whether this is a misspelt key of a secret.
fn resembles(key: &str) -> bool {
    let bare = bare(key);
    KEYS.iter().any(|name| {
        let distance = strsim::damerau_levenshtein(&bare, name);
        distance <= name.len() / 4
    })
}

fn bare(key: &str) -> String {
    let letters = key.chars().filter(|c| !matches!(c, '-' | '_' | '.'));
    letters.map(|c| c.to_ascii_lowercase()).collect()
}

/// Hides what a message quotes.
fn hide_quoted(message: &str) -> String {
    let (mut hidden, mut end) = (String::with_capacity(message.len()), None);
    for c in message.chars() {
        match end {
            Some(quote) if c == quote => {
                hidden.push_str("****");
                hidden.push(c);
                end = None;
            }
            Some(_) => {}
            None => {
                hidden.push(c);
                if matches!(c, '"' | '`') {
                    end = Some(c);
                }
            }
        }
    }
    if end.is_some() {
        hidden.push_str("****");
    }
    hidden
}

/// Hides the password of each URL: from the colon after the user to the last `@` before the host.
fn hide_urls(line: &str) -> (String, Vec<String>) {
    let (mut hidden, mut found, mut rest) = (String::new(), Vec::new(), line);
    while let Some((before, after)) = rest.split_once("://") {
        hidden.push_str(before);
        hidden.push_str("://");
        let end = after
            .find(|c: char| matches!(c, '/' | '?' | '#' | '"' | '\'' | '`') || c.is_whitespace())
            .unwrap_or(after.len());
        let (authority, further) = after.split_at(end);
        // A password with a slash belongs to no valid URL, and is one all the same.
        let spilled = authority.contains(':') && !authority.contains('@');
        let word = after.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`'));
        let word = &after[..word.unwrap_or(after.len())];
        let (authority, further) = match spilled.then(|| word.rfind('@')).flatten() {
            Some(at) => after.split_at(at),
            None => (authority, further),
        };
        let user_end = if spilled {
            Some(authority.len())
        } else {
            authority.rfind('@')
        };
        let secret = user_end.and_then(|end| {
            let user = &authority[..end];
            let colon = user.find(':')?;
            // A port is not a password.
            (!spilled || further.starts_with('@')).then_some(&user[colon + 1..])
        });
        match secret.filter(|secret| !secret.is_empty()) {
            Some(secret) => {
                hidden.push_str(&authority.replacen(secret, &stars(secret), 1));
                found.push(secret.to_owned());
            }
            None => hidden.push_str(authority),
        }
        rest = further;
    }
    hidden.push_str(rest);
    (hidden, found)
}

/// Hides the scalars of keys that have passwords, in a line that may not parse; `{file: …}` and `{env: …}` are places of
/// secrets and none.
fn hide_values(line: &str) -> (String, Vec<String>) {
    let (mut hidden, mut found) = (String::with_capacity(line.len()), Vec::new());
    let mut rest = line;
    while let Some(colon) = rest.find(':') {
        let (before, value) = rest.split_at(colon + 1);
        hidden.push_str(before);
        rest = value;
        let key = before.trim_end_matches(':').trim_end_matches(['"', '\'']);
        let key = key.rsplit(|c: char| !c.is_alphanumeric() && !matches!(c, '-' | '_'));
        if !key.take(1).any(names_secret) {
            continue;
        }
        let is_structure = value
            .trim_start()
            .starts_with(['{', '[', '&', '*', '#', '|', '>']);
        let scalar = value.split([',', '}', '\n', '\r']).next().unwrap_or_default();
        let secret = scalar.trim().trim_matches(['"', '\'']);
        if is_structure || secret.is_empty() || secret.starts_with("${") {
            continue;
        }
        hidden.push_str(&scalar.replacen(secret, &stars(secret), 1));
        found.push(secret.to_owned());
        rest = &value[scalar.len()..];
    }
    hidden.push_str(rest);
    (hidden, found)
}

fn stars(secret: &str) -> String {
    "*".repeat(secret.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_misspelt_secrets_are_hidden() {
        for text in [
            "pcf: {notifier: {servers: {crm: {headers: {X-Key: 'geh eim', Authorization: Bearer geheim}}}}}\n",
            "servers:\n  crm:\n    headers:\n      X-Key: \"geheim\"\n      Other: [geheim, {a: geheim}]\n",
            "servers: {crm: {header: {x: geheim}}}\n",
            "servers: {crm: {authorization: \"Bearer geheim\", timeout: 1s}}\n",
            "store: {mariadb: {pasword: geheim}}\n",
            "store: {mariadb: {password: {value: geheim}}}\n",
            "{db-password: geheim, api_key: geheim, apiToken: geheim}\n",
            "password: |\n  geheim\n",
            // Not parsable.
            "servers:\n  crm:\n    headers:\n      X-Key: geheim\n\t- [\n",
            "headers: {X-Key: geheim, Y: geheim\n  - ]\n",
            "a: [\n  authorization: Bearer geheim\n",
        ] {
            let shown = hide(text).text;
            let lines = shown
                .lines()
                .filter(|line| line.contains("geheim") || line.contains("eim'"));
            // A text of several lines is named by its first one.
            let lines: Vec<_> = lines.filter(|line| *line != "  geheim").collect();
            assert_eq!(lines, Vec::<&str>::new(), "{text}");
        }
        let other = "scp: {rules: {headers: {X-A: shown}, tokens: {ahead: shown}}}\n";
        assert_eq!(hide(other).text, other, "no headers of servers");
        let long = "geheim ".repeat(20);
        let hidden = hide(&format!(
            "servers: {{a: {{headers: {{x: \"{long}\", y: ab}}}}}}\n"
        ));
        let what = format!("this is the text \"{}\"", shorten(&long));
        assert!(!hidden.within("", &what).contains("geheim"));
        let what = hidden.within("servers.a.headers.y", "this is the text \"ab\"");
        assert_eq!(what, "this is the text \"****\"");
    }

    #[test]
    fn passwords_of_urls_and_of_keys_are_hidden() {
        let hidden = |line: &str| hide(line).text;
        for (line, expected) in [
            ("a: http://u:geheim@h:1/x", "a: http://u:******@h:1/x"),
            (
                "a: [\"http://u:g@h@host\", 'x://v:w@y']",
                "a: [\"http://u:***@host\", 'x://v:*@y']",
            ),
            ("a: http://u:ge/heim@h", "a: http://u:*******@h"),
            ("a: http://host:8010/path", "a: http://host:8010/path"),
            ("a: http://host:8010/x@y", "a: http://host:******@y"),
            ("  password: hunter2", "  password: *******"),
            ("{user: a, password: 'hunter2'}", "{user: a, password: '*******'}"),
            ("bindPassword: hunter2  # mine", "bindPassword: *******  # mine"),
            ("password: {file: /etc/x}", "password: {file: /etc/x}"),
            ("password: ${DB}", "password: ${DB}"),
            ("tokens: {a: 1}", "tokens: {a: 1}"),
        ] {
            assert_eq!(hidden(line), expected, "{line}");
        }
        let all = hide("password: hunter2\n");
        assert_eq!(
            all.within("", "`hunter2` fits nothing, and http://u:other@h neither"),
            "`****` fits nothing, and http://u:*****@h neither"
        );
    }
}
