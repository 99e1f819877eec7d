//! JSON Patch (RFC 6902) on text, within bounds.
//!
//! A document stays the text its owner sent: what no operation touches must come back byte for byte, numbers and
//! all. So the text is opened into a tree only along the paths that operations name; the rest stays pieces of text,
//! which a `copy` or `move` shares. The length of the result is known before each operation takes effect, so no
//! operation makes a document larger than allowed, and every byte that is looked at or moved is counted against a
//! budget: the work is bounded whatever the operations are.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::text;
use crate::problem::{Cause, Problem};

/// Most steps of a path: no document that a parser takes is deeper.
const MAX_STEPS: usize = 128;
/// What a byte costs that a `test` has to parse.
const PARSED: usize = 8;
/// What a member costs whose name is compared.
const COMPARED: usize = 4;

/// How much a patch may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Operations.
    pub operations: usize,
    /// Bytes of the document after each operation. One that is larger already may be changed, but not grow.
    pub size: usize,
    /// Bytes read, compared and moved by all operations together.
    pub work: usize,
}

/// One operation of a JSON Patch; values stay text.
#[derive(Debug, Deserialize)]
pub struct Operation<'a> {
    /// `op`.
    #[serde(borrow)]
    pub op: Cow<'a, str>,
    /// `path`.
    #[serde(borrow)]
    pub path: Cow<'a, str>,
    #[serde(default, borrow)]
    from: Option<Cow<'a, str>>,
    #[serde(default, borrow, deserialize_with = "present")]
    value: Option<&'a RawValue>,
}

/// `null` is a value like any other.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl<'a> Operation<'a> {
    /// The value it brings, as text.
    #[must_use]
    pub fn value(&self) -> Option<&'a str> {
        self.value.map(RawValue::get)
    }
}

/// Who is to blame for a patch that does not apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The operation is none of RFC 6902.
    Format,
    /// The operation is sound, and does not fit the document as it is.
    Conflict,
    /// The operation asks for more than [`Limits`] allow.
    Excess,
}

/// Why a patch does not apply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("operation {index}, {member}: {expected}")]
pub struct PatchFault {
    /// Which operation, from 0.
    pub index: usize,
    /// Which of its members is to blame.
    pub member: &'static str,
    /// What was expected.
    pub expected: String,
    /// What kind of fault it is.
    pub blame: Blame,
}

impl Blame {
    /// The cause it is answered with (TS 29.500 §5.2.7.2).
    #[must_use]
    pub fn cause(self) -> Cause {
        match self {
            Self::Format => Cause::InvalidMsgFormat,
            Self::Conflict => Cause::MandatoryIeIncorrect,
            Self::Excess => Cause::PayloadTooLarge,
        }
    }
}

impl PatchFault {
    /// The answer; it names operation and member.
    #[must_use]
    pub fn into_problem(self) -> Problem {
        Problem::new(self.blame.cause())
            .detail(self.to_string())
            .invalid_param(format!("/{}/{}", self.index, self.member), self.expected)
    }
}

/// Reads a patch of at most `most` operations; a longer one is not read to its end.
///
/// # Errors
/// `INVALID_MSG_FORMAT` when the body is no JSON Patch or an empty one, 413 when it has more operations.
pub fn operations(body: &[u8], most: usize) -> Result<Vec<Operation<'_>>, Problem> {
    let excess = Cell::new(false);
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let read = Few {
        most,
        excess: &excess,
    }
    .deserialize(&mut deserializer)
    .and_then(|operations| deserializer.end().map(|()| operations));
    match read {
        Ok(operations) if operations.is_empty() => {
            Err(Problem::new(Cause::InvalidMsgFormat).detail("expected at least one operation"))
        }
        Ok(operations) => Ok(operations),
        Err(_) if excess.get() => Err(Problem::new(Cause::PayloadTooLarge)
            .detail(format!("a JSON Patch of more than {most} operations"))
            .invalid_param(format!("/{most}"), format!("expected at most {most} operations"))),
        Err(error) => Err(Problem::new(Cause::InvalidMsgFormat)
            .detail(format!("expected a JSON Patch: {error}"))
            .invalid_param("", error.to_string())),
    }
}

/// Reads a list of operations up to a bound.
struct Few<'c> {
    most: usize,
    excess: &'c Cell<bool>,
}

