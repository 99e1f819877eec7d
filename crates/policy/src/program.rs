//! A compiled project: names are slots, paths are steps, what is constant is built.

use regex_automata::meta::Regex;
use serde_json::Value as Json;

use crate::expression::Expr;
use crate::list::MatchList;
use crate::script::Script;
use crate::shape::{Kind, Section};
use crate::table::Table;
use crate::template::Template;
use crate::zone::Zone;

/// Everything that an evaluation needs.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) blocks: Vec<Block>,
    pub(crate) routines: Vec<Routine>,
    pub(crate) paths: Vec<Path>,
    pub(crate) variables: Vec<String>,
    pub(crate) labels: Vec<Label>,
    pub(crate) tables: Vec<Table>,
    pub(crate) lists: Vec<MatchList>,
    pub(crate) patterns: Vec<Pattern>,
    pub(crate) scripts: Vec<Script>,
    pub(crate) zone: Zone,
    /// Whether a block or an expression reads `$subscriberState`.
    pub(crate) reads_subscriber_state: bool,
    /// Whether a block or an expression reads `$af`.
    pub(crate) reads_af: bool,
    /// Whether a block writes variables of the subscriber.
    pub(crate) writes_subscriber_state: bool,
}

/// Blocks that others call.
#[derive(Debug, Default)]
pub(crate) struct Routine {
    pub(crate) name: String,
    pub(crate) blocks: Vec<Block>,
}

/// What traces and faults call a block.
#[derive(Debug)]
pub(crate) struct Label {
    /// The name that the project gives it, or its path in the file.
    pub(crate) name: String,
    /// Its kind: `if`, `lookup`, `pccRule` …
    pub(crate) kind: &'static str,
}

/// A regular expression.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) name: String,
    pub(crate) regex: Regex,
}

/// Where the data of an evaluation come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    Request,
    Subscriber,
    Counters,
    Session,
    State,
    SubscriberState,
    Af,
}

/// What has state variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Association,
    Subscriber,
}

/// A datum of the input; an evaluation resolves each once.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) text: String,
    pub(crate) base: Base,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Base {
    Root(Root),
    Member(usize, String),
    Item(usize, usize),
}

#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) label: usize,
    pub(crate) step: Step,
}

/// What a block does; the tag as of [`Expr`].
#[derive(Debug)]
#[repr(u8)]
pub(crate) enum Step {
    If {
        condition: Expr,
        then: Vec<Block>,
        otherwise: Vec<Block>,
    },
    Switch {
        value: Expr,
        cases: Vec<Case>,
        default: Vec<Block>,
    },
    Each {
        list: Expr,
        variable: usize,
        body: Vec<Block>,
    },
    While {
        condition: Expr,
        body: Vec<Block>,
    },
    Repeat {
        times: Expr,
        body: Vec<Block>,
    },
    Set(Vec<(usize, Expr)>),
    Lookup {
        table: usize,
        /// In place of the sources of the table.
        keys: Vec<Option<Expr>>,
        variable: usize,
        otherwise: Vec<Block>,
    },
    Call(usize),
    Remember(Owner, Vec<(String, Expr)>),
    Entry(Entry),
    Members(Vec<Member>),
    Triggers(Vec<Expr>),
    Remove(Section, Expr),
    Notify(Box<Notify>),
    Reject {
        status: u16,
        cause: Expr,
        detail: Option<Expr>,
    },
    Stop,
    Break,
    Continue,
}

/// A message to a server of the operator.
#[derive(Debug)]
pub(crate) struct Notify {
    /// Name of the server.
    pub(crate) server: String,
    /// What follows its URL.
    pub(crate) path: Option<Template>,
    /// The SOAP action.
    pub(crate) action: Option<String>,
    pub(crate) body: Body,
}

/// What makes the content of a message.
#[derive(Debug)]
pub(crate) enum Body {
    Empty,
    Json(Expr),
    Xml(Template),
    Text(Template),
}

#[derive(Debug)]
pub(crate) struct Case {
    /// Any of these.
    pub(crate) values: Vec<Expr>,
    pub(crate) body: Vec<Block>,
}

/// A rule or datum that a block puts into the decision.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) section: Section,
    pub(crate) id: Expr,
    pub(crate) members: Vec<Member>,
    /// The expression that computes all of it, in place of members.
    pub(crate) whole: Option<Expr>,
    /// The whole of it, where nothing is computed, and its size.
    pub(crate) constant: Option<(Json, usize)>,
}

#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) value: Expr,
    /// What the standard expects.
    pub(crate) kind: Kind,
    pub(crate) required: bool,
}
