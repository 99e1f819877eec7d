//! Circles in a graph.

use std::collections::{BTreeMap, BTreeSet};

/// The sets of nodes that reach one another, each with two nodes or more.
pub(crate) fn circles(arrows: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<BTreeSet<String>> {
    let reached = |from: &str| {
        let mut reached = BTreeSet::new();
        let mut waiting: Vec<&str> = arrows.get(from).into_iter().flatten().copied().collect();
        while let Some(node) = waiting.pop() {
            if reached.insert(node.to_owned()) {
                waiting.extend(arrows.get(node).into_iter().flatten());
            }
        }
        reached
    };
    let all: BTreeMap<&str, BTreeSet<String>> = arrows.keys().map(|node| (*node, reached(node))).collect();
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for (node, reached) in all.iter().filter(|(node, reached)| reached.contains(**node)) {
        if !found.iter().any(|circle| circle.contains(*node)) {
            let back = |other: &&String| all.get(other.as_str()).is_some_and(|from| from.contains(*node));
            found.push(reached.iter().filter(back).cloned().collect());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_reach_one_another() {
        let arrows = [
            ("a", "b"),
            ("b", "c"),
            ("c", "b"),
            ("c", "d"),
            ("e", "f"),
            ("f", "g"),
            ("g", "e"),
        ];
        let mut graph: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (from, to) in arrows {
            graph.entry(from).or_default().insert(to);
        }
        let set = |names: &str| names.split(' ').map(str::to_owned).collect::<BTreeSet<_>>();
        assert_eq!(circles(&graph), [set("b c"), set("e f g")]);
    }
}
