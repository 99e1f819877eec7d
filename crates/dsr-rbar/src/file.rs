//! Ranges from a file: one `identity,start,end,destination` per line, `#` begins a comment.

use std::path::Path;

use ahash::AHashMap;

use crate::config::Identity;
use crate::tables::Tables;

pub(crate) fn read(path: &Path, destinations: &AHashMap<&str, u32>, into: &mut Tables) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        add(line, number + 1, destinations, into)
            .map_err(|reason| format!("{}: line {}: {reason}", path.display(), number + 1))?;
    }
    Ok(())
}

fn add(
    line: &str,
    number: usize,
    destinations: &AHashMap<&str, u32>,
    into: &mut Tables,
) -> Result<(), String> {
    let mut fields = line.split(',').map(str::trim);
    let (Some(identity), Some(start), Some(end), Some(to), None) = (
        fields.next(),
        fields.next(),
        fields.next(),
        fields.next(),
        fields.next(),
    ) else {
        return Err("expected identity,start,end,destination".to_owned());
    };
    let identity = Identity::from_word(identity)?;
    let to = destinations
        .get(to)
        .ok_or_else(|| format!("the destination `{to}` does not exist"))?;
    into.add(identity, start, end, *to, number)
}
