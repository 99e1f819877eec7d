//! Blocks: their kinds, and what belongs to each.

use serde_json::{Map, Value as Json};
use settings::path_key;

use crate::expression::Expr;
use crate::program::{Block, Case, Owner, Step};
use crate::shape::{Kind, Section};

use super::{Compiler, suggest};

/// Kinds of blocks that every service has, with the keys that may stand beside them.
const KINDS: &[(&str, &[&str])] = &[
    ("if", &["then", "else"]),
    ("switch", &["cases", "default"]),
    ("each", &["as", "do"]),
    ("while", &["do"]),
    ("repeat", &["do"]),
    ("set", &[]),
    ("lookup", &["as", "with", "otherwise"]),
    ("call", &[]),
    ("remember", &[]),
    ("rememberSubscriber", &[]),
    ("notify", &[]),
    ("triggers", &[]),
    ("remove", &[]),
    ("reject", &[]),
];

/// Blocks of a word.
const WORDS: &[&str] = &["stop", "break", "continue"];

impl Compiler<'_> {
    pub(super) fn blocks(&mut self, json: &Json, path: &str, depth: usize) -> Vec<Block> {
        if depth > self.limits.depth {
            let expected = format!(
                "at most {} levels (`depth`); a routine for the inner ones",
                self.limits.depth
            );
            self.fault(path, "blocks nest too deeply", expected);
            return Vec::new();
        }
        let Json::Array(items) = json else {
            self.fault(path, "it is not a list of blocks", "`- ` before each block");
            return Vec::new();
        };
        let mut blocks = Vec::new();
        for (index, item) in items.iter().enumerate() {
            self.names.blocks += 1;
            if self.names.blocks > self.limits.blocks {
                if self.names.blocks == self.limits.blocks + 1 {
                    let expected = format!("at most {} (`blocks`)", self.limits.blocks);
                    self.fault(path, "the project has too many blocks", expected);
                }
                break;
            }
            blocks.extend(self.block(item, &format!("{path}[{index}]"), depth));
        }
        blocks
    }

    fn block(&mut self, json: &Json, path: &str, depth: usize) -> Option<Block> {
        let known = self.kinds();
        match json {
            Json::String(word) => {
                let kind = WORDS.iter().find(|known| *known == word);
                let Some(kind) = kind else {
                    self.fault(path, format!("unknown block `{word}`"), suggest(word, &known));
                    return None;
                };
                if *kind != "stop" && self.names.loops == 0 {
                    self.fault(
                        path,
                        format!("`{kind}` outside of a loop"),
                        "it within `each`, `while` or `repeat`",
                    );
                }
                let step = match *kind {
                    "break" => Step::Break,
                    "continue" => Step::Continue,
                    _ => Step::Stop,
                };
                let label = self.label(path, kind);
                Some(Block { label, step })
            }
            Json::Object(map) => {
                let kind = map
                    .keys()
                    .find_map(|key| known.iter().find(|known| *known == key));
                let Some(kind) = kind else {
                    let written = map.keys().find(|key| *key != "block").map_or("", String::as_str);
                    self.fault(
                        path,
                        format!("unknown block `{written}`"),
                        suggest(written, &known),
                    );
                    return None;
                };
                let companions = KINDS
                    .iter()
                    .find(|(name, _)| name == kind)
                    .map_or(&[][..], |(_, keys)| keys);
                let allowed: Vec<&str> = [*kind, "block", "comment"]
                    .into_iter()
                    .chain(companions.iter().copied())
                    .collect();
                self.known_keys(map, path, &allowed);
                let name = map.get("block").and_then(Json::as_str).unwrap_or(path);
                let label = self.label(name, kind);
                let step = self.step(kind, map, path, depth)?;
                Some(Block { label, step })
            }
            _ => {
                self.fault(path, "it is not a block", suggest("", &known));
                None
            }
        }
    }

    /// Names of all blocks of the service.
    fn kinds(&self) -> Vec<&'static str> {
        let sections = Section::all()
            .iter()
            .filter(|naming| naming.service == self.service);
        let common = KINDS.iter().map(|(name, _)| *name);
        let common = common
            .chain(WORDS.iter().copied())
            .chain([self.service.members().0]);
        common.chain(sections.map(|naming| naming.block)).collect()
    }

    fn step(&mut self, kind: &str, map: &Map<String, Json>, path: &str, depth: usize) -> Option<Step> {
        let argument = &map[kind];
        let own = path_key(path, kind);
        Some(match kind {
            "if" => Step::If {
                condition: self.expression(argument, &own, 0),
                then: self.required_body(map, "then", path, depth),
                otherwise: self.body(map, "else", path, depth),
            },
            "switch" => Step::Switch {
                value: self.expression(argument, &own, 0),
                cases: self.cases(map, path, depth),
                default: self.body(map, "default", path, depth),
            },
            "each" => {
                let variable = self.target(map, path)?;
                Step::Each {
                    list: self.expression(argument, &own, 0),
                    variable,
                    body: self.loop_body(map, path, depth),
                }
            }
            "while" => Step::While {
                condition: self.expression(argument, &own, 0),
                body: self.loop_body(map, path, depth),
            },
            "repeat" => Step::Repeat {
                times: self.expression(argument, &own, 0),
                body: self.loop_body(map, path, depth),
            },
            "set" => Step::Set(self.assignments(argument, &own)),
            "lookup" => self.lookup(argument, map, path, depth)?,
            "call" => self.call(argument, &own)?,
            "remember" => Step::Remember(Owner::Association, self.named_values(argument, &own)),
            "rememberSubscriber" => {
                self.program.writes_subscriber_state = true;
                Step::Remember(Owner::Subscriber, self.named_values(argument, &own))
            }
            "notify" => self.notify(argument, &own)?,
            "triggers" => Step::Triggers(self.triggers(argument, &own)),
            "remove" => self.remove(argument, &own)?,
            "reject" => self.reject(argument, &own)?,
            _ => self.entry(kind, argument, &own)?,
        })
    }

    fn body(&mut self, map: &Map<String, Json>, key: &str, path: &str, depth: usize) -> Vec<Block> {
        let body = map.get(key);
        body.map_or_else(Vec::new, |body| {
            self.blocks(body, &path_key(path, key), depth + 1)
        })
    }

    fn required_body(&mut self, map: &Map<String, Json>, key: &str, path: &str, depth: usize) -> Vec<Block> {
        if !map.contains_key(key) {
            self.fault(path, format!("`{key}` is missing"), "a list of blocks");
        }
        self.body(map, key, path, depth)
    }

    fn loop_body(&mut self, map: &Map<String, Json>, path: &str, depth: usize) -> Vec<Block> {
        self.names.loops += 1;
        let body = self.required_body(map, "do", path, depth);
        self.names.loops -= 1;
        body
    }

    /// The variable named by `as`.
    fn target(&mut self, map: &Map<String, Json>, path: &str) -> Option<usize> {
        let name = self
            .text(map, "as", path, "the name of a variable, without `$`")?
            .to_owned();
        self.assigned(&name, &path_key(path, "as"))
    }

    fn cases(&mut self, map: &Map<String, Json>, path: &str, depth: usize) -> Vec<Case> {
        const FORM: &str = "a list of `{is: value, do: […]}` or `{in: [value, …], do: […]}`";
        let path = path_key(path, "cases");
        let Some(Json::Array(cases)) = map.get("cases") else {
            self.fault(&path, "`cases` is missing or not a list", FORM);
            return Vec::new();
        };
        let mut compiled = Vec::new();
        for (index, case) in cases.iter().enumerate() {
            let path = format!("{path}[{index}]");
            let Some(case) = case.as_object() else {
                self.fault(&path, "the case is not a mapping", FORM);
                continue;
            };
            self.known_keys(case, &path, &["is", "in", "do"]);
            let values: Vec<&Json> = match (case.get("is"), case.get("in")) {
                (Some(value), None) => vec![value],
                (None, Some(Json::Array(values))) => values.iter().collect(),
                _ => {
                    self.fault(&path, "the case has not one of `is` and `in`", FORM);
                    continue;
                }
            };
            let values = values
                .into_iter()
                .map(|value| self.expression(value, &path, 0))
                .collect();
            let body = self.required_body(case, "do", &path, depth);
            compiled.push(Case { values, body });
        }
        compiled
    }

    /// `name: expression` lines.
    fn named_values(&mut self, json: &Json, path: &str) -> Vec<(String, Expr)> {
        let Some(map) = json.as_object() else {
            self.fault(path, "it is not a mapping", "`name: expression` lines");
            return Vec::new();
        };
        map.iter()
            .map(|(name, value)| (name.clone(), self.expression(value, &path_key(path, name), 0)))
            .collect()
    }

    fn assignments(&mut self, json: &Json, path: &str) -> Vec<(usize, Expr)> {
        let values = self.named_values(json, path);
        values
            .into_iter()
            .filter_map(|(name, value)| Some((self.assigned(&name, &path_key(path, &name))?, value)))
            .collect()
    }

    fn lookup(&mut self, argument: &Json, map: &Map<String, Json>, path: &str, depth: usize) -> Option<Step> {
        let variable = self.target(map, path);
        let otherwise = self.body(map, "otherwise", path, depth);
        let name = argument.as_str().unwrap_or_default();
        let Some(position) = self.names.tables.get(name).copied() else {
            let known: Vec<&str> = self.names.tables.keys().map(String::as_str).collect();
            let expected = suggest(name, &known);
            self.fault(
                path_key(path, "lookup"),
                format!("no table is called `{name}`"),
                expected,
            );
            return None;
        };
        let columns = self.program.tables[position].keys.clone();
        let mut keys: Vec<Option<Expr>> = columns.iter().map(|_| None).collect();
        if let Some(with) = map.get("with") {
            let path = path_key(path, "with");
            for (column, value) in self.named_values(with, &path) {
                let known: Vec<&str> = columns.iter().map(String::as_str).collect();
                match columns.iter().position(|name| *name == column) {
                    Some(index) => keys[index] = Some(value),
                    None => {
                        let expected = suggest(&column, &known);
                        self.fault(
                            path_key(&path, &column),
                            format!("`{name}` has no key `{column}`"),
                            expected,
                        );
                    }
                }
            }
        }
        Some(Step::Lookup {
            table: position,
            keys,
            variable: variable?,
            otherwise,
        })
    }

    fn call(&mut self, argument: &Json, path: &str) -> Option<Step> {
        let name = argument.as_str().unwrap_or_default();
        let Some(position) = self.names.routines.get(name).copied() else {
            let known: Vec<&str> = self.names.routines.keys().map(String::as_str).collect();
            let expected = suggest(name, &known);
            self.fault(path, format!("no routine is called `{name}`"), expected);
            return None;
        };
        if let Some(caller) = self.names.routine {
            self.names.calls[caller].push(position);
        }
        Some(Step::Call(position))
    }

    fn triggers(&mut self, json: &Json, path: &str) -> Vec<Expr> {
        let Some(items) = json.as_array() else {
            self.fault(path, "it is not a list", "names of triggers as a list");
            return Vec::new();
        };
        let kind = Kind::Enum(self.service.known_triggers());
        let mut found = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let path = format!("{path}[{index}]");
            self.check_kind(item, kind, &path);
            found.push(self.expression(item, &path, 0));
        }
        found
    }

    fn reject(&mut self, json: &Json, path: &str) -> Option<Step> {
        const FORM: &str =
            "`cause` (TS 29.512 §5.7.3 and the like), if wanted `status` (400 to 599) and `detail`";
        let Some(map) = json.as_object() else {
            self.fault(path, "it is not a mapping", FORM);
            return None;
        };
        self.known_keys(map, path, &["cause", "status", "detail"]);
        let status = map.get("status").map_or(Some(403), Json::as_u64);
        let status = status
            .and_then(|status| u16::try_from(status).ok())
            .filter(|status| (400..600).contains(status));
        let (Some(cause), Some(status)) = (map.get("cause"), status) else {
            self.fault(path, "the rejection is not complete", FORM);
            return None;
        };
        Some(Step::Reject {
            status,
            cause: self.expression(cause, &path_key(path, "cause"), 0),
            detail: map
                .get("detail")
                .map(|detail| self.expression(detail, &path_key(path, "detail"), 0)),
        })
    }

    fn remove(&mut self, json: &Json, path: &str) -> Option<Step> {
        let sections: Vec<&str> = Section::all()
            .iter()
            .filter(|naming| naming.service == self.service)
            .map(|naming| naming.member)
            .collect();
        let Some((member, id)) = json
            .as_object()
            .filter(|map| map.len() == 1)
            .and_then(|map| map.iter().next())
        else {
            let expected = format!("`{{section: identifier}}` with {}", suggest("", &sections));
            self.fault(path, "it does not name one section", expected);
            return None;
        };
        let Some(naming) = Section::all().iter().find(|naming| naming.member == member) else {
            let expected = suggest(member, &sections);
            self.fault(
                path_key(path, member),
                format!("unknown section `{member}`"),
                expected,
            );
            return None;
        };
        Some(Step::Remove(
            naming.section,
            self.expression(id, &path_key(path, member), 0),
        ))
    }
}