impl<'de> DeserializeSeed<'de> for Few<'_> {
    type Value = Vec<Operation<'de>>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Few<'_> {
    type Value = Vec<Operation<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of operations")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut operations = Vec::new();
        while operations.len() < self.most {
            match list.next_element()? {
                Some(operation) => operations.push(operation),
                None => return Ok(operations),
            }
        }
        if list.next_element::<serde::de::IgnoredAny>()?.is_some() {
            self.excess.set(true);
            return Err(serde::de::Error::custom("too many operations"));
        }
        Ok(operations)
    }
}

/// The document after all operations, or the first fault.
///
/// # Errors
/// What does not apply, or would pass a limit.
pub fn apply(document: &str, operations: &[Operation<'_>], limits: &Limits) -> Result<String, PatchFault> {
    let mut tree = Tree::new(document, limits);
    for (index, operation) in operations.iter().enumerate() {
        tree.apply(operation).map_err(|fault| fault.at(index))?;
    }
    Ok(tree.finish())
}

/// A fault whose operation is known to the caller only.
#[derive(Debug)]
struct Stop {
    member: &'static str,
    expected: Cow<'static, str>,
    blame: Blame,
}

impl Stop {
    fn format(member: &'static str, expected: impl Into<Cow<'static, str>>) -> Self {
        let (expected, blame) = (expected.into(), Blame::Format);
        Self {
            member,
            expected,
            blame,
        }
    }

    fn conflict(member: &'static str, expected: impl Into<Cow<'static, str>>) -> Self {
        let (expected, blame) = (expected.into(), Blame::Conflict);
        Self {
            member,
            expected,
            blame,
        }
    }

    fn excess(expected: impl Into<Cow<'static, str>>) -> Self {
        Self {
            member: "op",
            expected: expected.into(),
            blame: Blame::Excess,
        }
    }

    fn at(self, index: usize) -> PatchFault {
        PatchFault {
            index,
            member: self.member,
            expected: self.expected.into_owned(),
            blame: self.blame,
        }
    }
}

const NOTHING: &str = "expected a path that exists";

type Step<'a> = Cow<'a, str>;

/// The steps of a JSON pointer (RFC 6901 §3).
fn steps<'p>(member: &'static str, pointer: &'p str) -> Result<Vec<Step<'p>>, Stop> {
    if pointer.is_empty() {
        return Ok(Vec::new());
    }
    let Some(rest) = pointer.strip_prefix('/') else {
        return Err(Stop::format(
            member,
            "expected a JSON pointer: empty, or starting with a slash",
        ));
    };
    let mut steps = Vec::new();
    for step in rest.split('/') {
        if steps.len() == MAX_STEPS {
            return Err(Stop::conflict(
                member,
                format!("expected a path of at most {MAX_STEPS} steps"),
            ));
        }
        if step.split('~').skip(1).any(|rest| !rest.starts_with(['0', '1'])) {
            return Err(Stop::format(
                member,
                "expected 0 or 1 after each tilde of a JSON pointer",
            ));
        }
        steps.push(if step.contains('~') {
            Cow::Owned(step.replace("~1", "/").replace("~0", "~"))
        } else {
            Cow::Borrowed(step)
        });
    }
    Ok(steps)
}

/// An index of an array: "01" and "+1" are none (RFC 6901 §4).
fn index(step: &str) -> Option<usize> {
    let digits = !step.is_empty() && step.bytes().all(|b| b.is_ascii_digit());
    (digits && (step.len() == 1 || !step.starts_with('0')))
        .then(|| step.parse().ok())
        .flatten()
}

/// A part of one of the texts: which, from where to where.
#[derive(Clone, Copy, Debug)]
struct Piece {
    source: u32,
    start: u32,
    end: u32,
}

impl Piece {
    const EMPTY: Self = Self {
        source: 0,
        start: 0,
        end: 0,
    };

    fn len(self) -> usize {
        (self.end - self.start) as usize
    }
}

/// A value: text, until an operation has to look into it.
#[derive(Debug)]
enum Node {
    Text(Piece),
    Open(Box<Open>),
}

/// An object or array, taken apart.
#[derive(Debug)]
struct Open {
    object: bool,
    items: Vec<Item>,
    /// White space before the end.
    tail: Piece,
}

/// A member or item.
#[derive(Debug)]
struct Item {
    /// White space, and in an object the key and its colon.
    head: Piece,
    value: Node,
    /// White space before the comma.
    trail: Piece,
}

/// The texts that pieces are of, and the budget.
struct Texts<'a> {
    sources: Vec<Cow<'a, str>>,
    work: usize,
}

