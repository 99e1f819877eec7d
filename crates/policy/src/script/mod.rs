//! Scripts: JavaScript expressions and statements of a project, run by QuickJS within bounds.
//!
//! Most scripts need none of it: [`native`] reads the part of JavaScript that they consist of, and computes the same. What it
//! does not know goes to QuickJS.
//!
//! A worker has one engine, which [`Engine::new`] builds for a project. A script sees its parameters and a part of the
//! standard library: no clock, no chance, no code from texts, no state that outlives a call (`prelude.js`). Bounds:
//! memory, stack, steps (calls and loop turns) and work within built-in functions.

mod convert;
pub(crate) mod difference;
mod native;
mod text;

use std::cell::Cell;
use std::rc::Rc;

use bumpalo::Bump;
use rquickjs::context::intrinsic::{Eval, Json};
use rquickjs::function::Args;
use rquickjs::{CatchResultExt, CaughtError, Context, Ctx, Function, Persistent, Runtime};

use convert::Room;
use native::{Budget, Native};
use text::CHARGE;

use crate::limits::Limits;
use crate::value::Value;

/// A script of a project.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) name: String,
    pub(crate) parameters: Vec<String>,
    body: Body,
    /// Without QuickJS, where all of it is known.
    native: Option<Native>,
}

/// The two forms of a script.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// `used > 0.8 * limit`
    Expression(String),
    /// Statements that end with `return`.
    Statements(String),
}

/// Stack of the engine in bytes.
const STACK: usize = 256 << 10;
/// Bytes, items or the like that built-in functions may handle in one call of a script; see `EVALUATION`.
const WORK: u32 = 200_000;
/// As `WORK`, for all calls of one evaluation.
const EVALUATION: u32 = 8 * WORK;
/// Items of an array that built-in functions take.
const LONGEST: u32 = 65_536;
/// Steps after which QuickJS asks whether to go on.
const PORTION: u64 = 10_000;
/// The script engine of one worker for one project.
pub(crate) struct Engine {
    functions: Vec<Persistent<Function<'static>>>,
    /// Begins the count of the work of an evaluation.
    begin: Persistent<Function<'static>>,
    context: Context,
    runtime: Runtime,
    /// Address on the stack at which the runtime was made: QuickJS measures from there.
    top: usize,
    portions: Rc<Cell<u64>>,
    allowed: u64,
    stopped: Rc<Cell<bool>>,
    /// Whether the evaluation has called a script.
    begun: Cell<bool>,
}

/// Bounds of a call without QuickJS.
pub(crate) struct Bounds<'s> {
    /// Steps that the scripts of the evaluation have left here.
    pub(crate) steps: &'s mut u64,
    pub(crate) limits: &'s Limits,
    /// Bytes that the result may have, as for [`Engine::call`].
    pub(crate) bytes: usize,
}

