//! Evaluation of a tree.

use std::rc::Rc;

use smallvec::SmallVec;

use super::super::convert::Room;
use super::builtin::{length, loosely_equal, order, strictly_equal, sum};
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

/// Why an expression has no value.
enum Stop {
    /// QuickJS has to run the script.
    Unknown,
    /// `?.` after null or undefined.
    Short,
}

type Outcome<T> = Result<T, Stop>;
/// Arguments of a call.
type Arguments<'a> = SmallVec<[Js<'a>; 3]>;

struct Run<'a> {
    native: &'a Native,
    slots: SmallVec<[Js<'a>; 12]>,
    budget: Budget,
    levels: u32,
}

impl Native {
    /// The result of a call with a value for each parameter; none where QuickJS has to run it. Takes its steps of the budget.
    pub(in crate::script) fn call<'a>(
        &'a self,
        values: &[Value<'a>],
        budget: &mut Budget,
        room: &mut Room,
    ) -> Option<Value<'a>> {
        let mut run = Run {
            native: self,
            slots: smallvec::smallvec![Js::Undefined; self.slots],
            budget: *budget,
            levels: 0,
        };
        for (slot, value) in run.slots.iter_mut().zip(values) {
            *slot = Js::of(value);
        }
        let result = run.body(&self.body);
        budget.steps = run.budget.steps;
        result.ok()?.result(room)
    }
}

fn known<T>(value: Option<T>) -> Outcome<T> {
    value.ok_or(Stop::Unknown)
}

