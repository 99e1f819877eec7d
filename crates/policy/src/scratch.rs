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
    /// What a script makes on its way to its result; emptied after each call.
    pub(crate) calls: Bump,
    /// What an evaluation makes, its decision included; emptied before the next one. `memoryBytes` bounds it: what is made
    /// here is charged, if not to the byte, with a tenth at least.
    pub(crate) arena: Bump,
}

/// Memory that an arena keeps.
const KEPT: usize = 64 << 10;

impl Scratch {
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

/// Empties an arena. It keeps its memory, unless that was unusually much.
pub(crate) fn clear(arena: &mut Bump) {
    if arena.allocated_bytes() > KEPT {
        *arena = Bump::new();
    } else {
        arena.reset();
    }
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scratch")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use time::OffsetDateTime;

    use super::*;
    use crate::{Input, Project};

    /// Decides for a request with wide values; the memory of the arena afterwards.
    fn allocated(scratch: &mut Scratch, blocks: &str) -> usize {
        let scripts = "scripts: {s: {parameters: [a], expression: '[a, `${a}b`, {x: a}]'}}";
        let text = format!("name: x\nservice: sm\n{scripts}\nblocks: [{blocks}]");
        let project = Project::compile(&[("project.yaml", &text)], &Limits::default());
        let project = project.unwrap_or_else(|error| panic!("{error}"));
        let list: Vec<usize> = (0..1000).collect();
        let object: serde_json::Map<_, _> = list.iter().map(|n| (format!("m{n}"), json!(n))).collect();
        let request = json!({"text": "a,".repeat(500), "list": list, "object": object});
        let input = Input::new("create", &request);
        let _ = project.decide(scratch, &input, OffsetDateTime::UNIX_EPOCH, None);
        scratch.arena.allocated_bytes()
    }

    #[test]
    fn the_memory_of_an_evaluation_is_bounded() {
        let most = Limits::default().memory_bytes;
        let mut scratch = Scratch::default();
        for value in [
            "{$concat: [$request.text, b]}",
            "{$split: [$request.text, ',']}",
            "{$slice: [$request.list, 1]}",
            "{$append: [$request.list, 1]}",
            "{$put: [$request.list, /1, 2]}",
            "{$put: [$request.object, /m1, 2]}",
            "{$merge: [$request.object, {m1: 2}]}",
            "{$omit: [$request.object, [m1]]}",
            "{$pick: [$request.object, [m1]]}",
            "{$values: $request.object}",
            "{$in: [1, $request.list]}",
            "{$max: $request.list}",
            "{$parse: '[[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[]]'}",
            "{$stringify: $request.list}",
            "[$request.list, {a: 1}]",
            "{$script: s, with: {a: $request.text}}",
            "{$script: s, with: {a: $request.list}}",
        ] {
            // More often than the memory allows, so that the evaluation ends with a fault where anything is made.
            let loops = format!("{{repeat: 1000, do: [{{repeat: 1000, do: [{{set: {{x: {value}}}}}]}}]}}");
            let allocated = allocated(&mut scratch, &loops);
            assert!(allocated < 8 * most, "{value}: {allocated} bytes");
        }
        assert!(allocated(&mut scratch, "stop") <= KEPT);
    }
}
