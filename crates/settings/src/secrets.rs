//! Passwords that a configuration has where none belongs: a report of mistakes shows lines, and ends in journals.

/// Keys whose values are not shown, whatever is wrong with them.
const KEYS: [&str; 4] = ["password", "passphrase", "secret", "token"];
/// Shorter texts are replaced in their line alone: elsewhere they may be anything.
const SHORT: usize = 4;

/// A text without its passwords, each of their characters an asterisk, so that columns stay.
#[derive(Debug)]
pub(crate) struct Hidden {
    pub(crate) text: String,
    found: Vec<String>,
}

impl Hidden {
    /// A message without the passwords of the text.
    pub(crate) fn within(&self, message: &str) -> String {
        let known = self.found.iter().filter(|secret| secret.len() >= SHORT);
        let message = known.fold(message.to_owned(), |message, secret| {
            message.replace(secret.as_str(), "****")
        });
        // A message may quote a part of the text with other quotation marks or escapes.
        hide_urls(&message).0
    }
}

/// Hides what stands between `://` and `@`, and the values of keys that have passwords.
pub(crate) fn hide(text: &str) -> Hidden {
    let mut found = Vec::new();
    let mut hidden = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, of_urls) = hide_urls(line);
        let (line, of_keys) = hide_values(&line);
        hidden.push_str(&line);
        found.extend(of_urls.into_iter().chain(of_keys));
    }
    Hidden { text: hidden, found }
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
            // A port is no password.
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

/// Hides the scalars of keys that have passwords; `{file: …}` and `{env: …}` are places of secrets and none.
fn hide_values(line: &str) -> (String, Vec<String>) {
    let lower = line.to_ascii_lowercase();
    for key in KEYS {
        let Some(at) = lower
            .find(&format!("{key}:"))
            .or_else(|| lower.find(&format!("{key}\":")))
        else {
            continue;
        };
        let Some(colon) = line[at..].find(':').map(|colon| at + colon + 1) else {
            continue;
        };
        let value = &line[colon..];
        let is_structure = value
            .trim_start()
            .starts_with(['{', '[', '&', '*', '#', '|', '>']);
        let value = value.split([',', '}', '\n', '\r']).next().unwrap_or_default();
        let secret = value.trim().trim_matches(['"', '\'']);
        if is_structure || secret.is_empty() || secret.starts_with("${") {
            continue;
        }
        let hidden = format!(
            "{}{}",
            &line[..colon],
            line[colon..].replacen(secret, &stars(secret), 1)
        );
        return (hidden, vec![secret.to_owned()]);
    }
    (line.to_owned(), Vec::new())
}

fn stars(secret: &str) -> String {
    "*".repeat(secret.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("bindPassword: hunter2  # mine", "bindPassword: ***************"),
            ("password: {file: /etc/x}", "password: {file: /etc/x}"),
            ("password: ${DB}", "password: ${DB}"),
            ("tokens: {a: 1}", "tokens: {a: 1}"),
        ] {
            assert_eq!(hidden(line), expected, "{line}");
        }
        let all = hide("password: hunter2\n");
        assert_eq!(
            all.within("`hunter2` is no list, nor is http://u:other@h"),
            "`****` is no list, nor is http://u:*****@h"
        );
    }
}