/// Why a script cannot be used: its position in the project and what is wrong.
#[derive(Debug)]
pub(crate) struct ScriptFault {
    pub(crate) script: usize,
    pub(crate) what: String,
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum CallFault {
    /// The script used up its steps.
    Steps,
    /// The script threw, also for lack of memory or stack.
    Thrown(String),
    /// The result is not JSON, or exceeds a limit.
    Result(String),
}

impl Engine {
    pub(crate) fn new(scripts: &[Script], limits: &Limits) -> Result<Self, Vec<ScriptFault>> {
        let broken = |error: String| {
            let what = format!("the script engine does not start: {error}");
            vec![ScriptFault { script: 0, what }]
        };
        let top = stack_address();
        let runtime = Runtime::new().map_err(|error| broken(error.to_string()))?;
        runtime.set_max_stack_size(STACK);
        let context = Context::custom::<(Eval, Json)>(&runtime).map_err(|error| broken(error.to_string()))?;
        let (portions, stopped) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
        let mut faults = Vec::new();
        let functions = context.with(|ctx| {
            let prelude = ctx.eval::<Function<'_>, _>(include_str!("prelude.js"));
            let guards = prelude.and_then(|prelude| Guards::new(&prelude.call((WORK, EVALUATION, LONGEST))?));
            let guards = guards.catch(&ctx).map_err(|error| message(&error))?;
            let mut functions = Vec::new();
            for (position, script) in scripts.iter().enumerate() {
                match script.compile(&ctx, &guards) {
                    Ok(function) => functions.push(Persistent::save(&ctx, function)),
                    Err(what) => faults.push(ScriptFault {
                        script: position,
                        what,
                    }),
                }
            }
            Ok((functions, Persistent::save(&ctx, guards.begin)))
        });
        let (functions, begin) = functions.map_err(broken)?;
        if !faults.is_empty() {
            return Err(faults);
        }
        runtime.run_gc();
        let base = usize::try_from(runtime.memory_usage().malloc_size).unwrap_or(usize::MAX);
        runtime.set_memory_limit(base.saturating_add(limits.script_memory_bytes));
        // Before the limit, or cyclic garbage of earlier calls would count against a later one.
        runtime.set_gc_threshold(base.saturating_add(limits.script_memory_bytes / 2));
        let engine = Self {
            functions,
            begin,
            context,
            runtime,
            top,
            portions,
            allowed: limits.script_steps.div_ceil(PORTION).max(1),
            stopped,
            begun: Cell::new(false),
        };
        engine.watch();
        Ok(engine)
    }

    fn watch(&self) {
        let (portions, stopped, allowed) = (self.portions.clone(), self.stopped.clone(), self.allowed);
        self.runtime.set_interrupt_handler(Some(Box::new(move || {
            portions.set(portions.get() + 1);
            // The first portion may have begun in an earlier evaluation.
            let stop = portions.get() > allowed;
            stopped.set(stop);
            stop
        })));
    }

    /// Begins an evaluation: its steps and its work in built-in functions count from zero.
    pub(crate) fn begin(&self) {
        self.begun.set(false);
    }

    fn begin_first(&self) {
        if self.begun.replace(true) {
            return;
        }
        self.portions.set(0);
        self.stopped.set(false);
        self.context.with(|ctx| {
            let begun = self.begin.clone().restore(&ctx);
            // Without memory for the call the work of earlier evaluations counts as well: scripts fail sooner.
            let _ = begun.and_then(|begin| begin.call::<_, ()>(())).catch(&ctx);
        });
    }

    /// Calls a script with a value for each parameter. The result, in the arena, may have `depth` levels and about `bytes`
    /// bytes.
    pub(crate) fn call<'a>(
        &self,
        script: usize,
        values: &[Value<'a>],
        depth: usize,
        bytes: usize,
        arena: &'a Bump,
    ) -> Result<Value<'a>, CallFault> {
        let Some(function) = self.functions.get(script) else {
            return Err(CallFault::Thrown("no such script".to_owned()));
        };
        self.begin_first();
        // A script has the whole of its stack, however deep its caller is.
        let caller = self.top.saturating_sub(stack_address());
        self.runtime.set_max_stack_size(STACK.saturating_add(caller));
        self.context.with(|ctx| {
            let result = call(&ctx, function, values, Room { depth, bytes }, arena);
            match result {
                Err(_) if self.stopped.get() => Err(CallFault::Steps),
                result => result,
            }
        })
    }

    /// Frees what failed calls have left.
    pub(crate) fn clean(&self) {
        self.runtime.run_gc();
    }
}

/// An address within the caller's part of the stack.
#[inline(never)]
fn stack_address() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&here)).addr()
}

