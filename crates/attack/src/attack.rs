//! An attack as a value.

use std::rc::Rc;

use futures_util::future::LocalBoxFuture;
use serde_json::Value;

use crate::field::Field;
use crate::stage::Stage;

/// What an attack may cost.
#[derive(Clone, Copy, Debug)]
pub struct Bars {
    /// Share of the honest client's requests that may fail, in percent: 0 but where the attack takes away what the
    /// request needs.
    pub honest_errors_percent: f64,
    /// The 99th percentile of the honest client's answers, in milliseconds (full doses only).
    pub p99_ms: f64,
    /// Growth of the resident memory, in MiB, with a full dose: the memory budget of one worker and as much again for
    /// what it does not count (stacks, kernel buffers mapped by the allocator, fragmentation).
    pub growth_mib: u64,
    /// The same with a small dose.
    pub quick_growth_mib: u64,
    /// Growth of the log, in KiB.
    pub log_kib: u64,
    /// Processor time of all attacked processes, in seconds (full doses only).
    pub cpu_s: f64,
}

/// Growth of the resident memory of a process with one worker under any attack, in MiB.
pub const GROWTH_MIB: u64 = 512;

impl Bars {
    /// For attacks that only the memory budget of a worker stops: a quick dose is larger than it, too.
    pub const BUDGET: Self = Self {
        quick_growth_mib: 384,
        ..Self::DEFAULT
    };

    /// What holds unless an attack says otherwise.
    pub const DEFAULT: Self = Self {
        honest_errors_percent: 0.0,
        p99_ms: 50.0,
        growth_mib: GROWTH_MIB,
        quick_growth_mib: 160,
        log_kib: 256,
        cpu_s: 6.0,
    };
}

/// The hostile part: it looks at the field, attacks, and says what it missed.
pub type Script = fn(Rc<Field>) -> LocalBoxFuture<'static, anyhow::Result<()>>;

/// An attack.
#[derive(Clone, Copy)]
pub struct Attack {
    /// Family and name: `http2.ping-acks`.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// The functions under attack.
    pub stage: Stage,
    /// Settings of the functions beside those of the stage; none for the stage as it is, which attacks then share in a
    /// quick run.
    pub settings: Option<fn() -> Value>,
    /// Whether the functions are of no use to the next attack: it has one to itself.
    pub alone: bool,
    /// Whether each honest request comes on a new connection.
    pub newcomers: bool,
    /// Whether an honest client asks meanwhile; not where the function itself is ended.
    pub accompanied: bool,
    /// Whether it means something in a large dose only.
    pub full_only: bool,
    /// The hostile part.
    pub script: Script,
    /// What it may cost.
    pub bars: Bars,
}

impl std::fmt::Debug for Attack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// An attack with the usual bars on a stage as it is.
#[must_use]
pub const fn attack(name: &'static str, about: &'static str, stage: Stage, script: Script) -> Attack {
    Attack {
        name,
        about,
        stage,
        settings: None,
        alone: false,
        newcomers: false,
        accompanied: true,
        full_only: false,
        script,
        bars: Bars::DEFAULT,
    }
}

impl Attack {
    /// The same with other bars.
    #[must_use]
    pub const fn with_bars(mut self, bars: Bars) -> Self {
        self.bars = bars;
        self
    }

    /// The same with settings of its own.
    #[must_use]
    pub const fn with_settings(mut self, settings: fn() -> Value) -> Self {
        self.settings = Some(settings);
        self
    }

    /// The same with functions of its own.
    #[must_use]
    pub const fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// The same with honest clients that connect for each request.
    #[must_use]
    pub const fn with_newcomers(mut self) -> Self {
        self.newcomers = true;
        self
    }

    /// The same without an honest client: the function itself is ended and started.
    #[must_use]
    pub const fn unaccompanied(mut self) -> Self {
        self.accompanied = false;
        self.alone = true;
        self
    }

    /// The same, left out of quick runs: what it shows needs a clock.
    #[must_use]
    pub const fn full_only(mut self) -> Self {
        self.full_only = true;
        self
    }

    /// Whether it may follow and precede others on the same functions.
    #[must_use]
    pub const fn shares(&self) -> bool {
        self.settings.is_none() && !self.alone
    }
}
