//! Prints `docs/reference/compliance.md` (`make docs`).

use std::path::Path;

fn main() -> std::io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    print!("{}", layout::compliance::page(&root)?);
    Ok(())
}
