//! Values of expressions.

use regex_automata::Input as Haystack;
use regex_automata::meta::Cache;
use serde_json::Value as Json;
use smallvec::SmallVec;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::expression::{Clock, Expr};
use crate::fault::FaultKind;
use crate::program::{Base, Root};
use crate::scratch;
use crate::script::{Bounds, CallFault};
use crate::value::{Member, Value};

use super::{Outcome, Run};

/// Steps of a call of a script: what its native work may cost beside its own steps.
const SCRIPT_STEPS: u64 = 100;

impl<'a> Run<'a, '_> {
    #[inline]
    pub(super) fn value(&mut self, expr: &'a Expr) -> Outcome<Value<'a>> {
        match expr {
            Expr::Constant(json) => self.constant(json),
            Expr::Path(slot) => self.datum(*slot),
            Expr::Variable(slot) => self.variable(*slot),
            _ => self.computed(expr),
        }
    }

    #[inline(never)]
    fn constant(&mut self, json: &'a Json) -> Outcome<Value<'a>> {
        self.spend(1)?;
        Ok(Value::of(json))
    }

    #[inline(never)]
    fn datum(&mut self, slot: usize) -> Outcome<Value<'a>> {
        self.spend(1)?;
        let value = self.resolve(slot);
        let program = self.program;
        self.read(|| program.paths[slot].text.clone(), &value);
        Ok(value)
    }

    #[inline(never)]
    fn variable(&mut self, slot: usize) -> Outcome<Value<'a>> {
        self.spend(1)?;
        let value = self.variables[slot];
        let program = self.program;
        self.read(|| format!("${}", program.variables[slot]), &value);
        Ok(value)
    }

    /// The value of an expression that has parts.
    #[inline(never)]
    fn computed(&mut self, expr: &'a Expr) -> Outcome<Value<'a>> {
        self.spend(1)?;
        match expr {
            Expr::Constant(_) | Expr::Path(_) | Expr::Variable(_) => self.value(expr),
            Expr::Member(base, name) => Ok(self.value(base)?.member(name)),
            Expr::Item(base, index) => Ok(self.value(base)?.item(*index)),
            Expr::At(base, index) => self.at(base, index),
            Expr::List(items) => {
                let made = self.arena.alloc_slice_fill_copy(items.len(), Value::Null);
                for (place, item) in made.iter_mut().zip(items) {
                    *place = self.value(item)?;
                }
                self.made(Value::list(made, self.arena))
            }
            Expr::Object(members) => {
                self.object(members, |run, (name, member)| Ok((name, run.value(member)?)))
            }
            Expr::Apply(operation, arguments) => self.apply(*operation, arguments),
            Expr::InList(value, list) => {
                let value = self.value(value)?;
                let list = &self.program.lists[*list];
                let found = Value::bool(self.within(|work| list.has(&value, work))?);
                self.read(|| format!("in list {}", list.name), &found);
                Ok(found)
            }
            Expr::Matches(value, pattern) => self.matches(value, *pattern),
            Expr::Capture(value, pattern, group) => self.capture(value, *pattern, *group),
            Expr::Wildcard(value, glob) => {
                let value = self.value(value)?;
                let Some(text) = value.as_str() else {
                    return Ok(Value::bool(false));
                };
                Ok(Value::bool(self.within(|work| glob.matches(text, work))?))
            }
            Expr::TimeBetween(from, to, days) => Ok(Value::bool(self.is_between(*from, *to, *days))),
            Expr::Now(clock) => self.clock(*clock),
            Expr::Event => Ok(Value::Made(&self.input.event)),
            Expr::Script(script, values) => self.script(*script, values),
        }
    }

    /// A datum of the input, looked up once.
    fn resolve(&mut self, slot: usize) -> Value<'a> {
        if let Some(value) = self.resolved[slot] {
            return value;
        }
        let program = self.program;
        let value = match &program.paths[slot].base {
            Base::Root(root) => Value::of(match root {
                Root::Request => self.input.request,
                Root::Subscriber => self.input.subscriber,
                Root::Counters => self.input.counters,
                Root::Session => self.input.session,
                Root::State => self.input.state,
                Root::SubscriberState => self.input.subscriber_state,
                Root::Af => self.input.af,
            }),
            Base::Member(parent, name) => self.resolve(*parent).member(name),
            Base::Item(parent, index) => self.resolve(*parent).item(*index),
        };
        self.resolved[slot] = Some(value);
        value
    }

    fn at(&mut self, base: &'a Expr, index: &'a Expr) -> Outcome<Value<'a>> {
        let base = self.value(base)?;
        Ok(match self.value(index)? {
            Value::Text(key) => base.member(key),
            Value::Made(key) => base.member(key),
            Value::Int(index) => usize::try_from(index).map_or(Value::Null, |index| base.item(index)),
            _ => Value::Null,
        })
    }

    /// An object of what each part gives; a member that is null is left out.
    pub(super) fn object<T>(
        &mut self,
        parts: &'a [T],
        mut member: impl FnMut(&mut Self, &'a T) -> Outcome<Member<'a>>,
    ) -> Outcome<Value<'a>> {
        let made = self.arena.alloc_slice_fill_copy(parts.len(), ("", Value::Null));
        let mut length = 0;
        for part in parts {
            let (name, value) = member(self, part)?;
            // There are as many places as parts.
            if let Some(place) = made.get_mut(length).filter(|_| !value.is_null()) {
                *place = (name, value);
                length += 1;
            }
        }
        self.made(Value::object(made.get(..length).unwrap_or_default(), self.arena))
    }

    /// Takes memory for a list or object, and bounds its depth.
    pub(super) fn made(&mut self, value: Value<'a>) -> Outcome<Value<'a>> {
        let items = match &value {
            Value::List(list) => list.items.len(),
            Value::Object(object) => 2 * object.items.len(),
            _ => 0,
        };
        self.charge(48 + 24 * items)?;
        if value.height() as usize > self.limits.depth {
            let what = format!("a value nests deeper than {} levels (`depth`)", self.limits.depth);
            return Err(self.fault(FaultKind::Depth, what));
        }
        Ok(value)
    }

    fn matches(&mut self, value: &'a Expr, pattern: usize) -> Outcome<Value<'a>> {
        let value = self.value(value)?;
        let Some(text) = value.as_str() else {
            return Ok(Value::bool(false));
        };
        self.spend(text.len() as u64 / 16)?;
        let pattern_text = &self.program.patterns[pattern];
        let cache = cache(self.caches, pattern, pattern_text);
        let haystack = Haystack::new(text).earliest(true);
        let found = Value::bool(pattern_text.regex.search_half_with(cache, &haystack).is_some());
        self.read(|| format!("matches {}", pattern_text.name), &found);
        Ok(found)
    }

    fn capture(&mut self, value: &'a Expr, pattern: usize, group: usize) -> Outcome<Value<'a>> {
        let value = self.value(value)?;
        let Some(text) = value.as_str() else {
            return Ok(Value::Null);
        };
        self.spend(text.len() as u64 / 4)?;
        let pattern_text = &self.program.patterns[pattern];
        let cache = cache(self.caches, pattern, pattern_text);
        let mut captures = pattern_text.regex.create_captures();
        pattern_text
            .regex
            .search_captures_with(cache, &Haystack::new(text), &mut captures);
        let Some(part) = captures.get_group(group).and_then(|span| text.get(span.range())) else {
            return Ok(Value::Null);
        };
        self.charge(part.len() + 16)?;
        Ok(Value::text(part, self.arena))
    }

    fn script(&mut self, script: usize, values: &'a [Expr]) -> Outcome<Value<'a>> {
        self.spend(SCRIPT_STEPS)?;
        let mut arguments: SmallVec<[Value<'a>; 8]> = SmallVec::new();
        for value in values {
            arguments.push(self.value(value)?);
        }
        let program = self.program;
        let known = &program.scripts[script];
        let name = &known.name;
        let mut bounds = Bounds {
            steps: &mut self.native_steps,
            limits: self.limits,
            bytes: self.memory,
        };
        let native = known.natively(&arguments, &mut bounds, self.calls, self.arena);
        scratch::clear(self.calls);
        if let Some(value) = native {
            self.charge(value.weight(self.memory))?;
            self.read(|| format!("script {name}, natively"), &value);
            return Ok(value);
        }
        let Some(engine) = self.engine else {
            let what = format!("script `{name}`: the script engine has no memory");
            return Err(self.fault(FaultKind::Script, what));
        };
        match engine.call(script, &arguments, self.limits.depth, self.memory, self.arena) {
            Ok(value) => {
                self.charge(value.weight(self.memory))?;
                self.read(|| format!("script {name}, by QuickJS"), &value);
                Ok(value)
            }
            Err(fault) => {
                engine.clean();
                let (kind, what) = match fault {
                    CallFault::Steps => {
                        let steps = self.limits.script_steps;
                        (
                            FaultKind::ScriptSteps,
                            format!("it takes more than {steps} steps (`scriptSteps`)"),
                        )
                    }
                    CallFault::Thrown(what) | CallFault::Result(what) => (FaultKind::Script, what),
                };
                Err(self.fault(kind, format!("script `{name}`: {what}")))
            }
        }
    }

    fn local(&self) -> OffsetDateTime {
        self.program.zone.local(self.now)
    }

    /// Notes that what was read of the time is another one when a minute of the day begins that lies ahead.
    fn note_minutes(&mut self, minutes: impl IntoIterator<Item = u16>) {
        for minute in minutes {
            if let Some(next) = self.program.zone.next(self.now, minute) {
                self.decision.changes(next);
            }
        }
    }

    /// `from` that is `to` is a day that begins then.
    fn is_between(&mut self, from: u16, to: u16, days: u8) -> bool {
        let is_always = days & ALL_DAYS == ALL_DAYS && (from == to || (from, to) == (0, DAY));
        if !is_always {
            self.note_minutes([from % DAY, to % DAY]);
        }
        let now = self.local();
        let minute = u16::from(now.hour()) * 60 + u16::from(now.minute());
        let today = now.weekday().number_days_from_monday();
        let has = |day: u8| days & (1 << (day % 7)) != 0;
        if from < to {
            return has(today) && (from..to).contains(&minute);
        }
        // Over midnight the part after it belongs to the day before.
        has(today) && minute >= from || has(today + 6) && minute < to
    }

    fn clock(&mut self, clock: Clock) -> Outcome<Value<'a>> {
        let now = self.local();
        match clock {
            Clock::Hour => self.note_minutes([(u16::from(now.hour()) + 1) * 60 % DAY]),
            Clock::Weekday | Clock::Date => self.note_minutes([0]),
            // Of these another one comes so soon that nothing can be decided again for each.
            Clock::EpochSeconds | Clock::Minute | Clock::MinuteOfDay | Clock::DateTime => {}
        }
        let text = match clock {
            Clock::EpochSeconds => return Ok(Value::Int(now.unix_timestamp())),
            Clock::Hour => return Ok(Value::Int(now.hour().into())),
            Clock::Minute => return Ok(Value::Int(now.minute().into())),
            Clock::MinuteOfDay => {
                return Ok(Value::Int(i64::from(now.hour()) * 60 + i64::from(now.minute())));
            }
            Clock::Weekday => {
                static DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
                let day = usize::from(now.weekday().number_days_from_monday());
                return Ok(Value::Made(&DAYS[day % 7]));
            }
            Clock::Date => now.date().to_string(),
            Clock::DateTime => now.format(&Rfc3339).unwrap_or_default(),
        };
        self.charge(text.len() + 16)?;
        Ok(Value::text(self.arena.alloc_str(&text), self.arena))
    }
}

/// Minutes of a day.
const DAY: u16 = 1_440;
/// Bits of all days of the week.
const ALL_DAYS: u8 = 0x7f;
/// Patterns whose memory of a search a worker keeps; each takes up to 0.5 MiB.
const MOST_CACHES: usize = 64;

/// The memory of a search, made at the first one.
fn cache<'c>(
    caches: &'c mut [Option<Cache>],
    position: usize,
    pattern: &crate::program::Pattern,
) -> &'c mut Cache {
    if caches[position].is_none() && caches.iter().flatten().count() >= MOST_CACHES {
        caches.fill_with(|| None);
    }
    caches[position].get_or_insert_with(|| pattern.regex.create_cache())
}
