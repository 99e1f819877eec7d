//! Why an evaluation ends without a decision.

use std::fmt;

/// Why an evaluation ended without a decision. The function that asked decides by its fallback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The block that was evaluated: its name, or its path in the project.
    pub block: String,
    /// The class, for metrics.
    pub kind: FaultKind,
    /// What is wrong, and what would be right.
    pub what: String,
}

/// Classes of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FaultKind {
    /// `steps` is used up.
    Steps,
    /// A loop had more turns than `loopTurns`.
    LoopTurns,
    /// `memoryBytes` is used up.
    Memory,
    /// Values, blocks or calls nest deeper than `depth`.
    Depth,
    /// The decision exceeds `outputEntries` or `outputBytes`.
    Output,
    /// A script used up `scriptSteps`.
    ScriptSteps,
    /// A script threw, or exceeded its memory, or returned something other than JSON.
    Script,
    /// A value does not fit the type of the standard.
    Value,
}

impl FaultKind {
    /// All classes.
    pub const ALL: &[Self] = &[
        Self::Steps,
        Self::LoopTurns,
        Self::Memory,
        Self::Depth,
        Self::Output,
        Self::ScriptSteps,
        Self::Script,
        Self::Value,
    ];

    /// Its name, as in metrics and logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::LoopTurns => "loop_turns",
            Self::Memory => "memory",
            Self::Depth => "depth",
            Self::Output => "output",
            Self::ScriptSteps => "script_steps",
            Self::Script => "script",
            Self::Value => "value",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block `{}`: {}", self.block, self.what)
    }
}

impl std::error::Error for Fault {}
