//! Scripts without QuickJS: the part of JavaScript that most scripts of projects consist of, read into a tree at load.
//!
//! The tree computes what QuickJS computes, or it does not compute at all: what the parser does not know makes the whole
//! script one for QuickJS, and what an evaluation does not know (a member of `undefined`, the text of an object, a text
//! that is cut within a character of UTF-16) makes QuickJS run that call from its beginning. A script has no effect but its
//! result, so nothing shows which of the two it was. The faults of scripts and their limits are thereby those of QuickJS:
//! a call that takes more than its share here is handed over, too.
//!
//! What is known: literals, members and items with `.`, `[]` and `?.`, the operators of numbers, texts and conditions,
//! templates, objects and lists, functions of `Math` and methods of texts and lists (`builtin`), `const`, `let`,
//! assignments, `if`, `return`, and arrow functions that are constants and called by their names. There are no loops, and a
//! function calls functions before it only, so every call ends.

mod builtin;
mod lexer;
mod number;
mod parser;
mod run;
mod value;

use serde_json::Value as Json;

use builtin::{Builtin, Method};

pub(super) use run::Budget;

/// A script as a tree.
#[derive(Debug)]
pub(super) struct Native {
    body: Body,
    functions: Vec<Function>,
    /// Variables of the script and its functions, each with a place of its own; the parameters are the first.
    slots: usize,
}

/// An arrow function.
#[derive(Debug)]
struct Function {
    parameters: Vec<usize>,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Expression(Node),
    Statements(Vec<Statement>),
}

#[derive(Debug)]
enum Statement {
    Set(usize, Node),
    If(Node, Vec<Statement>, Vec<Statement>),
    Block(Vec<Statement>),
    Return(Option<Node>),
}

/// An expression. Its tag is a byte of its own, which takes fewer steps to match than one within the parts.
#[derive(Debug)]
#[repr(u8)]
enum Node {
    Undefined,
    Number(f64),
    /// A text, a truth value, null, or a list or object of constants.
    Constant(Json),
    Slot(usize),
    Member(Box<Node>, String),
    Index(Box<(Node, Node)>),
    /// `a?.`: the chain ends with undefined where `a` is null or undefined.
    Optional(Box<Node>),
    /// The chain that an `Optional` within ends.
    Chain(Box<Node>),
    Unary(Unary, Box<Node>),
    Binary(Binary, Box<(Node, Node)>),
    /// `&&`, `||`, `??`: the second operand counts only where the first does not decide.
    Logical(Logical, Box<(Node, Node)>),
    Choice(Box<(Node, Node, Node)>),
    /// Texts, each after the first behind an expression.
    Template(String, Vec<(Node, String)>),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
    Call(usize, Vec<Node>),
    Builtin(Builtin, Vec<Node>),
    Method(Box<Node>, Method, Vec<Node>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unary {
    Not,
    Minus,
    Plus,
    TypeOf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Lt,
    Le,
    Gt,
    Ge,
    Equal(Equality),
    Unequal(Equality),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Equality {
    /// `==`
    Loose,
    /// `===`
    Strict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Logical {
    And,
    Or,
    Coalesce,
}

#[cfg(test)]
mod tests;
