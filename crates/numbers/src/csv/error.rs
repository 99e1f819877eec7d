//! Why a text is refused.

use std::io;

use crate::error::Error;
use crate::key::Key;

/// Why an import was refused. The file that was there before is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A line is wrong.
    #[error("line {line}: {mistake}")]
    Line {
        /// From 1.
        line: u64,
        /// What is wrong.
        mistake: Mistake,
    },
    /// A number has two lines.
    #[error("line {line}: {key} is there twice; first on line {first}")]
    Twice {
        /// The number.
        key: Key,
        /// The later line, from 1.
        line: u64,
        /// The earlier one.
        first: u64,
    },
    /// The input cannot be read.
    #[error("reading the input: {0}")]
    Read(io::Error),
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] Error),
}

/// What is wrong with a line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Mistake(String);

impl Mistake {
    /// The refusal of a line.
    pub fn at(line: u64, mistake: impl ToString) -> ImportError {
        let mistake = Self(mistake.to_string());
        ImportError::Line { line, mistake }
    }
}
