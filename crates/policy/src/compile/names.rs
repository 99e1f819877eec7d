//! Names of a project: what they stand for, where they are used.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::program::{Base, Label, Path, Root};
use crate::shape::Section;

use super::{Compiler, suggest};

/// Names and their slots.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(super) tables: BTreeMap<String, usize>,
    pub(super) lists: BTreeMap<String, usize>,
    pub(super) patterns: BTreeMap<String, usize>,
    pub(super) scripts: BTreeMap<String, usize>,
    pub(super) routines: BTreeMap<String, usize>,
    pub(super) variables: HashMap<String, usize>,
    /// Slots that some block sets.
    pub(super) assigned: HashSet<usize>,
    /// Where variables are read: file, path, slot.
    pub(super) reads: Vec<(usize, String, usize)>,
    pub(super) paths: HashMap<(usize, String), usize>,
    /// Where scripts are defined: file, path.
    pub(super) script_places: Vec<(usize, String)>,
    /// Where routines are defined: file, path; which routines they call.
    pub(super) routine_places: Vec<(usize, String)>,
    pub(super) calls: Vec<Vec<usize>>,
    /// The routine that is compiled now.
    pub(super) routine: Option<usize>,
    /// Identifiers that blocks make, and sections of which some are computed.
    pub(super) made: HashMap<Section, HashSet<String>>,
    pub(super) computed: HashSet<Section>,
    /// Identifiers that rules refer to: file, path, section, identifier.
    pub(super) references: Vec<(usize, String, Section, String)>,
    pub(super) blocks: usize,
    pub(super) loops: usize,
    pub(super) list_entries: usize,
    pub(super) table_rows: usize,
}

impl Compiler<'_> {
    /// The slot of a variable.
    pub(super) fn variable(&mut self, name: &str) -> usize {
        if let Some(slot) = self.names.variables.get(name) {
            return *slot;
        }
        let slot = self.program.variables.len();
        self.program.variables.push(name.to_owned());
        self.names.variables.insert(name.to_owned(), slot);
        slot
    }

    /// The slot of a variable that a block sets.
    pub(super) fn assigned(&mut self, name: &str, path: &str) -> Option<usize> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(plain) || name.starts_with(|c: char| c.is_ascii_digit()) {
            let expected = "letters, digits and `_`, first a letter, without `$`";
            self.fault(
                path,
                format!("`{name}` cannot be the name of a variable"),
                expected,
            );
            return None;
        }
        if super::paths::RESERVED.contains(&name) {
            let expected = format!("a name other than {}", super::paths::RESERVED.join(", "));
            self.fault(path, format!("`{name}` is a part of the input"), expected);
            return None;
        }
        let slot = self.variable(name);
        self.names.assigned.insert(slot);
        Some(slot)
    }

    /// The slot of a datum of the input.
    pub(super) fn path_slot(&mut self, text: &str, base: Base) -> usize {
        self.program.reads_subscriber_state |= base == Base::Root(Root::SubscriberState);
        self.program.reads_af |= base == Base::Root(Root::Af);
        let key = match &base {
            Base::Root(root) => (usize::MAX, format!("{root:?}")),
            Base::Member(parent, name) => (*parent, format!(".{name}")),
            Base::Item(parent, index) => (*parent, format!("[{index}]")),
        };
        if let Some(slot) = self.names.paths.get(&key) {
            return *slot;
        }
        let slot = self.program.paths.len();
        self.program.paths.push(Path {
            text: text.to_owned(),
            base,
        });
        self.names.paths.insert(key, slot);
        slot
    }

    pub(super) fn label(&mut self, name: &str, kind: &'static str) -> usize {
        self.program.labels.push(Label {
            name: name.to_owned(),
            kind,
        });
        self.program.labels.len() - 1
    }

    /// Names that are used and not defined.
    pub(super) fn check_names(&mut self) {
        for (file, path, slot) in std::mem::take(&mut self.names.reads) {
            if self.names.assigned.contains(&slot) {
                continue;
            }
            let name = self.program.variables[slot].clone();
            let mut known: Vec<&str> = super::paths::RESERVED.to_vec();
            let assigned = self
                .names
                .assigned
                .iter()
                .map(|slot| self.program.variables[*slot].as_str());
            let mut assigned: Vec<&str> = assigned.collect();
            assigned.sort_unstable();
            known.extend(assigned);
            let expected = format!(
                "{} (or `$$` for a text that begins with `$`)",
                suggest(&name, &known)
            );
            let what = format!("no block sets the variable `${name}`");
            self.fault_in(file, path, what, expected);
        }
        for (file, path, section, id) in std::mem::take(&mut self.names.references) {
            if self.names.computed.contains(&section) {
                continue;
            }
            let naming = section.naming();
            let made = self.names.made.get(&section);
            if made.is_some_and(|made| made.contains(&id)) {
                continue;
            }
            let mut known: Vec<&str> = made.into_iter().flatten().map(String::as_str).collect();
            known.sort_unstable();
            let expected = suggest(&id, &known);
            let what = format!("no block `{}` has {} `{id}`", naming.block, naming.id);
            self.fault_in(file, path, what, expected);
        }
    }

    /// Scripts that the engine does not compile.
    pub(super) fn check_scripts(&mut self) {
        if self.program.scripts.is_empty() {
            return;
        }
        let Err(faults) = crate::script::Engine::new(&self.program.scripts, self.limits) else {
            return;
        };
        for fault in faults {
            let place = self.names.script_places.get(fault.script).cloned();
            let (file, path) = place.unwrap_or_default();
            let expected = "JavaScript without Date, RegExp, Map, Promise and BigInt (docs/policy.md)";
            self.fault_in(file, path, fault.what, expected);
        }
    }
}
