//! Projects: compiled once, shared by all workers, replaced as a whole.

use std::sync::atomic::{AtomicU64, Ordering};

use time::OffsetDateTime;

use crate::compile::{self, Manifest, ProjectError};
use crate::decision::Decision;
use crate::evaluate;
use crate::fault::Fault;
use crate::input::Input;
use crate::limits::Limits;
use crate::notification::Servers;
use crate::program::Program;
use crate::scratch::Scratch;
use crate::shape::Service;
use crate::trace::Trace;

/// A compiled policy project. It is immutable and shared by workers; a replacement is another project.
#[derive(Debug)]
pub struct Project {
    manifest: Manifest,
    program: Program,
    limits: Limits,
    /// Distinct in this process, so that a [`Scratch`] knows what it was made for.
    identity: u64,
}

impl Project {
    /// Compiles a project from its files: the name or path of each, and its text. `project.yaml` must be
    /// among them; the others (YAML or JSON) have lists, patterns, tables, scripts and routines.
    ///
    /// # Errors
    /// Every mistake, with file, line, block and what would be right.
    pub fn compile(files: &[(&str, &str)], limits: &Limits) -> Result<Self, ProjectError> {
        Self::compile_within(files, limits, None)
    }

    /// As [`Project::compile`], for a function whose settings name the servers that projects may notify: another one is a
    /// mistake, and a content that its server does not take.
    ///
    /// # Errors
    /// As [`Project::compile`].
    pub fn compile_for(
        files: &[(&str, &str)],
        limits: &Limits,
        servers: &Servers,
    ) -> Result<Self, ProjectError> {
        Self::compile_within(files, limits, Some(servers))
    }

    fn compile_within(
        files: &[(&str, &str)],
        limits: &Limits,
        servers: Option<&Servers>,
    ) -> Result<Self, ProjectError> {
        static IDENTITY: AtomicU64 = AtomicU64::new(1);
        let (manifest, program) = compile::compile(files, limits, servers)?;
        Ok(Self {
            manifest,
            program,
            limits: limits.clone(),
            identity: IDENTITY.fetch_add(1, Ordering::Relaxed),
        })
    }

    /// Decides. `now` is the only clock. With a trace, each block leaves what it read and what came of it. The values of the
    /// decision are in the scratch, whose next decision takes their memory again.
    ///
    /// # Errors
    /// That a limit is reached, a script failed, or a value does not fit its type. There is no partial decision.
    pub fn decide<'a>(
        &'a self,
        scratch: &'a mut Scratch,
        input: &'a Input<'a>,
        now: OffsetDateTime,
        trace: Option<&mut Trace>,
    ) -> Result<Decision<'a>, Fault> {
        self.prepare(scratch);
        evaluate::decide(
            &self.program,
            &self.limits,
            self.service(),
            scratch,
            input,
            now,
            trace,
        )
    }

    /// Makes a worker's scratch ready for this project, where its last one was another. A function does this after it
    /// has replaced the project, ahead of the first request.
    pub fn prepare(&self, scratch: &mut Scratch) {
        scratch.prepare(self.identity, &self.program, &self.limits);
    }

    /// The name that it gives itself.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.manifest.name
    }

    /// What it says it is for.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.manifest.description
    }

    /// The service that it decides for.
    #[must_use]
    pub fn service(&self) -> Service {
        self.manifest.service
    }

    /// Whether it reads state variables of the subscriber (`$subscriberState`).
    #[must_use]
    pub fn reads_subscriber_state(&self) -> bool {
        self.program.reads_subscriber_state
    }

    /// Whether it reads what AFs ask for (`$af`).
    #[must_use]
    pub fn reads_af(&self) -> bool {
        self.program.reads_af
    }

    /// Whether it writes state variables of the subscriber (`rememberSubscriber`).
    #[must_use]
    pub fn writes_subscriber_state(&self) -> bool {
        self.program.writes_subscriber_state
    }

    /// Number of blocks, those of routines included.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.program.labels.len()
    }
}
