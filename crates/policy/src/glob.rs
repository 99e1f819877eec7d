//! Wildcard patterns: `*` stands for any characters, `?` for one.

use crate::work::Work;

/// A wildcard pattern, taken apart at load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Glob {
    /// `*`
    Any,
    /// Without wildcards.
    Exact(String),
    /// `internet*`
    Prefix(String),
    /// Everything else.
    Pattern(String),
}

impl Glob {
    pub(crate) fn parse(text: &str) -> Self {
        if text == "*" {
            return Self::Any;
        }
        if !text.contains(['*', '?']) {
            return Self::Exact(text.to_owned());
        }
        match text.strip_suffix('*') {
            Some(prefix) if !prefix.contains(['*', '?']) => Self::Prefix(prefix.to_owned()),
            _ => Self::Pattern(text.to_owned()),
        }
    }

    /// Whether a text matches; `None`: that takes more work than there may be.
    pub(crate) fn matches(&self, text: &str, work: &mut Work) -> Option<bool> {
        Some(match self {
            Self::Any => true,
            Self::Exact(exact) => {
                work.compare(exact.len().min(text.len()))?;
                exact == text
            }
            Self::Prefix(prefix) => {
                work.compare(prefix.len().min(text.len()))?;
                text.starts_with(prefix.as_str())
            }
            Self::Pattern(pattern) => matches(pattern.as_bytes(), text.as_bytes(), work)?,
        })
    }
}

/// Matches with one point of return, the last `*`: time is at most the product of both lengths. `?` stands for one
/// character of UTF-8.
fn matches(pattern: &[u8], text: &[u8], work: &mut Work) -> Option<bool> {
    let width = |at: usize| {
        1 + text[at + 1..]
            .iter()
            .take_while(|byte| **byte & 0xc0 == 0x80)
            .count()
    };
    let (mut p, mut t) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while t < text.len() {
        work.look()?;
        match pattern.get(p) {
            Some(b'*') => {
                back = Some((p + 1, t));
                p += 1;
                continue;
            }
            Some(b'?') => {
                p += 1;
                t += width(t);
                continue;
            }
            Some(byte) if *byte == text[t] => {
                p += 1;
                t += 1;
                continue;
            }
            _ => {}
        }
        let Some((after, from)) = back else {
            return Some(false);
        };
        let next = from + width(from);
        back = Some((after, next));
        p = after;
        t = next;
    }
    Some(pattern[p..].iter().all(|byte| *byte == b'*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match_as_in_a_shell() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("ims*", "ims.mnc001", true),
            ("ims*", "im", false),
            ("*.gprs", "internet.mnc001.gprs", true),
            ("*.gprs", "internet.gprs.x", false),
            ("a?c", "abc", true),
            ("a?c", "aéc", true),
            ("a?c", "ac", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b*", "xxbxxaxx", false),
            ("a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
        ] {
            let found = Glob::parse(pattern).matches(text, &mut Work::boundless());
            assert_eq!(found, Some(expected), "{pattern} {text}");
        }
    }
}
