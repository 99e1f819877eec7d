//! From the text of a script to its tree; none where a part of it is not known.
//!
//! QuickJS has compiled the text before, so what is read here is JavaScript; what remains is to read it as JavaScript does.
//! Where a semicolon is missing, or a name is declared that an outer one hides or that was read before, it is not read.

use serde_json::{Map, Number, Value as Json};

use super::builtin::{BUILTINS, METHODS};
use super::lexer::{Lexer, Token};
use super::value::INHERITED;
use super::{Binary, Body, Equality, Function, Logical, Native, Node, Statement, Unary};
use crate::script;

/// Nodes and statements of a script, so that a tree is not deeper.
const NODES: usize = 1_000;
/// Expressions and statements within each other.
const NESTED: usize = 48;
/// Names that mean something without a declaration.
const GLOBAL: &[&str] = &[
    "undefined",
    "NaN",
    "Infinity",
    "Math",
    "Number",
    "String",
    "Boolean",
    "Array",
];

/// Operators of two operands from the loosest to the tightest.
const LEVELS: &[&[(&str, Operator)]] = &[
    &[
        ("??", Operator::Logical(Logical::Coalesce)),
        ("||", Operator::Logical(Logical::Or)),
    ],
    &[("&&", Operator::Logical(Logical::And))],
    &[
        ("==", Operator::Binary(Binary::Equal(Equality::Loose))),
        ("!=", Operator::Binary(Binary::Unequal(Equality::Loose))),
        ("===", Operator::Binary(Binary::Equal(Equality::Strict))),
        ("!==", Operator::Binary(Binary::Unequal(Equality::Strict))),
    ],
    &[
        ("<", Operator::Binary(Binary::Lt)),
        ("<=", Operator::Binary(Binary::Le)),
        (">", Operator::Binary(Binary::Gt)),
        (">=", Operator::Binary(Binary::Ge)),
    ],
    &[
        ("+", Operator::Binary(Binary::Add)),
        ("-", Operator::Binary(Binary::Sub)),
    ],
    &[
        ("*", Operator::Binary(Binary::Mul)),
        ("/", Operator::Binary(Binary::Div)),
        ("%", Operator::Binary(Binary::Rem)),
    ],
];

#[derive(Clone, Copy)]
enum Operator {
    Binary(Binary),
    Logical(Logical),
}

/// What a name stands for.
#[derive(Clone, Copy)]
enum Named {
    Variable { slot: usize, constant: bool },
    Function(usize),
}

struct Parser<'t> {
    lexer: Lexer<'t>,
    token: Token<'t>,
    /// Names that are visible, the innermost last.
    names: Vec<(String, Named)>,
    functions: Vec<Function>,
    slots: usize,
    nodes: usize,
    nested: usize,
}

impl Native {
    pub(in crate::script) fn parse(parameters: &[String], body: &script::Body) -> Option<Self> {
        let (script::Body::Expression(text) | script::Body::Statements(text)) = body;
        let text = text.replace("\r\n", "\n");
        let mut lexer = Lexer::new(&text);
        let mut parser = Parser {
            token: lexer.next(),
            lexer,
            names: Vec::new(),
            functions: Vec::new(),
            slots: 0,
            nodes: 0,
            nested: 0,
        };
        for name in parameters {
            parser.variable(name, false);
        }
        let body = match body {
            script::Body::Expression(_) => Body::Expression(parser.expression()?),
            script::Body::Statements(_) => Body::Statements(parser.statements()?),
        };
        (parser.token == Token::End).then_some(Self {
            body,
            functions: parser.functions,
            slots: parser.slots,
        })
    }
}

