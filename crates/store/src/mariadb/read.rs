//! Reads: merged where several wait for the same kind of thing.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Value};
use tokio::sync::{Mutex, mpsc, oneshot};

use super::Counters;
use super::nodes::{Connection, Failure, Nodes};
use super::sql::{SqlIndexTable, SqlTable, step};
use crate::engine::{Order, PageRequest, Row, RowPage};
use crate::error::Error;
use crate::schema::{Index, TableId};

/// The end of a question where its answer goes.
pub(super) type Answer<T> = oneshot::Sender<Result<T, Error>>;

/// A question.
pub(super) enum Question {
    Get(TableId, Vec<u8>, Answer<Option<Row>>),
    Find(TableId, Index, Vec<u8>, usize, Answer<Vec<Row>>),
    Page(TableId, PageRequest, Answer<RowPage>),
    Count(TableId, Answer<u64>),
    CountOf(TableId, Index, Vec<u8>, Answer<u64>),
}

type WaitingGet = (Vec<u8>, Answer<Option<Row>>);
type WaitingFind = (Vec<u8>, usize, Answer<Vec<Row>>);

/// Questions merged into one statement at most.
const MERGED: usize = 16;
/// First pause before another try.
const PAUSE: Duration = Duration::from_millis(10);

/// Answers questions on a connection of its own.
pub(super) struct Reader {
    pub(super) nodes: Arc<Nodes>,
    pub(super) tables: Arc<Vec<SqlTable>>,
    pub(super) counters: Arc<Counters>,
    pub(super) retry_for: Duration,
    pub(super) unavailable_after: Duration,
    /// Names of sites seen, so that each is kept once.
    pub(super) sites: HashMap<String, Arc<str>>,
}

/// Site names kept; a database with more than this has been written by something else.
const MOST_SITES: usize = 1_000;

impl Reader {
    pub(super) async fn run(mut self, questions: Arc<Mutex<mpsc::Receiver<Question>>>) {
        let mut connection = None;
        let mut batch = Vec::with_capacity(MERGED);
        loop {
            let count = questions.lock().await.recv_many(&mut batch, MERGED).await;
            if count == 0 {
                return;
            }
            let mut gets: HashMap<TableId, Vec<WaitingGet>> = HashMap::new();
            let mut finds: HashMap<(TableId, Index), Vec<WaitingFind>> = HashMap::new();
            for question in batch.drain(..) {
                match question {
                    Question::Get(table, key, answer) => gets.entry(table).or_default().push((key, answer)),
                    Question::Find(table, index, key, limit, answer) => {
                        finds
                            .entry((table, index))
                            .or_default()
                            .push((key, limit, answer));
                    }
                    Question::Page(table, request, answer) => {
                        let result = self.persist(&mut connection, Asked::Page(table, &request)).await;
                        let _ = answer.send(result.and_then(Found::page));
                    }
                    Question::Count(table, answer) => {
                        let result = self.persist(&mut connection, Asked::Count(table)).await;
                        let _ = answer.send(result.and_then(Found::count));
                    }
                    Question::CountOf(table, index, key, answer) => {
                        let asked = Asked::CountOf(table, index, &key);
                        let result = self.persist(&mut connection, asked).await;
                        let _ = answer.send(result.and_then(Found::count));
                    }
                }
            }
            for (table, gets) in gets {
                let keys: Vec<&[u8]> = gets.iter().map(|(key, _)| key.as_slice()).collect();
                let result = self
                    .persist(&mut connection, Asked::Keys(table, &keys))
                    .await
                    .and_then(Found::rows);
                for (key, answer) in gets {
                    let own = |rows: &Vec<Row>| rows.iter().find(|row| row.key == key).cloned();
                    let _ = answer.send(result.as_ref().map(own).map_err(Error::clone));
                }
            }
            for ((table, index), finds) in finds {
                let keys: Vec<(&[u8], usize)> = finds
                    .iter()
                    .map(|(key, limit, _)| (key.as_slice(), *limit))
                    .collect();
                let asked = Asked::IndexKeys(table, index, &keys);
                let result = self.persist(&mut connection, asked).await.and_then(Found::groups);
                for (position, (_, _, answer)) in finds.into_iter().enumerate() {
                    let own = |groups: &Vec<Vec<Row>>| groups.get(position).cloned().unwrap_or_default();
                    let _ = answer.send(result.as_ref().map(own).map_err(Error::clone));
                }
            }
        }
    }