/// A document that operations change.
struct Tree<'a> {
    texts: Texts<'a>,
    root: Node,
    /// Bytes of the document as it is now, exactly.
    size: usize,
    limit: usize,
}

impl<'a> Texts<'a> {
    fn spend(&mut self, bytes: usize) -> Result<(), Stop> {
        match self.work.checked_sub(bytes) {
            Some(left) => {
                self.work = left;
                Ok(())
            }
            None => Err(Stop::excess(
                "expected a patch that takes less work: fewer operations, or on smaller values",
            )),
        }
    }

    fn take(&mut self, text: impl Into<Cow<'a, str>>) -> Result<Piece, Stop> {
        let text = text.into();
        let (Ok(source), Ok(end)) = (u32::try_from(self.sources.len()), u32::try_from(text.len())) else {
            return Err(Stop::excess("expected a smaller value"));
        };
        self.sources.push(text);
        Ok(Piece {
            source,
            start: 0,
            end,
        })
    }

    fn text(&self, piece: Piece) -> &str {
        self.sources
            .get(piece.source as usize)
            .and_then(|source| source.get(piece.start as usize..piece.end as usize))
            .unwrap_or_default()
    }

    /// Takes a container apart, if it still is text; answers its parts, nothing for scalars.
    fn open<'n>(&mut self, node: &'n mut Node) -> Result<Option<&'n mut Open>, Stop> {
        if let Node::Text(piece) = *node {
            let first = self.text(piece).as_bytes().first();
            if !matches!(first, Some(b'{' | b'[')) {
                return Ok(None);
            }
            self.spend(piece.len())?;
            *node = Node::Open(Box::new(self.take_apart(piece)));
        }
        Ok(match node {
            Node::Open(open) => Some(open),
            Node::Text(_) => None,
        })
    }

    fn take_apart(&self, piece: Piece) -> Open {
        let whole = self.text(piece);
        // Positions in a piece fit 32 bits, as the piece does.
        let part = |start: usize, end: usize| Piece {
            source: piece.source,
            start: piece.start + start as u32,
            end: piece.start + end.max(start) as u32,
        };
        let mut items: Vec<Item> = Vec::new();
        let mut at = 1;
        for item in text::items(whole, 0..whole.len()) {
            if let Some(before) = items.last_mut() {
                let comma = text::skip_space(whole.as_bytes(), at);
                before.trail = part(at, comma);
                at = comma + 1;
            }
            items.push(Item {
                head: part(at, item.value.start),
                value: Node::Text(part(item.value.start, item.value.end)),
                trail: Piece::EMPTY,
            });
            at = item.value.end;
        }
        Open {
            object: whole.starts_with('{'),
            items,
            tail: part(at, whole.len().saturating_sub(1)),
        }
    }

    /// Where in a container a step leads.
    fn place(&mut self, open: &Open, step: &str) -> Result<Option<usize>, Stop> {
        if !open.object {
            return Ok(index(step).filter(|index| *index < open.items.len()));
        }
        self.spend(COMPARED.saturating_mul(open.items.len()))?;
        Ok(open
            .items
            .iter()
            .position(|item| text::unescaped(key(self.text(item.head))) == step))
    }

    /// What a path leads to.
    fn walk<'n>(&mut self, root: &'n mut Node, steps: &[Step<'_>]) -> Result<Option<&'n mut Node>, Stop> {
        let mut node = root;
        for step in steps {
            let Some(open) = self.open(node)? else {
                return Ok(None);
            };
            let Some(place) = self.place(open, step)? else {
                return Ok(None);
            };
            let Some(item) = open.items.get_mut(place) else {
                return Ok(None);
            };
            node = &mut item.value;
        }
        Ok(Some(node))
    }

    fn write(&self, node: &Node, out: &mut String) {
        match node {
            Node::Text(piece) => out.push_str(self.text(*piece)),
            Node::Open(open) => {
                out.push(if open.object { '{' } else { '[' });
                for (i, item) in open.items.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    out.push_str(self.text(item.head));
                    self.write(&item.value, out);
                    out.push_str(self.text(item.trail));
                }
                out.push_str(self.text(open.tail));
                out.push(if open.object { '}' } else { ']' });
            }
        }
    }

    /// A value as a piece of text, for a second place. What was taken apart is written down again: so the depth of
    /// the tree stays that of the longest path.
    fn piece(&mut self, node: &Node) -> Result<Piece, Stop> {
        match node {
            Node::Text(piece) => Ok(*piece),
            Node::Open(_) => {
                let length = length(node);
                self.spend(length)?;
                let mut out = String::with_capacity(length);
                self.write(node, &mut out);
                self.take(out)
            }
        }
    }
}

