//! A table as SQL: names of columns, statements, values.

use mysql_async::Value;
use time::{Date, OffsetDateTime, PrimitiveDateTime, Time};

use crate::batch::NewRow;
use crate::engine::Row;
use crate::record::TableDef;
use crate::schema::{Index, MAX_KEY, TableSchema};
use crate::version::Version;
use records::{SqlColumn, SqlValue};

/// The column that says with which list of indexes a row was written: its version, exclusive or the list's
/// [`SqlTable::mark`]. A program that knows another list, or no such column, leaves another value behind, and
/// [`super::reindex`] finds the row.
pub(super) const INDEXED: &str = "indexed_as";

/// The column of an index's own table that has the version of the record which put the key there.
pub(super) const SIDE_VERSION: &str = "record_version";

/// Keys in one statement are padded to one of these numbers, so that few statements are prepared.
pub(super) const STEPS: [usize; 5] = [1, 4, 16, 64, 256];

fn probe<'a>(table: &str, columns: impl Iterator<Item = &'a str>) -> String {
    let columns: Vec<String> = columns.map(|column| format!("`{column}`")).collect();
    format!("SELECT {} FROM `{table}` LIMIT 0", columns.join(", "))
}

/// An index in SQL.
pub(super) struct SqlIndexTable {
    /// The column, in the table or, for `multi`, in a table of its own.
    pub(super) column: String,
    pub(super) column_type: String,
    pub(super) key_name: String,
    pub(super) unique: bool,
    /// Name of the index's own table.
    pub(super) side: Option<String>,
    to_sql: Option<fn(&[u8]) -> SqlValue>,
}

/// A table in SQL.
pub(super) struct SqlTable {
    pub(super) def: TableDef,
    pub(super) name: &'static str,
    pub(super) id: SqlColumn,
    pub(super) version: &'static str,
    pub(super) created: &'static str,
    pub(super) value: &'static str,
    /// Of a mapping: time of modification in milliseconds.
    pub(super) modified: Option<&'static str>,
    pub(super) indexes: Vec<SqlIndexTable>,
    pub(super) extra: &'static [SqlColumn],
    pub(super) keys: &'static [(&'static str, &'static str)],
    pub(super) mapped: bool,
    /// Stands for the list of indexes, see [`INDEXED`].
    pub(super) mark: u64,
    pub(super) insert: String,
    pub(super) update: String,
    pub(super) delete: String,
}

impl SqlTable {
    /// Statements that read nothing, and fail where the table, a column, or the table of an index is missing.
    pub(super) fn probes(&self) -> Vec<String> {
        let own = self.indexes.iter().filter(|index| index.side.is_none());
        let columns = [
            self.id.name,
            self.version,
            self.created,
            self.value,
            INDEXED,
            "site_id",
        ];
        let columns = columns.into_iter().chain(self.modified);
        let columns = columns.chain(own.map(|index| index.column.as_str()));
        let columns = columns.chain(self.extra.iter().map(|column| column.name));
        let mut all = vec![probe(self.name, columns)];
        for (_, index, side) in self.side_tables() {
            all.push(probe(
                side,
                [index.column.as_str(), self.id.name, SIDE_VERSION].into_iter(),
            ));
        }
        all
    }

    /// As [`SqlTable::probes`], for the columns that a table of any release has.
    pub(super) fn first_probe(&self) -> String {
        probe(
            self.name,
            [self.id.name, self.version, self.created, self.value].into_iter(),
        )
    }

    pub(super) fn new(def: TableDef) -> SqlTable {
        let schema: &'static TableSchema = def.schema;
        let mapping = schema.sql;
        let side = |index: &str| format!("{}__{index}", schema.name);
        let indexes = schema.indexes.iter().enumerate().map(|(position, index)| {
            let mapped = mapping.and_then(|mapping| mapping.indexes.get(position));
            SqlIndexTable {
                column: mapped.map_or_else(
                    || format!("i_{}", index.name),
                    |mapped| mapped.column.name.to_owned(),
                ),
                column_type: mapped.map_or_else(
                    || format!("varbinary({MAX_KEY})"),
                    |mapped| mapped.column.sql_type.to_owned(),
                ),
                key_name: mapped.map_or_else(
                    || format!("i_{}", index.name),
                    |mapped| mapped.key_name.to_owned(),
                ),
                unique: index.unique,
                side: index.multi.then(|| side(index.name)),
                to_sql: mapped.map(|mapped| mapped.to_sql),
            }
        });
        let mut table = SqlTable {
            def,
            name: schema.name,
            id: mapping.map_or(
                SqlColumn {
                    name: "id",
                    sql_type: GENERIC_ID,
                },
                |mapping| mapping.id,
            ),
            version: if mapping.is_some() {
                "record_version"
            } else {
                "version"
            },
            created: mapping.map_or("created", |mapping| mapping.created),
            value: mapping.map_or("value", |mapping| mapping.value),
            modified: mapping.map(|mapping| mapping.modified),
            indexes: indexes.collect(),
            extra: mapping.map_or(&[], |mapping| mapping.extra),
            keys: mapping.map_or(&[], |mapping| mapping.keys),
            mapped: mapping.is_some(),
            mark: 0,
            insert: String::new(),
            update: String::new(),
            delete: String::new(),
        };
        table.mark = fnv1a(table.describe().as_bytes());
        let columns = table.columns();
        let names: Vec<String> = columns.iter().map(|column| format!("`{column}`")).collect();
        let marks = vec!["?"; columns.len()].join(", ");
        table.insert = format!(
            "INSERT INTO `{}` ({}) VALUES ({marks})",
            table.name,
            names.join(", ")
        );
        // The first two are the primary key and the time of creation, which stay.
        let sets: Vec<String> = names[2..].iter().map(|column| format!("{column} = ?")).collect();
        table.update = format!(
            "UPDATE `{}` SET {} WHERE {} = ?",
            table.name,
            sets.join(", "),
            names[0]
        );
        table.delete = format!("DELETE FROM `{}` WHERE {} = ?", table.name, names[0]);
        table
    }