fn call<'a, 'js>(
    ctx: &Ctx<'js>,
    function: &Persistent<Function<'static>>,
    values: &[Value<'a>],
    mut room: Room,
    arena: &'a Bump,
) -> Result<Value<'a>, CallFault> {
    let thrown = |error: CaughtError<'js>| CallFault::Thrown(message(&error));
    let called = || {
        let function = function.clone().restore(ctx)?;
        let mut args = Args::new(ctx.clone(), values.len());
        for value in values {
            args.push_arg(convert::to_script(ctx, value)?)?;
        }
        function.call_arg::<rquickjs::Value<'js>>(args)
    };
    let result = called().catch(ctx).map_err(thrown)?;
    match convert::from_script(&result, &mut room, arena) {
        Ok(value) => Ok(value),
        Err(convert::Refused::Limit(what)) => Err(CallFault::Result(what)),
        Err(convert::Refused::Engine(error)) => {
            let failed: Result<(), _> = Err(error);
            Err(failed.catch(ctx).err().map_or(CallFault::Steps, thrown))
        }
    }
}

/// The functions of `prelude.js` that count work.
struct Guards<'js> {
    /// Called before each call of a script.
    reset: Function<'js>,
    /// Called with what an object spread copies or a `for … in` enumerates; see [`text`].
    charge: Function<'js>,
    /// Called before each evaluation.
    begin: Function<'js>,
}

impl<'js> Guards<'js> {
    fn new(made: &rquickjs::Object<'js>) -> rquickjs::Result<Self> {
        Ok(Self {
            reset: made.get("reset")?,
            charge: made.get("charge")?,
            begin: made.get("begin")?,
        })
    }
}

impl Script {
    pub(crate) fn new(name: &str, parameters: Vec<String>, body: Body) -> Self {
        Self {
            name: name.to_owned(),
            native: Native::parse(&parameters, &body),
            parameters,
            body,
        }
    }

    /// The result of a call without QuickJS; none where only that knows. What the call makes on the way is in `calls`, the
    /// result in the arena.
    pub(crate) fn natively<'a>(
        &'a self,
        values: &[Value<'a>],
        bounds: &mut Bounds<'_>,
        calls: &Bump,
        arena: &'a Bump,
    ) -> Option<Value<'a>> {
        let native = self.native.as_ref()?;
        let mut budget = Budget {
            steps: *bounds.steps,
            bytes: bounds.limits.script_memory_bytes,
        };
        let result = native.call(values, &mut budget, calls);
        *bounds.steps = budget.steps;
        let mut room = Room {
            depth: bounds.limits.depth,
            bytes: bounds.bytes,
        };
        result?.result(&mut room, arena)
    }

    fn compile<'js>(&self, ctx: &Ctx<'js>, guards: &Guards<'js>) -> Result<Function<'js>, String> {
        let text = match &self.body {
            Body::Expression(text) | Body::Statements(text) => text::guarded(text)?,
        };
        let body = match &self.body {
            // The line break ends a comment at the end of the expression.
            Body::Expression(_) => format!("return (\n{text}\n);"),
            Body::Statements(_) => format!("\n{text}\n"),
        };
        let parameters = self.parameters.join(", ");
        // The text alone must be a body: one that closes the function and goes on would escape it.
        let compile = |source: String| -> Result<Function<'js>, String> {
            ctx.eval(source)
                .catch(ctx)
                .map_err(|error| self.explain(&message(&error)))
        };
        let alone = format!("(function ({parameters}) {{ \"use strict\"; {body} }})");
        drop(compile(alone.clone())?);
        let factory = compile(format!(
            "(function (reset, {CHARGE}) {{ \"use strict\"; const body = {alone}; return function ({parameters}) {{ reset(); return body({parameters}); }}; }})"
        ))?;
        factory
            .call((guards.reset.clone(), guards.charge.clone()))
            .catch(ctx)
            .map_err(|error| message(&error))
    }

    fn explain(&self, message: &str) -> String {
        format!("{message} (parameters: {})", self.parameters.join(", "))
    }
}

fn message(error: &CaughtError<'_>) -> String {
    let text = match error {
        CaughtError::Exception(exception) => exception.message().unwrap_or_default(),
        CaughtError::Value(value) => match value.as_string().map(rquickjs::String::to_string) {
            Some(Ok(text)) => text,
            _ => "a value that is not an error".to_owned(),
        },
        CaughtError::Error(error) => error.to_string(),
    };
    text.chars().take(200).collect()
}

#[cfg(test)]
mod tests;
