//! One evaluation: blocks in order, within bounds.

mod entries;
mod expressions;
mod json;
mod notify;
mod operations;

use bumpalo::Bump;
use regex_automata::meta::Cache;
use smallvec::SmallVec;
use time::OffsetDateTime;

use crate::decision::{Decision, Rejection};
use crate::fault::{Fault, FaultKind};
use crate::input::Input;
use crate::limits::Limits;
use crate::program::{Block, Case, Owner, Program, Step};
use crate::scratch::{self, Scratch};
use crate::script::Engine;
use crate::shape::Service;
use crate::trace::Trace;
use crate::value::{Items, Value};
use crate::work::Work;

/// The result of a part of an evaluation.
type Outcome<T> = Result<T, Stopped>;

/// The evaluation ends with the fault of its [`Run`]. Without parts, so that the result of a value takes two registers.
#[derive(Clone, Copy, Debug)]
struct Stopped;

/// Where to go on after a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
    Stop,
}

/// The state of an evaluation.
struct Run<'a, 's> {
    program: &'a Program,
    limits: &'a Limits,
    input: &'a Input<'a>,
    now: OffsetDateTime,
    /// Of the values that it makes.
    arena: &'a Bump,
    /// Of those that scripts make on their way.
    calls: &'s mut Bump,
    engine: Option<&'s Engine>,
    caches: &'s mut [Option<Cache>],
    /// Room in which a text is put together.
    text: &'s mut String,
    trace: Option<&'s mut Trace>,
    /// The event of the block that is evaluated, where it is traced.
    event: Option<usize>,
    variables: &'a mut [Value<'a>],
    /// Data of the input that were resolved.
    resolved: &'a mut [Option<Value<'a>>],
    decision: Decision<'a>,
    steps: u64,
    memory: usize,
    output: usize,
    /// Steps that scripts without QuickJS have left.
    native_steps: u64,
    /// Blocks and calls around the current one.
    level: usize,
    /// Label of the current block.
    label: usize,
    fault: Option<Fault>,
}

pub(crate) fn decide<'a>(
    program: &'a Program,
    limits: &'a Limits,
    service: Service,
    scratch: &'a mut Scratch,
    input: &'a Input<'a>,
    now: OffsetDateTime,
    trace: Option<&mut Trace>,
) -> Result<Decision<'a>, Fault> {
    scratch::clear(&mut scratch.arena);
    let arena = &scratch.arena;
    let engine = scratch.engine.as_ref();
    if let Some(engine) = engine {
        engine.begin();
    }
    let mut run = Run {
        program,
        limits,
        input,
        now,
        arena,
        calls: &mut scratch.calls,
        engine,
        caches: &mut scratch.caches,
        text: &mut scratch.text,
        trace,
        event: None,
        variables: arena.alloc_slice_fill_copy(program.variables.len(), Value::Null),
        resolved: arena.alloc_slice_fill_copy(program.paths.len(), None),
        decision: Decision::new(service, arena),
        steps: limits.steps,
        memory: limits.memory_bytes,
        output: limits.output_bytes,
        native_steps: limits.script_steps,
        level: 0,
        label: 0,
        fault: None,
    };
    let ended = run.blocks(&program.blocks);
    debug_assert_eq!(ended.is_err(), run.fault.is_some());
    match run.fault {
        None => Ok(run.decision),
        Some(fault) => Err(fault),
    }
}

