//! Texts with values in them: `Hello {$request.gpsi}`.

use std::fmt::Write as _;

use crate::expression::Expr;

/// A text with values in it.
#[derive(Debug)]
pub(crate) struct Template {
    pub(crate) parts: Vec<Part>,
    pub(crate) escape: Escape,
}

/// A part of a text.
#[derive(Debug)]
pub(crate) enum Part {
    Literal(String),
    Value(Expr),
}

/// What becomes of the characters of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escape {
    /// They stay.
    None,
    /// They stand in XML as text, or in an attribute (XML 1.0 §2.4, §3.3.3).
    Xml,
    /// They stand in a URI, where only unreserved ones stay (RFC 3986 §2.1, §2.3).
    Uri,
}

impl Escape {
    /// Adds a value to a text.
    pub(crate) fn add(self, text: &mut String, value: &str) {
        match self {
            Self::None => text.push_str(value),
            Self::Xml => value.chars().for_each(|c| add_xml(text, c)),
            Self::Uri => value.bytes().for_each(|byte| add_uri(text, byte)),
        }
    }

    /// The most bytes that a byte of a value becomes.
    pub(crate) fn growth(self) -> usize {
        match self {
            Self::None => 1,
            Self::Xml => 6,
            Self::Uri => 3,
        }
    }
}

fn add_xml(text: &mut String, c: char) {
    match c {
        '&' => text.push_str("&amp;"),
        '<' => text.push_str("&lt;"),
        '>' => text.push_str("&gt;"),
        '"' => text.push_str("&quot;"),
        '\'' => text.push_str("&apos;"),
        // An attribute would make spaces of them, and a parser drops the first.
        '\r' => text.push_str("&#13;"),
        '\n' => text.push_str("&#10;"),
        '\t' => text.push_str("&#9;"),
        // No document may have them, not even as references (XML 1.0 §2.2).
        '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => text.push(char::REPLACEMENT_CHARACTER),
        other => text.push(other),
    }
}

fn add_uri(text: &mut String, byte: u8) {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => text.push(char::from(byte)),
        other => drop(write!(text, "%{other:02X}")),
    }
}

/// A part of a text as it is written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'t> {
    Literal(&'t str),
    /// What stands between the braces.
    Value(&'t str),
}

/// Takes a text apart: `{$` begins a value, `{$$` stands for `{$`.
///
/// # Errors
/// The value that has no end.
pub(crate) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, &str> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find("{$") {
        let (before, value) = rest.split_at(at);
        if value[2..].starts_with('$') {
            found.push(Piece::Literal(&rest[..=at]));
            rest = &value[2..];
            continue;
        }
        let inner = &value[1..];
        let end = closing(inner).ok_or(value)?;
        found.push(Piece::Literal(before));
        found.push(Piece::Value(&inner[..end]));
        rest = &inner[end + 1..];
    }
    found.push(Piece::Literal(rest));
    found.retain(|piece| *piece != Piece::Literal(""));
    Ok(found)
}

/// Position of the brace that closes.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0_usize, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '{') => depth += 1,
            (None, '}') if depth == 0 => return Some(at),
            (None, '}') => depth -= 1,
            _ => {}
        }
    }
    None
}

/// A position in XML, as far as it decides on whether a value may stand there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum XmlPosition {
    #[default]
    Text,
    Tag,
    Quoted(char),
    Comment,
    Cdata,
    Instruction,
}

impl XmlPosition {
    /// Whether an escaped value is what it was before, and no markup.
    pub(crate) fn takes_values(self) -> bool {
        matches!(self, Self::Text | Self::Quoted(_))
    }

    /// The position after more of the text.
    pub(crate) fn after(self, text: &str) -> Self {
        let (mut position, mut rest) = (self, text);
        while !rest.is_empty() {
            let (next, taken) = position.step(rest);
            position = next;
            rest = rest.get(taken..).unwrap_or_default();
        }
        position
    }

