//! The six operations on a document.

use serde_json::Value;

use super::Limits;
use super::fault::Stop;
use super::operation::Operation;
use super::pointer::{Step, index, steps};
use super::text_tree::{Item, Node, Piece, Texts, length};

/// What a byte costs that a `test` has to parse.
const PARSED: usize = 8;
const NOTHING: &str = "expected a path that exists";

/// A document that operations change.
pub(super) struct Tree<'a> {
    pub(super) texts: Texts<'a>,
    pub(super) root: Node,
    /// Bytes of the document as it is now, exactly.
    pub(super) size: usize,
    limit: usize,
}

impl<'a> Tree<'a> {
    pub(super) fn new(document: &'a str, limits: &Limits) -> Self {
        let whole = document.trim_matches([' ', '\n', '\r', '\t']);
        let mut texts = Texts::new(limits.work);
        // Documents are far below 4 GiB; one that is not is as good as empty, and no path leads into it.
        let root = texts.take(whole).unwrap_or(Piece::EMPTY);
        Self {
            size: root.len(),
            texts,
            root: Node::Text(root),
            limit: limits.size,
        }
    }

    pub(super) fn finish(self) -> String {
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

    pub(super) fn apply(&mut self, operation: &Operation<'a>) -> Result<(), Stop> {
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
