//! References in texts: `$request.sliceInfo.sst`, `$row.qosId`, `$subscriber.limits[$request.dnn]`.

use crate::expression::{Clock, Expr};
use crate::program::{Base, Root};

use super::{Compiler, suggest};

/// Names that are not variables.
pub(super) const RESERVED: &[&str] = &[
    "request",
    "subscriber",
    "counters",
    "session",
    "state",
    "subscriberState",
    "af",
    "now",
    "event",
];

const ROOTS: &[(&str, Root)] = &[
    ("request", Root::Request),
    ("subscriber", Root::Subscriber),
    ("counters", Root::Counters),
    ("session", Root::Session),
    ("state", Root::State),
    ("subscriberState", Root::SubscriberState),
    ("af", Root::Af),
];

const CLOCKS: &[(&str, Clock)] = &[
    ("epochSeconds", Clock::EpochSeconds),
    ("date", Clock::Date),
    ("dateTime", Clock::DateTime),
    ("weekday", Clock::Weekday),
    ("hour", Clock::Hour),
    ("minute", Clock::Minute),
    ("minuteOfDay", Clock::MinuteOfDay),
];

/// A step of a reference.
#[derive(Debug, PartialEq, Eq)]
enum Segment<'t> {
    Member(&'t str),
    Item(usize),
    Computed(&'t str),
}

impl Compiler<'_> {
    /// Compiles a text that begins with `$`.
    pub(super) fn reference(&mut self, text: &str, path: &str, depth: usize) -> Expr {
        let null = Expr::Constant(serde_json::Value::Null);
        let Some((root, segments)) = segments(text) else {
            let expected = "a reference such as `$request.sliceInfo.sst`, `$row.5qi`, `$list[0]` or `$map[$key]`; \
                            `$$` for a text that begins with `$`";
            self.fault(path, format!("`{text}` is not a reference"), expected);
            return null;
        };
        if root == "now" {
            return self.clock(&segments, path);
        }
        if root == "event" && segments.is_empty() {
            return Expr::Event;
        }
        let mut expr = match ROOTS.iter().find(|(name, _)| *name == root) {
            Some((name, root)) => Expr::Path(self.path_slot(&format!("${name}"), Base::Root(*root))),
            None => {
                let slot = self.variable(root);
                self.names.reads.push((self.file, path.to_owned(), slot));
                Expr::Variable(slot)
            }
        };
        let mut written = format!("${root}");
        for segment in segments {
            match &segment {
                Segment::Member(name) => written += &format!(".{name}"),
                Segment::Item(index) => written += &format!("[{index}]"),
                Segment::Computed(inner) => written += &format!("[{inner}]"),
            }
            expr = match (expr, segment) {
                (Expr::Path(slot), Segment::Member(name)) => {
                    Expr::Path(self.path_slot(&written, Base::Member(slot, name.to_owned())))
                }
                (Expr::Path(slot), Segment::Item(index)) => {
                    Expr::Path(self.path_slot(&written, Base::Item(slot, index)))
                }
                (base, Segment::Member(name)) => Expr::Member(Box::new(base), name.to_owned()),
                (base, Segment::Item(index)) => Expr::Item(Box::new(base), index),
                (base, Segment::Computed(inner)) => {
                    if depth + 1 > self.limits.depth {
                        self.fault(
                            path,
                            "the reference nests too deeply",
                            "a variable for a part of it",
                        );
                        return null;
                    }
                    let index = self.reference(inner, path, depth + 1);
                    Expr::At(Box::new(base), Box::new(index))
                }
            };
        }
        expr
    }

    fn clock(&mut self, segments: &[Segment<'_>], path: &str) -> Expr {
        let known: Vec<&str> = CLOCKS.iter().map(|(name, _)| *name).collect();
        let written = match segments {
            [Segment::Member(name)] => *name,
            _ => "",
        };
        match CLOCKS.iter().find(|(name, _)| *name == written) {
            Some((_, clock)) => Expr::Now(*clock),
            None => {
                self.fault(
                    path,
                    format!("`$now` has no member `{written}`"),
                    suggest(written, &known),
                );
                Expr::Constant(serde_json::Value::Null)
            }
        }
    }
}

/// Longest chain of steps in one reference: each is a level of an expression.
const STEPS: usize = 16;

/// The root and the steps of a reference.
fn segments(text: &str) -> Option<(&str, Vec<Segment<'_>>)> {
    let rest = text.strip_prefix('$')?;
    let end = rest.find(['.', '[']).unwrap_or(rest.len());
    let (root, mut rest) = rest.split_at(end);
    if root.is_empty() || !root.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return None;
    }
    let mut found = Vec::new();
    while !rest.is_empty() {
        if found.len() == STEPS {
            return None;
        }
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let (name, after) = after.split_at(end);
            if name.is_empty() || name.contains([']', ' ', '$']) {
                return None;
            }
            found.push(Segment::Member(name));
            rest = after;
            continue;
        }
        let inner = rest.strip_prefix('[')?;
        let end = closing(inner)?;
        let (inner, after) = (&inner[..end], &inner[end + 1..]);
        let quoted = |quote: char| {
            inner
                .strip_prefix(quote)
                .and_then(|inner| inner.strip_suffix(quote))
        };
        found.push(if let Some(name) = quoted('"').or_else(|| quoted('\'')) {
            Segment::Member(name)
        } else if inner.starts_with('$') {
            Segment::Computed(inner)
        } else {
            Segment::Item(inner.parse().ok()?)
        });
        rest = after;
    }
    Some((root, found))
}

/// Position of the bracket that closes.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0_usize, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_taken_apart() {
        let (root, found) = segments(r#"$subscriber.a-b.5qi[0]["x.y"][$row.k[$i]]"#).unwrap();
        assert_eq!(root, "subscriber");
        assert_eq!(
            found,
            [
                Segment::Member("a-b"),
                Segment::Member("5qi"),
                Segment::Item(0),
                Segment::Member("x.y"),
                Segment::Computed("$row.k[$i]"),
            ]
        );
        for wrong in [
            "$", "$.a", "$a.", "$a[", "$a[]", "$a[x]", "$a]b", "$a..b", "$a b", "$a[-1]", "$a['x]", "$é",
        ] {
            assert_eq!(segments(wrong), None, "{wrong}");
        }
    }
}
