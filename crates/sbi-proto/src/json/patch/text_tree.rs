//! A document as pieces of text, opened into a tree along the paths that operations name.

use std::borrow::Cow;

use super::fault::Stop;
use super::pointer::{Step, index};
use crate::json::text;

/// What a member costs whose name is compared.
const COMPARED: usize = 4;

/// A part of one of the texts: which, from where to where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    source: u32,
    start: u32,
    end: u32,
}

impl Piece {
    pub(super) const EMPTY: Self = Self {
        source: 0,
        start: 0,
        end: 0,
    };

    pub(super) fn len(self) -> usize {
        (self.end - self.start) as usize
    }
}

/// A value: text, until an operation has to look into it.
#[derive(Debug)]
pub(super) enum Node {
    Text(Piece),
    Open(Box<Open>),
}

/// An object or array, taken apart.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) object: bool,
    pub(super) items: Vec<Item>,
    /// White space before the end.
    tail: Piece,
}

/// A member or item.
#[derive(Debug)]
pub(super) struct Item {
    /// White space, and in an object the key and its colon.
    pub(super) head: Piece,
    pub(super) value: Node,
    /// White space before the comma.
    pub(super) trail: Piece,
}

/// The texts that pieces are of, and the budget.
pub(super) struct Texts<'a> {
    sources: Vec<Cow<'a, str>>,
    work: usize,
}

impl<'a> Texts<'a> {
    /// No texts, and a budget of `work`.
    pub(super) fn new(work: usize) -> Self {
        let sources = Vec::new();
        Self { sources, work }
    }

    /// Takes from the budget.
    pub(super) fn spend(&mut self, bytes: usize) -> Result<(), Stop> {
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

    pub(super) fn take(&mut self, text: impl Into<Cow<'a, str>>) -> Result<Piece, Stop> {
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

    pub(super) fn text(&self, piece: Piece) -> &str {
        self.sources
            .get(piece.source as usize)
            .and_then(|source| source.get(piece.start as usize..piece.end as usize))
            .unwrap_or_default()
    }

    /// Takes a container apart, if it still is text; answers its parts, nothing for scalars.
    pub(super) fn open<'n>(&mut self, node: &'n mut Node) -> Result<Option<&'n mut Open>, Stop> {
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
    pub(super) fn place(&mut self, open: &Open, step: &str) -> Result<Option<usize>, Stop> {
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
    pub(super) fn walk<'n>(
        &mut self,
        root: &'n mut Node,
        steps: &[Step<'_>],
    ) -> Result<Option<&'n mut Node>, Stop> {
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

    pub(super) fn write(&self, node: &Node, out: &mut String) {
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
    pub(super) fn piece(&mut self, node: &Node) -> Result<Piece, Stop> {
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
pub(super) fn length(node: &Node) -> usize {
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