    /// Asks until there is an answer or time is up.
    async fn persist(
        &mut self,
        connection: &mut Option<Connection>,
        asked: Asked<'_>,
    ) -> Result<Found, Error> {
        let deadline = Instant::now() + self.retry_for;
        let nodes = self.nodes.clone();
        loop {
            let outcome = match nodes.connected(connection).await {
                Ok(conn) => self.ask(conn, &asked).await,
                Err(failure) => Err(failure),
            };
            let failure = match outcome {
                Ok(found) => {
                    self.counters.reads.fetch_add(asked.reads(), Relaxed);
                    return Ok(found);
                }
                Err(failure) => failure,
            };
            // A long answer is no reason to leave the node; the heart-beat notices one that hangs.
            self.nodes.failed(connection, &failure, false);
            let reason = match failure {
                Failure::Refused(reason) | Failure::Failed(reason) | Failure::Duplicate(reason) => {
                    return Err(Error::Engine(reason));
                }
                Failure::Again(reason) | Failure::Lost(reason) | Failure::Unfit(reason) => reason,
            };
            self.counters.retries.fetch_add(1, Relaxed);
            if self.counters.trouble.has_lasted(self.unavailable_after) || Instant::now() >= deadline {
                return Err(Error::Unavailable {
                    reason,
                    maybe_applied: false,
                });
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn ask(&mut self, conn: &mut Conn, asked: &Asked<'_>) -> Result<Found, Failure> {
        let (tables, nodes) = (self.tables.clone(), self.nodes.clone());
        match asked {
            Asked::Keys(table, keys) => {
                let table = &tables[usize::from(table.0)];
                let count = step(keys.len());
                let padded = keys
                    .iter()
                    .chain(std::iter::repeat(&keys[keys.len() - 1]))
                    .take(count);
                let values: Vec<Value> = padded.map(|key| Value::from(*key)).collect();
                let rows: Vec<mysql_async::Row> = nodes.within(conn.exec(table.get(count), values)).await?;
                rows.into_iter()
                    .map(|row| self.row(table, row, 0))
                    .collect::<Result<_, _>>()
                    .map(Found::Rows)
            }
            Asked::IndexKeys(table, index, keys) => {
                let table = &tables[usize::from(table.0)];
                let index = index_of(table, *index)?;
                let count = step(keys.len());
                // Padded with questions for nothing.
                let padded = keys
                    .iter()
                    .copied()
                    .chain(std::iter::repeat((&[][..], 0)))
                    .take(count);
                let values: Vec<Value> = padded
                    .flat_map(|(key, limit)| [index.key_value(key), Value::from(limit)])
                    .collect();
                let rows: Vec<mysql_async::Row> =
                    nodes.within(conn.exec(table.find(index, count), values)).await?;
                let mut groups = vec![Vec::new(); keys.len()];
                for mut row in rows {
                    let group = row
                        .take::<usize, _>(0)
                        .and_then(|position| groups.get_mut(position));
                    let Some(group) = group else { continue };
                    group.push(self.row(table, row, 1)?);
                }
                Ok(Found::Groups(groups))
            }
            Asked::Count(table) => {
                let table = &tables[usize::from(table.0)];
                let select = "SELECT table_rows FROM information_schema.tables \
                     WHERE table_schema = DATABASE() AND table_name = ?";
                let count: Option<Option<u64>> = nodes.within(conn.exec_first(select, (table.name,))).await?;
                Ok(Found::Count(count.flatten().unwrap_or_default()))
            }
            Asked::CountOf(table, index, key) => {
                let table = &tables[usize::from(table.0)];
                let index = index_of(table, *index)?;
                let (from, of) = source_of(table, Some(index));
                let select = format!("SELECT COUNT(*) FROM {from} WHERE {of}.`{}` = ?", index.column);
                let key = (index.key_value(key),);
                let count: Option<u64> = nodes.within(conn.exec_first(select, key)).await?;
                Ok(Found::Count(count.unwrap_or_default()))
            }
            Asked::Page(table, request) => self
                .page(conn, &tables[usize::from(table.0)], request)
                .await
                .map(Found::Page),
        }
    }

    fn row(&mut self, table: &SqlTable, mut row: mysql_async::Row, first: usize) -> Result<Row, Failure> {
        let sites = &mut self.sites;
        let intern = |name: &str| {
            if let Some(known) = sites.get(name) {
                return known.clone();
            }
            let fresh: Arc<str> = Arc::from(name);
            if sites.len() < MOST_SITES {
                sites.insert(name.to_owned(), fresh.clone());
            }
            fresh
        };
        let bad = || {
            Failure::Refused(format!(
                "table {}: a row without a key, version or time",
                table.name
            ))
        };
        table.row(&mut row, first, intern).ok_or_else(bad)
    }

    async fn page(
        &mut self,
        conn: &mut Conn,
        table: &SqlTable,
        request: &PageRequest,
    ) -> Result<RowPage, Failure> {
        let id = table.id.name;
        let (column, index) = match request.order {
            Order::Primary => (id, None),
            Order::Modified => (table.version, None),
            Order::Index(index) => {
                let index = index_of(table, index)?;
                (index.column.as_str(), Some(index))
            }
        };
        let (from, of) = source_of(table, index);
        // A bound of the order as its column has it.
        let bound = |key: &[u8]| match (request.order, index) {
            (Order::Modified, _) => Value::UInt(<[u8; 8]>::try_from(key).map_or(0, u64::from_be_bytes)),
            (_, Some(index)) => index.key_value(key),
            (_, None) => Value::from(key),
        };
        let (mut conditions, mut values) = (Vec::new(), Vec::new());
        if index.is_some() {
            conditions.push(format!("{of}.`{column}` IS NOT NULL"));
        }
        match (&request.after, &request.from) {
            (Some(place), _) => {
                let place = Place::decode(place)
                    .ok_or_else(|| Failure::Refused("a place of another scan".to_owned()))?;
                if request.order == Order::Primary {
                    conditions.push(format!("t.`{id}` > ?"));
                    values.push(Value::from(place.id));
                } else {
                    conditions.push(format!(
                        "({of}.`{column}` > ? OR ({of}.`{column}` = ? AND t.`{id}` > ?))"
                    ));
                    let at = match request.order {
                        Order::Modified => bound(place.order),
                        // The column's own bytes.
                        _ => Value::from(place.order),
                    };
                    values.extend([at.clone(), at, Value::from(place.id)]);
                }
            }
            (None, Some(from)) => {
                conditions.push(format!("{of}.`{column}` >= ?"));
                values.push(bound(from));
            }
            (None, None) => {}
        }
        if let Some(to) = &request.to {
            conditions.push(format!("{of}.`{column}` < ?"));
            values.push(bound(to));
        }
        let filter = if conditions.is_empty() {
            String::new()
        } else {
            format!("WHERE {}", conditions.join(" AND "))
        };
        let order = if request.order == Order::Primary {
            String::new()
        } else {
            format!("{of}.`{column}`, ")
        };
        let statement = format!(
            "SELECT {of}.`{column}`, {} FROM {from} {filter} ORDER BY {order}t.`{id}` LIMIT ?",
            table.selected()
        );
        values.push(Value::from(request.limit));
        let rows: Vec<mysql_async::Row> = self.nodes.clone().within(conn.exec(statement, values)).await?;
        let full = rows.len() >= request.limit;
        let mut page = RowPage::default();
        let mut last = Vec::new();
        for mut row in rows {
            last = match row.take::<Value, _>(0) {
                Some(Value::Bytes(bytes)) => bytes,
                Some(Value::UInt(number)) => number.to_be_bytes().to_vec(),
                Some(Value::Int(number)) => number.to_be_bytes().to_vec(),
                _ => Vec::new(),
            };
            page.rows.push(self.row(table, row, 1)?);
        }
        if full && let Some(row) = page.rows.last() {
            page.next = Some(
                Place {
                    order: &last,
                    id: &row.key,
                }
                .encode(),
            );
        }
        Ok(page)
    }
}

fn index_of(table: &SqlTable, index: Index) -> Result<&SqlIndexTable, Failure> {
    let unknown = || Failure::Refused(format!("table {} has no index {}", table.name, index.0));
    table.index(index).ok_or_else(unknown)
}

/// From where rows are selected by an index, and the name there of what has its column.
fn source_of(table: &SqlTable, index: Option<&SqlIndexTable>) -> (String, &'static str) {
    match index.and_then(|index| Some((index, index.side.as_deref()?))) {
        Some((index, side)) => (table.joined(index, side), "s"),
        None => (format!("`{}` t", table.name), "t"),
    }
}

/// What is asked of the database.
enum Asked<'a> {
    Keys(TableId, &'a [&'a [u8]]),
    IndexKeys(TableId, Index, &'a [(&'a [u8], usize)]),
    Page(TableId, &'a PageRequest),
    Count(TableId),
    CountOf(TableId, Index, &'a [u8]),
}

impl Asked<'_> {
    /// How many reads of callers one statement answers.
    fn reads(&self) -> u64 {
        match self {
            Self::Keys(_, keys) => keys.len() as u64,
            Self::IndexKeys(_, _, keys) => keys.len() as u64,
            Self::Page(..) | Self::Count(_) | Self::CountOf(..) => 1,
        }
    }
}

