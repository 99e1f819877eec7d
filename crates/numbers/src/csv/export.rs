//! From a map to text.

use std::io::{self, Write};

use super::{END, FIRST_LINE};
use crate::error::Damaged;
use crate::key::Kind;
use crate::map::Map;

/// Writes all numbers of a map, or those of one kind, in the form and order in which an import takes them; returns their
/// count. `damaged` gets each block that cannot be read; the end of the file is left out then, so that an import refuses it.
///
/// # Errors
/// Those of `output`.
pub fn export(
    map: &Map,
    kind: Option<Kind>,
    output: &mut impl Write,
    mut damaged: impl FnMut(Damaged),
) -> io::Result<u64> {
    let (mut count, mut whole) = (0, true);
    writeln!(output, "{FIRST_LINE}")?;
    map.for_each(
        |key, set| {
            if kind.is_none_or(|kind| kind == key.kind()) {
                count += 1;
                writeln!(output, "{key},{set}")?;
            }
            Ok::<_, io::Error>(())
        },
        |block| {
            whole = false;
            damaged(block);
        },
    )?;
    if whole {
        writeln!(output, "{END}{count}")?;
    }
    output.flush()?;
    Ok(count)
}
