//! Evaluation of a tree.

use bumpalo::Bump;

use super::builtin::{Builtin, Method, length, loosely_equal, order, strictly_equal, sum};
use super::value::Js;
use super::{Binary, Body, Equality, Logical, Native, Node, Statement, Unary};
use crate::value::Value;

/// Expressions within each other while a tree is evaluated, those of functions that are called included.
const LEVELS: u32 = 200;
/// Bytes of a text that take as long as a step.
const BYTES: usize = 16;

/// What the scripts of an evaluation may take before their calls are handed over to QuickJS.
#[derive(Clone, Copy, Debug)]
pub(in crate::script) struct Budget {
    /// Steps of all calls.
    pub(in crate::script) steps: u64,
    /// Bytes of the texts, lists and objects of one call.
    pub(in crate::script) bytes: usize,
}

/// An expression has no value: QuickJS has to run the script, or the chain ends (`Run::short`). Without parts, so that the
/// result of a value takes two registers.
struct Stop;

type Outcome<T> = Result<T, Stop>;

struct Run<'r, 'a> {
    native: &'a Native,
    arena: &'r Bump,
    slots: &'r mut [Js<'r, 'a>],
    budget: Budget,
    levels: u32,
    /// Whether it stopped at `?.` after null or undefined.
    short: bool,
}

impl Native {
    /// The result of a call with a value for each parameter; none where QuickJS has to run it. Takes its steps of the budget.
    /// What it makes is in the arena.
    pub(in crate::script) fn call<'r, 'a: 'r>(
        &'a self,
        values: &[Value<'a>],
        budget: &mut Budget,
        arena: &'r Bump,
    ) -> Option<Js<'r, 'a>> {
        let mut run = Run {
            native: self,
            arena,
            slots: arena.alloc_slice_fill_copy(self.slots, Js::Undefined),
            budget: *budget,
            levels: 0,
            short: false,
        };
        for (slot, value) in run.slots.iter_mut().zip(values) {
            *slot = Js::of(*value);
        }
        let result = run.body(&self.body);
        budget.steps = run.budget.steps;
        result.ok()
    }
}

fn known<T>(value: Option<T>) -> Outcome<T> {
    value.ok_or(Stop)
}