/// What it has answered.
enum Found {
    Rows(Vec<Row>),
    Groups(Vec<Vec<Row>>),
    Page(RowPage),
    Count(u64),
}

impl Found {
    fn rows(self) -> Result<Vec<Row>, Error> {
        if let Found::Rows(rows) = self {
            Ok(rows)
        } else {
            Err(mixed_up())
        }
    }

    fn groups(self) -> Result<Vec<Vec<Row>>, Error> {
        if let Found::Groups(groups) = self {
            Ok(groups)
        } else {
            Err(mixed_up())
        }
    }

    fn count(self) -> Result<u64, Error> {
        if let Found::Count(count) = self {
            Ok(count)
        } else {
            Err(mixed_up())
        }
    }

    fn page(self) -> Result<RowPage, Error> {
        if let Found::Page(page) = self {
            Ok(page)
        } else {
            Err(mixed_up())
        }
    }
}

fn mixed_up() -> Error {
    Error::Engine("an answer to another question".to_owned())
}

/// Where a page ended.
struct Place<'a> {
    order: &'a [u8],
    id: &'a [u8],
}

impl<'a> Place<'a> {
    fn encode(&self) -> Vec<u8> {
        // Keys have at most MAX_KEY bytes.
        [&(self.order.len() as u16).to_be_bytes()[..], self.order, self.id].concat()
    }

    fn decode(bytes: &'a [u8]) -> Option<Place<'a>> {
        let (length, rest) = bytes.split_first_chunk::<2>()?;
        let (order, id) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        Some(Place { order, id })
    }
}
