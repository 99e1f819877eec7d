//! The generated pages under `docs/reference` are those of this build.

use std::path::Path;

use crate::process::{signalbox, text};

#[test]
fn the_references_are_those_of_this_build() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    for (args, file) in [
        (&["config", "reference"][..], "configuration.md"),
        (&["metrics"], "metrics.md"),
    ] {
        let generated = text(&signalbox(args).stdout);
        let kept = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
        let mut lines = generated.lines().zip(kept.lines());
        let line = lines.position(|(new, old)| new != old);
        assert!(
            generated == kept,
            "docs/reference/{file} is stale, first at line {}: run `make docs` and commit it",
            line.map_or_else(|| "1 or its end".to_owned(), |line| (line + 1).to_string())
        );
    }
}