/// The key in the text before a member's value, between its quotes, still escaped.
fn key(head: &str) -> &str {
    let start = text::skip_space(head.as_bytes(), 0);
    let end = text::skip_string(head.as_bytes(), start);
    head.get(start + 1..end.saturating_sub(1)).unwrap_or_default()
}

/// Bytes of a value.
fn length(node: &Node) -> usize {
    match node {
        Node::Text(piece) => piece.len(),
        Node::Open(open) => {
            let items: usize = open
                .items
                .iter()
                .map(|item| item.head.len() + length(&item.value) + item.trail.len())
                .sum();
            2 + open.tail.len() + items + open.items.len().saturating_sub(1)
        }
    }
}

impl<'a> Tree<'a> {
    fn new(document: &'a str, limits: &Limits) -> Self {
        let whole = document.trim_matches([' ', '\n', '\r', '\t']);
        let mut texts = Texts {
            sources: Vec::new(),
            work: limits.work,
        };
        // Documents are far below 4 GiB; one that is not is as good as empty, and no path leads into it.
        let root = texts.take(whole).unwrap_or(Piece::EMPTY);
        Self {
            size: root.len(),
            texts,
            root: Node::Text(root),
            limit: limits.size,
        }
    }

    fn finish(self) -> String {
        let mut out = String::with_capacity(self.size);
        self.texts.write(&self.root, &mut out);
        out
    }

    /// The size after a change, if it is allowed; `before` is that before the operation.
    fn resized(&self, before: usize, less: usize, more: usize) -> Result<usize, Stop> {
        let size = self.size.saturating_sub(less).saturating_add(more);
        if size > self.limit && size > before {
            return Err(Stop::excess(format!(
                "expected a result of at most {} bytes",
                self.limit
            )));
        }
        Ok(size)
    }

    fn apply(&mut self, operation: &Operation<'a>) -> Result<(), Stop> {
        let path = steps("path", &operation.path)?;
        let before = self.size;
        let lacks = |member| {
            Stop::format(
                member,
                format!("expected a {member}, which {} needs", operation.op),
            )
        };
        match operation.op.as_ref() {
            "add" => {
                let value = operation.value().ok_or_else(|| lacks("value"))?;
                let value = self.texts.take(value)?;
                self.add(&path, value, before)
            }
            "replace" => {
                let value = operation.value().ok_or_else(|| lacks("value"))?;
                let value = self.texts.take(value)?;
                let gone = match self.texts.walk(&mut self.root, &path)? {
                    Some(node) => length(node),
                    None => {
                        let expected = "expected a path that exists; use add for a new member";
                        return Err(Stop::conflict("path", expected));
                    }
                };
                self.size = self.resized(before, gone, value.len())?;
                if let Some(node) = self.texts.walk(&mut self.root, &path)? {
                    *node = Node::Text(value);
                }
                Ok(())
            }
            "remove" => self.remove("path", &path).map(drop),
            "copy" => {
                let from = steps("from", operation.from.as_deref().ok_or_else(|| lacks("from"))?)?;
                let node = self.texts.walk(&mut self.root, &from)?;
                let node = node.ok_or(Stop::conflict("from", NOTHING))?;
                let value = self.texts.piece(node)?;
                self.add(&path, value, before)
            }
            "move" => {
                let from = operation.from.as_deref().ok_or_else(|| lacks("from"))?;
                let source = steps("from", from)?;
                if self.texts.walk(&mut self.root, &source)?.is_none() {
                    return Err(Stop::conflict("from", NOTHING));
                }
                if path.len() > source.len() && path.starts_with(&source) {
                    return Err(Stop::format("path", "expected a path outside of what is moved"));
                }
                if path == source {
                    return Ok(());
                }
                let node = self.remove("from", &source)?;
                let value = self.texts.piece(&node)?;
                self.add(&path, value, before)
            }
            "test" => {
                let value = operation.value().ok_or_else(|| lacks("value"))?;
                let node = self.texts.walk(&mut self.root, &path)?;
                let node = node.ok_or(Stop::conflict(
                    "value",
                    "expected the value that the document has",
                ))?;
                let found = self.texts.piece(node)?;
                self.texts
                    .spend(PARSED.saturating_mul(found.len().saturating_add(value.len())))?;
                let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
                match (parse(self.texts.text(found)), parse(value)) {
                    (Some(found), Some(asked)) if same(&found, &asked) => Ok(()),
                    _ => Err(Stop::conflict(
                        "value",
                        "expected the value that the document has",
                    )),
                }
            }
            _ => Err(Stop::format(
                "op",
                "expected add, remove, replace, move, copy or test",
            )),
        }
    }

