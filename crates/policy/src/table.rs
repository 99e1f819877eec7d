//! Policy tables: the first row, from the top, whose cells all match.
//!
//! Rows are filed by their shape: which of their cells are exact, a prefix of how many bytes, or neither. A lookup hashes
//! the values once for each shape and compares only the rows of that hash, so its cost grows with the number of shapes and
//! not with the number of rows.

use std::hash::{BuildHasher, Hash, Hasher};

use ahash::{AHashMap, RandomState};
use serde_json::Value as Json;

use crate::expression::Expr;
use crate::glob::Glob;
use crate::value::Value;
use crate::work::Work;

/// A compiled policy table.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) name: String,
    /// Names of the key columns.
    pub(crate) keys: Vec<String>,
    /// Where the values of the keys come from.
    pub(crate) sources: Vec<Expr>,
    pub(crate) rows: Vec<Row>,
    groups: Vec<Group>,
}

/// A row: what it matches and what it gives.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) cells: Vec<Cell>,
    /// The result columns as an object.
    pub(crate) result: Json,
}

/// What a key cell matches.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Any,
    /// The absent value.
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    Wildcard(Glob),
    /// From and to, both included.
    Range(f64, f64),
    /// Any of several.
    In(Vec<Cell>),
}

/// Rows whose cells have the same shape.
#[derive(Debug)]
struct Group {
    shape: Vec<Part>,
    /// The first of its rows.
    first: u32,
    rows: AHashMap<u64, Vec<u32>>,
}

/// How a cell takes part in the hash of its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part {
    Exact,
    Prefix(usize),
    /// Not at all.
    None,
}

impl Cell {
    /// Whether a value matches; `None`: that takes more work than there may be.
    fn matches(&self, value: &Value<'_>, work: &mut Work) -> Option<bool> {
        work.look()?;
        Some(match self {
            Self::Any => true,
            Self::Null => value.is_null(),
            Self::Bool(yes) => value.as_bool() == Some(*yes),
            Self::Number(number) => value.as_f64() == Some(*number),
            Self::Text(text) => {
                work.compare(text.len())?;
                value.as_str() == Some(text.as_str())
            }
            Self::Wildcard(glob) => match value.as_str() {
                Some(text) => glob.matches(text, work)?,
                None => false,
            },
            Self::Range(from, to) => value.as_f64().is_some_and(|found| *from <= found && found <= *to),
            Self::In(cells) => {
                for cell in cells {
                    if cell.matches(value, work)? {
                        return Some(true);
                    }
                }
                false
            }
        })
    }

    /// Whether every value that `other` matches matches this as well, as far as that is plain to see.
    fn covers(&self, other: &Cell) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (Self::In(cells), _) => cells.iter().any(|cell| cell.covers(other)),
            (_, Self::In(cells)) => cells.iter().all(|cell| self.covers(cell)),
            (Self::Wildcard(glob), Self::Text(text)) => {
                // What takes longer is not plain to see.
                glob.matches(text, &mut Work::of(COVERING)) == Some(true)
            }
            (Self::Wildcard(Glob::Prefix(outer)), Self::Wildcard(Glob::Prefix(inner))) => {
                inner.starts_with(outer)
            }
            (Self::Range(from, to), Self::Number(number)) => from <= number && number <= to,
            (Self::Range(from, to), Self::Range(first, last)) => from <= first && last <= to,
            _ => self == other,
        }
    }

    fn part(&self) -> Part {
        match self {
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) => Part::Exact,
            Self::Wildcard(Glob::Prefix(prefix)) => Part::Prefix(prefix.len()),
            _ => Part::None,
        }
    }
}

/// Steps of one comparison in the search for unreachable rows.
const COVERING: u64 = 100;
/// Comparisons that the search for unreachable rows makes at most.
const COMPARISONS: usize = 2_000_000;

