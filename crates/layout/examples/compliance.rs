//! Prints `docs/reference/compliance.md` (`make docs`).

use std::io::Write as _;
use std::path::Path;

fn main() -> std::io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = layout::compliance::page(&root)?;
    std::io::stdout().write_all(page.as_bytes())
}