impl<'a> Run<'a, '_> {
    fn blocks(&mut self, blocks: &'a [Block]) -> Outcome<Flow> {
        for block in blocks {
            let flow = self.block(block)?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    /// Blocks within a block or routine.
    fn inner(&mut self, blocks: &'a [Block]) -> Outcome<Flow> {
        if self.level >= self.limits.depth {
            let what = format!(
                "blocks and calls nest deeper than {} levels (`depth`)",
                self.limits.depth
            );
            return Err(self.fault(FaultKind::Depth, what));
        }
        if blocks.is_empty() {
            return Ok(Flow::Next);
        }
        let (label, event) = (self.label, self.event);
        self.level += 1;
        let flow = self.blocks(blocks)?;
        self.level -= 1;
        (self.label, self.event) = (label, event);
        Ok(flow)
    }

    fn block(&mut self, block: &'a Block) -> Outcome<Flow> {
        self.label = block.label;
        self.spend(1)?;
        let program = self.program;
        if let Some(trace) = &mut self.trace {
            let label = &program.labels[block.label];
            self.event = trace.begin(self.limits.trace_events, &label.name, label.kind, self.level);
        }
        match &block.step {
            Step::If {
                condition,
                then,
                otherwise,
            } => {
                let holds = self.value(condition)?.is_true();
                self.note(|| holds.to_string());
                self.inner(if holds { then } else { otherwise })
            }
            Step::Switch {
                value,
                cases,
                default,
            } => {
                let value = self.value(value)?;
                match self.case(cases, value)? {
                    Some(position) => {
                        self.note(|| format!("case {}", position + 1));
                        self.inner(&cases[position].body)
                    }
                    None => {
                        self.note(|| "no case, the default".to_owned());
                        self.inner(default)
                    }
                }
            }
            Step::Each { list, variable, body } => {
                let items = self.value(list)?.items().unwrap_or_else(Items::none);
                self.charge(items.len() * 32)?;
                self.note(|| format!("{} items", items.len()));
                let mut turns = 0;
                for item in items {
                    self.variables[*variable] = item;
                    match self.turn(&mut turns, body)? {
                        Flow::Break => break,
                        Flow::Stop => return Ok(Flow::Stop),
                        Flow::Next | Flow::Continue => {}
                    }
                }
                Ok(Flow::Next)
            }
            Step::While { condition, body } => {
                let mut turns = 0;
                while self.value(condition)?.is_true() {
                    match self.turn(&mut turns, body)? {
                        Flow::Break => break,
                        Flow::Stop => return Ok(Flow::Stop),
                        Flow::Next | Flow::Continue => {}
                    }
                }
                self.note(|| format!("{turns} turns"));
                Ok(Flow::Next)
            }
            Step::Repeat { times, body } => {
                let times = self.value(times)?.as_f64().unwrap_or(0.0);
                let mut turns = 0;
                while (turns as f64) < times {
                    match self.turn(&mut turns, body)? {
                        Flow::Break => break,
                        Flow::Stop => return Ok(Flow::Stop),
                        Flow::Next | Flow::Continue => {}
                    }
                }
                self.note(|| format!("{turns} turns"));
                Ok(Flow::Next)
            }
            Step::Call(routine) => {
                let routine = &program.routines[*routine];
                self.note(|| routine.name.clone());
                self.inner(&routine.blocks)
            }
            Step::Stop => {
                self.note(|| "the evaluation ends here".to_owned());
                Ok(Flow::Stop)
            }
            Step::Break => Ok(Flow::Break),
            Step::Continue => Ok(Flow::Continue),
            Step::Reject { .. } => self.reject(&block.step),
            Step::Lookup { .. } => self.lookup(&block.step),
            step => {
                self.simple(step)?;
                Ok(Flow::Next)
            }
        }
    }

    /// Blocks that decide no way.
    fn simple(&mut self, step: &'a Step) -> Outcome<()> {
        match step {
            Step::Set(assignments) => {
                for (slot, expr) in assignments {
                    let value = self.value(expr)?;
                    let name = &self.program.variables[*slot];
                    self.read(|| format!("${name} becomes"), &value);
                    self.variables[*slot] = value;
                }
                self.note(|| format!("{} set", assignments.len()));
            }
            Step::Remember(owner, values) => {
                for (name, expr) in values {
                    let value = self.value(expr)?;
                    self.put(value.weight(self.output) + name.len())?;
                    self.note_decided(|| {
                        let variables = match owner {
                            Owner::Association => "state",
                            Owner::Subscriber => "subscriberState",
                        };
                        (crate::trace::shown(&value), format!("{variables}.{name}"))
                    });
                    self.decision.remember(*owner, name, value);
                }
            }
            Step::Entry(entry) => self.entry(entry)?,
            Step::Members(members) => self.members(members)?,
            Step::Triggers(triggers) => self.triggers(triggers)?,
            Step::Notify(notify) => self.notify(notify)?,
            Step::Remove(section, id) => {
                let id = self.value(id)?;
                let id = self.identifier(id, section.member())?;
                self.put(id.len() + 8)?;
                self.note_decided(|| ("removed".to_owned(), format!("{}.{id}", section.member())));
                self.decision.put(*section, id, Value::Null);
            }
            // The others decide where to go on.
            _ => {}
        }
        Ok(())
    }

    fn case(&mut self, cases: &'a [Case], value: Value<'a>) -> Outcome<Option<usize>> {
        for (position, case) in cases.iter().enumerate() {
            for candidate in &case.values {
                let candidate = self.value(candidate)?;
                if self.equal(candidate, value)? {
                    return Ok(Some(position));
                }
            }
        }
        Ok(None)
    }

    fn turn(&mut self, turns: &mut u64, body: &'a [Block]) -> Outcome<Flow> {
        if *turns >= self.limits.loop_turns {
            let what = format!(
                "the loop has more than {} turns (`loopTurns`)",
                self.limits.loop_turns
            );
            return Err(self.fault(FaultKind::LoopTurns, what));
        }
        *turns += 1;
        self.spend(1)?;
        self.inner(body)
    }

    fn lookup(&mut self, step: &'a Step) -> Outcome<Flow> {
        let Step::Lookup {
            table,
            keys,
            variable,
            otherwise,
        } = step
        else {
            return Ok(Flow::Next);
        };
        let table = &self.program.tables[*table];
        let mut values: SmallVec<[Value<'a>; 8]> = SmallVec::new();
        for (key, source) in keys.iter().zip(&table.sources) {
            values.push(self.value(key.as_ref().unwrap_or(source))?);
        }
        self.spend(values.len() as u64)?;
        match self.within(|work| table.lookup(&values, work))? {
            Some(position) => {
                self.note(|| format!("row {} of {}", position + 1, table.name));
                self.variables[*variable] = Value::of(&table.rows[position].result);
                Ok(Flow::Next)
            }
            None => {
                self.note(|| format!("no row of {}", table.name));
                self.variables[*variable] = Value::Null;
                self.inner(otherwise)
            }
        }
    }

    fn reject(&mut self, step: &'a Step) -> Outcome<Flow> {
        if let Step::Reject {
            status,
            cause,
            detail,
        } = step
        {
            let cause = self.value(cause)?;
            let cause = self.text_of(cause)?;
            let detail = match detail {
                Some(detail) => {
                    let detail = self.value(detail)?;
                    Some(self.text_of(detail)?)
                }
                None => None,
            };
            self.put(cause.len() + detail.map_or(0, str::len))?;
            self.note_decided(|| (cause.to_owned(), "rejection".to_owned()));
            self.decision.reject(Rejection {
                status: *status,
                cause,
                detail,
            });
        }
        Ok(Flow::Stop)
    }

    /// The text of a text, a number or a boolean; of anything else JSON.
    fn text_of(&mut self, value: Value<'a>) -> Outcome<&'a str> {
        let text = match value {
            Value::Text(text) => return Ok(text),
            Value::Made(text) => return Ok(text),
            Value::Int(int) => int.to_string(),
            other => {
                self.charge(other.weight(self.memory))?;
                serde_json::to_string(&other).unwrap_or_default()
            }
        };
        self.charge(text.len() + 16)?;
        Ok(self.arena.alloc_str(&text))
    }

    #[inline]
    fn spend(&mut self, steps: u64) -> Outcome<()> {
        match self.steps.checked_sub(steps) {
            Some(left) => {
                self.steps = left;
                Ok(())
            }
            None => Err(self.out_of_steps()),
        }
    }

    /// Compares, and takes the steps for it; the evaluation ends where it has not as many.
    fn within<T>(&mut self, compare: impl FnOnce(&mut Work) -> Option<T>) -> Outcome<T> {
        let mut work = Work::of(self.steps);
        let found = compare(&mut work);
        match found {
            Some(found) => {
                self.spend(work.steps())?;
                Ok(found)
            }
            None => Err(self.out_of_steps()),
        }
    }

    /// Takes memory for a value that the evaluation makes, and steps for the work.
    fn charge(&mut self, bytes: usize) -> Outcome<()> {
        self.spend(bytes as u64 / 256)?;
        match self.memory.checked_sub(bytes) {
            Some(left) => {
                self.memory = left;
                Ok(())
            }
            None => Err(self.out_of_memory()),
        }
    }

    #[cold]
    fn out_of_steps(&mut self) -> Stopped {
        let what = format!(
            "the evaluation takes more than {} steps (`steps`)",
            self.limits.steps
        );
        self.fault(FaultKind::Steps, what)
    }

    #[cold]
    fn out_of_memory(&mut self) -> Stopped {
        let what = format!(
            "the values need more than {} bytes (`memoryBytes`)",
            self.limits.memory_bytes
        );
        self.fault(FaultKind::Memory, what)
    }

    #[cold]
    fn fault(&mut self, kind: FaultKind, what: String) -> Stopped {
        let label = self.program.labels.get(self.label);
        self.fault = Some(Fault {
            block: label.map_or_else(String::new, |label| label.name.clone()),
            kind,
            what,
        });
        Stopped
    }

    fn note(&mut self, outcome: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.outcome(self.event, outcome(), None);
        }
    }

    fn note_decided(&mut self, made: impl FnOnce() -> (String, String)) {
        if let Some(trace) = &mut self.trace {
            let (outcome, decided) = made();
            trace.outcome(self.event, outcome, Some(decided));
        }
    }

    fn read(&mut self, datum: impl FnOnce() -> String, value: &Value<'a>) {
        if let Some(trace) = &mut self.trace {
            trace.read(self.event, datum(), value);
        }
    }
}
