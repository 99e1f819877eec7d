//! Tokens of JavaScript, as far as the parser needs to know them.

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'t> {
    End,
    Name(&'t str),
    Number(f64),
    Text(String),
    Sign(&'static str),
    /// The backtick that begins a template.
    Template,
    /// What the parser refuses wherever it stands.
    Unknown,
}

/// All signs of the language, the longest of each beginning first: a part of one that is not known must not pass for another.
const SIGNS: &[&str] = &[
    ">>>=", "...", "===", "!==", "**=", "<<=", ">>=", ">>>", "&&=", "||=", "??=", "=>", "==", "!=", "<=",
    ">=", "&&", "||", "??", "?.", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<", ">>",
    "**", "{", "}", "(", ")", "[", "]", ";", ",", "<", ">", "+", "-", "*", "/", "%", "&", "|", "^", "!", "~",
    "?", ":", "=", ".",
];

/// Reads tokens on demand. Copies of it are marks to go back to.
#[derive(Clone)]
pub(super) struct Lexer<'t> {
    rest: &'t str,
    /// Whether a line ended between the last token and the one before it.
    pub(super) after_line: bool,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            rest: text,
            after_line: false,
        }
    }

    pub(super) fn next(&mut self) -> Token<'t> {
        if self.skip_blanks().is_none() {
            return Token::Unknown;
        }
        let Some(first) = self.rest.chars().next() else {
            return Token::End;
        };
        match first {
            'a'..='z' | 'A'..='Z' | '_' | '$' => self.name(),
            '0'..='9' => self.number(),
            '.' if self.digit_at(1) => self.number(),
            '"' | '\'' => self.text(first).map_or(Token::Unknown, Token::Text),
            '`' => {
                self.rest = &self.rest[1..];
                Token::Template
            }
            '?' if self.rest.starts_with("?.") && self.digit_at(2) => self.sign("?"),
            _ => match SIGNS.iter().find(|sign| self.rest.starts_with(**sign)) {
                Some(sign) => self.sign(sign),
                None => Token::Unknown,
            },
        }
    }

    /// A part of a template: its text, and whether an expression follows or the template ends.
    pub(super) fn template_part(&mut self) -> Option<(String, bool)> {
        let mut text = String::new();
        let mut chars = self.rest.chars();
        loop {
            let found = match chars.next()? {
                '`' => Some((text.clone(), false)),
                '$' if chars.as_str().starts_with('{') => {
                    chars.next();
                    Some((text.clone(), true))
                }
                '\\' => {
                    text.push(escaped(chars.next()?)?);
                    None
                }
                c => {
                    text.push(c);
                    None
                }
            };
            if found.is_some() {
                self.rest = chars.as_str();
                return found;
            }
        }
    }

    /// Blanks and comments; none where a comment has no end.
    fn skip_blanks(&mut self) -> Option<()> {
        self.after_line = false;
        loop {
            let blanks = self.rest.len() - self.rest.trim_start_matches([' ', '\t', '\n']).len();
            let (skipped, rest) = self.rest.split_at(blanks);
            self.after_line |= skipped.contains('\n');
            self.rest = rest;
            if let Some(comment) = rest.strip_prefix("//") {
                self.rest = comment.find('\n').map_or("", |end| &comment[end..]);
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let end = comment.find("*/")?;
                self.after_line |= comment[..end].contains('\n');
                self.rest = &comment[end + 2..];
            } else {
                return Some(());
            }
        }
    }

    fn digit_at(&self, index: usize) -> bool {
        self.rest.as_bytes().get(index).is_some_and(u8::is_ascii_digit)
    }

    fn sign(&mut self, sign: &'static str) -> Token<'t> {
        self.rest = &self.rest[sign.len()..];
        Token::Sign(sign)
    }

    fn name(&mut self) -> Token<'t> {
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '$');
        let (name, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        // A letter of another script goes on with the name.
        match rest.chars().next() {
            Some(next) if !next.is_ascii() => Token::Unknown,
            _ => Token::Name(name),
        }
    }

    /// Decimal numbers, `1_000` and `1.5e-3`.
    fn number(&mut self) -> Token<'t> {
        let bytes = self.rest.as_bytes();
        let mut end = 0;
        while let Some(byte) = bytes.get(end) {
            let after_exponent = end > 0 && matches!(bytes[end - 1], b'e' | b'E');
            match byte {
                b'0'..=b'9' | b'.' | b'_' | b'e' | b'E' => end += 1,
                b'+' | b'-' if after_exponent => end += 1,
                _ => break,
            }
        }
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        let follows = rest.chars().next();
        let apart =
            follows.is_none_or(|c| c.is_ascii() && !c.is_ascii_alphanumeric() && c != '_' && c != '$');
        let legacy = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
        // `1.` before a name would be a member of the number.
        let whole = !digits.ends_with('.') && !legacy && apart;
        match digits.replace('_', "").parse() {
            Ok(number) if whole => Token::Number(number),
            _ => Token::Unknown,
        }
    }

    fn text(&mut self, quote: char) -> Option<String> {
        let mut text = String::new();
        let mut chars = self.rest[1..].chars();
        loop {
            match chars.next()? {
                '\\' => text.push(escaped(chars.next()?)?),
                '\n' => return None,
                c if c == quote => break,
                c => text.push(c),
            }
        }
        self.rest = chars.as_str();
        Some(text)
    }
}

/// What an escape stands for. Those of digits, and a line that goes on, are not known.
fn escaped(c: char) -> Option<char> {
    Some(match c {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        '\\' | '\'' | '"' | '`' | '$' | '{' | '}' | '/' => c,
        _ => return None,
    })
}
