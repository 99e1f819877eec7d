//! Values as they may stand in a line: in one piece, of bounded length, without anything that a terminal obeys.

use std::fmt::{self, Write};

/// Whether a terminal or a viewer shows something else than this character: control characters (line ends and
/// ESC among them), what turns the direction of text, and what has no width.
#[must_use]
pub fn is_treacherous(char: char) -> bool {
    char.is_control()
        || matches!(char,
            '\u{ad}' | '\u{61c}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Which characters a [`Bounded`] escapes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Escape {
    /// Those that are [`is_treacherous`].
    Treacherous,
    /// None: what is written is escaped later, as JSON is.
    Nothing,
}

/// Passes on a bounded number of bytes. Writing more fails, so that a long value costs no more than
/// its beginning.
#[derive(Debug)]
pub struct Bounded<'a, W> {
    out: &'a mut W,
    left: usize,
    escape: Escape,
    cut: bool,
}

impl<'a, W: Write> Bounded<'a, W> {
    /// At most `length` bytes to `out`.
    pub fn new(out: &'a mut W, length: usize, escape: Escape) -> Self {
        Self {
            out,
            left: length,
            escape,
            cut: false,
        }
    }

    /// Writes `value`, and `…` where it was cut. Answers whether it was.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn put(mut self, value: fmt::Arguments<'_>) -> Result<bool, fmt::Error> {
        match (self.write_fmt(value), self.cut) {
            (_, true) => self.out.write_str("…").map(|()| true),
            (outcome, false) => outcome.map(|()| false),
        }
    }

    fn piece(&mut self, piece: &str) -> fmt::Result {
        if piece.len() > self.left {
            self.cut = true;
            self.left = 0;
            return Err(fmt::Error);
        }
        self.left -= piece.len();
        self.out.write_str(piece)
    }
}

impl<W: Write> Write for Bounded<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut plain = text;
        while !plain.is_empty() {
            let escape = self.escape;
            let odd = plain
                .char_indices()
                .find(|(_, char)| escape == Escape::Treacherous && is_treacherous(*char));
            let (before, rest) = plain.split_at(odd.map_or(plain.len(), |(at, _)| at));
            if before.len() > self.left {
                let end = before.floor_char_boundary(self.left);
                self.out.write_str(&before[..end])?;
                self.cut = true;
                self.left = 0;
                return Err(fmt::Error);
            }
            self.piece(before)?;
            plain = rest;
            if let Some((_, char)) = odd {
                let mut escaped = String::with_capacity(10);
                escaped.extend(char.escape_default());
                self.piece(&escaped)?;
                plain = &plain[char.len_utf8()..];
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(value: fmt::Arguments<'_>, length: usize) -> (String, bool) {
        let mut out = String::new();
        let cut = Bounded::new(&mut out, length, Escape::Treacherous)
            .put(value)
            .unwrap();
        (out, cut)
    }

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        let (text, cut) = put(
            format_args!("{}", "AMF\r\n2026 INFO forged\u{1b}[2J\u{202e}x\u{9b}\u{200b}é"),
            1000,
        );
        assert_eq!(
            text,
            "AMF\\r\\n2026 INFO forged\\u{1b}[2J\\u{202e}x\\u{9b}\\u{200b}é"
        );
        assert!(!cut);
    }

    #[test]
    fn a_long_value_is_cut_at_a_character() {
        assert_eq!(put(format_args!("{}", "ééé"), 5), ("éé…".to_owned(), true));
        assert_eq!(put(format_args!("{}", "ab"), 2), ("ab".to_owned(), false));
        assert_eq!(put(format_args!("{}{}", "ab", "\n"), 3), ("ab…".to_owned(), true));
        let (text, cut) = put(format_args!("{:?}", vec!["\u{1b}"; 100_000]), 64);
        assert!(cut && text.len() <= 64 + "…".len(), "{text}");
    }
}
