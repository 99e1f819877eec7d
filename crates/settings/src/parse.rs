//! Text to tree, within bounds: a configuration file is a stranger's bytes too.

use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span};

use crate::node::{Entry, Kind, Node, Place, is_null};

/// Bounds of one document. Each stops a known way to make a small file large in memory or on the stack.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Size of the text in bytes.
    pub bytes: usize,
    /// How deep lists and mappings may nest. The walks over the tree are recursive.
    pub depth: usize,
    /// How many values the document may hold, each use of an alias counted with all it stands for: nine
    /// lines of nested aliases otherwise make a billion values.
    pub nodes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 16 << 20,
            depth: 64,
            nodes: 1_000_000,
        }
    }
}

/// Why the text is not a valid document: where, what, and what would be right.
#[derive(Debug)]
pub(crate) struct Unreadable {
    pub(crate) place: Place,
    pub(crate) what: String,
    pub(crate) expected: String,
}

impl Unreadable {
    fn new(place: Place, what: impl Into<String>, expected: impl Into<String>) -> Self {
        Self {
            place,
            what: what.into(),
            expected: expected.into(),
        }
    }
}

/// Refuses control characters (YAML 1.2 §5.1): a file that a full disk or a crash has left has them, and no person has
/// written any.
pub(crate) fn refuse_binary(text: &str) -> Result<(), Unreadable> {
    let is_odd =
        |c: &char| (c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}')) || *c == '\u{fffe}';
    for (index, line) in text.split('\n').enumerate() {
        if let Some((column, c)) = line.chars().enumerate().find(|(_, c)| is_odd(c)) {
            let place = Place {
                line: index + 1,
                column: column + 1,
                width: 1,
            };
            let what = format!("the control character U+{:04X} stands here", u32::from(c));
            return Err(Unreadable::new(
                place,
                what,
                "text; a file that was written whole",
            ));
        }
    }
    Ok(())
}

/// The tree of the only document of `text`, and faults that do not prevent one (duplicate keys).
pub(crate) fn parse(text: &str, limits: Limits) -> Result<(Node, Vec<Unreadable>), Unreadable> {
    let top = Place {
        line: 1,
        column: 1,
        width: 1,
    };
    if text.len() > limits.bytes {
        return Err(Unreadable::new(
            top,
            format!("the file has {} bytes", text.len()),
            format!("at most {} bytes", limits.bytes),
        ));
    }
    let mut builder = Builder {
        limits,
        open: Vec::new(),
        anchors: HashMap::new(),
        nodes: 0,
        documents: 0,
        root: None,
        faults: Vec::new(),
    };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            // The scanner reads ahead and has a bound of its own on open brackets.
            if error.info().contains("recursion limit") {
                return too_deep(point(*error.marker()), limits.depth);
            }
            Unreadable::new(
                point(*error.marker()),
                format!("this is not YAML: {}", error.info()),
                "YAML: `key: value` lines, indented with spaces; texts with special characters in quotes",
            )
        })?;
        builder.take(event, span)?;
    }
    // An empty file is an empty mapping: all defaults.
    let is_empty = |root: &Node| matches!(&root.kind, Kind::Plain(text) if is_null(text));
    let root = builder.root.filter(|root| !is_empty(root)).unwrap_or(Node {
        place: top,
        kind: Kind::Map(Vec::new()),
    });
    Ok((root, builder.faults))
}

/// Refuses a document that says nothing: a full disk, or a tool that broke off, leaves one, which does not mean "all defaults".
pub(crate) fn refuse_empty(root: &Node, text: &str) -> Result<(), Unreadable> {
    // `{}` is a mapping that a person has written.
    let has_mapping = |line: &str| line.split('#').next().is_some_and(|line| line.contains('{'));
    match &root.kind {
        Kind::Map(entries) if entries.is_empty() && !text.lines().any(has_mapping) => Err(Unreadable::new(
            root.place,
            "the file is empty",
            "a mapping, such as `nrf: …`; `{}` for nothing but defaults",
        )),
        _ => Ok(()),
    }
}

fn too_deep(place: Place, depth: usize) -> Unreadable {
    Unreadable::new(
        place,
        "lists and mappings are nested too deeply",
        format!("at most {depth} levels"),
    )
}

fn point(marker: Marker) -> Place {
    Place {
        line: marker.line().max(1),
        // The parser counts columns from 0.
        column: marker.col() + 1,
        width: 1,
    }
}

fn place(span: Span) -> Place {
    let start = point(span.start);
    let width = if span.end.line() == span.start.line() {
        span.end.col().saturating_sub(span.start.col()).max(1)
    } else {
        1
    };
    Place { width, ..start }
}

/// A list or mapping whose end has not been read.
struct Open {
    anchor: usize,
    place: Place,
    /// How many nodes the document had when this one began, to know the weight of what it anchors.
    before: usize,
    /// The most levels below this one, to know the height of what it anchors.
    below: usize,
    content: Content,
}

/// What an anchor stands for. Using it costs its weight in values and its height in levels.
struct Anchored {
    node: Node,
    weight: usize,
    height: usize,
}