impl<'r, 'a: 'r> Run<'r, 'a> {
    fn body(&mut self, body: &'a Body) -> Outcome<Js<'r, 'a>> {
        match body {
            Body::Expression(node) => self.value(node),
            Body::Statements(statements) => Ok(self.statements(statements)?.unwrap_or(Js::Undefined)),
        }
    }

    /// The value of the `return` that was reached.
    fn statements(&mut self, statements: &'a [Statement]) -> Outcome<Option<Js<'r, 'a>>> {
        self.spend(statements.len() as u64)?;
        for statement in statements {
            let returned = match statement {
                Statement::Set(slot, node) => {
                    self.slots[*slot] = self.value(node)?;
                    None
                }
                Statement::If(condition, then, otherwise) => {
                    let holds = self.value(condition)?.is_truthy();
                    self.statements(if holds { then } else { otherwise })?
                }
                Statement::Block(block) => self.statements(block)?,
                Statement::Return(Some(node)) => Some(self.value(node)?),
                Statement::Return(None) => Some(Js::Undefined),
            };
            if returned.is_some() {
                return Ok(returned);
            }
        }
        Ok(None)
    }

    fn spend(&mut self, steps: u64) -> Outcome<()> {
        self.budget.steps = known(self.budget.steps.checked_sub(steps))?;
        Ok(())
    }

    /// Takes memory for what a step makes, and steps for the work.
    fn take(&mut self, bytes: usize) -> Outcome<()> {
        self.budget.bytes = known(self.budget.bytes.checked_sub(bytes))?;
        self.spend((bytes / BYTES) as u64)
    }

    /// Steps for the length of a text or list, before it is read.
    fn read(&mut self, value: Js<'r, 'a>) -> Outcome<()> {
        match value.as_str() {
            Some(text) => self.spend((text.len() / BYTES) as u64),
            None => self.spend(value.length().unwrap_or(0) as u64),
        }
    }

    #[inline]
    fn value(&mut self, node: &'a Node) -> Outcome<Js<'r, 'a>> {
        match node {
            Node::Slot(slot) => Ok(self.slots[*slot]),
            Node::Undefined | Node::Number(_) | Node::Constant(_) => Ok(constant(node)),
            _ => self.computed(node),
        }
    }

    #[inline(never)]
    fn computed(&mut self, node: &'a Node) -> Outcome<Js<'r, 'a>> {
        self.spend(1)?;
        if self.levels >= LEVELS {
            return Err(Stop);
        }
        self.levels += 1;
        let value = self.inner(node);
        self.levels -= 1;
        value
    }

    /// A value that takes others.
    #[inline(always)]
    fn inner(&mut self, node: &'a Node) -> Outcome<Js<'r, 'a>> {
        match node {
            Node::Undefined | Node::Number(_) | Node::Constant(_) | Node::Slot(_) => self.value(node),
            Node::Member(of, name) => {
                let of = self.value(of)?;
                self.member(of, name)
            }
            Node::Index(parts) => {
                let (of, index) = (self.value(&parts.0)?, self.value(&parts.1)?);
                self.item(of, index)
            }
            Node::Optional(of) => {
                let of = self.value(of)?;
                self.short = of.is_nullish();
                if self.short { Err(Stop) } else { Ok(of) }
            }
            Node::Chain(chain) => match self.value(chain) {
                Err(Stop) if std::mem::take(&mut self.short) => Ok(Js::Undefined),
                value => value,
            },
            Node::Unary(operator, operand) => {
                let operand = self.value(operand)?;
                self.unary(*operator, operand)
            }
            Node::Binary(operator, operands) => {
                let (a, b) = (self.value(&operands.0)?, self.value(&operands.1)?);
                self.binary(*operator, a, b)
            }
            Node::Logical(logical, operands) => {
                let first = self.value(&operands.0)?;
                let decides = match logical {
                    Logical::And => !first.is_truthy(),
                    Logical::Or => first.is_truthy(),
                    Logical::Coalesce => !first.is_nullish(),
                };
                if decides {
                    Ok(first)
                } else {
                    self.value(&operands.1)
                }
            }
            Node::Choice(parts) => {
                let (condition, then, otherwise) = &**parts;
                let holds = self.value(condition)?.is_truthy();
                self.value(if holds { then } else { otherwise })
            }
            Node::Template(first, parts) => self.template(first, parts),
            Node::List(items) => self.list(items),
            Node::Object(members) => self.object(members),
            Node::Call(function, arguments) => self.call(*function, arguments),
            Node::Builtin(builtin, arguments) => self.builtin(*builtin, arguments),
            Node::Method(of, method, arguments) => self.method(of, *method, arguments),
        }
    }

    #[inline(never)]
    fn template(&mut self, first: &'a str, parts: &'a [(Node, String)]) -> Outcome<Js<'r, 'a>> {
        self.spend(parts.len() as u64)?;
        let mut text = first.to_owned();
        for (part, follows) in parts {
            let part = known(self.value(part)?.to_text(self.arena))?;
            self.take(part.len() + follows.len())?;
            text.push_str(part);
            text.push_str(follows);
        }
        Ok(Js::text(self.arena.alloc_str(&text), self.arena))
    }

    #[inline(never)]
    fn list(&mut self, items: &'a [Node]) -> Outcome<Js<'r, 'a>> {
        self.take(32 * items.len())?;
        let made = self.arena.alloc_slice_fill_copy(items.len(), Js::Undefined);
        for (place, item) in made.iter_mut().zip(items) {
            *place = self.value(item)?;
        }
        Ok(Js::List(self.arena.alloc(&*made)))
    }

    #[inline(never)]
    fn object(&mut self, members: &'a [(String, Node)]) -> Outcome<Js<'r, 'a>> {
        self.take(64 * members.len())?;
        let made = self
            .arena
            .alloc_slice_fill_copy(members.len(), ("", Js::Undefined));
        for (place, (key, member)) in made.iter_mut().zip(members) {
            *place = (key.as_str(), self.value(member)?);
        }
        Ok(Js::Object(self.arena.alloc(&*made)))
    }

    /// A call of a function of the script.
    #[inline(never)]
    fn call(&mut self, function: usize, arguments: &'a [Node]) -> Outcome<Js<'r, 'a>> {
        let function = known(self.native.functions.get(function))?;
        let values = self.values(arguments)?;
        for (position, slot) in function.parameters.iter().enumerate() {
            self.slots[*slot] = values.get(position).copied().unwrap_or(Js::Undefined);
        }
        self.body(&function.body)
    }

    #[inline(never)]
    fn builtin(&mut self, builtin: Builtin, arguments: &'a [Node]) -> Outcome<Js<'r, 'a>> {
        if let [argument] = arguments {
            self.spend(1)?;
            let value = self.value(argument)?;
            self.read(value)?;
            return known(builtin.call(&[value], self.arena));
        }
        let values = self.values(arguments)?;
        for value in values {
            self.read(*value)?;
        }
        known(builtin.call(values, self.arena))
    }

    #[inline(never)]
    fn method(&mut self, of: &'a Node, method: Method, arguments: &'a [Node]) -> Outcome<Js<'r, 'a>> {
        let of = self.value(of)?;
        self.spend(arguments.len() as u64)?;
        // No method has more arguments; one that is absent is undefined.
        let values = match arguments {
            [] => [Js::Undefined; 2],
            [one] => [self.value(one)?, Js::Undefined],
            [one, two] => [self.value(one)?, self.value(two)?],
            _ => return Err(Stop),
        };
        match of.as_str() {
            Some(text) => {
                self.spend((text.len() / BYTES) as u64)?;
                self.take(method.room(text.len()))?;
                known(method.of_text(text, values, self.arena))
            }
            None => {
                let length = known(of.length())?;
                self.spend(length as u64)?;
                let made = known(method.of_list(of, length, values, self.arena))?;
                if let (Method::Join, Some(text)) = (method, made.as_str()) {
                    self.take(text.len())?;
                }
                Ok(made)
            }
        }
    }

    /// Values of arguments, of which each has taken a step.
    fn values(&mut self, nodes: &'a [Node]) -> Outcome<&'r [Js<'r, 'a>]> {
        self.spend(nodes.len() as u64)?;
        let values = self.arena.alloc_slice_fill_copy(nodes.len(), Js::Undefined);
        for (place, node) in values.iter_mut().zip(nodes) {
            *place = self.value(node)?;
        }
        Ok(values)
    }

    fn member(&mut self, of: Js<'r, 'a>, name: &str) -> Outcome<Js<'r, 'a>> {
        if let (Some(text), "length") = (of.as_str(), name) {
            self.read(of)?;
            return Ok(Js::number(length(text) as f64));
        }
        match of.length() {
            Some(length) if name == "length" => Ok(Js::number(length as f64)),
            Some(_) => Err(Stop),
            None => known(of.member(name)),
        }
    }

    /// `of[index]`: the item of a list at a number, the member of an object by a text.
    fn item(&mut self, of: Js<'r, 'a>, index: Js<'r, 'a>) -> Outcome<Js<'r, 'a>> {
        match (of.length(), index) {
            (Some(_), Js::Number(index)) => match index.get() {
                index if index >= 0.0 && index.fract() == 0.0 && index < 1e9 => Ok(of.item(index as usize)),
                _ => Err(Stop),
            },
            (None, index) => known(index.as_str().and_then(|key| of.member(key))),
            _ => Err(Stop),
        }
    }

    fn unary(&mut self, operator: Unary, operand: Js<'r, 'a>) -> Outcome<Js<'r, 'a>> {
        self.read(operand)?;
        Ok(match operator {
            Unary::Not => Js::bool(!operand.is_truthy()),
            Unary::TypeOf => operand.type_of(),
            Unary::Minus => Js::number(-known(operand.to_number())?),
            Unary::Plus => Js::number(known(operand.to_number())?),
        })
    }

    fn binary(&mut self, operator: Binary, a: Js<'r, 'a>, b: Js<'r, 'a>) -> Outcome<Js<'r, 'a>> {
        if let (Js::Number(a), Js::Number(b)) = (a, b) {
            return Ok(of_numbers(operator, a.get(), b.get()));
        }
        match (a.as_str(), b.as_str()) {
            (Some(a), Some(b)) if operator == Binary::Add => self.take(a.len() + b.len())?,
            (Some(a), Some(b)) => self.spend(((a.len() + b.len()) / BYTES) as u64)?,
            // The text of a number, a truth value and the like is short.
            (Some(text), None) | (None, Some(text)) => self.take(text.len() + 24)?,
            (None, None) => {}
        }
        let numbers = |of: fn(f64, f64) -> f64| {
            let (a, b) = (known(a.to_number())?, known(b.to_number())?);
            Ok(Js::number(of(a, b)))
        };
        let ordered = |holds: fn(std::cmp::Ordering) -> bool| {
            let order = known(order(a, b))?;
            Ok(Js::bool(order.is_some_and(holds)))
        };
        let equal = |equality: Equality| {
            known(match equality {
                Equality::Strict => strictly_equal(a, b),
                Equality::Loose => loosely_equal(a, b),
            })
        };
        match operator {
            Binary::Add => known(sum(a, b, self.arena)),
            Binary::Sub => numbers(|a, b| a - b),
            Binary::Mul => numbers(|a, b| a * b),
            Binary::Div => numbers(|a, b| a / b),
            Binary::Rem => numbers(|a, b| a % b),
            Binary::Lt => ordered(std::cmp::Ordering::is_lt),
            Binary::Le => ordered(std::cmp::Ordering::is_le),
            Binary::Gt => ordered(std::cmp::Ordering::is_gt),
            Binary::Ge => ordered(std::cmp::Ordering::is_ge),
            Binary::Equal(equality) => Ok(Js::bool(equal(equality)?)),
            Binary::Unequal(equality) => Ok(Js::bool(!equal(equality)?)),
        }
    }
}

#[inline(never)]
fn constant<'r, 'a: 'r>(node: &'a Node) -> Js<'r, 'a> {
    match node {
        Node::Number(number) => Js::number(*number),
        Node::Constant(json) => Js::of_json(json),
        _ => Js::Undefined,
    }
}

/// Two numbers are most operands.
#[inline]
fn of_numbers<'r, 'a>(operator: Binary, a: f64, b: f64) -> Js<'r, 'a> {
    match operator {
        Binary::Add => Js::number(a + b),
        Binary::Sub => Js::number(a - b),
        Binary::Mul => Js::number(a * b),
        Binary::Div => Js::number(a / b),
        Binary::Rem => Js::number(a % b),
        Binary::Lt => Js::bool(a < b),
        Binary::Le => Js::bool(a <= b),
        Binary::Gt => Js::bool(a > b),
        Binary::Ge => Js::bool(a >= b),
        Binary::Equal(_) => Js::bool(a == b),
        Binary::Unequal(_) => Js::bool(a != b),
    }
}
