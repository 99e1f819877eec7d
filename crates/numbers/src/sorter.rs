//! External sort: numbers in any order, in bounded memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::key::Key;
use crate::sets::SetId;

/// Bytes of a record in memory and in a run: key (8), line (6), value (2).
const RECORD: usize = 16;
const READ_BYTES: usize = 128 << 10;

/// Sorts records by their keys. What does not fit `memory` bytes is spilled as sorted runs into files without a name in the
/// given folder, 16 bytes a record, and merged at the end; a crash leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Sorter {
    folder: PathBuf,
    most: usize,
    /// Key, and line and value together.
    records: Vec<(u64, u64)>,
    runs: Vec<File>,
}

/// A record: key, value, line of the input.
pub(crate) type Record = (Key, SetId, u64);

impl Sorter {
    pub(crate) fn new(folder: &Path, memory: usize) -> Self {
        Self {
            folder: folder.to_owned(),
            most: (memory / RECORD).max(1024),
            records: Vec::new(),
            runs: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, (key, set, line): Record) -> Result<(), Error> {
        if self.records.len() == self.most {
            self.spill()?;
        }
        // The line is above the value: records of one key are in the order of their lines.
        self.records.push((key.raw(), line << 16 | u64::from(set.0)));
        Ok(())
    }

    fn spill(&mut self) -> Result<(), Error> {
        self.records.sort_unstable();
        let run = self.write_run().map_err(Error::at(&self.folder))?;
        self.runs.push(run);
        self.records.clear();
        Ok(())
    }

    fn write_run(&self) -> io::Result<File> {
        let mut run = BufWriter::with_capacity(1 << 20, tempfile::tempfile_in(&self.folder)?);
        for (key, rest) in &self.records {
            run.write_all(&key.to_le_bytes())?;
            run.write_all(&rest.to_le_bytes())?;
        }
        let mut run = run.into_inner().map_err(io::IntoInnerError::into_error)?;
        run.rewind()?;
        Ok(run)
    }

    /// Hands over all records in the order of their keys, those of one key in the order of their lines.
    pub(crate) fn finish<E: From<Error>>(
        mut self,
        mut each: impl FnMut(Record) -> Result<(), E>,
    ) -> Result<(), E> {
        self.spill()?;
        drop(std::mem::take(&mut self.records));
        let mut runs: Vec<BufReader<File>> = std::mem::take(&mut self.runs)
            .into_iter()
            .map(|run| BufReader::with_capacity(READ_BYTES, run))
            .collect();
        let mut heads = BinaryHeap::with_capacity(runs.len());
        let started = runs.iter_mut().enumerate().try_for_each(|(number, run)| {
            heads.extend(next(run)?.map(|(key, rest)| Reverse((key, rest, number))));
            Ok(())
        });
        started.map_err(Error::at(&self.folder))?;
        while let Some(Reverse((key, rest, number))) = heads.pop() {
            let following = next(&mut runs[number]).map_err(Error::at(&self.folder))?;
            heads.extend(following.map(|(key, rest)| Reverse((key, rest, number))));
            // Runs hold keys that `push` has taken.
            if let Some(key) = Key::from_raw(key) {
                each((key, SetId(rest as u16), rest >> 16))?;
            }
        }
        Ok(())
    }
}

fn next(run: &mut impl io::Read) -> io::Result<Option<(u64, u64)>> {
    let mut bytes = [0; RECORD];
    match run.read_exact(&mut bytes) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let half = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let word = |at: usize| u64::from(half(at)) | u64::from(half(at + 4)) << 32;
    Ok(Some((word(0), word(8))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Kind;

    #[test]
    fn records_of_many_runs_come_in_order_with_their_lines() {
        let mut sorter = Sorter::new(&std::env::temp_dir(), 0);
        let count = 5000_u64;
        for line in 0..count {
            let number = line * 7919 % count / 2;
            let key = Key::from_number(Kind::Imsi, 15, number).unwrap();
            sorter.push((key, SetId(number as u16), line)).unwrap();
        }
        assert!(sorter.runs.len() > 3);
        let mut all = Vec::new();
        sorter
            .finish(|record| {
                all.push(record);
                Ok::<_, Error>(())
            })
            .unwrap();
        assert_eq!(all.len() as u64, count);
        for (at, (key, set, line)) in all.iter().enumerate() {
            assert_eq!(key.number(), at as u64 / 2);
            assert_eq!(u64::from(set.0), key.number());
            assert_eq!(line * 7919 % count / 2, key.number());
        }
        assert!(all.is_sorted_by_key(|(key, _, line)| (*key, *line)));
    }
}
