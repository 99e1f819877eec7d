//! Tables as files: comma-separated values below a line that names the columns, `#` begins a comment.
//!
//! A field may stand in quotation marks, doubled inside it; none goes over the end of its line.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// Bounds on a file, and on its rows.
const MAX_BYTES: u64 = 32 << 20;
const MAX_ROWS: usize = 200_000;

/// A row, and where it is.
#[derive(Debug)]
pub(crate) struct Row {
    /// Of the file, from 1.
    pub(crate) line: usize,
    fields: Vec<String>,
}

/// A table: its rows, in the order of these columns.
#[derive(Debug, Default)]
pub(crate) struct Sheet {
    /// The name of the table.
    pub(crate) name: &'static str,
    pub(crate) rows: Vec<Row>,
}

impl Row {
    /// The field of a column, by position; empty where the row has none.
    pub(crate) fn field(&self, column: usize) -> &str {
        self.fields.get(column).map_or("", String::as_str)
    }

    /// The parts of a field, which semicolons separate.
    pub(crate) fn list(&self, column: usize) -> impl Iterator<Item = &str> {
        let parts = self.field(column).split(';').map(str::trim);
        parts.filter(|part| !part.is_empty())
    }
}

/// Reads a table of these columns. The file may have them in any order, leave out those after `required`, and be absent.
pub(crate) fn read(
    directory: &Path,
    name: &'static str,
    columns: &[&str],
    required: usize,
    mistakes: &mut Vec<String>,
) -> Sheet {
    let path = directory.join(format!("{name}.csv"));
    let opened = match is_other(&path) {
        true => Err(std::io::Error::other("is not a regular file")),
        false => File::open(&path),
    };
    let text = match opened {
        Ok(file) => {
            let mut text = String::new();
            match file.take(MAX_BYTES + 1).read_to_string(&mut text) {
                Ok(length) if length as u64 > MAX_BYTES => Err(format!("is longer than {MAX_BYTES} bytes")),
                Ok(_) => Ok(text),
                Err(error) => Err(error.to_string()),
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error.to_string()),
    };
    match text.and_then(|text| parse(name, &text, columns, required)) {
        Ok(sheet) => sheet,
        Err(mistake) => {
            mistakes.push(format!("{name}.csv: {mistake}"));
            Sheet {
                name,
                rows: Vec::new(),
            }
        }
    }
}

/// Whether something is there that is not a regular file: the opening of a FIFO would wait for its writer.
pub(crate) fn is_other(path: &Path) -> bool {
    path.metadata().is_ok_and(|data| !data.is_file())
}

fn parse(name: &'static str, text: &str, columns: &[&str], required: usize) -> Result<Sheet, String> {
    let mut sheet = Sheet {
        name,
        rows: Vec::new(),
    };
    let mut positions: Option<Vec<usize>> = None;
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let number = index + 1;
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let fields = fields(line).map_err(|wrong| format!("line {number}: {wrong}"))?;
        let Some(positions) = &positions else {
            positions =
                Some(header(&fields, columns, required).map_err(|wrong| format!("line {number}: {wrong}"))?);
            continue;
        };
        if fields.len() != positions.len() {
            let (has, wanted) = (fields.len(), positions.len());
            return Err(format!(
                "line {number}: has {has} fields, not {wanted} as the columns"
            ));
        }
        if sheet.rows.len() == MAX_ROWS {
            return Err(format!("line {number}: more than {MAX_ROWS} rows"));
        }
        let mut ordered = vec![String::new(); columns.len()];
        for (field, position) in fields.into_iter().zip(positions) {
            ordered[*position] = field;
        }
        sheet.rows.push(Row {
            line: number,
            fields: ordered,
        });
    }
    Ok(sheet)
}

/// For each column of the file, its position in `columns`.
fn header(fields: &[String], columns: &[&str], required: usize) -> Result<Vec<usize>, String> {
    let mut positions = Vec::new();
    for field in fields {
        let position = columns.iter().position(|column| column == field);
        let position = position
            .ok_or_else(|| format!("unknown column `{field}`; the columns are {}", columns.join(",")))?;
        if positions.contains(&position) {
            return Err(format!("column `{field}` twice"));
        }
        positions.push(position);
    }
    let missing = (0..required).find(|position| !positions.contains(position));
    match missing.and_then(|position| columns.get(position)) {
        Some(column) => Err(format!("column `{column}` is missing")),
        None => Ok(positions),
    }
}

fn fields(line: &str) -> Result<Vec<String>, String> {
    let mut fields = Vec::new();
    let mut rest = line.trim_end();
    loop {
        let trimmed = rest.trim_start();
        let (field, after) = if let Some(quoted) = trimmed.strip_prefix('"') {
            quotation(quoted)?
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            (rest[..end].trim().to_owned(), &rest[end..])
        };
        fields.push(field);
        match after.trim_start().strip_prefix(',') {
            Some(more) => rest = more,
            None if after.trim().is_empty() => return Ok(fields),
            None => return Err("text behind a quotation mark".to_owned()),
        }
    }
}

/// A field up to its closing mark, and what follows.
fn quotation(text: &str) -> Result<(String, &str), String> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let end = rest.find('"').ok_or("a quotation mark is not closed")?;
        field.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(more) => {
                field.push('"');
                rest = more;
            }
            None => return Ok((field, rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [&str; 3] = ["A", "B", "C"];

    #[test]
    fn columns_may_stand_in_any_order_and_fields_in_quotation_marks() {
        let text = "# x\n\nB,A\r\n1, two \n\"a, \"\"b\"\"\",;3;;4\n";
        let sheet = parse("T", text, &COLUMNS, 2).unwrap();
        let rows: Vec<_> = sheet
            .rows
            .iter()
            .map(|row| (row.line, row.field(0), row.field(1), row.field(2)))
            .collect();
        assert_eq!(rows, [(4, "two", "1", ""), (5, ";3;;4", "a, \"b\"", "")]);
        assert_eq!(sheet.rows[1].list(0).collect::<Vec<_>>(), ["3", "4"]);
        assert!(parse("T", "", &COLUMNS, 2).unwrap().rows.is_empty());
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, wanted) in [
            ("A,X", "line 1: unknown column `X`"),
            ("A,A", "twice"),
            ("A", "column `B` is missing"),
            ("A,B\n1", "line 2: has 1 fields, not 2"),
            ("A,B\n\"1,2", "not closed"),
            ("A,B\n\"1\"2,3", "behind a quotation mark"),
        ] {
            let error = parse("T", text, &COLUMNS, 2).unwrap_err();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