    /// The list of indexes in words, as `signalbox_tables` has it.
    pub(super) fn describe(&self) -> String {
        let mut text: Vec<String> = self
            .indexes
            .iter()
            .map(|index| {
                let kind = if index.unique { "unique" } else { "many" };
                let side = if index.side.is_some() { " multi" } else { "" };
                format!("{} {kind}{side}", index.column)
            })
            .collect();
        if self.def.schema.by_modified {
            text.push("modified".to_owned());
        }
        text.join(", ")
    }

    /// Columns in the order in which values are given.
    pub(super) fn columns(&self) -> Vec<String> {
        let mut columns = vec![self.id.name.to_owned(), self.created.to_owned()];
        columns.extend([self.version, INDEXED, "site_id", self.value].map(str::to_owned));
        columns.extend(self.modified.map(str::to_owned));
        columns.extend(
            self.indexes
                .iter()
                .filter(|index| index.side.is_none())
                .map(|index| index.column.clone()),
        );
        columns.extend(self.extra.iter().map(|column| column.name.to_owned()));
        columns
    }

    /// Values for [`SqlTable::insert`].
    pub(super) fn insert_values(&self, key: &[u8], row: &NewRow, version: Version, site: &str) -> Vec<Value> {
        let mut values = vec![Value::from(key), self.time(version.micros())];
        self.push_changing(row, version, site, &mut values);
        values
    }

    /// Values for [`SqlTable::update`].
    pub(super) fn update_values(&self, key: &[u8], row: &NewRow, version: Version, site: &str) -> Vec<Value> {
        let mut values = Vec::with_capacity(8 + self.indexes.len());
        self.push_changing(row, version, site, &mut values);
        values.push(Value::from(key));
        values
    }

    fn push_changing(&self, row: &NewRow, version: Version, site: &str, values: &mut Vec<Value>) {
        values.extend([
            Value::UInt(version.0),
            Value::UInt(version.0 ^ self.mark),
            Value::from(site),
            Value::from(row.value.as_slice()),
        ]);
        values.extend(self.modified.map(|_| Value::UInt(version.micros() / 1_000)));
        for (position, index) in self
            .indexes
            .iter()
            .enumerate()
            .filter(|(_, index)| index.side.is_none())
        {
            let key = row.keys.iter().find(|(of, _)| usize::from(of.0) == position);
            values.push(key.map_or(Value::NULL, |(_, key)| index.key_value(key)));
        }
        for position in 0..self.extra.len() {
            values.push(row.columns.get(position).map_or(Value::NULL, sql_value));
        }
    }

    /// A time as the column of creation has it.
    fn time(&self, micros: u64) -> Value {
        if !self.mapped {
            return Value::UInt(micros);
        }
        let nanos = i128::from(micros) * 1_000;
        // Beyond the year 9999 the column could not hold it either.
        let time = OffsetDateTime::from_unix_timestamp_nanos(nanos).unwrap_or(OffsetDateTime::UNIX_EPOCH);
        Value::Date(
            u16::try_from(time.year()).unwrap_or(1970),
            time.month().into(),
            time.day(),
            time.hour(),
            time.minute(),
            time.second(),
            time.microsecond(),
        )
    }

    /// The columns that [`SqlTable::row`] reads, of the table named `t`.
    pub(super) fn selected(&self) -> String {
        let columns = [self.id.name, self.version, self.created, "site_id", self.value];
        columns.map(|column| format!("t.`{column}`")).join(", ")
    }

    /// A row from the columns that [`SqlTable::selected`] names, beginning at `first`.
    pub(super) fn row(
        &self,
        row: &mut mysql_async::Row,
        first: usize,
        site: impl FnOnce(&str) -> std::sync::Arc<str>,
    ) -> Option<Row> {
        let key = row.take::<Vec<u8>, _>(first)?;
        let version = Version(row.take::<u64, _>(first + 1)?);
        let created = micros_of(&row.take::<Value, _>(first + 2)?)?;
        let name = row.take::<Vec<u8>, _>(first + 3)?;
        let value = row.take::<Vec<u8>, _>(first + 4)?;
        Some(Row {
            key,
            version,
            created,
            site: site(&String::from_utf8_lossy(&name)),
            value,
        })
    }