impl Table {
    pub(crate) fn new(name: &str, keys: Vec<String>, rows: Vec<Row>) -> Self {
        let mut table = Self {
            name: name.to_owned(),
            keys,
            sources: Vec::new(),
            rows,
            groups: Vec::new(),
        };
        let mut groups: AHashMap<Vec<Part>, Group> = AHashMap::new();
        for (position, row) in table.rows.iter().enumerate() {
            let Ok(position) = u32::try_from(position) else {
                break;
            };
            let shape: Vec<Part> = row.cells.iter().map(Cell::part).collect();
            let mut hasher = hasher();
            for cell in &row.cells {
                match cell {
                    Cell::Null => 0_u8.hash(&mut hasher),
                    Cell::Bool(yes) => (1_u8, yes).hash(&mut hasher),
                    Cell::Number(number) => (2_u8, bits(*number)).hash(&mut hasher),
                    Cell::Text(text) => hash_bytes(text.as_bytes(), &mut hasher),
                    Cell::Wildcard(Glob::Prefix(prefix)) => hash_bytes(prefix.as_bytes(), &mut hasher),
                    _ => {}
                }
            }
            let hash = hasher.finish();
            let group = groups.entry(shape.clone()).or_insert_with(|| Group {
                shape,
                first: position,
                rows: AHashMap::new(),
            });
            group.rows.entry(hash).or_default().push(position);
        }
        table.groups = groups.into_values().collect();
        table.groups.sort_by_key(|group| group.first);
        table
    }

    /// The position of the first row that matches. `None`: that takes more work than there may be.
    pub(crate) fn lookup(&self, values: &[Value<'_>], work: &mut Work) -> Option<Option<usize>> {
        let mut best = u32::MAX;
        for group in &self.groups {
            if group.first >= best {
                break;
            }
            let Some(hash) = group.hash(values, work)? else {
                continue;
            };
            let Some(rows) = group.rows.get(&hash) else {
                continue;
            };
            for position in rows.iter().take_while(|position| **position < best) {
                let Some(row) = self.rows.get(*position as usize) else {
                    continue;
                };
                if row.matches(values, work)? {
                    best = *position;
                    break;
                }
            }
        }
        Some((best != u32::MAX).then_some(best as usize))
    }

    /// Number of shapes: what a lookup hashes at most.
    #[cfg(test)]
    pub(crate) fn shapes(&self) -> usize {
        self.groups.len()
    }

    /// Rows that no value reaches, because an earlier one matches whatever they match: the row and that earlier one.
    pub(crate) fn unreachable(&self) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        let mut left = COMPARISONS;
        for (position, row) in self.rows.iter().enumerate() {
            let Some(rest) = left.checked_sub(position) else {
                break;
            };
            left = rest;
            let covering = self.rows[..position].iter().position(|earlier| {
                earlier
                    .cells
                    .iter()
                    .zip(&row.cells)
                    .all(|(outer, inner)| outer.covers(inner))
            });
            found.extend(covering.map(|covering| (position, covering)));
        }
        found
    }
}

