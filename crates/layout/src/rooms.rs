//! The rooms of a crate and the arrows between them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::circles::circles;
use crate::paths::{Named, paths};
use crate::tokens::tokens;

/// The rooms of a crate: for each arrow from one to another the places in the sources that make it.
#[derive(Debug, Default)]
pub struct Rooms {
    arrows: BTreeMap<(String, String), BTreeSet<String>>,
}

struct File {
    module: Vec<String>,
    shown: String,
    named: Vec<Named>,
}

impl Rooms {
    /// Reads the sources below a folder (`src`).
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn read(src: &Path) -> io::Result<Self> {
        let (mut files, mut tests) = (Vec::new(), Vec::new());
        for path in sources(src)? {
            let relative = path.strip_prefix(src).unwrap_or(&path);
            let module = module_of(relative);
            let found = paths(&tokens(&fs::read_to_string(&path)?), &module);
            tests.extend(found.tests);
            files.push(File {
                module,
                shown: relative.display().to_string(),
                named: found.named,
            });
        }
        files.retain(|file| !tests.iter().any(|test| file.module.starts_with(test)));
        Ok(Self::of(&files))
    }

    fn of(files: &[File]) -> Self {
        let rooms: BTreeSet<&str> = files
            .iter()
            .filter_map(|file| file.module.first())
            .map(String::as_str)
            .collect();
        let root = files.iter().filter(|file| file.module.is_empty());
        // Names of the root that stand for something in a room.
        let exported: BTreeMap<&str, &str> = root
            .flat_map(|file| &file.named)
            .filter(|named| rooms.contains(named.path[0].as_str()))
            .map(|named| (named.name.as_str(), named.path[0].as_str()))
            .collect();
        let mut arrows: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
        for file in files {
            let Some(from) = file.module.first() else { continue };
            for named in &file.named {
                let first = named.path[0].as_str();
                let to = rooms.get(first).or_else(|| exported.get(first));
                if let Some(to) = to.filter(|to| *to != from) {
                    let places = arrows.entry((from.clone(), (*to).to_owned())).or_default();
                    places.insert(format!("{}: {}", file.shown, named.path.join("::")));
                }
            }
        }
        Self { arrows }
    }

    /// The rooms that import one another, directly or through others.
    #[must_use]
    pub fn circles(&self) -> Vec<BTreeSet<String>> {
        let mut graph: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (from, to) in self.arrows.keys() {
            graph.entry(from).or_default().insert(to);
        }
        circles(&graph)
    }

    /// Of each room that others import, how many do.
    #[must_use]
    pub fn importers(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for (_, to) in self.arrows.keys() {
            *counts.entry(to.as_str()).or_default() += 1;
        }
        counts
    }

    /// The number of rooms in the longest chain of imports, in a crate without circles.
    #[must_use]
    pub fn floors(&self) -> usize {
        let mut floors: BTreeMap<&str, usize> = BTreeMap::new();
        // Each round settles one more floor; a circle ends with the rounds.
        for _ in 0..=self.arrows.len() {
            let mut changed = false;
            for (from, to) in self.arrows.keys() {
                let above = floors.get(to.as_str()).copied().unwrap_or(1) + 1;
                let own = floors.entry(from).or_insert(1);
                changed |= above > *own;
                *own = above.max(*own);
            }
            if !changed {
                break;
            }
        }
        floors.values().copied().max().unwrap_or(1)
    }

    /// The arrows between rooms of a circle, each with the places that make it.
    #[must_use]
    pub fn explain(&self, circle: &BTreeSet<String>) -> String {
        let inside = self
            .arrows
            .iter()
            .filter(|((from, to), _)| circle.contains(from) && circle.contains(to));
        let line = |((from, to), places): (&(String, String), &BTreeSet<String>)| {
            let places: Vec<&str> = places.iter().map(String::as_str).collect();
            format!("  {from} -> {to}: {}\n", places.join(", "))
        };
        inside.map(line).collect()
    }
}

/// All sources, except further binaries, which are crates of their own.
fn sources(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("src/bin") {
            found.extend(sources(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// `a/b.rs` and `a/b/mod.rs` are the module `a::b`; `lib.rs` and `main.rs` are the root.
fn module_of(relative: &Path) -> Vec<String> {
    let stem = relative.with_extension("");
    let mut module: Vec<String> = stem
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    let last = module.last().map(String::as_str);
    if last == Some("mod") || module.len() == 1 && matches!(last, Some("lib" | "main")) {
        module.pop();
    }
    module
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rooms(files: &[(&str, &str)]) -> Rooms {
        let file = |(path, source): &(&str, &str)| {
            let module = module_of(Path::new(path));
            let named = paths(&tokens(source), &module).named;
            let shown = (*path).to_owned();
            File { module, shown, named }
        };
        Rooms::of(&files.iter().map(file).collect::<Vec<_>>())
    }

    #[test]
    fn a_circle_through_a_name_of_the_root_is_found_and_explained() {
        let found = rooms(&[
            ("lib.rs", "mod a; mod b; mod c; pub use b::Thing;"),
            ("a/mod.rs", "use crate::Thing; mod inner;"),
            ("a/inner.rs", "use super::Other; use crate::c::X;"),
            ("b.rs", "fn f() { super::a::g() }"),
            ("c.rs", "use std::fmt;"),
        ]);
        let circles = found.circles();
        assert_eq!(circles, [BTreeSet::from(["a".to_owned(), "b".to_owned()])]);
        assert_eq!(
            found.explain(&circles[0]),
            "  a -> b: a/mod.rs: Thing\n  b -> a: b.rs: a::g\n"
        );
    }

    #[test]
    fn floors_and_importers_are_counted() {
        let found = rooms(&[
            ("lib.rs", "mod a; mod b; mod c; mod d;"),
            ("a.rs", "use crate::{b, d};"),
            ("b.rs", "use crate::c;"),
            ("c.rs", "use crate::d;"),
            ("d.rs", "use std::fmt;"),
        ]);
        assert_eq!(found.floors(), 4);
        assert_eq!(found.importers(), BTreeMap::from([("b", 1), ("c", 1), ("d", 2)]));
        assert_eq!(rooms(&[("lib.rs", "mod a;"), ("a.rs", "")]).floors(), 1);
    }

    #[test]
    fn parents_and_children_are_one_room() {
        let found = rooms(&[
            ("lib.rs", "mod a;"),
            ("a/mod.rs", "use b::C;"),
            ("a/b.rs", "use super::D; use crate::a::E;"),
        ]);
        assert_eq!(found.circles(), []);
    }
}
