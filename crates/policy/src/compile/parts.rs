//! Match lists, patterns, scripts and policy tables.

use regex_automata::meta::{Config, Regex};
use regex_automata::util::syntax;
use serde_json::{Map, Value as Json};
use settings::path_key;

use crate::glob::Glob;
use crate::list::MatchList;
use crate::program::Pattern;
use crate::script::{Body, Script};
use crate::table::{Cell, Row, Table};

use super::Compiler;

/// Groups in groups of one regular expression.
const NESTED: u32 = 50;
/// Memory that a search in a regular expression may use for states, in bytes.
const CACHE_BYTES: usize = 256 << 10;
/// Columns of a table.
const COLUMNS: usize = 64;

/// Seconds east of UTC of `+01:00`.
pub(super) fn utc_offset(text: &str) -> Option<i32> {
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    ((0..=14).contains(&hours) && (0..60).contains(&minutes)).then_some(sign * (hours * 3600 + minutes * 60))
}

impl Compiler<'_> {
    /// What blocks refer to, without what refers to other parts.
    pub(super) fn parts(&mut self, unit: &Map<String, Json>) {
        self.each_of(unit, "lists", Self::list);
        self.each_of(unit, "patterns", Self::pattern);
        self.each_of(unit, "scripts", Self::script);
        self.each_of(unit, "routines", Self::routine_name);
        self.each_of(unit, "tables", Self::table);
    }

    pub(super) fn each_of(
        &mut self,
        unit: &Map<String, Json>,
        part: &str,
        take: impl Fn(&mut Self, &str, &Json, &str),
    ) {
        match unit.get(part) {
            None | Some(Json::Null) => {}
            Some(Json::Object(entries)) => {
                for (name, value) in entries {
                    take(self, name, value, &path_key(part, name));
                }
            }
            Some(_) => self.fault(
                part,
                "it is not a mapping",
                format!("`name: …` lines, one for each of the {part}"),
            ),
        }
    }

    /// Refuses a name that two files define.
    pub(super) fn twice(&mut self, known: bool, name: &str, path: &str) -> bool {
        if known {
            self.fault(path, format!("`{name}` is defined twice"), "a name of its own");
        }
        known
    }

    fn list(&mut self, name: &str, value: &Json, path: &str) {
        if self.twice(self.names.lists.contains_key(name), name, path) {
            return;
        }
        let mut list = MatchList::new(name);
        let expected = "texts (with `*` and `?` as wildcards), numbers, or IP networks such as `10.0.0.0/8`";
        match value.as_array() {
            None => self.fault(path, "the match list is not a list", expected),
            Some(entries) => {
                self.names.list_entries += entries.len();
                if self.names.list_entries > self.limits.list_entries {
                    let most = format!(
                        "at most {} entries in all lists (`listEntries`)",
                        self.limits.list_entries
                    );
                    self.fault(path, "the match lists have too many entries", most);
                    return;
                }
                for (index, entry) in entries.iter().enumerate() {
                    if !list.add(entry) {
                        self.fault(
                            format!("{path}[{index}]"),
                            format!("{entry} cannot be an entry"),
                            expected,
                        );
                    }
                }
            }
        }
        self.names.lists.insert(name.to_owned(), self.program.lists.len());
        self.program.lists.push(list);
    }

    fn pattern(&mut self, name: &str, value: &Json, path: &str) {
        if self.twice(self.names.patterns.contains_key(name), name, path) {
            return;
        }
        if self.program.patterns.len() >= self.limits.patterns {
            let most = format!("at most {} (`patterns`)", self.limits.patterns);
            return self.fault(path, "the project has too many patterns", most);
        }
        let Some(text) = value.as_str() else {
            return self.fault(
                path,
                "the pattern is not a text",
                "a regular expression in single quotes",
            );
        };
        let config = Config::new()
            .nfa_size_limit(Some(self.limits.pattern_bytes))
            .hybrid_cache_capacity(CACHE_BYTES);
        let built = Regex::builder()
            .configure(config)
            .syntax(syntax::Config::new().nest_limit(NESTED))
            .build(text);
        match built {
            Ok(regex) => {
                self.pattern_bytes = self.pattern_bytes.saturating_add(regex.memory_usage());
                if self.pattern_bytes > self.limits.all_pattern_bytes {
                    let most = format!(
                        "at most {} bytes (`allPatternBytes`)",
                        self.limits.all_pattern_bytes
                    );
                    let what = "the compiled patterns of the project take too much memory up to here";
                    return self.fault(path, what, most);
                }
                self.names
                    .patterns
                    .insert(name.to_owned(), self.program.patterns.len());
                self.program.patterns.push(Pattern {
                    name: name.to_owned(),
                    regex,
                });
            }
            Err(error) => {
                // The syntax error, below the engine's own words, shows the position.
                let cause = error
                    .syntax_error()
                    .map_or_else(|| error.to_string(), ToString::to_string);
                let expected = format!(
                    "a regular expression without look-around and back-references, compiled at most {} bytes (`patternBytes`)",
                    self.limits.pattern_bytes
                );
                self.fault(path, cause.replace('\n', " "), expected);
            }
        }
    }

    fn script(&mut self, name: &str, value: &Json, path: &str) {
        if self.twice(self.names.scripts.contains_key(name), name, path) {
            return;
        }
        if self.program.scripts.len() >= self.limits.scripts {
            let most = format!("at most {} (`scripts`)", self.limits.scripts);
            return self.fault(path, "the project has too many scripts", most);
        }
        let form = "`parameters` (names) and either `expression` or `statements`";
        let Some(map) = value.as_object() else {
            return self.fault(path, "the script is not a mapping", form);
        };
        self.known_keys(
            map,
            path,
            &["parameters", "expression", "statements", "description"],
        );
        let body = match (map.get("expression"), map.get("statements")) {
            (Some(Json::String(text)), None) => Body::Expression(text.clone()),
            (None, Some(Json::String(text))) => Body::Statements(text.clone()),
            _ => return self.fault(path, "the script has not one body", form),
        };
        let (Body::Expression(text) | Body::Statements(text)) = &body;
        if text.len() > self.limits.script_bytes {
            let most = format!("at most {} (`scriptBytes`)", self.limits.script_bytes);
            return self.fault(path, format!("the script has {} bytes", text.len()), most);
        }
        let names = map
            .get("parameters")
            .and_then(Json::as_array)
            .map_or(&[][..], Vec::as_slice);
        let mut parameters: Vec<String> = Vec::new();
        for parameter in names {
            let name = parameter.as_str().unwrap_or_default();
            let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let valid =
                name.chars().all(word) && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            if !valid || parameters.iter().any(|known| known == name) {
                let path = path_key(path, "parameters");
                self.fault(
                    path,
                    format!("{parameter} cannot be a parameter"),
                    "distinct names of letters and digits",
                );
                return;
            }
            parameters.push(name.to_owned());
        }
        self.names
            .scripts
            .insert(name.to_owned(), self.program.scripts.len());
        self.names.script_places.push((self.file, path.to_owned()));
        self.program.scripts.push(Script::new(name, parameters, body));
    }

    /// Rows and cells. The sources of its keys are expressions and come later.
    fn table(&mut self, name: &str, value: &Json, path: &str) {
        if self.twice(self.names.tables.contains_key(name), name, path) {
            return;
        }
        let form = "`keys` (column: expression), `columns` (names of results) and `rows` (lists)";
        let parts = value.as_object().and_then(|map| {
            let keys = map.get("keys")?.as_object()?;
            let columns: Option<Vec<&str>> =
                map.get("columns")?.as_array()?.iter().map(Json::as_str).collect();
            Some((map, keys, columns?, map.get("rows")?.as_array()?))
        });
        let Some((map, keys, columns, rows)) = parts else {
            return self.fault(path, "the table lacks a part", form);
        };
        self.known_keys(map, path, &["keys", "columns", "rows", "description"]);
        self.names.table_rows += rows.len();
        if self.names.table_rows > self.limits.table_rows {
            let most = format!(
                "at most {} rows in all tables (`tableRows`)",
                self.limits.table_rows
            );
            return self.fault(path, "the tables have too many rows", most);
        }
        let width = keys.len() + columns.len();
        if keys.is_empty() || width > COLUMNS {
            let expected = format!("at least one key and at most {COLUMNS} columns");
            return self.fault(
                path,
                format!("the table has {width} columns, {} of them keys", keys.len()),
                expected,
            );
        }
        let mut compiled = Vec::new();
        for (position, row) in rows.iter().enumerate() {
            let path = format!("{path}.rows[{position}]");
            let Some(cells) = row.as_array().filter(|cells| cells.len() == width) else {
                let names: Vec<&str> = keys
                    .keys()
                    .map(String::as_str)
                    .chain(columns.iter().copied())
                    .collect();
                self.fault(
                    &path,
                    "the row does not have a cell for each column",
                    names.join(", "),
                );
                continue;
            };
            let (matched, results) = cells.split_at(keys.len());
            let mut row = Vec::new();
            for (index, cell) in matched.iter().enumerate() {
                match cell_of(cell) {
                    Some(cell) => row.push(cell),
                    None => {
                        let expected =
                            "a value, a wildcard such as `inter*`, `{from: 1, to: 9}` or `{in: [a, b]}`";
                        self.fault(
                            format!("{path}[{index}]"),
                            format!("{cell} cannot be matched"),
                            expected,
                        );
                    }
                }
            }
            let result = columns
                .iter()
                .zip(results)
                .map(|(name, cell)| ((*name).to_owned(), cell.clone()));
            compiled.push(Row {
                cells: row,
                result: Json::Object(result.collect()),
            });
        }
        let table = Table::new(name, keys.keys().cloned().collect(), compiled);
        for (row, covering) in table.unreachable() {
            let what = format!("no value reaches row {}", row + 1);
            let expected = format!(
                "it above row {}, which matches all that it matches, or no such row",
                covering + 1
            );
            self.fault(format!("{path}.rows[{row}]"), what, expected);
        }
        self.names
            .tables
            .insert(name.to_owned(), self.program.tables.len());
        self.program.tables.push(table);
    }
}

fn cell_of(json: &Json) -> Option<Cell> {
    Some(match json {
        Json::Null => Cell::Null,
        Json::Bool(yes) => Cell::Bool(*yes),
        Json::Number(number) => Cell::Number(number.as_f64()?),
        Json::String(text) => match Glob::parse(text) {
            Glob::Any => Cell::Any,
            Glob::Exact(text) => Cell::Text(text),
            glob => Cell::Wildcard(glob),
        },
        Json::Object(map) => {
            let bound = |key: &str, default: f64| map.get(key).map_or(Some(default), Json::as_f64);
            match map.get("in") {
                Some(Json::Array(cells)) if map.len() == 1 => {
                    let cells: Option<Vec<Cell>> = cells
                        .iter()
                        .map(|cell| if cell.is_object() { None } else { cell_of(cell) })
                        .collect();
                    Cell::In(cells?)
                }
                None if map.keys().all(|key| key == "from" || key == "to") && !map.is_empty() => {
                    Cell::Range(bound("from", f64::MIN)?, bound("to", f64::MAX)?)
                }
                _ => return None,
            }
        }
        Json::Array(_) => return None,
    })
}
