//! Files that functions under test read.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::rig::{Place, RigError};

/// Octets that are written to a file at once.
const GULP: usize = 1 << 20;

/// Writes a file.
pub(crate) fn write(
    file: &Path,
    content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), RigError> {
    let made = File::create(file);
    let written = made.and_then(|out| content(&mut BufWriter::with_capacity(GULP, out)));
    written.map_err(RigError::io(format!("writing {}", file.display())))
}

/// Makes a file of numbers from its text, beside it, as an operator does.
pub(crate) fn import_numbers(text: &Path, place: &Place) -> Result<PathBuf, RigError> {
    let file = text.with_extension("num");
    let mut command = Command::new(&place.program);
    command.args(["numbers", "import", "--sort", "--output"]);
    command.arg(&file).arg(text).stdin(Stdio::null());
    let output = command
        .output()
        .map_err(RigError::io(format!("starting {}", place.program.display())))?;
    if output.status.success() {
        return Ok(file);
    }
    Err(RigError::Settings(format!(
        "{} cannot be imported: {}",
        text.display(),
        String::from_utf8_lossy(&output.stderr).trim()
    )))
}
