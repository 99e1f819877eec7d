//! Sources of table keys, routines and who calls whom.

use serde_json::{Map, Value as Json};
use settings::path_key;

use crate::expression::Expr;
use crate::program::Routine;

use super::Compiler;

impl Compiler<'_> {
    pub(super) fn routine_name(&mut self, name: &str, _: &Json, path: &str) {
        if self.twice(self.names.routines.contains_key(name), name, path) {
            return;
        }
        self.names
            .routines
            .insert(name.to_owned(), self.program.routines.len());
        self.names.routine_places.push((self.file, path.to_owned()));
        self.names.calls.push(Vec::new());
        self.program.routines.push(Routine {
            name: name.to_owned(),
            blocks: Vec::new(),
        });
    }

    /// What may refer to any name of the project.
    pub(super) fn tables_and_routines(&mut self, unit: &Map<String, Json>) {
        self.each_of(unit, "tables", Self::table_keys);
        self.each_of(unit, "routines", |compiler, name, value, path| {
            let Some(position) = compiler.names.routines.get(name).copied() else {
                return;
            };
            // A name that two files define has been reported.
            if compiler.names.routine_places[position] != (compiler.file, path.to_owned()) {
                return;
            }
            compiler.names.routine = Some(position);
            compiler.program.routines[position].blocks = compiler.blocks(value, path, 0);
            compiler.names.routine = None;
        });
    }

    fn table_keys(&mut self, name: &str, value: &Json, path: &str) {
        let Some(position) = self.names.tables.get(name).copied() else {
            return;
        };
        let Some(keys) = value.get("keys").and_then(Json::as_object) else {
            return;
        };
        let path = path_key(path, "keys");
        let sources: Vec<Expr> = keys
            .iter()
            .map(|(column, source)| self.expression(source, &path_key(&path, column), 0))
            .collect();
        self.program.tables[position].sources = sources;
    }

    /// Routines that call themselves, directly or through others: they would never end.
    pub(super) fn check_calls(&mut self) {
        let mut calls: Vec<Vec<usize>> = std::mem::take(&mut self.names.calls);
        // What calls nothing that is left is on no circle.
        let mut left: Vec<usize> = (0..calls.len()).collect();
        loop {
            let before = left.len();
            let open: std::collections::HashSet<usize> = left.iter().copied().collect();
            for position in &left {
                calls[*position].retain(|called| open.contains(called));
            }
            left.retain(|position| !calls[*position].is_empty());
            if left.len() == before {
                break;
            }
        }
        for position in left {
            let name = self.program.routines[position].name.clone();
            let called: Vec<String> = calls[position]
                .iter()
                .map(|called| self.program.routines[*called].name.clone())
                .collect();
            let (file, path) = self.names.routine_places[position].clone();
            let what = format!(
                "the routine `{name}` calls itself, by way of `{}`",
                called.join("`, `")
            );
            self.fault_in(
                file,
                path,
                what,
                "routines that do not call themselves; use `each`, `while` or `repeat`",
            );
        }
    }
}