enum Content {
    List(Vec<Node>),
    Map {
        entries: Vec<Entry>,
        key: Option<(String, Place)>,
        /// Line of each key so far.
        seen: HashMap<String, usize>,
    },
}

struct Builder {
    limits: Limits,
    open: Vec<Open>,
    anchors: HashMap<usize, Anchored>,
    nodes: usize,
    documents: usize,
    root: Option<Node>,
    faults: Vec<Unreadable>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Unreadable> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(Unreadable::new(
                        place(span),
                        "a second document begins here",
                        "one document per file (remove the line `---`)",
                    ));
                }
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                // `!!str 1` asks for a text; other tags have no meaning here and change nothing.
                let quoted = style != ScalarStyle::Plain
                    || tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
                let text = text.into_owned();
                let kind = if quoted {
                    Kind::Quoted(text)
                } else {
                    Kind::Plain(text)
                };
                let node = Node {
                    place: place(span),
                    kind,
                };
                self.count(1, node.place)?;
                self.anchor(anchor, &node, 1, 0);
                self.add(node, 0)
            }
            Event::Alias(anchor) => {
                let at = place(span);
                let Some(anchored) = self.anchors.get(&anchor) else {
                    return Err(Unreadable::new(
                        at,
                        "this alias stands inside what it refers to, or refers to nothing",
                        "an alias to an anchor that ended before it",
                    ));
                };
                let (weight, height) = (anchored.weight, anchored.height);
                self.count(weight, at)?;
                if self.open.len() + height > self.limits.depth {
                    return Err(too_deep(at, self.limits.depth));
                }
                let node = self.anchors.get(&anchor).map(|anchored| anchored.node.clone());
                node.map_or(Ok(()), |node| self.add(node, height))
            }
            Event::SequenceStart(anchor, _) => self.begin(anchor, span, Content::List(Vec::new())),
            Event::MappingStart(anchor, _) => self.begin(
                anchor,
                span,
                Content::Map {
                    entries: Vec::new(),
                    key: None,
                    seen: HashMap::new(),
                },
            ),
            Event::SequenceEnd | Event::MappingEnd => {
                // The parser balances starts and ends; without a start there is nothing to close.
                let Some(open) = self.open.pop() else {
                    return Ok(());
                };
                let kind = match open.content {
                    Content::List(items) => Kind::List(items),
                    Content::Map { entries, .. } => Kind::Map(entries),
                };
                let node = Node {
                    place: open.place,
                    kind,
                };
                let height = open.below + 1;
                self.anchor(open.anchor, &node, self.nodes - open.before, height);
                self.add(node, height)
            }
        }
    }

    fn begin(&mut self, anchor: usize, span: Span, content: Content) -> Result<(), Unreadable> {
        let at = place(span);
        if self.open.len() >= self.limits.depth {
            return Err(too_deep(at, self.limits.depth));
        }
        let before = self.nodes;
        self.count(1, at)?;
        self.open.push(Open {
            anchor,
            place: at,
            before,
            below: 0,
            content,
        });
        Ok(())
    }

    fn count(&mut self, more: usize, at: Place) -> Result<(), Unreadable> {
        self.nodes = self.nodes.saturating_add(more);
        if self.nodes > self.limits.nodes {
            return Err(Unreadable::new(
                at,
                "the document holds too many values (aliases count with all they stand for)",
                format!("at most {}", self.limits.nodes),
            ));
        }
        Ok(())
    }

    fn anchor(&mut self, anchor: usize, node: &Node, weight: usize, height: usize) {
        // 0 is "no anchor".
        if anchor != 0 {
            let node = node.clone();
            self.anchors.insert(anchor, Anchored { node, weight, height });
        }
    }

    /// Puts a finished value where it belongs: into the innermost open collection, or at the top.
    fn add(&mut self, node: Node, height: usize) -> Result<(), Unreadable> {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        open.below = open.below.max(height);
        match &mut open.content {
            Content::List(items) => items.push(node),
            Content::Map { entries, key, seen } => match key.take() {
                Some((key, key_place)) => {
                    if let Some(first) = seen.get(&key) {
                        self.faults.push(Unreadable::new(
                            key_place,
                            format!("the key `{key}` appears twice"),
                            format!("one `{key}`; the first is on line {first}"),
                        ));
                    } else {
                        seen.insert(key.clone(), key_place.line);
                        entries.push(Entry {
                            key,
                            key_place,
                            value: node,
                        });
                    }
                }
                None => match node.kind {
                    // In quotes it is a key like any other.
                    Kind::Plain(text) if text == "<<" => {
                        return Err(Unreadable::new(
                            node.place,
                            "merge keys (`<<`) are not part of YAML 1.2",
                            "the keys written out",
                        ));
                    }
                    Kind::Plain(text) | Kind::Quoted(text) => *key = Some((text, node.place)),
                    Kind::List(_) | Kind::Map(_) => {
                        return Err(Unreadable::new(
                            node.place,
                            "a list or mapping cannot be a key",
                            "a plain text as key",
                        ));
                    }
                },
            },
        }
        Ok(())
    }
}