    /// The position after the first mark in a text, and the bytes up to there.
    fn step(self, text: &str) -> (Self, usize) {
        let until = |mark: &str| text.find(mark).map(|at| at + mark.len());
        let leave = |mark: &str, next: Self| until(mark).map_or((self, text.len()), |taken| (next, taken));
        match self {
            Self::Text => {
                let Some(at) = text.find('<') else {
                    return (self, text.len());
                };
                let marks = [
                    ("<!--", Self::Comment),
                    ("<![CDATA[", Self::Cdata),
                    ("<?", Self::Instruction),
                ];
                let known = marks.iter().find(|(mark, _)| text[at..].starts_with(mark));
                known.map_or((Self::Tag, at + 1), |(mark, next)| (*next, at + mark.len()))
            }
            Self::Tag => match text.find(['>', '"', '\'']) {
                Some(at) => match &text[at..=at] {
                    "\"" => (Self::Quoted('"'), at + 1),
                    "'" => (Self::Quoted('\''), at + 1),
                    _ => (Self::Text, at + 1),
                },
                None => (self, text.len()),
            },
            Self::Quoted(quote) => leave(quote.encode_utf8(&mut [0; 4]), Self::Tag),
            Self::Comment => leave("-->", Self::Text),
            Self::Cdata => leave("]]>", Self::Text),
            Self::Instruction => leave("?>", Self::Text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_taken_apart() {
        use Piece::{Literal, Value};
        for (text, expected) in [
            ("", &[][..]),
            ("a {b} $c", &[Literal("a {b} $c")]),
            ("{$a}", &[Value("$a")]),
            (
                "x{$a.b}y{$c[\"}\"]}",
                &[Literal("x"), Value("$a.b"), Literal("y"), Value("$c[\"}\"]")],
            ),
            (
                "{$concat: [{$text: $a}, '}']} }",
                &[Value("$concat: [{$text: $a}, '}']"), Literal(" }")],
            ),
            ("a{$$b}", &[Literal("a{"), Literal("$b}")]),
        ] {
            assert_eq!(pieces(text).as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(pieces("a {$b"), Err("{$b"));
        assert_eq!(pieces("{$a['}"), Err("{$a['}"));
    }

    #[test]
    fn values_are_escaped_for_where_they_stand() {
        let add = |escape: Escape, value: &str| {
            let mut text = String::new();
            escape.add(&mut text, value);
            assert!(text.len() <= value.len() * escape.growth(), "{value}");
            text
        };
        assert_eq!(add(Escape::None, "<&"), "<&");
        assert_eq!(
            add(Escape::Xml, "<a b=\"c\" d='e'>&"),
            "&lt;a b=&quot;c&quot; d=&apos;e&apos;&gt;&amp;"
        );
        assert_eq!(
            add(Escape::Xml, "a\r\n\tb\0\u{b}ä\u{ffff}"),
            "a&#13;&#10;&#9;b\u{fffd}\u{fffd}ä\u{fffd}"
        );
        assert_eq!(
            add(Escape::Uri, "a/b?c=d&e f#~ä%"),
            "a%2Fb%3Fc%3Dd%26e%20f%23~%C3%A4%25"
        );
    }

    #[test]
    fn values_stand_in_texts_and_in_quoted_attributes() {
        for (before, takes) in [
            ("", true),
            ("<a>", true),
            ("<a", false),
            ("<a b=\"", true),
            ("<a b='x\"", true),
            ("<a b='x'", false),
            ("<a b='>'>", true),
            ("<!-- <a> ' ", false),
            ("<!-- -->", true),
            ("<![CDATA[ <a>", false),
            ("<![CDATA[ ]]>", true),
            ("<?xml version='1.0'", false),
            ("<?xml version='1.0'?><é>", true),
        ] {
            assert_eq!(
                XmlPosition::default().after(before).takes_values(),
                takes,
                "{before}"
            );
        }
    }
}
