//! An event as a line of text or JSON. All its values are escaped, cut at a
//! length, and come within a rate.

use std::fmt::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::{Format, Full, Writer};
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::Config;
use super::clean::{Bounded, Escape};
use super::rate::{Origin, Rate};
use crate::trace::Scope;

/// The bounds of a process's log. They change while it runs.
#[derive(Debug)]
pub struct Bounds {
    rate: Rate,
    length: AtomicUsize,
    cut: AtomicU64,
}

impl Bounds {
    /// Those of the settings.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            rate: Rate::new(config.max_per_second),
            length: AtomicUsize::new(config.max_value_length.as_usize()),
            cut: AtomicU64::new(0),
        }
    }

    /// Changes them.
    pub fn set(&self, config: &Config) {
        self.rate.set(config.max_per_second);
        self.length.store(config.max_value_length.as_usize(), Relaxed);
    }

    /// How many lines one place may write, and how many were suppressed.
    #[must_use]
    pub const fn rate(&self) -> &Rate {
        &self.rate
    }

    /// How many values were cut since the start.
    #[must_use]
    pub fn cut(&self) -> u64 {
        self.cut.load(Relaxed)
    }

    fn put<W: Write>(&self, out: &mut W, escape: Escape, value: fmt::Arguments<'_>) -> fmt::Result {
        let cut = Bounded::new(out, self.length.load(Relaxed), escape).put(value)?;
        if cut {
            self.cut.fetch_add(1, Relaxed);
        }
        Ok(())
    }
}

/// Lines within [`Bounds`].
#[derive(Clone)]
pub struct Lines {
    bounds: Arc<Bounds>,
    json: bool,
    /// Called when a place has begun to be suppressed.
    suppressing: fn(),
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines")
            .field("json", &self.json)
            .finish_non_exhaustive()
    }
}

impl Lines {
    /// Lines as text, or as JSON.
    #[must_use]
    pub fn new(bounds: Arc<Bounds>, json: bool, suppressing: fn()) -> Self {
        Self {
            bounds,
            json,
            suppressing,
        }
    }

    fn json(&self, writer: &mut Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut timestamp = String::new();
        SystemTime.format_time(&mut Writer::new(&mut timestamp))?;
        let mut members = Members {
            bounds: &self.bounds,
            members: Map::new(),
        };
        members.put("timestamp", timestamp.into());
        members.put("level", event.metadata().level().as_str().into());
        event.record(&mut members);
        members.put("target", Origin::of(event).target().into());
        // As OpenTelemetry names them.
        if let Some(context) = Scope::of_thread().map(Scope::context) {
            members.put("trace_id", format!("{:032x}", context.trace).into());
            members.put("span_id", format!("{:016x}", context.span).into());
        }
        let line = serde_json::to_string(&members.members).map_err(|_| fmt::Error)?;
        writeln!(writer, "{line}")
    }
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        if !self.bounds.rate.permits(event, self.suppressing) {
            return Ok(());
        }
        match self.json {
            true => self.json(&mut writer, event),
            false => Format::<Full>::default().format_event(context, writer, event),
        }
    }
}

/// The fields of an event or span in a line for people: the message, then `name=value`.
impl<'writer> FormatFields<'writer> for Lines {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut text = Text {
            bounds: &self.bounds,
            writer,
            first: true,
            outcome: Ok(()),
        };
        fields.record(&mut text);
        text.outcome
    }
}

struct Text<'a, 'writer> {
    bounds: &'a Bounds,
    writer: Writer<'writer>,
    first: bool,
    outcome: fmt::Result,
}

impl Text<'_, '_> {
    fn field(&mut self, field: &Field, value: fmt::Arguments<'_>) -> fmt::Result {
        let name = field.name();
        if name.starts_with("log.") {
            // Where a record of the `log` crate comes from: the line has it as its target.
            return Ok(());
        }
        if !std::mem::replace(&mut self.first, false) {
            self.writer.write_char(' ')?;
        }
        if name != "message" {
            let name = name.strip_prefix("r#").unwrap_or(name);
            match self.writer.has_ansi_escapes() {
                true => write!(self.writer, "\u{1b}[3m{name}\u{1b}[0m\u{1b}[2m=\u{1b}[0m")?,
                false => write!(self.writer, "{name}=")?,
            }
        }
        self.bounds.put(&mut self.writer, Escape::Treacherous, value)
    }
}

impl Visit for Text<'_, '_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.record_debug(field, &format_args!("{value}"));
        } else {
            self.record_debug(field, &value);
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if self.outcome.is_ok() {
            self.outcome = self.field(field, format_args!("{value:?}"));
        }
    }
}

/// The members of a JSON line. JSON escapes control characters; a text is cut before.
struct Members<'a> {
    bounds: &'a Bounds,
    members: Map<String, Value>,
}

impl Members<'_> {
    fn put(&mut self, name: &str, value: Value) {
        self.members.insert(name.to_owned(), value);
    }

    fn field(&mut self, field: &Field, value: Value) {
        let name = field.name();
        if !name.starts_with("log.") {
            self.put(name.strip_prefix("r#").unwrap_or(name), value);
        }
    }

    fn text(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        let mut text = String::new();
        // A value that cannot be written is as long as it is by then.
        let _ = self.bounds.put(&mut text, Escape::Nothing, value);
        self.field(field, text.into());
    }
}

impl Visit for Members<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.field(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.field(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.field(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.field(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, format_args!("{value}"));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.text(field, format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field, format_args!("{value:?}"));
    }
}
