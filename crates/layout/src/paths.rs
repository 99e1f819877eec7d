//! The paths that a file names: `use` declarations and paths in code, from the root of the crate.

use crate::tokens::Token;

/// A path and the name it is used by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// Segments from the crate's root.
    pub(crate) path: Vec<String>,
    /// The last segment, or what follows `as`.
    pub(crate) name: String,
}

/// What a file names.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    /// Paths that begin with `crate`, `super` or `self`; in the root also those that begin with a name.
    pub(crate) named: Vec<Named>,
    /// Modules declared with `#[cfg(test)] mod name;`.
    pub(crate) tests: Vec<Vec<String>>,
}

/// Reads the tokens of the module `module`.
pub(crate) fn paths(tokens: &[Token], module: &[String]) -> Paths {
    let mut reader = Reader {
        tokens,
        module: module.to_vec(),
        found: Paths::default(),
    };
    reader.items();
    reader.found
}

struct Reader<'a> {
    tokens: &'a [Token],
    module: Vec<String>,
    found: Paths,
}

impl Reader<'_> {
    fn is(&self, place: usize, mark: char) -> bool {
        self.tokens.get(place).is_some_and(|token| token.is(mark))
    }

    fn name(&self, place: usize) -> Option<&str> {
        self.tokens.get(place).and_then(Token::name)
    }

    /// Whether `::` stands at a place.
    fn joins(&self, place: usize) -> bool {
        self.is(place, ':') && self.is(place + 1, ':')
    }

    fn items(&mut self) {
        let (mut place, mut depth) = (0, 0usize);
        // Depths at which inline modules end.
        let mut inline = Vec::new();
        while place < self.tokens.len() {
            if self.is(place, '#') && self.is(place + 1, '!') && self.is_test(place + 2) {
                return;
            }
            if self.is(place, '#') && self.is_test(place + 1) {
                place = self.skip_test(place);
                continue;
            }
            if self.is(place, '{') {
                depth += 1;
            } else if self.is(place, '}') {
                depth = depth.saturating_sub(1);
                if inline.last() == Some(&depth) {
                    inline.pop();
                    self.module.pop();
                }
            }
            match self.name(place) {
                Some("mod") if self.is(place + 2, '{') => {
                    let name = self.name(place + 1).unwrap_or_default().to_owned();
                    self.module.push(name);
                    inline.push(depth);
                }
                Some("crate" | "super" | "self") if self.joins(place + 1) => {
                    let module = self.module.clone();
                    place = self.tree(place, module);
                    continue;
                }
                // At the root a declaration may begin with the name of a room.
                Some("use") if self.module.is_empty() => {
                    place = self.tree(place + 1, Vec::new());
                    continue;
                }
                _ => {}
            }
            place += 1;
        }
    }

    /// Reads a path or a tree of paths below `base`; returns the place behind it.
    fn tree(&mut self, place: usize, mut base: Vec<String>) -> usize {
        if self.is(place, '{') {
            let mut place = place + 1;
            while place < self.tokens.len() && !self.is(place, '}') {
                let next = self.tree(place, base.clone());
                place = next.max(place + 1);
                if self.is(place, ',') {
                    place += 1;
                }
            }
            return place + 1;
        }
        let Some(name) = self.name(place).map(str::to_owned) else {
            if self.is(place, '*') {
                self.emit(base, "*".to_owned());
            }
            return place + 1;
        };
        match name.as_str() {
            "crate" => base.clear(),
            "super" => drop(base.pop()),
            "self" => {}
            _ => base.push(name.clone()),
        }
        let below = place + 3;
        let goes_on = self.is(below, '{') || self.is(below, '*') || self.name(below).is_some();
        if self.joins(place + 1) && goes_on {
            return self.tree(below, base);
        }
        if self.name(place + 1) == Some("as")
            && let Some(alias) = self.name(place + 2)
        {
            let alias = alias.to_owned();
            self.emit(base, alias);
            return place + 3;
        }
        self.emit(base, name);
        place + 1
    }

    fn emit(&mut self, path: Vec<String>, name: String) {
        if !path.is_empty() {
            self.found.named.push(Named { path, name });
        }
    }

    /// Whether an attribute in brackets at a place is `cfg(test)`, or `cfg(all(test, …))`.
    fn is_test(&self, place: usize) -> bool {
        let words = |expected: &[&str]| {
            let found = self.tokens.get(place..place + expected.len());
            found.is_some_and(|found| {
                found.iter().zip(expected).all(|(token, expected)| match token {
                    Token::Name(name) => name == expected,
                    Token::Mark(mark) => expected.chars().eq([*mark]),
                })
            })
        };
        words(&["[", "cfg", "(", "test", ")"]) || words(&["[", "cfg", "(", "all", "(", "test", ","])
    }

    /// Skips an item for tests, which begins with its attributes.
    fn skip_test(&mut self, mut place: usize) -> usize {
        let mut depth = 0usize;
        while place < self.tokens.len() {
            if depth == 0 && self.name(place) == Some("mod") && self.is(place + 2, ';') {
                let mut module = self.module.clone();
                module.extend(self.name(place + 1).map(str::to_owned));
                self.found.tests.push(module);
            }
            if self.is(place, '{') || self.is(place, '[') || self.is(place, '(') {
                depth += 1;
            } else if self.is(place, '}') || self.is(place, ']') || self.is(place, ')') {
                depth = depth.saturating_sub(1);
                if depth == 0 && self.is(place, '}') {
                    return place + 1;
                }
            } else if depth == 0 && self.is(place, ';') {
                return place + 1;
            }
            place += 1;
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::tokens;

    fn read(module: &str, source: &str) -> Vec<String> {
        let module: Vec<String> = module
            .split('/')
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect();
        let found = paths(&tokens(source), &module);
        found.named.iter().map(|named| named.path.join("/")).collect()
    }

    #[test]
    fn declarations_and_paths_in_code() {
        let source = "use crate::{a::{B, c}, d as e, self};\nfn f() -> crate::g::H { crate::i::j::<K>() }";
        assert_eq!(read("m", source), ["a/B", "a/c", "d", "g/H", "i/j"]);
        assert_eq!(
            read("m/n", "use super::{o::P, super::q::R}; use super::super::s;"),
            ["m/o/P", "q/R", "s"]
        );
        assert_eq!(read("m", "macro_rules! x { () => { $crate::y::Z } }"), ["y/Z"]);
        assert_eq!(
            read(
                "m",
                "mod t { use super::super::u; fn f() { super::v::w() } } use super::x;"
            ),
            ["u", "m/v/w", "x"]
        );
    }

    #[test]
    fn unit_tests_do_not_count() {
        let source =
            "use crate::a; #[cfg(test)] use crate::b; #[cfg(test)] mod tests { use crate::c; } use crate::d;";
        assert_eq!(read("m", source), ["a", "d"]);
        let found = paths(
            &tokens("#[cfg(test)]\n#[rustfmt::skip]\nmod tests;"),
            &["m".to_owned()],
        );
        assert_eq!(found.tests, [["m", "tests"]]);
        assert_eq!(read("m", "#![cfg(test)] use crate::a;"), [""; 0]);
    }

    #[test]
    fn the_root_names_rooms_without_crate() {
        let found = paths(&tokens("mod a; pub use a::{B, c::D as E};"), &[]);
        let named: Vec<(String, &str)> = found.named.iter().map(|n| (n.path.join("/"), &*n.name)).collect();
        assert_eq!(named, [("a/B".to_owned(), "B"), ("a/c/D".to_owned(), "E")]);
    }
}