impl<'a> Run<'a> {
    fn body(&mut self, body: &'a Body) -> Outcome<Js<'a>> {
        match body {
            Body::Expression(node) => self.value(node),
            Body::Statements(statements) => Ok(self.statements(statements)?.unwrap_or(Js::Undefined)),
        }
    }

    /// The value of the `return` that was reached.
    fn statements(&mut self, statements: &'a [Statement]) -> Outcome<Option<Js<'a>>> {
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
    fn read(&mut self, value: &Js<'a>) -> Outcome<()> {
        match value {
            Js::Text(text) => self.spend((text.as_str().len() / BYTES) as u64),
            other => self.spend(other.length().unwrap_or(0) as u64),
        }
    }

    fn value(&mut self, node: &'a Node) -> Outcome<Js<'a>> {
        match node {
            Node::Undefined => return Ok(Js::Undefined),
            Node::Number(number) => return Ok(Js::Number(*number)),
            Node::Constant(json) => return Ok(Js::of_json(json)),
            Node::Slot(slot) => return Ok(self.slots[*slot].clone()),
            _ => {}
        }
        self.spend(1)?;
        if self.levels >= LEVELS {
            return Err(Stop::Unknown);
        }
        self.levels += 1;
        let value = self.inner(node);
        self.levels -= 1;
        value
    }

    /// A value that takes others.
    fn inner(&mut self, node: &'a Node) -> Outcome<Js<'a>> {
        match node {
            Node::Member(of, name) => {
                let of = self.value(of)?;
                self.member(&of, name)
            }
            Node::Index(parts) => {
                let (of, index) = (self.value(&parts.0)?, self.value(&parts.1)?);
                self.item(&of, &index)
            }
            Node::Optional(of) => {
                let of = self.value(of)?;
                if of.is_nullish() { Err(Stop::Short) } else { Ok(of) }
            }
            Node::Chain(chain) => match self.value(chain) {
                Err(Stop::Short) => Ok(Js::Undefined),
                value => value,
            },
            Node::Unary(operator, operand) => {
                let operand = self.value(operand)?;
                self.unary(*operator, &operand)
            }
            Node::Binary(operator, operands) => {
                let (a, b) = (self.value(&operands.0)?, self.value(&operands.1)?);
                self.binary(*operator, &a, &b)
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
            _ => self.made(node),
        }
    }

    /// What is made of any number of values.
    fn made(&mut self, node: &'a Node) -> Outcome<Js<'a>> {
        match node {
            Node::Template(first, parts) => {
                self.spend(parts.len() as u64)?;
                let mut text = first.clone();
                for (part, follows) in parts {
                    let part = known(self.value(part)?.to_text())?;
                    self.take(part.as_str().len() + follows.len())?;
                    text.push_str(part.as_str());
                    text.push_str(follows);
                }
                Ok(Js::text(text))
            }
            Node::List(items) => {
                self.take(32 * items.len())?;
                let mut made = Vec::with_capacity(items.len());
                for item in items {
                    made.push(self.value(item)?);
                }
                Ok(Js::List(Rc::new(made)))
            }
            Node::Object(members) => {
                self.take(64 * members.len())?;
                let mut made = Vec::with_capacity(members.len());
                for (key, member) in members {
                    made.push((key.as_str(), self.value(member)?));
                }
                Ok(Js::Object(Rc::new(made)))
            }
            Node::Call(function, arguments) => {
                let function = known(self.native.functions.get(*function))?;
                let mut values = Arguments::new();
                self.values(arguments, &mut values)?;
                let mut values = values.drain(..);
                for slot in &function.parameters {
                    self.slots[*slot] = values.next().unwrap_or(Js::Undefined);
                }
                drop(values);
                self.body(&function.body)
            }
            Node::Builtin(builtin, arguments) => {
                let mut values = Arguments::new();
                self.values(arguments, &mut values)?;
                for value in &values {
                    self.read(value)?;
                }
                known(builtin.call(&values))
            }
            Node::Method(of, method, arguments) => {
                let of = self.value(of)?;
                let mut values = Arguments::new();
                self.values(arguments, &mut values)?;
                self.read(&of)?;
                if let Js::Text(text) = &of {
                    self.take(method.room(text.as_str().len()))?;
                }
                known(method.call(&of, &values))
            }
            _ => Err(Stop::Unknown),
        }
    }

    fn values(&mut self, nodes: &'a [Node], values: &mut Arguments<'a>) -> Outcome<()> {
        self.spend(nodes.len() as u64)?;
        for node in nodes {
            values.push(self.value(node)?);
        }
        Ok(())
    }

    fn member(&mut self, of: &Js<'a>, name: &str) -> Outcome<Js<'a>> {
        match of {
            Js::Text(text) if name == "length" => {
                self.read(of)?;
                Ok(Js::Number(length(text.as_str()) as f64))
            }
            _ if of.length().is_some() => match (of.length(), name) {
                (Some(length), "length") => Ok(Js::Number(length as f64)),
                _ => Err(Stop::Unknown),
            },
            _ => known(of.member(name)),
        }
    }

    /// `of[index]`: the item of a list at a number, the member of an object by a text.
    fn item(&mut self, of: &Js<'a>, index: &Js<'a>) -> Outcome<Js<'a>> {
        match (of.length(), index) {
            (Some(_), Js::Number(index)) if *index >= 0.0 && index.fract() == 0.0 && *index < 1e9 => {
                Ok(of.item(*index as usize))
            }
            (None, Js::Text(key)) => known(of.member(key.as_str())),
            _ => Err(Stop::Unknown),
        }
    }

    fn unary(&mut self, operator: Unary, operand: &Js<'a>) -> Outcome<Js<'a>> {
        self.read(operand)?;
        Ok(match operator {
            Unary::Not => Js::Bool(!operand.is_truthy()),
            Unary::TypeOf => Js::Text(crate::value::Text::Ref(operand.type_of())),
            Unary::Minus => Js::Number(-known(operand.to_number())?),
            Unary::Plus => Js::Number(known(operand.to_number())?),
        })
    }

    fn binary(&mut self, operator: Binary, a: &Js<'a>, b: &Js<'a>) -> Outcome<Js<'a>> {
        if let (Js::Text(a), Js::Text(b)) = (a, b) {
            let bytes = a.as_str().len() + b.as_str().len();
            match operator {
                Binary::Add => self.take(bytes)?,
                _ => self.spend((bytes / BYTES) as u64)?,
            }
        } else if let (Js::Text(text), _) | (_, Js::Text(text)) = (a, b) {
            // The text of a number, a truth value and the like is short.
            self.take(text.as_str().len() + 24)?;
        }
        let numbers = |of: fn(f64, f64) -> f64| {
            let (a, b) = (known(a.to_number())?, known(b.to_number())?);
            Ok(Js::Number(of(a, b)))
        };
        let ordered = |holds: fn(std::cmp::Ordering) -> bool| {
            let order = known(order(a, b))?;
            Ok(Js::Bool(order.is_some_and(holds)))
        };
        let equal = |equality: Equality| {
            known(match equality {
                Equality::Strict => strictly_equal(a, b),
                Equality::Loose => loosely_equal(a, b),
            })
        };
        match operator {
            Binary::Add => known(sum(a, b)),
            Binary::Sub => numbers(|a, b| a - b),
            Binary::Mul => numbers(|a, b| a * b),
            Binary::Div => numbers(|a, b| a / b),
            Binary::Rem => numbers(|a, b| a % b),
            Binary::Lt => ordered(std::cmp::Ordering::is_lt),
            Binary::Le => ordered(std::cmp::Ordering::is_le),
            Binary::Gt => ordered(std::cmp::Ordering::is_gt),
            Binary::Ge => ordered(std::cmp::Ordering::is_ge),
            Binary::Equal(equality) => Ok(Js::Bool(equal(equality)?)),
            Binary::Unequal(equality) => Ok(Js::Bool(!equal(equality)?)),
        }
    }
}
