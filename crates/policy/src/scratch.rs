//! What a worker keeps between evaluations.

use std::fmt;

use bumpalo::Bump;
use regex_automata::meta::Cache;

use crate::limits::Limits;
use crate::program::Program;
use crate::script::Engine;

/// What one worker keeps between evaluations: the script engine and the memory of regular expressions.
///
/// It belongs to one thread and serves any project: for another project than the last one it begins again, which takes
/// about a millisecond where the project has scripts ([`Project::prepare`](crate::Project::prepare) does it ahead of
/// requests).
#[derive(Default)]
pub struct Scratch {
    identity: u64,
    pub(crate) engine: Option<Engine>,
    pub(crate) caches: Vec<Option<Cache>>,
    /// Room in which a text is put together.
    pub(crate) text: String,
    /// What a script makes on its way to its result.
    pub(crate) arena: Bump,
}

/// Memory that the arena keeps.
const KEPT: usize = 64 << 10;

impl Scratch {
    /// Empties the arena after a call of a script. It keeps its memory, unless that was an unusual call.
    pub(crate) fn clear(&mut self) {
        if self.arena.allocated_bytes() > KEPT {
            self.arena = Bump::new();
        } else {
            self.arena.reset();
        }
    }

    pub(crate) fn prepare(&mut self, identity: u64, program: &Program, limits: &Limits) {
        if self.identity == identity {
            return;
        }
        // The project compiled with an engine; without memory for another, each call of a script is a fault.
        self.engine = match program.scripts.is_empty() {
            true => None,
            false => Engine::new(&program.scripts, limits).ok(),
        };
        self.caches.clear();
        self.caches.resize_with(program.patterns.len(), || None);
        self.identity = identity;
    }
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scratch")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}
