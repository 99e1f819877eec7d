//! Compiled expressions.

use serde_json::Value as Json;

use crate::glob::Glob;
use crate::operation::Operation;

/// An expression. Its tag is a byte of its own, which takes fewer steps to match than one within the parts.
#[derive(Debug)]
#[repr(u8)]
pub(crate) enum Expr {
    Constant(Json),
    Path(usize),
    Variable(usize),
    Member(Box<Expr>, String),
    Item(Box<Expr>, usize),
    At(Box<Expr>, Box<Expr>),
    List(Vec<Expr>),
    Object(Vec<(String, Expr)>),
    Apply(Operation, Vec<Expr>),
    InList(Box<Expr>, usize),
    Matches(Box<Expr>, usize),
    Capture(Box<Expr>, usize, usize),
    Wildcard(Box<Expr>, Glob),
    /// Minutes of the day from and to, days of the week from Monday as bits.
    TimeBetween(u16, u16, u8),
    Now(Clock),
    Event,
    Script(usize, Vec<Expr>),
}

/// Parts of the current time, in the time zone of the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    EpochSeconds,
    Date,
    DateTime,
    Weekday,
    Hour,
    Minute,
    MinuteOfDay,
}

impl Expr {
    /// The value, where nothing is computed.
    pub(crate) fn constant(&self) -> Option<&Json> {
        match self {
            Self::Constant(json) => Some(json),
            _ => None,
        }
    }
}