    /// `SELECT id, version, expiry FROM … WHERE id IN (…) FOR UPDATE` for `count` keys.
    pub(super) fn lock(&self, count: usize) -> String {
        let id = self.id.name;
        // A table with a mapping has no lifetimes, see `check_schemas`.
        let expiry = self.def.expiry.and_then(|index| self.index(index));
        let expiry = expiry.map_or("NULL".to_owned(), |index| format!("`{}`", index.column));
        format!(
            "SELECT `{id}`, `{}`, {expiry} FROM `{}` WHERE `{id}` IN ({}) FOR UPDATE",
            self.version,
            self.name,
            marks(count)
        )
    }

    /// Rows of `count` primary keys.
    pub(super) fn get(&self, count: usize) -> String {
        format!(
            "SELECT {} FROM `{}` t WHERE t.`{}` IN ({})",
            self.selected(),
            self.name,
            self.id.name,
            marks(count)
        )
    }

    /// Rows of `count` keys of an index, each with the position of its key, newest first, each with a limit.
    pub(super) fn find(&self, index: &SqlIndexTable, count: usize) -> String {
        let column = &index.column;
        let from = match &index.side {
            None => format!("`{}` t WHERE t.`{column}` = ?", self.name),
            Some(side) => format!("{} WHERE s.`{column}` = ?", self.joined(index, side)),
        };
        let part = |position| {
            format!(
                "(SELECT {position}, {} FROM {from} ORDER BY t.`{}` DESC, t.`{}` DESC LIMIT ?)",
                self.selected(),
                self.created,
                self.version
            )
        };
        (0..count).map(part).collect::<Vec<_>>().join(" UNION ALL ")
    }

    /// An index's own table `s` joined to the records `t` whose keys it has.
    ///
    /// A key that many records may have counts only for the version that put it there: where two sites have written a
    /// record, keys of both stand in the table, and those of the earlier version must not be found. Programs that know
    /// no version of a key leave 0.
    pub(super) fn joined(&self, index: &SqlIndexTable, side: &str) -> String {
        let (name, id) = (self.name, self.id.name);
        let current = if index.unique {
            String::new()
        } else {
            format!(" AND s.`{SIDE_VERSION}` IN (t.`{}`, 0)", self.version)
        };
        format!("`{side}` s JOIN `{name}` t ON t.`{id}` = s.`{id}`{current}")
    }

    pub(super) fn index(&self, index: Index) -> Option<&SqlIndexTable> {
        self.indexes.get(usize::from(index.0))
    }

    /// Indexes with tables of their own, by position.
    pub(super) fn side_tables(&self) -> impl Iterator<Item = (usize, &SqlIndexTable, &str)> {
        let indexes = self.indexes.iter().enumerate();
        indexes.filter_map(|(position, index)| index.side.as_deref().map(|side| (position, index, side)))
    }
}

/// The type of a generic primary key.
const GENERIC_ID: &str = "varbinary(512)";

impl SqlIndexTable {
    /// An index key as the column has it.
    pub(super) fn key_value(&self, key: &[u8]) -> Value {
        self.to_sql
            .map_or_else(|| Value::from(key), |to_sql| sql_value(&to_sql(key)))
    }
}

pub(super) fn sql_value(value: &SqlValue) -> Value {
    match value {
        SqlValue::Null => Value::NULL,
        SqlValue::Int(number) => Value::Int(*number),
        SqlValue::Text(text) => Value::from(text.as_str()),
        SqlValue::Bytes(bytes) => Value::from(bytes.as_slice()),
    }
}

/// The next of [`STEPS`] that is not less than `count`, at most the largest.
pub(super) fn step(count: usize) -> usize {
    STEPS
        .into_iter()
        .find(|step| *step >= count)
        .unwrap_or(STEPS[STEPS.len() - 1])
}

/// FNV-1a of 64 bits: the same in all releases and on all machines.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn marks(count: usize) -> String {
    vec!["?"; count].join(", ")
}

/// Microseconds since 1970 of a number or of a date and time in UTC.
fn micros_of(value: &Value) -> Option<u64> {
    match value {
        Value::UInt(micros) => Some(*micros),
        Value::Int(micros) => u64::try_from(*micros).ok(),
        Value::Date(year, month, day, hour, minute, second, micro) => {
            let date = Date::from_calendar_date(i32::from(*year), (*month).try_into().ok()?, *day).ok()?;
            let time = Time::from_hms_micro(*hour, *minute, *second, *micro).ok()?;
            let nanos = PrimitiveDateTime::new(date, time)
                .assume_utc()
                .unix_timestamp_nanos();
            u64::try_from(nanos / 1_000).ok()
        }
        _ => None,
    }
}