impl Row {
    fn matches(&self, values: &[Value<'_>], work: &mut Work) -> Option<bool> {
        for (cell, value) in self.cells.iter().zip(values) {
            if !cell.matches(value, work)? {
                return Some(false);
            }
        }
        Some(true)
    }
}

impl Group {
    /// The hash that a matching row of this group has; `Some(None)` where no row can match.
    fn hash(&self, values: &[Value<'_>], work: &mut Work) -> Option<Option<u64>> {
        for (part, value) in self.shape.iter().zip(values) {
            work.compare(match part {
                Part::Exact => value.as_str().map_or(0, str::len),
                Part::Prefix(length) => *length,
                Part::None => 0,
            })?;
        }
        Some(self.hash_of(values))
    }

    fn hash_of(&self, values: &[Value<'_>]) -> Option<u64> {
        let mut hasher = hasher();
        for (part, value) in self.shape.iter().zip(values) {
            match (part, value.as_str()) {
                (Part::None, _) => {}
                (Part::Prefix(length), Some(text)) => {
                    hash_bytes(text.as_bytes().get(..*length)?, &mut hasher);
                }
                (Part::Prefix(_), None) => return None,
                (Part::Exact, Some(text)) => hash_bytes(text.as_bytes(), &mut hasher),
                (Part::Exact, None) => match value {
                    Value::Null => 0_u8.hash(&mut hasher),
                    Value::False | Value::True => (1_u8, value.is_true()).hash(&mut hasher),
                    value => (2_u8, bits(value.as_f64()?)).hash(&mut hasher),
                },
            }
        }
        Some(hasher.finish())
    }
}

/// The same in each process, so that a table costs the same in each. Only rows of the project are stored by it, so the
/// values of requests cannot make collisions.
fn hasher() -> ahash::AHasher {
    RandomState::with_seeds(1, 2, 3, 4).build_hasher()
}

fn hash_bytes(bytes: &[u8], hasher: &mut impl Hasher) {
    (3_u8, bytes).hash(hasher);
}

/// The bits of a number, one form for zero.
fn bits(number: f64) -> u64 {
    if number == 0.0 { 0 } else { number.to_bits() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn text() -> impl Strategy<Value = String> {
        "[ab]{0,3}"
    }

    fn cell() -> impl Strategy<Value = Cell> {
        let plain = prop_oneof![
            2 => Just(Cell::Any),
            1 => Just(Cell::Null),
            1 => any::<bool>().prop_map(Cell::Bool),
            2 => (-2_i32..3).prop_map(|number| Cell::Number(number.into())),
            4 => text().prop_map(Cell::Text),
            2 => text().prop_map(|text| Cell::Wildcard(Glob::parse(&format!("{text}*")))),
            1 => text().prop_map(|text| Cell::Wildcard(Glob::parse(&format!("*{text}?")))),
            1 => (-2_i32..3, 0_i32..3).prop_map(|(from, more)| Cell::Range(from.into(), (from + more).into())),
        ];
        prop_oneof![8 => plain.clone(), 1 => proptest::collection::vec(plain, 0..3).prop_map(Cell::In)]
    }

    fn value() -> impl Strategy<Value = Json> {
        prop_oneof![
            1 => Just(Json::Null),
            1 => any::<bool>().prop_map(Json::Bool),
            2 => (-2_i32..3).prop_map(|number| json!(number)),
            1 => Just(json!(-0.0)),
            1 => Just(json!([1])),
            4 => text().prop_map(Json::String),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn a_lookup_finds_the_row_that_a_search_from_the_top_finds(
            rows in proptest::collection::vec((cell(), cell(), cell()), 0..40),
            values in proptest::collection::vec((value(), value(), value()), 1..20),
        ) {
            let rows: Vec<Row> = rows
                .into_iter()
                .map(|(a, b, c)| Row { cells: vec![a, b, c], result: Json::Null })
                .collect();
            let table = Table::new("t", vec!["a".into(), "b".into(), "c".into()], rows.clone());
            let unreachable = table.unreachable();
            for (a, b, c) in &values {
                let values = [Value::of(a), Value::of(b), Value::of(c)];
                let naive = rows.iter().position(|row| row.matches(&values, &mut Work::boundless()) == Some(true));
                prop_assert_eq!(table.lookup(&values, &mut Work::boundless()), Some(naive));
                if let Some(found) = naive {
                    prop_assert!(unreachable.iter().all(|(row, _)| *row != found));
                }
            }
        }
    }

    #[test]
    fn many_rows_have_few_shapes() {
        let rows = (0..10_000).map(|number| Row {
            cells: vec![
                Cell::Text(format!("dnn{number}")),
                if number % 2 == 0 {
                    Cell::Any
                } else {
                    Cell::Number(1.0)
                },
            ],
            result: json!({ "number": number }),
        });
        let table = Table::new("t", vec!["dnn".into(), "sst".into()], rows.collect());
        assert_eq!(table.shapes(), 2);
        let dnn = json!("dnn9999");
        let find = |sst: Value<'_>| {
            table
                .lookup(&[Value::of(&dnn), sst], &mut Work::boundless())
                .unwrap()
        };
        assert_eq!(find(Value::Int(1)), Some(9999));
        assert_eq!(find(Value::Int(2)), None);
    }
}