    fn add(&mut self, path: &[Step<'_>], value: Piece, before: usize) -> Result<(), Stop> {
        let Some((last, above)) = path.split_last() else {
            self.size = self.resized(before, length(&self.root), value.len())?;
            self.root = Node::Text(value);
            return Ok(());
        };
        let missing = || Stop::conflict("path", "expected a path whose parent exists");
        // Twice: the size is known before anything changes.
        let (less, more, key) = {
            let node = self.texts.walk(&mut self.root, above)?.ok_or_else(missing)?;
            let open = self.texts.open(node)?.ok_or_else(missing)?;
            let comma = usize::from(!open.items.is_empty());
            if open.object {
                match self.texts.place(open, last)?.and_then(|at| open.items.get(at)) {
                    Some(item) => (length(&item.value), value.len(), None),
                    None => {
                        let key = format!("{}:", Value::from(last.as_ref()));
                        (0, comma + key.len() + value.len(), Some(key))
                    }
                }
            } else {
                (0, comma + value.len(), None)
            }
        };
        let size = self.resized(before, less, more)?;
        let node = self.texts.walk(&mut self.root, above)?.ok_or_else(missing)?;
        let open = self.texts.open(node)?.ok_or_else(missing)?;
        let mut item = Item {
            head: Piece::EMPTY,
            value: Node::Text(value),
            trail: Piece::EMPTY,
        };
        if let Some(key) = key {
            item.head = self.texts.take(key)?;
            open.items.push(item);
        } else if open.object {
            if let Some(known) = self
                .texts
                .place(open, last)?
                .and_then(|at| open.items.get_mut(at))
            {
                known.value = item.value;
            }
        } else {
            let count = open.items.len();
            let place = if last == "-" { Some(count) } else { index(last) };
            let place = place.filter(|place| *place <= count).ok_or_else(|| {
                Stop::conflict(
                    "path",
                    format!("expected an index from 0 to {count}, or -, at the end of the path"),
                )
            })?;
            self.texts.spend(count - place)?;
            open.items.insert(place, item);
        }
        self.size = size;
        Ok(())
    }

    fn remove(&mut self, member: &'static str, path: &[Step<'_>]) -> Result<Node, Stop> {
        let nothing = || Stop::conflict(member, NOTHING);
        let Some((last, above)) = path.split_last() else {
            return Err(Stop::conflict(member, "expected a path below the whole resource"));
        };
        let node = self.texts.walk(&mut self.root, above)?.ok_or_else(nothing)?;
        let open = self.texts.open(node)?.ok_or_else(nothing)?;
        let place = self.texts.place(open, last)?.ok_or_else(nothing)?;
        self.texts.spend(open.items.len() - place.min(open.items.len()))?;
        if place >= open.items.len() {
            return Err(nothing());
        }
        let comma = usize::from(open.items.len() > 1);
        let item = open.items.remove(place);
        let gone = comma + item.head.len() + length(&item.value) + item.trail.len();
        self.size = self.size.saturating_sub(gone);
        Ok(item.value)
    }
}

/// Whether two values are equal; numbers are by what they are worth, not by how they are written (RFC 6902 §4.6).
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || (a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64()
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests;
