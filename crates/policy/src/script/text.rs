//! The text of a script before QuickJS compiles it.
//!
//! QuickJS counts steps where bytecode jumps back or calls. A copy of an object (`{...o}`) and the start of a `for … in` are
//! one instruction each, whatever the number of properties, so their operands are passed through [`CHARGE`], which
//! charges that number. Lists and texts that are spread charge in their iterators (`prelude.js`).

/// Name of the function that charges an operand. No script can name it.
pub(super) const CHARGE: &str = "$charge";

/// Words that have no meaning without a runtime around the script. The iterator of `arguments` cannot be replaced by one
/// that charges its work.
const REFUSED: &[&str] = &["arguments", "async", "await", "import", "export", "with", CHARGE];

/// Checks the text of a script, and adds the charges.
pub(super) fn guarded(text: &str) -> Result<String, String> {
    let text = text.replace("\r\n", "\n");
    // They end lines, and with them comments, in JavaScript; here only the line feed does.
    if text.contains(['\r', '\u{2028}', '\u{2029}']) {
        return Err("a line of a script ends with a line feed only".to_owned());
    }
    refuse(&text)?;
    let mut reader = Reader {
        rest: text.chars().peekable(),
        out: String::with_capacity(text.len() + 64),
        open: Vec::new(),
        word: String::new(),
        before: ' ',
    };
    reader.run()?;
    Ok(reader.out)
}

/// Refuses what QuickJS could not bound or has no use for.
fn refuse(text: &str) -> Result<(), String> {
    for found in text.split(|c| !is_word(c)).filter(|found| !found.is_empty()) {
        if REFUSED.contains(&found) {
            return Err(format!("`{found}` is not available in scripts"));
        }
        let digits = found.starts_with(|c: char| c.is_ascii_digit());
        if digits && found.ends_with('n') {
            return Err(format!(
                "`{found}`: BigInt is not available in scripts; use a number"
            ));
        }
    }
    Ok(())
}

const fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$'
}

/// A bracket that is open.
struct Open {
    /// `(`, `[`, `{`; `` ` `` for a template, `$` for an expression in one.
    kind: char,
    /// The head of a `for` loop, before its first semicolon.
    is_loop: bool,
    /// The charge that is open in it.
    charge: Charge,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Charge {
    None,
    /// Of a spread: ends at a comma or at the bracket.
    Spread,
    /// Of `for … in`: ends at the bracket.
    Enumeration,
}

struct Reader<'t> {
    rest: std::iter::Peekable<std::str::Chars<'t>>,
    out: String,
    open: Vec<Open>,
    /// The word that ends here, and the last character of code before it, blanks left out.
    word: String,
    before: char,
}

