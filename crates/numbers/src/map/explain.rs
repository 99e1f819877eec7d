//! Why a look-up answers what it answers, and what a map consists of.

use std::collections::BTreeMap;
use std::fmt;

use super::Map;
use crate::block::Head;
use crate::error::Damaged;
use crate::key::{BlockName, Key};
use crate::overlay::Changed;

/// Where a number's block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the base, at this byte.
    Base(u64),
    /// Among the changed blocks.
    Changed,
    /// There is none: no number of it is known.
    Absent,
}

/// How a look-up of a number went.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The numbers that the block covers.
    pub block: String,
    /// Where the block is.
    pub place: Place,
    /// The block's form, with its count of numbers, bits and bytes; that it is damaged.
    pub form: Result<String, Damaged>,
    /// The destinations.
    pub found: Result<Option<String>, Damaged>,
}

/// What a map consists of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Numbers of the base, as its header has them.
    pub base_numbers: u64,
    /// Bytes of the base's file.
    pub base_bytes: u64,
    /// Bytes of memory for the base's directory.
    pub directory_bytes: usize,
    /// Blocks of each form, with numbers and bytes.
    pub forms: BTreeMap<&'static str, (u64, u64, u64)>,
    /// Changed blocks.
    pub changed_blocks: usize,
    /// Bytes of memory for them.
    pub changed_bytes: usize,
    /// Destination sets.
    pub sets: usize,
    /// Blocks of the base that are damaged.
    pub damaged: Vec<Damaged>,
}

impl Map {
    /// Explains the look-up of a number.
    #[must_use]
    pub fn explain(&self, key: Key) -> Explanation {
        let block = key.block();
        let changed = self.overlay.read(block, |changed| match changed {
            Changed::Block(owned) => Ok(form(owned.head, owned.bytes.len())),
            Changed::Damaged(offset) => Err(Damaged {
                block,
                offset: *offset,
            }),
        });
        let (place, form) = match (changed, self.base.block_of(block)) {
            (Some(form), _) => (Place::Changed, form),
            (None, Some((offset, view))) => (
                Place::Base(offset),
                view.map(|view| form(view.head, view.bytes.len())),
            ),
            (None, None) => (Place::Absent, Ok("no block".to_owned())),
        };
        let found = self.find(key).map(|set| {
            let set = set.and_then(|set| self.set(set));
            set.map(|set| set.to_string())
        });
        Explanation {
            block: BlockName(block).to_string(),
            place,
            form,
            found,
        }
    }

    /// Reads every block of the base, checks it and counts. Takes as long as reading the file.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let (changed_blocks, changed_bytes) = self.overlay.size();
        let mut summary = Summary {
            base_numbers: self.base.numbers(),
            base_bytes: self.base.file_bytes(),
            directory_bytes: self.base.directory_memory(),
            changed_blocks,
            changed_bytes,
            sets: self.sets.load().len(),
            ..Summary::default()
        };
        for (_, _, view) in self.base.blocks() {
            match view {
                Ok(view) => {
                    let (blocks, numbers, bytes) = summary.forms.entry(view.head.form.name()).or_default();
                    *blocks += 1;
                    *numbers += u64::from(view.head.count);
                    *bytes += view.bytes.len() as u64;
                }
                Err(damaged) => summary.damaged.push(damaged),
            }
        }
        summary
    }
}

fn form(head: Head, bytes: usize) -> String {
    let values = match head.dictionary {
        0 => "written as they are".to_owned(),
        length => format!("indexes into {length}"),
    };
    format!(
        "{}, {} numbers, {} low bits, {} bits a value ({values}), {bytes} bytes",
        head.form.name(),
        head.count,
        head.low_bits,
        head.value_bits
    )
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Base(offset) => write!(f, "base, byte {offset}"),
            Self::Changed => f.write_str("changed blocks"),
            Self::Absent => f.write_str("none"),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = self.base_bytes as f64 / self.base_numbers.max(1) as f64;
        writeln!(
            f,
            "base     {} numbers, {} bytes, {each:.2} bytes a number; {} bytes of memory for the directory",
            self.base_numbers, self.base_bytes, self.directory_bytes
        )?;
        for (form, (blocks, numbers, bytes)) in &self.forms {
            writeln!(f, "blocks   {form}: {blocks}, {numbers} numbers, {bytes} bytes")?;
        }
        writeln!(f, "sets     {}", self.sets)?;
        writeln!(
            f,
            "changed  {} blocks, {} bytes of memory",
            self.changed_blocks, self.changed_bytes
        )?;
        writeln!(f, "damaged  {} blocks", self.damaged.len())
    }
}
