//! Bounds of a project and of one evaluation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bounds of policy projects and of evaluations. A project cannot raise them: they belong to the function that runs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Limits {
    /// Size of all files of a project together, in bytes.
    pub project_bytes: usize,
    /// Blocks of a project, those of its routines included.
    pub blocks: usize,
    /// Levels to which blocks, calls of routines, expressions and values may nest, each counted on its own.
    #[schemars(range(min = 4, max = 64))]
    pub depth: usize,
    /// Rows of all policy tables of a project together.
    pub table_rows: usize,
    /// Entries of all match lists of a project together.
    pub list_entries: usize,
    /// Memory of one compiled regular expression, in bytes.
    pub pattern_bytes: usize,
    /// Memory of all compiled regular expressions of a project together, in bytes.
    pub all_pattern_bytes: usize,
    /// Regular expressions of a project.
    pub patterns: usize,
    /// Scripts of a project.
    pub scripts: usize,
    /// Size of one script, in bytes.
    pub script_bytes: usize,
    /// Blocks and operations of one evaluation.
    pub steps: u64,
    /// Turns of one loop.
    pub loop_turns: u64,
    /// Memory of the values that one evaluation makes, in bytes.
    pub memory_bytes: usize,
    /// Calls and loop turns of the scripts of one evaluation. The script engine counts in portions of 10,000.
    pub script_steps: u64,
    /// Memory that the scripts of a worker have beside that of the script engine itself, in bytes.
    pub script_memory_bytes: usize,
    /// Rules, data and other entries of one decision.
    pub output_entries: usize,
    /// Size of one decision as JSON, in bytes.
    pub output_bytes: usize,
    /// Messages to servers of the operator (`notify`) of one decision; they count as entries, and with their size.
    pub notifications: usize,
    /// Events of one trace; the trace counts further ones as dropped.
    pub trace_events: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            project_bytes: 8 << 20,
            blocks: 10_000,
            depth: 48,
            table_rows: 50_000,
            list_entries: 100_000,
            pattern_bytes: 1 << 20,
            all_pattern_bytes: 32 << 20,
            patterns: 500,
            scripts: 200,
            script_bytes: 16 << 10,
            steps: 100_000,
            loop_turns: 1_000,
            memory_bytes: 1 << 20,
            script_steps: 20_000,
            script_memory_bytes: 512 << 10,
            output_entries: 256,
            output_bytes: 128 << 10,
            notifications: 16,
            trace_events: 2_000,
        }
    }
}