impl Reader<'_> {
    fn run(&mut self) -> Result<(), String> {
        while let Some(c) = self.next() {
            if is_word(c) {
                self.word.push(c);
                if self.rest.peek().is_none_or(|next| !is_word(*next)) {
                    self.word_ends();
                }
                continue;
            }
            if self.comment(c) {
                continue;
            }
            self.code(c)?;
            if !c.is_whitespace() {
                self.before = c;
            }
            self.template()?;
        }
        Ok(())
    }

    /// The next character, which is copied.
    fn next(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        self.out.push(c);
        Some(c)
    }

    fn next_is(&mut self, text: &str) -> bool {
        let mut rest = self.rest.clone();
        text.chars().all(|c| rest.next() == Some(c))
    }

    fn word_ends(&mut self) {
        let word = std::mem::take(&mut self.word);
        let is_name = self.before == '.';
        if let Some(open) = self.open.last_mut()
            && word == "in"
            && !is_name
            && open.is_loop
            && open.charge == Charge::None
        {
            open.charge = Charge::Enumeration;
            self.out.push(' ');
            self.out.push_str(CHARGE);
            self.out.push_str("((");
        }
        // Only `for` matters to the bracket that may follow.
        self.before = if word == "for" && !is_name { 'f' } else { 'w' };
    }

    /// Skips a comment that begins with `c`; false where none begins.
    fn comment(&mut self, c: char) -> bool {
        match (c, self.rest.peek()) {
            ('/', Some('/')) => while self.next().is_some_and(|c| c != '\n') {},
            ('/', Some('*')) => {
                let mut last = ' ';
                self.next();
                while let Some(c) = self.next() {
                    if last == '*' && c == '/' {
                        break;
                    }
                    last = c;
                }
            }
            _ => return false,
        }
        true
    }

    fn code(&mut self, c: char) -> Result<(), String> {
        match c {
            '"' | '\'' => self.skip_text(c),
            '\\' => return Err("`\\` outside of a text is not available in scripts".to_owned()),
            '<' if self.next_is("!--") => {
                return Err("`<!--` begins a comment in JavaScript; use `//`".to_owned());
            }
            '-' if self.next_is("->") => {
                return Err("`-->` may end a comment in JavaScript; use `-- >`".to_owned());
            }
            '.' if self.next_is("..") => {
                self.next();
                self.next();
                if let Some(open) = self.open.last_mut().filter(|open| open.kind == '{') {
                    open.charge = Charge::Spread;
                    self.out.push_str(CHARGE);
                    self.out.push('(');
                }
            }
            ';' => {
                if let Some(open) = self.open.last_mut() {
                    open.is_loop = false;
                }
            }
            ',' => {
                if let Some(open) = self.open.last_mut().filter(|open| open.charge == Charge::Spread) {
                    open.charge = Charge::None;
                    self.before_last(")");
                }
            }
            '`' | '(' | '[' | '{' => self.open.push(Open {
                kind: c,
                is_loop: c == '(' && self.before == 'f',
                charge: Charge::None,
            }),
            ')' | ']' | '}' => self.close(c)?,
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, c: char) -> Result<(), String> {
        let pair = match c {
            ')' => '(',
            ']' => '[',
            _ => '{',
        };
        let fits = |open: &Open| open.kind == pair || (open.kind == '$' && c == '}');
        let Some(open) = self.open.pop().filter(fits) else {
            return Err(format!("`{c}` without its opening bracket"));
        };
        match open.charge {
            Charge::None => {}
            Charge::Spread => self.before_last(")"),
            Charge::Enumeration => self.before_last("))"),
        }
        Ok(())
    }

    /// Adds text before the character that was copied last. A line break ends a comment before it.
    fn before_last(&mut self, text: &str) {
        if let Some(last) = self.out.pop() {
            self.out.push('\n');
            self.out.push_str(text);
            self.out.push(last);
        }
    }

    /// Within a template only `${` and its end count.
    fn template(&mut self) -> Result<(), String> {
        while self.open.last().is_some_and(|open| open.kind == '`') {
            match self.next() {
                None => return Err("a template has no end; add a backtick".to_owned()),
                Some('\\') => drop(self.next()),
                Some('`') => drop(self.open.pop()),
                Some('$') if self.rest.peek() == Some(&'{') => {
                    self.next();
                    self.open.push(Open {
                        kind: '$',
                        is_loop: false,
                        charge: Charge::None,
                    });
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn skip_text(&mut self, quote: char) {
        while let Some(c) = self.next() {
            if c == '\\' {
                self.next();
            } else if c == quote || c == '\n' {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_and_enumerations_of_objects_are_charged() {
        for (text, expected) in [
            ("({...a, b: 1})", "({...$charge(a\n), b: 1})"),
            (
                "({b: {...f(a, {...c})}})",
                "({b: {...$charge(f(a, {...$charge(c\n)})\n)}})",
            ),
            ("[...a, f(...b)]", "[...a, f(...b)]"),
            ("for (const k in o) {}", "for (const k in $charge(( o\n))) {}"),
            ("for /* x */ (k in o);", "for /* x */ (k in $charge(( o\n)));"),
            ("for (k in a, b);", "for (k in $charge(( a, b\n)));"),
            (
                "for (let i = 0; 'a' in o; i++) {}",
                "for (let i = 0; 'a' in o; i++) {}",
            ),
            ("if ('a' in o) {}", "if ('a' in o) {}"),
            ("o.for(a in b)", "o.for(a in b)"),
            ("`${{...a}}`", "`${{...$charge(a\n)}}`"),
            (
                "'{...a}' + `{...a}` /* {...a} */ // {...a}",
                "'{...a}' + `{...a}` /* {...a} */ // {...a}",
            ),
        ] {
            assert_eq!(guarded(text).unwrap(), expected);
        }
    }

    #[test]
    fn what_javascript_reads_otherwise_is_refused() {
        for text in [
            "<!-- `",
            "x --> 0",
            "\\u0024charge",
            "$charge",
            "// x\r{...o}",
            "// x\u{2028}{...o}",
            "(function () { return [...arguments]; })()",
            ")",
            "`",
        ] {
            assert!(guarded(text).is_err(), "{text}");
        }
    }
}
