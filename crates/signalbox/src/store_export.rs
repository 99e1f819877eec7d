//! `signalbox store export`: the records of a store as JSON lines.

use std::io::{BufWriter, Write};
use std::path::Path;

use ::store::Exported;
use bsf::binding::BindingId;
use serde_json::{Value, json};

use crate::failure::Failure;

/// Which records, and in what form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form<'f> {
    /// Of this table alone.
    pub(crate) table: Option<&'f str>,
    /// Bindings of PDU sessions as `signalbox import bsf` reads them.
    pub(crate) for_import: bool,
}

/// Writes the records to `output`, one a line; the number of lines.
pub(crate) fn run(directory: &Path, form: Form<'_>, output: impl Write) -> Result<u64, Failure> {
    let mut output = BufWriter::new(output);
    let mut lines = 0;
    let written = ::store::export(directory, |record| {
        if let Some(line) = line(&record, form)? {
            serde_json::to_writer(&mut output, &line).map_err(std::io::Error::from)?;
            output.write_all(b"\n")?;
            lines += 1;
        }
        Ok(())
    });
    let flushed = output.flush().map_err(anyhow::Error::from);
    match written.map(drop).and(flushed) {
        Ok(()) => Ok(lines),
        // Who reads the lines has seen enough, as `head` does.
        Err(error) if is_broken_pipe(&error) => Ok(lines),
        Err(error) => Err(Failure::Other(error)),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    kind == Some(std::io::ErrorKind::BrokenPipe)
}

fn line(record: &Exported<'_>, form: Form<'_>) -> anyhow::Result<Option<Value>> {
    let Exported {
        table, key, value, ..
    } = record;
    let wrong = |reason: String| anyhow::anyhow!("table {table}, key {}: {reason}", text(key));
    if form.for_import {
        return bsf::export::importable(table, key, value).map_err(wrong);
    }
    if form.table.is_some_and(|wanted| wanted != *table) || bsf::export::is_internal(table) {
        return Ok(None);
    }
    let (key, value) = match bsf::export::readable(table, key, value).map_err(wrong)? {
        Some(readable) => readable,
        None => (text(key), json_of(value)),
    };
    Ok(Some(json!({
        "table": table,
        "key": key,
        "created": record.created,
        "written": record.version.micros(),
        "site": record.site,
        "value": value,
    })))
}

/// A value as JSON: what is JSON as it is, other bytes in hexadecimal digits.
fn json_of(value: &[u8]) -> Value {
    serde_json::from_slice(value).unwrap_or_else(|_| json!({ "hex": hex(value) }))
}

/// A key as text: 16 bytes as a UUID, otherwise in hexadecimal digits what is not readable.
fn text(key: &[u8]) -> String {
    if let Ok(uuid) = key.try_into() {
        return BindingId(uuid).to_string();
    }
    let plain = std::str::from_utf8(key).ok();
    let plain = plain.filter(|text| !text.chars().any(char::is_control));
    plain.map_or_else(|| hex(key), str::to_owned)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