impl<'t> Parser<'t> {
    fn advance(&mut self) -> Token<'t> {
        let next = self.lexer.next();
        std::mem::replace(&mut self.token, next)
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.token, Token::Sign(found) if found == sign)
    }

    fn eat(&mut self, sign: &str) -> bool {
        let found = self.is(sign);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, sign: &str) -> Option<()> {
        self.eat(sign).then_some(())
    }

    fn word(&self) -> &'t str {
        match self.token {
            Token::Name(name) => name,
            _ => "",
        }
    }

    fn name(&mut self) -> Option<&'t str> {
        match self.advance() {
            Token::Name(name) => Some(name),
            _ => None,
        }
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.nested >= NESTED {
            return None;
        }
        self.nested += 1;
        let found = read(self);
        self.nested -= 1;
        found
    }

    fn node(&mut self, node: Node) -> Option<Node> {
        self.count()?;
        Some(node)
    }

    /// Counts a node or a statement, up to the bound.
    fn count(&mut self) -> Option<()> {
        self.nodes += 1;
        (self.nodes <= NODES).then_some(())
    }

    fn resolve(&self, name: &str) -> Option<Named> {
        let found = self.names.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, named)| *named)
    }

    fn variable(&mut self, name: &str, constant: bool) -> usize {
        let slot = self.slots;
        self.slots += 1;
        self.names
            .push((name.to_owned(), Named::Variable { slot, constant }));
        slot
    }

    /// The name of a declaration. It counts in all of its block, before the declaration as well, so it must not have
    /// meant another there.
    fn declared(&mut self) -> Option<&'t str> {
        let name = self.name()?;
        (self.resolve(name).is_none() && !GLOBAL.contains(&name)).then_some(name)
    }

    fn statements(&mut self) -> Option<Vec<Statement>> {
        let visible = self.names.len();
        let mut statements = Vec::new();
        while self.token != Token::End && !self.is("}") {
            if !self.eat(";") {
                statements.extend(self.deeper(Self::statement)?);
            }
        }
        self.names.truncate(visible);
        Some(statements)
    }

    /// A statement; none within for the declaration of a function.
    fn statement(&mut self) -> Option<Option<Statement>> {
        self.count()?;
        if self.is("{") {
            return self.block().map(|block| Some(Statement::Block(block)));
        }
        match self.word() {
            "const" => self.constant(),
            "let" => {
                self.advance();
                let name = self.declared()?;
                let value = match self.eat("=") {
                    true => self.expression()?,
                    false => Node::Undefined,
                };
                self.end()?;
                let slot = self.variable(name, false);
                Some(Some(Statement::Set(slot, value)))
            }
            "if" => self.condition().map(Some),
            "return" => {
                self.advance();
                // A line that ends there ends the statement.
                let nothing = self.is(";") || self.is("}") || self.token == Token::End;
                if self.lexer.after_line && !nothing {
                    return None;
                }
                let value = if nothing { None } else { Some(self.expression()?) };
                self.end()?;
                Some(Some(Statement::Return(value)))
            }
            _ => {
                let name = self.name()?;
                self.expect("=")?;
                let Some(Named::Variable {
                    slot,
                    constant: false,
                }) = self.resolve(name)
                else {
                    return None;
                };
                let value = self.expression()?;
                self.end()?;
                Some(Some(Statement::Set(slot, value)))
            }
        }
    }

    /// A semicolon, or what ends a statement without one.
    fn end(&mut self) -> Option<()> {
        (self.eat(";") || self.is("}") || self.token == Token::End).then_some(())
    }

    fn block(&mut self) -> Option<Vec<Statement>> {
        self.expect("{")?;
        let statements = self.statements()?;
        self.expect("}")?;
        Some(statements)
    }

    fn constant(&mut self) -> Option<Option<Statement>> {
        self.advance();
        let name = self.declared()?;
        self.expect("=")?;
        if let Some(function) = self.function()? {
            self.end()?;
            self.names.push((name.to_owned(), Named::Function(function)));
            return Some(None);
        }
        let value = self.expression()?;
        self.end()?;
        let slot = self.variable(name, true);
        Some(Some(Statement::Set(slot, value)))
    }

    fn condition(&mut self) -> Option<Statement> {
        self.advance();
        self.expect("(")?;
        let condition = self.expression()?;
        self.expect(")")?;
        let then = self.branch()?;
        let otherwise = match self.word() == "else" {
            true => {
                self.advance();
                self.branch()?
            }
            false => Vec::new(),
        };
        Some(Statement::If(condition, then, otherwise))
    }

    fn branch(&mut self) -> Option<Vec<Statement>> {
        if self.is("{") {
            return self.deeper(Self::block);
        }
        // JavaScript has no declaration there.
        let statement = self.deeper(Self::statement)?;
        Some(statement.into_iter().collect())
    }

    /// An arrow function, where one begins.
    fn function(&mut self) -> Option<Option<usize>> {
        let (lexer, token) = (self.lexer.clone(), self.token.clone());
        let Some(names) = self.parameters() else {
            (self.lexer, self.token) = (lexer, token);
            return Some(None);
        };
        let visible = self.names.len();
        let parameters = names.into_iter().map(|name| self.variable(name, false)).collect();
        let body = match self.is("{") {
            true => Body::Statements(self.deeper(Self::block)?),
            false => Body::Expression(self.expression()?),
        };
        self.names.truncate(visible);
        self.functions.push(Function { parameters, body });
        Some(Some(self.functions.len() - 1))
    }

    /// `a =>` or `(a, b) =>`.
    fn parameters(&mut self) -> Option<Vec<&'t str>> {
        let mut names = Vec::new();
        if self.eat("(") {
            while !self.eat(")") {
                names.push(self.name()?);
                if !self.eat(",") {
                    self.expect(")")?;
                    break;
                }
            }
        } else {
            names.push(self.name()?);
        }
        self.expect("=>")?;
        Some(names)
    }

    fn expression(&mut self) -> Option<Node> {
        self.deeper(|parser| {
            let condition = parser.binary(0)?;
            if !parser.eat("?") {
                return Some(condition);
            }
            let then = parser.expression()?;
            parser.expect(":")?;
            let otherwise = parser.expression()?;
            parser.node(Node::Choice(Box::new((condition, then, otherwise))))
        })
    }

    fn binary(&mut self, level: usize) -> Option<Node> {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.binary(level + 1)?;
        while let Token::Sign(sign) = self.token
            && let Some((_, operator)) = operators.iter().find(|(known, _)| *known == sign)
        {
            self.advance();
            let operands = Box::new((left, self.binary(level + 1)?));
            left = self.node(match operator {
                Operator::Binary(binary) => Node::Binary(*binary, operands),
                Operator::Logical(logical) => Node::Logical(*logical, operands),
            })?;
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<Node> {
        let operator = match &self.token {
            Token::Sign("!") => Unary::Not,
            Token::Sign("-") => Unary::Minus,
            Token::Sign("+") => Unary::Plus,
            Token::Name("typeof") => Unary::TypeOf,
            _ => return self.chain(),
        };
        self.advance();
        let operand = self.deeper(Self::unary)?;
        self.node(Node::Unary(operator, Box::new(operand)))
    }

    /// Members, items and calls of methods.
    fn chain(&mut self) -> Option<Node> {
        let mut node = self.primary()?;
        let mut is_optional = false;
        loop {
            if self.eat("?.") {
                is_optional = true;
                node = self.node(Node::Optional(Box::new(node)))?;
                node = match self.is("[") {
                    true => self.item(node)?,
                    false => self.member(node)?,
                };
            } else if self.eat(".") {
                node = self.member(node)?;
            } else if self.is("[") {
                node = self.item(node)?;
            } else if self.is("(") || self.token == Token::Template {
                return None;
            } else {
                break;
            }
        }
        match is_optional {
            true => self.node(Node::Chain(Box::new(node))),
            false => Some(node),
        }
    }

    fn item(&mut self, of: Node) -> Option<Node> {
        self.expect("[")?;
        let index = self.expression()?;
        self.expect("]")?;
        self.node(Node::Index(Box::new((of, index))))
    }

    fn member(&mut self, of: Node) -> Option<Node> {
        let name = self.name()?;
        if !self.is("(") {
            let known = !INHERITED.contains(&name);
            return known.then(|| self.node(Node::Member(Box::new(of), name.to_owned())))?;
        }
        let (_, method, fewest, most) = METHODS.iter().find(|(known, ..)| *known == name)?;
        let arguments = self.arguments()?;
        let fits = (*fewest..=*most).contains(&arguments.len());
        fits.then(|| self.node(Node::Method(Box::new(of), *method, arguments)))?
    }

    fn arguments(&mut self) -> Option<Vec<Node>> {
        self.expect("(")?;
        self.list(")")
    }

    /// Expressions up to a bracket.
    fn list(&mut self, end: &str) -> Option<Vec<Node>> {
        let mut items = Vec::new();
        while !self.eat(end) {
            items.push(self.expression()?);
            if !self.eat(",") {
                self.expect(end)?;
                break;
            }
        }
        Some(items)
    }

    fn primary(&mut self) -> Option<Node> {
        // A template is read from where its backtick ends.
        if self.token == Token::Template {
            return self.template();
        }
        let node = match self.advance() {
            Token::Number(number) => Node::Number(number),
            Token::Text(text) => Node::Constant(Json::String(text)),
            Token::Sign("(") => {
                let inner = self.expression()?;
                self.expect(")")?;
                // A chain ends with its bracket; what follows is not of it.
                return Some(inner);
            }
            Token::Sign("[") => {
                let items = self.list("]")?;
                folded_list(items)
            }
            Token::Sign("{") => self.object()?,
            Token::Name(name) => self.named(name)?,
            _ => return None,
        };
        self.node(node)
    }

    fn named(&mut self, name: &'t str) -> Option<Node> {
        match self.resolve(name) {
            Some(Named::Variable { slot, .. }) => return Some(Node::Slot(slot)),
            Some(Named::Function(function)) => return Some(Node::Call(function, self.arguments()?)),
            None => {}
        }
        let global = match name {
            "undefined" => return Some(Node::Undefined),
            "null" => return Some(Node::Constant(Json::Null)),
            "true" | "false" => return Some(Node::Constant(Json::Bool(name == "true"))),
            "NaN" => return Some(Node::Number(f64::NAN)),
            "Infinity" => return Some(Node::Number(f64::INFINITY)),
            "Math" | "Number" | "Array" if self.eat(".") => format!("{name}.{}", self.name()?),
            _ => name.to_owned(),
        };
        let (_, builtin) = BUILTINS.iter().find(|(known, _)| *known == global)?;
        let arguments = self.arguments()?;
        builtin
            .takes(arguments.len())
            .then_some(Node::Builtin(*builtin, arguments))
    }

    fn object(&mut self) -> Option<Node> {
        let mut members: Vec<(String, Node)> = Vec::new();
        while !self.eat("}") {
            let (key, name) = match self.advance() {
                Token::Name(name) => (name.to_owned(), Some(name)),
                Token::Text(text) => (text, None),
                _ => return None,
            };
            let value = match name {
                Some(name) if self.is(",") || self.is("}") => self.named(name)?,
                _ => {
                    self.expect(":")?;
                    self.expression()?
                }
            };
            // JavaScript moves numbers to the front, and lets the last of two members count.
            let unusual = INHERITED.contains(&key.as_str()) || key.starts_with(|c: char| c.is_ascii_digit());
            if unusual || members.iter().any(|(known, _)| *known == key) {
                return None;
            }
            members.push((key, value));
            if !self.eat(",") {
                self.expect("}")?;
                break;
            }
        }
        Some(folded_object(members))
    }

    fn template(&mut self) -> Option<Node> {
        let (first, mut more) = self.lexer.template_part()?;
        let mut parts = Vec::new();
        while more {
            self.advance();
            let value = self.expression()?;
            if !self.is("}") {
                return None;
            }
            let (text, follows) = self.lexer.template_part()?;
            parts.push((value, text));
            more = follows;
        }
        self.advance();
        self.node(Node::Template(first, parts))
    }
}

/// The JSON of a constant; numbers that JSON has not are none.
fn constant(node: &Node) -> Option<Json> {
    match node {
        Node::Constant(json) => Some(json.clone()),
        Node::Number(number) => Number::from_f64(*number).map(Json::Number),
        _ => None,
    }
}

fn folded_list(items: Vec<Node>) -> Node {
    let constants: Option<Vec<Json>> = items.iter().map(constant).collect();
    constants.map_or(Node::List(items), |items| Node::Constant(Json::Array(items)))
}

fn folded_object(members: Vec<(String, Node)>) -> Node {
    let constants: Option<Map<String, Json>> = members
        .iter()
        .map(|(key, member)| Some((key.clone(), constant(member)?)))
        .collect();
    constants.map_or(Node::Object(members), |map| Node::Constant(Json::Object(map)))
}
