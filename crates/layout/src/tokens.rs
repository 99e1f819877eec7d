//! Rust source text as tokens: identifiers and punctuation; comments, literals and lifetimes are left out.

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Name(String),
    Mark(char),
}

impl Token {
    /// Whether it is this punctuation mark.
    pub(crate) fn is(&self, mark: char) -> bool {
        *self == Self::Mark(mark)
    }

    /// The identifier or keyword.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            Self::Mark(_) => None,
        }
    }
}

/// The tokens of a file that the compiler accepts.
pub(crate) fn tokens(source: &str) -> Vec<Token> {
    let text: Vec<char> = source.chars().collect();
    let at = |place: usize| text.get(place).copied().unwrap_or('\0');
    let mut found = Vec::new();
    let mut place = 0;
    while place < text.len() {
        match (at(place), at(place + 1)) {
            ('/', '/') => place = line_end(&text, place),
            ('/', '*') => place = comment_end(&text, place),
            ('"', _) => place = string_end(&text, place),
            ('\'', '\\') => place = quote_end(&text, place + 2),
            ('\'', _) if at(place + 2) == '\'' => place += 3,
            // A lifetime: its quote goes, and its name must not look like one.
            ('\'', _) => place = name_end(&text, place + 1),
            (mark, _) if mark.is_alphabetic() || mark == '_' => {
                let end = name_end(&text, place);
                let name: String = text[place..end].iter().collect();
                place = match (name.as_str(), at(end), at(end + 1)) {
                    ("r" | "br" | "cr", '"', _) | ("r" | "br" | "cr", '#', '"' | '#') => raw_end(&text, end),
                    ("b" | "c", '"', _) => string_end(&text, end),
                    ("b", '\'', _) => quote_end(&text, end + if at(end + 1) == '\\' { 3 } else { 2 }),
                    // A raw identifier is the name behind its `#`.
                    ("r", '#', _) => end + 1,
                    _ => {
                        found.push(Token::Name(name));
                        end
                    }
                };
            }
            (mark, _) if mark.is_ascii_digit() => place = name_end(&text, place),
            (mark, _) => {
                if !mark.is_whitespace() {
                    found.push(Token::Mark(mark));
                }
                place += 1;
            }
        }
    }
    found
}

fn name_end(text: &[char], from: usize) -> usize {
    let rest = text[from.min(text.len())..].iter();
    from + rest.take_while(|c| c.is_alphanumeric() || **c == '_').count()
}

fn line_end(text: &[char], from: usize) -> usize {
    from + text[from..].iter().take_while(|c| **c != '\n').count()
}

/// Block comments nest.
fn comment_end(text: &[char], from: usize) -> usize {
    let (mut place, mut depth) = (from, 0);
    while place < text.len() {
        match &text[place..text.len().min(place + 2)] {
            ['/', '*'] => (depth, place) = (depth + 1, place + 2),
            ['*', '/'] if depth == 1 => return place + 2,
            ['*', '/'] => (depth, place) = (depth - 1, place + 2),
            _ => place += 1,
        }
    }
    place
}

/// `from` is the opening quote.
fn string_end(text: &[char], from: usize) -> usize {
    let mut place = from + 1;
    while place < text.len() {
        match text[place] {
            '\\' => place += 2,
            '"' => return place + 1,
            _ => place += 1,
        }
    }
    place
}

/// `from` lies behind the first character of a character literal.
fn quote_end(text: &[char], from: usize) -> usize {
    let mut place = from + 1;
    while place < text.len() && text[place - 1] != '\'' {
        place += 1;
    }
    place.max(from)
}

/// `from` is the first `#` or the quote of a raw string.
fn raw_end(text: &[char], from: usize) -> usize {
    let hashes = text[from..].iter().take_while(|c| **c == '#').count();
    let mut place = from + hashes + 1;
    while place < text.len() {
        let closing = text[place + 1..]
            .iter()
            .take(hashes)
            .filter(|c| **c == '#')
            .count();
        if text[place] == '"' && closing == hashes {
            return place + 1 + hashes;
        }
        place += 1;
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(source: &str) -> String {
        let found = tokens(source);
        let names: Vec<&str> = found.iter().filter_map(Token::name).collect();
        names.join(" ")
    }

    #[test]
    fn literals_comments_and_lifetimes_are_left_out() {
        assert_eq!(names("a /* b /* c */ d */ e // f\n g"), "a e g");
        assert_eq!(
            names(r##"a "b \" c" d r#"e " f"# g b"h" i r"j\" k"##),
            "a d g i k"
        );
        assert_eq!(
            names(r"a 'b' c '\'' d '\\' e b'f' g b'\'' h '\u{41}' i"),
            "a c d e g h i"
        );
        assert_eq!(
            names("fn a<'b>(c: &'b str, d: &'static str) -> u8 { 0x1f }"),
            "fn a c str d str u8"
        );
        assert_eq!(names("r#type b 'c"), "type b");
    }
}
